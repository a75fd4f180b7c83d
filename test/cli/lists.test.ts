/** Lists and reports as spreadsheets, in a pipe, and searched. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { command as reckoner } from '../support/program.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

const LONG = 'The Very Long-Named Company for Tickets, Parking and Everything Else of Northern Europe, Inc.';

let world: World;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reckoner-lists-'));
  world = await openWorld();
  await world.partners([partner({ name: LONG }), partner({ partner_id: 'p-2', purchase_order: 'PO-4711' })]);
  await world.rows([
    quote(),
    quote({ partner_id: 'p-2', spotPrice: '20.00', partnerCut: '6.00', invoiceAmount: '14.00' }),
  ]);
  await world.close();
  await world.deliver();
});
afterAll(async () => {
  await world.end();
  rmSync(folder, { recursive: true, force: true });
});

const run = (args: string) => {
  const env = { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-12-01T10:00:00Z' };
  return reckoner(args.split(' '), { env });
};
const numbers = async (args: string) =>
  ((await run(`--json invoice list ${args}`)).json() as { number: string }[]).map((each) => each.number);

/** Every list and report, with the first columns of its sheet. */
const SHEETS: Readonly<Record<string, string>> = {
  'partner list': 'partner_id,name,',
  'partner history p-1': 'event_id,occurred_at,',
  'settings history': 'event_id,occurred_at,',
  'invoice list': 'number,document,',
  'reversal list': 'status,request_id,',
  'feed list': 'month,partner_id,',
  'opening list': 'opening_id,cut_over_on,',
  'payment list': 'payment_id,received_on,',
  'payment accounts': 'payer_account,partner_ids,',
  'payment exceptions': 'exception,kind,',
  'payment payouts': 'payout_id,',
  'bank list': 'bank_line_id,booked_on,',
  'dispute list': 'number,partner_id,',
  'email list': 'number,kind,',
  'checkpoint list': 'size,closes,',
  'gl list': 'month,format,',
  'gl entries': 'entry_on,dated_on,entry,document,',
  'audit list': 'event_id,occurred_at,action,',
  'security list': 'at,event,',
  'client list': 'client_id,partner_id,',
  'webhook list': 'partner_id,url,',
  'user list': 'login,name,',
  'approval list': 'request_id,status,',
  'work list': 'item,kind,',
  'remind --dry-run': 'partner_id,partner_name,',
  'reconcile 2026-07': 'month,status,',
  'report position': 'currency,figure,',
  'report aging': 'partner_id,',
  'report statement --partner p-1': '',
  'report trial-balance': '',
  'report bank-reconciliation': 'account,currency,',
  'report close': 'partner_id,name,',
  'report coverage': 'partner_id,month,',
  'report cash-application': 'month,credits,',
  'report roll-forward': 'partner_id,partner_name,month,currency,opening,',
  'report movements': 'entry_on,dated_on,',
  'report reserve': 'partner_id,partner_name,currency,not_due,',
  'report access': 'login,name,role,',
  'report tax': 'country,category,rate,currency,',
  'report unearned': 'partner_id,name,policy_id,currency,unearned,',
};

for (const [command, columns] of Object.entries(SHEETS)) {
  test(`${command} is written as CSV and as a workbook`, async () => {
    const ran = await run(`${command} --format csv`);
    expect([ran.stderr.replace(/^Preliminary: .*\n$/, ''), [0, 4].includes(ran.status ?? -1)]).toEqual(['', true]);
    expect(ran.stdout.startsWith(`\uFEFF${columns}`), ran.stdout.slice(0, 80)).toBe(true);
    const out = join(folder, 'list.xlsx');
    expect((await run(`${command} --format xlsx --out ${out}`)).stderr).toContain(`Wrote ${out}.`);
  });
}

test('no list without a sheet is left out of this test', async () => {
  const help = (await run('--help')).stdout;
  const groups = [...help.matchAll(/^ {2}([a-z]+) +\S/gm)].map(([, name]) => name as string);
  expect(groups.length).toBeGreaterThan(20);
  for (const group of groups.filter((name) => name !== 'help')) {
    const text = (await run(`${group} --help`)).stdout;
    if (/^ {2}list\b/m.test(text)) expect(Object.keys(SHEETS)).toContain(`${group} list`);
    if (group === 'report') {
      const reports = [...text.slice(text.indexOf('Commands:')).matchAll(/^ {2}([a-z-]+)\b/gm)].map(([, name]) => name);
      for (const name of reports.filter((each) => each !== 'help'))
        expect(
          Object.keys(SHEETS).some((each) => each.startsWith(`report ${name}`)),
          name,
        ).toBe(true);
    }
  }
});

