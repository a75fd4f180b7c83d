/** Correcting documents from the command line: what it prints, how it exits, who is named, and that it sends no other. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startOver } from '../close/start-over.ts';
import { document } from '../documents/correcting.ts';
import { command } from '../support/program.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());
beforeEach(async () => {
  await startOver(world);
  await world.partners(['p-1', 'p-2', 'p-3'].map((partner_id) => partner({ partner_id })));
  await world.rows(['p-1', 'p-2', 'p-3'].map((partner_id) => quote({ partner_id })));
  await world.close();
});

const run = (...args: string[]) =>
  command(args, {
    env: { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-08-03T10:00:00Z' },
  });
const [INV_1, INV_2] = ['INV-2026-000001', 'INV-2026-000002'];
const emails = async () =>
  Object.fromEntries((await world.documents()).map(({ number, email }) => [number, email?.status ?? 'none']));

test('a correction delivers only the documents it changed: others may be under review', async () => {
  expect((await run('invoice', 'void', INV_1, '--reason', 'wrong')).status).toBe(0);
  expect(await emails()).toEqual({ [INV_1]: 'none', [INV_2]: 'queued', 'INV-2026-000003': 'queued' });
  expect((await run('invoice', 'rerun', '--month', '2026-07')).status).toBe(0);
  expect(await emails()).toMatchObject({ [INV_2]: 'queued', 'INV-2026-000003': 'queued', 'INV-2026-000004': 'sent' });
  expect((await run('invoice', 'credit', INV_2, '--amount', '1', '--reason', 'r')).status).toBe(0);
  expect((await run('invoice', 'write-off', INV_2, '--reason', 'r')).status).toBe(0);
  expect(await emails()).toMatchObject({ [INV_2]: 'queued', 'INV-2026-000003': 'queued', 'CN-2026-000001': 'sent' });
  expect((await run('invoice', 'resend', 'INV-2026-000004')).status).toBe(0);
  await world.partners([partner({ partner_id: 'p-3', name: 'New' })]);
  expect((await run('invoice', 'rerun', 'INV-2026-000003', '--no-deliver')).status).toBe(0);
  expect(await emails()).toMatchObject({ [INV_2]: 'queued', 'INV-2026-000003': 'none', 'INV-2026-000005': 'queued' });
  expect((await run('deliver')).status).toBe(0);
  expect(Object.values(await emails())).toEqual(['sent', 'none', 'sent', 'none', 'sent', 'sent']);
}, 120_000);

test('void: prints the document as JSON, or as text with what happens to its rows', async () => {
  const ran = await run('--json', 'invoice', 'void', INV_1, '--reason', 'wrong partner');
  expect({ status: ran.status, json: ran.json() }).toEqual({ status: 0, json: await document(world, INV_1) });
  const people = await run('invoice', 'void', INV_2, '--reason', 'wrong');
  expect(people.stdout).toContain(`${INV_2} is void`);
  expect(people.stdout).toContain(`'reckoner invoice rerun ${INV_2}'`);
  const status = await run('status');
  expect({ exit: status.status, out: status.stdout }).toEqual({
    exit: 4,
    out: expect.stringContaining("'reckoner invoice rerun --month 2026-07'"),
  });
});

test('a document that was voided before it was rendered has only a void copy', async () => {
  await run('invoice', 'void', INV_1, '--reason', 'wrong partner');
  const file = join(world.home, 'copy.pdf');
  const { status, stderr } = await run('invoice', 'pdf', INV_1, '-o', file);
  expect({ status, stderr }).toEqual({
    status: 3,
    stderr: `${INV_1} was voided before its PDF was rendered. Get its void copy with 'reckoner invoice pdf ${INV_1} --void-copy'.\n`,
  });
  expect((await run('invoice', 'pdf', INV_1, '--void-copy', '-o', file)).status).toBe(0);
  expect(readFileSync(file).subarray(0, 5).toString()).toBe('%PDF-');
});

test('rerun of one: unchanged or replaced, and the replacement', async () => {
  const same = await run('--json', 'invoice', 'rerun', INV_1);
  expect({ exit: same.status, json: same.json() }).toMatchObject({
    exit: 0,
    json: { status: 'unchanged', document: { number: INV_1, status: 'open' } },
  });
  expect((await run('invoice', 'rerun', INV_1)).stdout).toBe(
    `${INV_1} is unchanged: a new document would be identical.\n`,
  );
  await world.partners([partner({ name: 'New' })]);
  expect((await run('--json', 'invoice', 'rerun', INV_1)).json()).toMatchObject({
    status: 'replaced',
    document: { number: 'INV-2026-000004', replaces: INV_1, email: { status: 'sent' } },
  });
  expect((await run('invoice', 'rerun', INV_1)).status).toBe(3);
});

test('rerun of a month: unchanged ones counted, gaps issued, refused ones listed with exit 4', async () => {
  await run('invoice', 'void', INV_1, '--reason', 'wrong');
  await run('invoice', 'hold', INV_2);
  await world.partners([partner({ partner_id: 'p-2', name: 'New' })]);
  const ran = await run('--json', 'invoice', 'rerun', '--month', '2026-07', '--changed');
  const money = { currency: 'USD', amount_due: '7.00', due_on: '2026-08-31' };
  expect({ exit: ran.status, json: ran.json() }).toEqual({
    exit: 4,
    json: {
      month: '2026-07',
      dry_run: false,
      unchanged: ['INV-2026-000003'],
      replaced: [],
      issued: [{ number: 'INV-2026-000004', replaces: INV_1, partner_id: 'p-1', ...money, amount_due_before: '7.00' }],
      differing: [],
      refused: [
        {
          ...{ number: INV_2, code: 'document_on_hold', message: expect.stringContaining('on hold') },
          remedies: [{ label: 'Release it', action: 'invoice.release', input: { number: INV_2 } }],
          ...{ partner_id: 'p-2', ...money },
        },
      ],
    },
  });
  await run('invoice', 'release', INV_2, '--no-deliver');
  const listed = await run('invoice', 'rerun', '--month', '2026-07');
  expect({ exit: listed.status, out: listed.stdout }).toEqual({ exit: 0, out: expect.stringContaining('--changed') });
  const again = await run('invoice', 'rerun', '--month', '2026-07', '--changed');
  expect(again.status).toBe(0);
  expect(again.stdout).toContain('1 replaced');
  expect(again.stdout).toMatch(/INV-2026-000005 .* replaces INV-2026-000002/);
  expect(again.stdout).toContain("the partner's name changed");
});

test('a list in a pipe cuts nothing, and shows names, balances, days overdue, holds and totals by currency', async () => {
  const name = 'Harbour Lights Ticketing and Event Protection Company';
  const address = {
    line1: '1 Main Street',
    line2: '',
    city: 'Boulder',
    region: 'CO',
    postal_code: '80302',
    country: 'US',
  };
  const [policy, ...policies] = partner()['policies'] as object[];
  const cancellation = [
    { window_days: 14, after_window: 'pro_rata' },
    { from: '2026-12-01', window_days: 30 },
  ];
  const own = { tax_id: 'US-1', purchase_order: 'PO 7', legal_note: 'A note.' };
  await world.partners([partner({ name, address, ...own, policies: [{ ...policy, cancellation }, ...policies] })]);
  expect((await run('invoice', 'rerun', INV_1, '--no-deliver')).status).toBe(0);
  const replacement = 'INV-2026-000004';
  await run('invoice', 'credit', replacement, '--amount', '2', '--reason', 'agreed', '--no-deliver');
  await run('invoice', 'hold', INV_2);
  const at = (now: string, ...args: string[]) =>
    command(args, { env: { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: now } });
  const { stdout } = await at('2026-09-10T10:00:00Z', 'invoice', 'list');
  expect(stdout).toMatch(new RegExp(`^${replacement} +${name} +2026-08-31 +10 +7\\.00 +5\\.00 +USD +open`, 'm'));
  expect(stdout).toMatch(/^INV-2026-000002 .* 7\.00 +7\.00 +USD +open, on hold/m);
  expect(stdout).toMatch(/^CN-2026-000001 .* -2\.00 +0\.00 +USD +paid/m);
  expect(stdout).toMatch(/^USD +26\.00 +19\.00 +19\.00$/m);
  const shown = (await run('partner', 'show', 'p-1')).stdout;
  for (const said of [
    /address +1 Main Street, Boulder, CO 80302, United States/,
    /tax id +US-1/,
    /PO +PO 7/,
    /legal note +A note\./,
    /balance +5\.00 USD \(5\.00 USD open\)/,
    /^INV-2026-000004 +2026-07 +2026-08-31 +5\.00 +USD$/m,
    /^policy +cancellation\n[\w-]+ +14 days, then pro rata by cover\n +30 days, then nothing from 2026-12-01$/m,
  ])
    expect(shown).toMatch(said);
  expect((await run('--json', 'partner', 'show', 'p-1')).json()).toMatchObject({
    account: [{ currency: 'USD', net: '5.00', documents: [{ number: replacement, balance: '5.00' }] }],
  });
});

test('a dry run of a rerun shows the numbers and amounts that the run then gives, and writes nothing', async () => {
  await run('invoice', 'void', INV_1, '--reason', 'wrong');
  await world.partners([partner({ partner_id: 'p-2', name: 'New' })]);
  const before = await world.documents();
  const options = ['--json', 'invoice', 'rerun', '--month', '2026-07', '--changed'];
  const preview = (await run(...options, '--dry-run')).json() as { documents: { number: string }[] };
  const one = (await run('--json', 'invoice', 'rerun', INV_1, '--dry-run')).json();
  expect(one).toMatchObject({ issued: [{ number: 'INV-2026-000004', replaces: INV_1, amount_due: '7.00' }] });
  const people = await run('invoice', 'rerun', '--month', '2026-07', '--changed', '--dry-run');
  expect(people.stdout).toMatch(/^unchanged +INV-2026-000003 /m);
  expect(people.stdout).toContain('nothing was written');
  expect(await world.documents()).toEqual(before);
  const { documents, ...planned } = preview;
  expect((await run(...options)).json()).toEqual({ ...planned, dry_run: false });
  expect(documents.map((each) => each.number)).toEqual(['INV-2026-000005', 'INV-2026-000004']);
});

test('usage: a rerun takes a number or a month, a void, credit and write-off a reason', async () => {
  for (const args of [
    ['rerun'],
    ['rerun', INV_1, '--month', '2026-07'],
    ['rerun', '--month', 'July'],
    ['rerun', INV_1, '--changed'],
    ['rerun', INV_1, '--partner', 'p-1'],
    ['void', INV_1],
    ['void', INV_1, '--reason', ' '],
    ['void', INV_1, '--reason', 'two\nlines'],
    ['credit', INV_1, '--amount', '1'],
    ['credit', INV_1, '--reason', 'r'],
    ['credit', INV_1, '--amount', 'ten', '--reason', 'r'],
    ['write-off', INV_1],
    ['resend', INV_1, '--to', 'a@partner.example,b@partner.example'],
  ]) {
    expect({ args, status: (await run('invoice', ...args)).status }).toEqual({ args, status: 2 });
  }
  expect((await run('invoice', 'rerun', '--month', '2026-08')).status).toBe(3);
}, 120_000);

test('the audit event has the claimed name, the user and the host', async () => {
  await run('--by', 'Ada <ada@finance>', 'invoice', 'hold', INV_1, '--reason', 'disputed');
  await run('invoice', 'release', INV_1, '--no-deliver');
  await run('--by', 'Grace', 'invoice', 'credit', INV_1, '--amount', '1', '--reason', 'agreed', '--no-deliver');
  await run('--by', 'Grace', 'invoice', 'write-off', INV_1, '--reason', 'bankrupt');
  await run('--by', 'Grace', 'invoice', 'void', INV_2, '--reason', 'wrong');
  await run('--by', 'Grace', 'invoice', 'rerun', '--month', '2026-07', '--no-deliver');
  const events = await world.sql(
    `SELECT action, subject, details, personal(claimed_by) AS claimed_by, os_user <> '' AND host <> '' AS seen, via FROM audit_events
     WHERE action LIKE 'invoice.%' ORDER BY event_id`,
  );
  const seen = { seen: true, via: 'command' };
  expect(events).toMatchObject([
    {
      ...seen,
      action: 'invoice.hold',
      subject: INV_1,
      details: { reason: 'disputed' },
      claimed_by: 'Ada <ada@finance>',
    },
    { ...seen, action: 'invoice.release', claimed_by: null },
    {
      ...seen,
      action: 'invoice.credit',
      details: { amount: '1.00', currency: 'USD', reason: 'agreed' },
      claimed_by: 'Grace',
    },
    { ...seen, action: 'invoice.write_off', details: { amount: '6.00' } },
    { ...seen, action: 'invoice.void', subject: INV_2, details: { reason: 'wrong' } },
    { ...seen, action: 'invoice.rerun', subject: '2026-07' },
  ]);
  const shown = (await run('--json', 'invoice', 'show', INV_1)).json() as {
    story: { action: string; by: object | null }[];
  };
  expect(shown.story.find(({ action }) => action === 'written_off')?.by).toMatchObject({ claimed_by: 'Grace' });
}, 120_000);

test('a failed delivery exits 4, and the correction stays recorded', async () => {
  await world.partners([partner({ invoicing_contact: { name: '', email: '', cc: [] }, name: 'New' })]);
  const ran = await run('--json', 'invoice', 'rerun', INV_1);
  expect({ exit: ran.status, json: ran.json() }).toMatchObject({
    exit: 4,
    json: { status: 'replaced', document: { email: { status: 'held' } } },
  });
  expect((await run('invoice', 'rerun', '--month', '2026-07')).status).toBe(0);
});

test('the history fits a terminal of 80 columns, however long the reason', async () => {
  await run(
    '--by',
    'Ada',
    'invoice',
    'void',
    INV_1,
    '--reason',
    `${'x'.repeat(200)} and many words ${'of it '.repeat(30)}`,
  );
  const { stdout } = await run('invoice', 'show', INV_1);
  const long = stdout.split('\n').filter((line) => line.length > 80);
  expect(long).toEqual([]);
});
