/** Disputes of invoices: what is disputed stays due, is shown wherever the invoice is, and is not dunned. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { readOpenDisputes } from '../../src/documents/disputes.sql.ts';
import { closeDispute, type DisputeRequest, openDispute } from '../../src/documents/disputes.ts';
import { readHistory } from '../../src/documents/history.ts';
import { rerunDocument } from '../../src/documents/rerun.ts';
import { voidDocument } from '../../src/documents/void.ts';
import { planReminders } from '../../src/payments/remind.ts';
import { readAccountStatement } from '../../src/reports/account-statement.ts';
import { readAging } from '../../src/reports/aging.ts';
import { readStatus } from '../../src/reports/status.ts';
import { refusalOf } from '../close/refusal.ts';
import { startOver } from '../close/start-over.ts';
import { command } from '../support/program.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

const INVOICE = 'INV-2026-000001';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());

/** July's invoice of p-1 over 7.00, sent on 1 August and due on 31 August; it is 7 September. */
beforeEach(async () => {
  await startOver(world);
  await world.partners([partner()]);
  await world.rows([quote()]);
  await world.close();
  await world.deliver();
  world.at('2026-09-07T16:00:00Z');
});

const dispute = (request: Partial<DisputeRequest> = {}) =>
  world.database.transaction((tx) => openDispute(tx, world, { number: INVOICE, reason: 'wrong count', ...request }));
const close = (number = INVOICE) =>
  world.database.transaction((tx) => closeDispute(tx, world, { number, reason: 'explained' }));
const list = () => world.database.reading((tx) => readOpenDisputes(tx));
const reminders = async () => (await world.database.reading((tx) => planReminders(tx, world))).plan;

test('a dispute has an amount, a reason, an owner and a promised date, and the balance stays', async () => {
  await dispute({ amount: '3', owner: 'Ada', promisedOn: '2026-09-20' });
  expect(await list()).toEqual([
    {
      ...{ number: INVOICE, partner_id: 'p-1', partner_name: 'Harbour Lights Ticketing', currency: 'USD' },
      ...{ due_on: '2026-08-31', balance: '7', amount: '3.00', reason: 'wrong count', owner: 'Ada' },
      ...{ promised_on: '2026-09-20', disputed_on: '2026-09-07' },
    },
  ]);
  expect((await world.documents())[0]).toMatchObject({ status: 'open', balance: '7.00' });
});

test('without an amount all that is open is disputed, and the invoice is not dunned until the dispute is closed', async () => {
  expect((await reminders()).reminders).toHaveLength(1);
  await dispute();
  expect((await list())[0]?.amount).toBe('7.00');
  expect(await reminders()).toMatchObject({
    reminders: [],
    skipped: [{ number: INVOICE, partner_id: 'p-1', reason: 'disputed' }],
  });
  await close();
  expect(await list()).toEqual([]);
  expect((await reminders()).reminders).toHaveLength(1);
});

test('aging and the account statement show what is disputed on a date, within the unchanged totals', async () => {
  await dispute({ amount: '3.00' });
  world.at('2026-09-10T16:00:00Z');
  await close();
  const aging = (asOf: string) => world.database.reading((tx) => readAging(tx, { asOf, today: '2026-09-10' }));
  for (const [asOf, disputed] of [
    ['2026-09-06', '0.00'],
    ['2026-09-07', '3.00'],
    ['2026-09-10', '0.00'],
  ] as const) {
    const { totals, documents, ties } = await aging(asOf);
    expect([ties, totals[0]?.open, totals[0]?.disputed, documents[0]?.disputed]).toEqual([
      true,
      '7.00',
      disputed,
      disputed,
    ]);
  }
  const statement = await world.database.reading((tx) =>
    readAccountStatement(tx, { partnerId: 'p-1', asOf: '2026-09-08', today: '2026-09-10' }),
  );
  expect(statement.accounts[0]?.open_items[0]).toMatchObject({ balance: '7.00', disputed: '3.00' });
});

test('an invoice has one open dispute at a time; after its end another may follow', async () => {
  await dispute({ amount: '1.00' });
  expect(await refusalOf(dispute())).toEqual({
    code: 'invoice_disputed',
    facts: { number: INVOICE, since: '2026-09-07', amount: '1.00 USD' },
  });
  await close();
  expect(await refusalOf(close())).toMatchObject({ code: 'invoice_not_disputed' });
  await dispute({ amount: '2.00' });
  expect((await list()).map(({ amount }) => amount)).toEqual(['2.00']);
});

test.each([
  ['more than is open', { amount: '7.01' }, 'dispute_exceeds_balance'],
  ['nothing', { amount: '0' }, 'amount_invalid'],
  ['what is no amount', { amount: '1,5' }, 'amount_invalid'],
  ['a promise in the past', { promisedOn: '2026-09-06' }, 'argument_invalid'],
  ['an unknown document', { number: 'INV-2026-000009' }, 'document_unknown'],
] as const)('a dispute of %s is refused and records nothing', async (_, request, code) => {
  expect(await refusalOf(dispute(request))).toMatchObject({ code });
  expect(await list()).toEqual([]);
  expect(await world.sql(`SELECT FROM audit_events WHERE action = 'dispute.open'`)).toEqual([]);
});

