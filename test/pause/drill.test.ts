/**
 * The drill of a total loss, by the compiled program: a backup, more work after it, everything lost, restore, resume, close.
 * No number stands for two documents with different content, no Message-ID for two letters.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeDatabase } from '../support/databases.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { command, job, type Ran } from '../support/program.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

/** The ledger that is lost, and the home and the database that replace it. */
let world: World;
let folder: string;
let restored: { home: string; url: string; drop: () => Promise<void> };

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reckoner-drill-'));
  world = await openWorld();
  await world.partners(['p-1', 'p-2', 'p-3'].map((partner_id) => partner({ partner_id })));
  await world.rows(
    ['p-1', 'p-2', 'p-3'].map((partner_id) => quote({ partner_id, accepted_at: '2026-07-10T12:00:00Z' })),
  );
});
afterAll(async () => {
  await world.end();
  await restored?.drop();
  rmSync(folder, { recursive: true, force: true });
});

const inLost = (args: string[], now: string): Promise<Ran> =>
  command(['--json', ...args], {
    env: { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: now },
  });
const envOfRestored = (now: string) => ({
  RECKONER_HOME: restored.home,
  DATABASE_URL: restored.url,
  RECKONER_NOW: now,
});
const inRestored = (args: string[], now = '2026-09-02T12:00:00Z'): Promise<Ran> =>
  command(['--json', ...args], { env: envOfRestored(now) });

interface Issued {
  readonly number: string;
  readonly partner_id: string;
  readonly month: string;
  readonly invoiceAmount: string;
}
const issuedBy = async (ran: Promise<Ran>): Promise<Issued[]> =>
  ((await ran).json() as Issued[]).map(({ number, partner_id, month, invoiceAmount }) => ({
    ...{ number, partner_id, month, invoiceAmount },
  }));

let lost: Issued[] = [];

test('a backup is made; after it two months are closed and sent, and then the machine is gone', async () => {
  expect((await inLost(['close', '2026-07'], '2026-08-01T12:00:00Z')).status).toBe(0);
  expect((await inLost(['backup', join(folder, 'night.backup')], '2026-08-15T02:00:00Z')).status).toBe(0);
  const rows = ['p-1', 'p-2', 'p-3'].map((partner_id) =>
    quote({
      partner_id,
      accepted_at: '2026-08-16T12:00:00Z',
      spotPrice: '20.00',
      partnerCut: '6.00',
      invoiceAmount: '14.00',
    }),
  );
  world.at('2026-08-16T13:00:00Z');
  await world.rows(rows);
  expect((await inLost(['close'], '2026-09-01T12:00:00Z')).status).toBe(0);
  lost = await issuedBy(inLost(['invoice', 'list'], '2026-09-01T12:00:00Z'));
  expect(lost.map(({ number }) => number).at(-1)).toBe('INV-2026-000006');
});

test('the restored ledger is paused, and says so', async () => {
  const { url, drop } = await makeDatabase('restored');
  const home = join(folder, 'home');
  cpSync(world.home, home, { recursive: true, filter: (path) => !path.endsWith('outbox') });
  mkdirSync(join(home, 'outbox'));
  restored = { home, url, drop };
  const ran = await inRestored(['restore', join(folder, 'night.backup')]);
  expect({ status: ran.status, stderr: ran.stderr }).toMatchObject({ status: 0 });
  const status = await inRestored(['status']);
  expect(status.status).toBe(4);
  expect(status.json()).toMatchObject({
    paused: { cause: 'restore', reason: 'restored from night.backup, made at 2026-08-15 02:00 UTC' },
  });
  expect((status.json() as { attention: string[] }).attention[0]).toContain(
    'The ledger has been paused since 2026-09-02 12:00 UTC',
  );
});