test('a sheet that cannot be printed is refused before reminders are recorded', async () => {
  expect(await run('remind --out list.csv')).toMatchObject({ status: 2 });
  expect(await world.sql('SELECT FROM reminders')).toEqual([]);
});

test('in a pipe, nothing is cut', async () => {
  const line = `2026-11-30,1.00,USD,1,B,x,"${LONG}",`;
  writeFileSync(
    join(folder, 'b.csv'),
    `date,amount,currency,account,bank_reference,text,payer,payer_account\n${line}\n`,
  );
  const commands = ['invoice list', 'remind --dry-run', 'report close', 'report aging', 'payment list', 'partner list'];
  for (const command of [`payment import ${join(folder, 'b.csv')}`, ...commands]) {
    expect([command, (await run(command)).stdout]).toEqual([command, expect.stringContaining(LONG)]);
  }
});

test('documents are found by amount, text, day of issue and being overdue', async () => {
  expect(await numbers('--amount 14')).toEqual(['INV-2026-000002']);
  expect(await numbers('--amount 14.01')).toEqual([]);
  expect(await numbers('--text po-4711')).toEqual(['INV-2026-000002']);
  expect(await numbers('--text very')).toEqual(['INV-2026-000001']);
  expect(await numbers('--overdue')).toEqual(['INV-2026-000001', 'INV-2026-000002']);
  expect(await numbers('--from 2026-08-02')).toEqual([]);
  expect(await numbers('--from 2026-08-01 --to 2026-08-01 --text 000001')).toEqual(['INV-2026-000001']);
  expect(await run('invoice list --amount x')).toMatchObject({ status: 2 });
});

test('documents are sorted by a column, in both directions, with their sums below', async () => {
  expect(await numbers('--sort amount_due')).toEqual(['INV-2026-000001', 'INV-2026-000002']);
  expect(await numbers('--sort amount_due --descending')).toEqual(['INV-2026-000002', 'INV-2026-000001']);
  expect(await numbers('--descending')).toEqual(['INV-2026-000002', 'INV-2026-000001']);
  expect(await numbers('--amount-from 14 --due-to 2026-12-31 --kind invoice')).toEqual(['INV-2026-000002']);
  const sorted = await run('invoice list --sort reason');
  expect([sorted.status, sorted.stderr]).toEqual([2, expect.stringContaining('must be one of issued_on, number,')]);
  expect((await run('invoice list')).stdout).toMatch(
    /\n\ntotal +amount due +balance +overdue\nUSD +21\.00 +21\.00 +21\.00\n$/,
  );
  expect((await run('partner list --help')).stdout).toMatch(/--sort <sort> +the column to sort by: .*last_billed/s);
});

test('an empty list says so in its own words, unless an option left rows out', async () => {
  const said = async (args: string) => (await run(args)).stdout.trim();
  expect(await said('dispute list')).toBe('No invoices are in dispute.');
  expect(await said('client list p-1')).toBe(
    "There are no API clients. Create one with 'reckoner client create PARTNER'.",
  );
  expect(await said('partner list --text nobody')).toBe('No partners found.');
});

test('the reserve has its own sentence before the first invoice, and abbreviations as headings', async () => {
  const early = await run('report reserve --as-of 2026-06-30');
  expect(early.stdout).toBe('No invoice is open, and nothing was billed.\n');
  const { stdout } = await run('report reserve');
  expect(stdout).toMatch(/ billed +days +DSO$/m);
});

test('the tax of a future month is refused', async () => {
  const refused = await run('report tax --month 2027-09');
  expect([refused.status, refused.stderr]).toEqual([2, expect.stringContaining('--month 2027-09-01 is in the future')]);
  expect((await run('--json report tax --basis issued')).json()).toMatchObject({ basis: 'issued' });
});
