/** Connected accounts get statements; a partner whose arrangement changed gets both kinds of document. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { entries } from '../../src/lists/entries.ts';
import { openWorld, partner, quote, reversal, type World } from '../support/world.ts';
import { startOver } from './start-over.ts';

const CONNECTED = {
  arrangement: 'connected_account',
  connected_account_id: 'acct_1',
  merchant_of_record: 'platform',
  split: 'real_time',
};

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());
beforeEach(() => startOver(world));

test('a connected account’s month is a statement: the same lines, nothing due, paid', async () => {
  await world.partners([partner(CONNECTED)]);
  await world.rows([quote(), quote({ policy_id: 'parking' })]);
  expect(await world.close()).toEqual(['2026-07']);
  expect(await world.documents()).toMatchObject([
    {
      number: 'ST-2026-000001',
      series: 'ST-2026',
      document: 'statement',
      status: 'paid',
      due_on: null,
      enrollments: 2,
      invoiceAmount: '14.00',
      credit_applied: '0.00',
      amount_due: '0.00',
      balance: '0.00',
      lines: [{ policy_id: 'parking' }, { policy_id: 'ticket-protection', invoiceAmount: '7.00' }],
    },
  ]);
  expect(await world.months('2026-07')).toMatchObject([
    { invoices: 0, statements: 1, totals: [{ invoice_amount: '14' }] },
  ]);
});

test('a statement of reversals only shows their negative sums: it is never a credit note', async () => {
  await world.partners([partner(CONNECTED)]);
  const sold = quote({ accepted_at: '2026-06-10T00:00:00Z' });
  await world.rows([sold]);
  await world.close('2026-06');
  await world.rows([reversal(sold, { accepted_at: '2026-07-10T00:00:00Z' })]);
  await world.close('2026-07');
  expect((await world.documents()).at(-1)).toMatchObject({
    document: 'statement',
    status: 'paid',
    invoiceAmount: '-7.00',
    amount_due: '0.00',
    lines: [{ kind: 'reversal', invoiceAmount: '-7.00' }],
  });
});

test('where the eras meet, reversals of invoiced quotes give a credit note beside the statement', async () => {
  await world.partners([partner()]);
  const invoiced = quote();
  await world.rows([invoiced, quote()]);
  await world.close('2026-07');
  await world.partners([partner({ ...CONNECTED, arrangement_from: '2026-08' })]);
  world.at('2026-09-01T10:00:00Z');
  await world.rows([
    quote({ accepted_at: '2026-08-10T00:00:00Z' }),
    reversal(invoiced, { accepted_at: '2026-08-11T00:00:00Z' }),
  ]);
  await world.close();
  expect(
    (await world.documents()).map(({ number, month, invoiceAmount, status }) => [number, month, invoiceAmount, status]),
  ).toEqual([
    ['CN-2026-000001', '2026-08', '7.00', 'open'],
    ['INV-2026-000001', '2026-07', '14.00', 'open'],
    ['ST-2026-000001', '2026-08', '7.00', 'paid'],
  ]);
  expect(await world.months('2026-08')).toMatchObject([
    {
      invoices: 0,
      credit_notes: 1,
      statements: 1,
      entries: 2,
      partners_without_activity: 0,
      totals: [{ currency: 'USD', invoice_amount: '0' }],
    },
  ]);
});

test('late rows of the invoiced era give an invoice beside the statement of the same month and currency', async () => {
  await world.partners([partner()]);
  await world.rows([quote()]);
  await world.close('2026-07');
  await world.partners([partner({ ...CONNECTED, arrangement_from: '2026-08' })]);
  world.at('2026-09-01T10:00:00Z');
  await world.rows([quote({ accepted_at: '2026-07-20T00:00:00Z' }), quote({ accepted_at: '2026-08-20T00:00:00Z' })]);
  await world.close();
  expect(
    (await world.documents({ months: ['2026-08' as never] })).map(({ number, lines }) => [
      number,
      lines.map((line) => line.month),
    ]),
  ).toEqual([
    ['INV-2026-000002', ['2026-07']],
    ['ST-2026-000001', ['2026-08']],
  ]);
  // The list of entries has each row once, with the document that bills it, and comes to the journal.
  const filter = { filter: { month: '2026-08' }, scope: null, period: null, today: '2026-09-01', sort: 'entry_on' };
  const listed = await world.database.reading((tx) =>
    entries.read(tx, { ...filter, after: null, limit: null, context: world } as never),
  );
  const journal = await world.sql<{ account: string; amount: number }>(
    `SELECT account, sum(amount)::float8 AS amount FROM journal WHERE month = '2026-08' GROUP BY 1 HAVING sum(amount) <> 0`,
  );
  const sums: Record<string, number> = {};
  for (const { account, amount } of listed) sums[account] = (sums[account] ?? 0) + Number(amount);
  expect(Object.fromEntries(Object.entries(sums).filter(([, sum]) => sum !== 0))).toEqual(
    Object.fromEntries(journal.map(({ account, amount }) => [account, amount])),
  );
  const sales = listed.filter(({ account }) => account === 'income:sales:ticket-protection');
  expect(sales.map(({ document, amount }) => [document, Number(amount)])).toEqual([
    ['INV-2026-000002', -7],
    ['ST-2026-000001', -7],
  ]);
});