test('the status names a dispute from the day after its promised date', async () => {
  await dispute({ owner: 'Ada', promisedOn: '2026-09-08' });
  const late = async () =>
    (await world.database.reading((tx) => readStatus(tx, world))).findings.flatMap(({ kind, urgent }) =>
      kind === 'disputes' ? [urgent] : [],
    );
  world.at('2026-09-08T16:00:00Z');
  expect(await late()).toEqual([]);
  world.at('2026-09-09T16:00:00Z');
  expect(await late()).toEqual([`The answer to the dispute of ${INVOICE} was promised for 2026-09-08 (owner Ada).`]);
});

test('the void of an invoice ends its dispute', async () => {
  await dispute();
  await world.database.transaction((tx) => voidDocument(tx, world, { number: INVOICE, reason: 'a mistake' }));
  expect(await list()).toEqual([]);
  expect(await refusalOf(close())).toMatchObject({ code: 'document_void' });
});

test('an invoice in dispute is not replaced: its replacement would be dunned', async () => {
  await dispute({ amount: '3' });
  await world.partners([partner({ name: 'Harbor Lights Ticketing' })]);
  const rerun = () => world.database.transaction((tx) => rerunDocument(tx, world, INVOICE, { newTerms: false }));
  expect(await refusalOf(rerun())).toMatchObject({ code: 'invoice_disputed', facts: { amount: '3.00 USD' } });
  expect(await list()).toHaveLength(1);
  await close();
  await rerun();
  expect((await world.documents()).map(({ number, status }) => [number, status])).toEqual([
    [INVOICE, 'void'],
    ['INV-2026-000002', 'open'],
  ]);
});

test('both actions are in the history of the invoice, with who did them', async () => {
  await dispute({ amount: '3.00', owner: 'Grace', promisedOn: '2026-09-20' });
  await close();
  const [{ document_id }] = (await world.sql<{ document_id: string }>('SELECT document_id FROM documents')) as [
    { document_id: string },
  ];
  const history = await world.database.reading((tx) => readHistory(tx, Number(document_id)));
  expect(history.slice(-2).map(({ action, says, by }) => [action, says, by?.claimed_by])).toEqual([
    ['disputed', '3.00 USD disputed: wrong count; owner Grace; promised for 2026-09-20', 'Ada'],
    ['dispute_closed', 'dispute closed: explained', 'Ada'],
  ]);
});

test('disputes are append-only, covered by a checkpoint, and checked by verify', async () => {
  await dispute({ amount: '3.00' });
  await expect(world.sql('UPDATE invoice_disputes SET amount = 1')).rejects.toThrow(/append-only/);
  await world.rows([quote({ accepted_at: '2026-08-15T12:00:00Z' })]);
  await world.close();
  const found = await world.verify();
  expect(found.differences).toBe(0);
  const [uncovered] = await world.sql<{ count: number }>(
    `SELECT count(*)::integer AS count FROM invoice_disputes WHERE log_no > (SELECT max(last_no) FROM log_checkpoints)`,
  );
  expect(uncovered?.count).toBe(0);
});

test('the command line opens, shows, lists and closes a dispute', async () => {
  const run = (...args: string[]) =>
    command(args, {
      env: { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-09-07T16:00:00Z' },
    });
  const opened = await run(
    ...['dispute', 'open', INVOICE, '--reason', 'wrong count', '--amount', '3', '--owner', 'Ada'],
    ...['--promised-on', '2026-09-20'],
  );
  const said = '3.00 USD since 2026-09-07, wrong count; owner Ada; promised for 2026-09-20';
  expect(opened.stdout).toContain(`${INVOICE} is in dispute: ${said}.`);
  expect((await run('invoice', 'show', INVOICE)).stdout.replaceAll(/\s+/g, ' ')).toContain(`in dispute ${said}`);
  const shown = await run('--json', 'invoice', 'show', INVOICE);
  expect(shown.json()).toMatchObject({ dispute: { amount: '3.00', balance: '7.00', owner: 'Ada' } });
  expect((await run('dispute', 'list')).stdout).toMatch(/^USD +3\.00 +7\.00$/m);
  const csv = await run('dispute', 'list', '--format', 'csv');
  expect(csv.stdout.replace('\uFEFF', '').split('\r\n')).toEqual([
    'number,partner_id,partner_name,currency,amount,balance,due_on,disputed_on,promised_on,late,owner,reason',
    `${INVOICE},p-1,Harbour Lights Ticketing,USD,3.00,7.00,2026-08-31,2026-09-07,2026-09-20,,Ada,wrong count`,
    '',
  ]);
  const file = join(world.home, 'disputes.xlsx');
  expect((await run('dispute', 'list', '--format', 'xlsx', '-o', file)).status).toBe(0);
  expect(readFileSync(file).subarray(0, 2).toString()).toBe('PK');
  const env = { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-09-21T16:00:00Z' };
  expect((await command(['dispute', 'list'], { env })).stdout).toContain('2026-09-20, late');
  expect((await run('report', 'aging')).stdout).toMatch(/disputed/);
  expect((await run('dispute', 'close', INVOICE, '--reason', 'explained')).status).toBe(0);
  expect((await run('--json', 'dispute', 'list')).json()).toEqual([]);
});