test('while it is paused nothing is closed, issued, sent or recorded', async () => {
  const rows = join(folder, 'rows.ndjson');
  writeFileSync(rows, `${JSON.stringify(quote({ accepted_at: '2026-08-20T12:00:00Z' }))}\n`);
  const payment = ['payment', 'record', '--amount', '5', '--currency', 'USD', '--method', 'wire', '--received-on'];
  for (const args of [
    ['close'],
    ['deliver'],
    ['remind'],
    ['checkpoint', 'take'],
    ['ledger', 'import', rows],
    ['invoice', 'void', 'INV-2026-000001', '--reason', 'R'],
    ['invoice', 'credit', 'INV-2026-000001', '--amount', '1', '--reason', 'R'],
    ['invoice', 'resend', 'INV-2026-000001'],
    [...payment, '2026-08-30', '--reference', 'R', '--partner', 'p-1'],
  ]) {
    const ran = await inRestored(args);
    expect({ args, status: ran.status, code: (ran.json() as { error: { code: string } }).error?.code }).toEqual({
      ...{ args, status: 3, code: 'paused' },
    });
  }
  expect(await issuedBy(inRestored(['invoice', 'list']))).toEqual(lost.slice(0, 3));
  expect(readdirSync(join(restored.home, 'outbox'))).toEqual([]);
});

test("cron's jobs do nothing and exit 0 with one line; verify still works", async () => {
  for (const name of ['month-close', 'deliver', 'remind', 'reconcile'] as const) {
    const ran = await job(name, { env: envOfRestored('2026-09-02T13:00:00Z') });
    const lines = ran.stderr
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect({ name, status: ran.status, lines }).toMatchObject({
      ...{ name, status: 0 },
      lines: [
        { level: 'info', code: 'paused' },
        { msg: 'finished', exit: 0 },
      ],
    });
  }
  expect((await job('verify', { env: envOfRestored('2026-09-02T13:00:00Z') })).status).toBe(0);
});

test('a dry run shows what the close would issue once the ledger is resumed', async () => {
  const ran = await inRestored(['close', '--dry-run']);
  expect(ran.json()).toMatchObject({ months: [{ month: '2026-08', status: 'preview', invoices: 0 }] });
  expect((await inRestored(['status'])).json()).toMatchObject({ months: { last_closed: '2026-07' }, paused: {} });
});

/** No credit note and no statement was issued after the backup. */
const OTHER_SERIES = ['--numbers-after', 'CN-2026-000000', '--numbers-after', 'ST-2026-000000'];

test('resume shows what may have happened after the backup, and asks for the numbers that were issued', async () => {
  const ran = await inRestored(['resume']);
  expect(ran.status).toBe(3);
  expect(ran.json()).toMatchObject({
    resumed: false,
    pauses: [{ cause: 'restore', state_of: '2026-08-15T02:00:00Z' }],
    numbers: [{ series: 'INV-2026', last: 'INV-2026-000003' }],
    unused: ['CN-2026', 'ST-2026'],
    emails: { unsent: 0 },
  });
  for (const [given, code] of [
    [['--numbers-after', 'INV-2026-000002', ...OTHER_SERIES], 'numbers_not_ahead'],
    [['--numbers-after', 'INV-2026-900000', ...OTHER_SERIES], 'numbers_implausible'],
    [
      ['--numbers-after', 'INV-2026-000003', '--numbers-after', 'INV-2027-000006', ...OTHER_SERIES],
      'numbers_implausible',
    ],
    [['--numbers-after', 'INV-26-6'], 'argument_invalid'],
    [['--numbers-after', 'INV-2026-000006', '--none-issued'], 'usage'],
  ] as const) {
    const refused = await inRestored(['resume', ...given]);
    expect({ given, code: (refused.json() as { error: { code: string } }).error.code }).toEqual({ given, code });
  }
});

test('a series that is not named would give its numbers again, so every series is asked for', async () => {
  const refused = await inRestored(['resume', '--numbers-after', 'INV-2026-000006']);
  expect([refused.status, refused.json()]).toMatchObject([
    3,
    { error: { code: 'numbers_missing', last: ['CN-2026-000000', 'ST-2026-000000'] } },
  ]);
  expect(refused.stderr).toContain('--numbers-after CN-2026-000000 --numbers-after ST-2026-000000');
  expect((await inRestored(['status'])).json()).toMatchObject({ paused: {} });
});

test('resumed after the last number that anybody has seen, it gives no number twice', async () => {
  const ran = await inRestored([
    'resume',
    '--numbers-after',
    'INV-2026-000006',
    ...OTHER_SERIES,
    '--no-checkpoint-seen',
  ]);
  expect({ status: ran.status, said: ran.json() }).toEqual({
    status: 0,
    said: {
      resumed: true,
      log: expect.objectContaining({ origin: expect.stringMatching(/\/2$/), lost_size: expect.any(Number) }),
      skipped: [{ series: 'INV-2026', first: 'INV-2026-000004', last: 'INV-2026-000006', count: 3 }],
    },
  });
  expect((await inRestored(['resume'])).json()).toMatchObject({ error: { code: 'not_paused' } });
  // The partners send their August again, and one of them more than before.
  const rows = ['p-1', 'p-2', 'p-3', 'p-3'].map((partner_id, index) =>
    quote({ partner_id, quote_id: `again-${index}`, accepted_at: '2026-08-16T12:00:00Z' }),
  );
  const file = join(folder, 'again.ndjson');
  writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  expect((await inRestored(['ledger', 'import', file])).status).toBe(0);
  expect((await inRestored(['close'])).status).toBe(0);
  const issued = await issuedBy(inRestored(['invoice', 'list']));
  expect(issued.map(({ number }) => number)).toEqual([1, 2, 3, 7, 8, 9].map((sequence) => `INV-2026-00000${sequence}`));
  const before = new Map(lost.map((each) => [each.number, each]));
  for (const each of issued) expect(before.get(each.number) ?? each).toEqual(each);
  const letters = (home: string) => readdirSync(join(home, 'outbox')).filter((name) => name.startsWith('INV-'));
  expect(letters(restored.home)).toHaveLength(3);
  expect(letters(restored.home).filter((name) => letters(world.home).includes(name))).toEqual([]);
});

test('verify explains the gap by the skipped numbers, and finds one that nothing explains', async () => {
  expect((await inRestored(['verify'])).status).toBe(0);
  const owner = new pg.Client(restored.url);
  await owner.connect();
  for (const range of ["'INV-2026', 5, 5", "'INV-2026', 9, 12"]) {
    const skip = `INSERT INTO skipped_numbers (series, first_sequence, last_sequence, pause_id, recorded_at, event_id)
                  SELECT ${range}, pause_id, resumed_at, event_id FROM resumptions`;
    await expect(owner.query(skip)).rejects.toMatchObject({ constraint: 'number_given_or_skipped' });
  }
  await owner.query(GUARDS_OFF);
  await owner.query('UPDATE skipped_numbers SET last_sequence = 5');
  await owner.query(GUARDS_ON);
  await owner.end();
  const found = (await inRestored(['verify'])).json() as {
    checks: { check: string; differences: { subject: string; detail: string }[] }[];
  };
  const wrong = found.checks.filter(({ differences }) => differences.length > 0);
  expect(wrong.map(({ check }) => check)).toEqual(['log_derived_again', 'rules_hold']);
  // The gap, and the range that the resumption skipped.
  expect(wrong[1]?.differences.map(({ subject }) => subject)).toEqual([
    'numbers_without_gaps: number 7 of INV-2026',
    expect.stringMatching(/^skipped_by_resumption: numbers \d to 5 of INV-2026$/),
  ]);
  const skipped = await inRestored(['invoice', 'show', 'INV-2026-000005']);
  expect(skipped.status).toBe(2);
  expect(skipped.stderr).toContain('INV-2026-000005 was skipped');
});
