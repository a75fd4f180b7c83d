/** Journal, trial balance, aging and account statement, by one story that can be checked on paper. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { creditInvoice } from '../../src/documents/credit.ts';
import { voidDocument } from '../../src/documents/void.ts';
import { writeOffInvoice } from '../../src/documents/write-off.ts';
import { recordPayment } from '../../src/payments/record.ts';
import { readAccountStatement } from '../../src/reports/account-statement.ts';
import { bucketOf, readAging } from '../../src/reports/aging.ts';
import { readTrialBalance } from '../../src/reports/trial-balance.ts';
import { openWorld, partner, quote, reversal, type World } from '../support/world.ts';

let world: World;

const HUNDRED = { spotPrice: '100.00', partnerCut: '30.00', invoiceAmount: '70.00' };
const LESS_HUNDRED = { spotPrice: '-100.00', partnerCut: '-30.00', invoiceAmount: '-70.00' };

beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
  const sales = [1, 2, 3].map(() => quote(HUNDRED));
  await world.rows(sales);
  await world.close(); // INV-1 of 210.00, due 31 August
  world.at('2026-09-01T10:00:00Z');
  await world.rows([reversal(sales[0] as object as never, { accepted_at: '2026-08-20T12:00:00Z', ...LESS_HUNDRED })]);
  await world.close(); // CN-1 of 70.00
  world.at('2026-09-05T12:00:00Z');
  const wire = { currency: 'USD', method: 'wire' } as const;
  const pay = (request: {
    amount: string;
    receivedOn: string;
    reference: string;
    number?: string;
    partnerId?: string;
  }) => world.database.transaction((tx) => recordPayment(tx, world, { ...wire, ...request }));
  await pay({ amount: '100.00', receivedOn: '2026-09-04', reference: 'FT-1', number: 'INV-2026-000001' });
  world.at('2026-09-06T12:00:00Z');
  await pay({ amount: '50.00', receivedOn: '2026-09-06', reference: 'FT-2', partnerId: 'p-1' });
  world.at('2026-09-10T12:00:00Z');
  const credit = { number: 'INV-2026-000001', amount: '20.00', reason: 'goodwill' };
  await world.database.transaction((tx) => creditInvoice(tx, world, credit)); // CN-2, used at once
  world.at('2026-09-20T13:00:00Z');
  await world.rows([quote({ accepted_at: '2026-09-20T12:00:00Z', ...HUNDRED })]);
  world.at('2026-10-01T12:00:00Z');
  await world.close(); // INV-2 of 70.00, paid by the credit of CN-1
  world.at('2026-10-02T12:00:00Z');
  await world.database.transaction((tx) =>
    voidDocument(tx, world, { number: 'INV-2026-000002', reason: 'wrong address' }),
  );
  world.at('2026-10-03T12:00:00Z');
  await world.database.transaction((tx) =>
    writeOffInvoice(tx, world, { number: 'INV-2026-000001', reason: 'bankrupt' }),
  );
});
afterAll(() => world.end());

// The whole story as an accountant would keep it: debits plain, credits below zero.
const BOOKS: readonly (readonly [until: string, accounts: Readonly<Record<string, string>>])[] = [
  ['2026-07-31', { 'assets:receivable:unbilled': '210.00', 'income:sales': '-210.00' }],
  ['2026-08-01', { 'assets:receivable:billed': '210.00', 'income:sales': '-210.00' }],
  [
    '2026-08-31',
    {
      'assets:receivable:billed': '210.00',
      'assets:receivable:unbilled': '-70.00',
      'income:sales': '-140.00',
    },
  ],
  [
    '2026-09-15',
    {
      'assets:bank': '150.00',
      'assets:receivable:billed': '90.00',
      'income:adjustments': '20.00',
      'income:sales': '-140.00',
      'liabilities:partner-credit': '-70.00',
      'liabilities:unapplied': '-50.00',
    },
  ],
  [
    '2026-10-01',
    {
      'assets:bank': '150.00',
      'assets:receivable:billed': '90.00',
      'income:adjustments': '20.00',
      'income:sales': '-210.00',
      'liabilities:unapplied': '-50.00',
    },
  ],
  [
    '2026-10-03',
    {
      'assets:bank': '150.00',
      'assets:receivable:unbilled': '70.00',
      'expenses:bad-debts': '90.00',
      'income:adjustments': '20.00',
      'income:sales': '-210.00',
      'liabilities:partner-credit': '-70.00',
      'liabilities:unapplied': '-50.00',
    },
  ],
];

for (const [asOf, accounts] of BOOKS) {
  test(`the trial balance of ${asOf} is the one worked out on paper, and its debits are its credits`, async () => {
    const trial = await world.database.reading((tx) => readTrialBalance(tx, { asOf, today: asOf, detail: false }));
    const signed = trial.accounts.map(({ account, debit, credit }) => [
      account,
      credit === '0.00' ? debit : `-${credit}`,
    ]);
    expect(Object.fromEntries(signed)).toEqual(accounts);
    expect(trial.balanced).toBe(true);
    expect(trial.totals[0]?.debit).toBe(trial.totals[0]?.credit);
  });
}

test('in detail, accounts are those of partners and policies', async () => {
  const trial = await world.database.reading((tx) =>
    readTrialBalance(tx, { asOf: '2026-09-15', today: '2026-10-03', detail: true }),
  );
  expect(trial.accounts.map((each) => each.account)).toEqual([
    'assets:bank',
    'assets:receivable:billed:p-1',
    'income:adjustments:p-1',
    'income:sales:ticket-protection',
    'liabilities:partner-credit:p-1',
    'liabilities:unapplied:p-1',
  ]);
});

// Of INV-1, due on 31 August: 90.00 after the payment of 100.00 and the credit of 20.00 on 210.00.
const AGES: readonly (readonly [asOf: string, column: string, open: string, credit: string, unapplied: string])[] = [
  ['2026-08-15', 'not_due', '210.00', '0.00', '0.00'],
  ['2026-08-31', 'not_due', '210.00', '0.00', '0.00'],
  ['2026-09-01', 'days_1_30', '210.00', '70.00', '0.00'],
  ['2026-09-04', 'days_1_30', '110.00', '70.00', '0.00'],
  ['2026-09-10', 'days_1_30', '90.00', '70.00', '50.00'],
  ['2026-09-30', 'days_1_30', '90.00', '70.00', '50.00'],
  ['2026-10-01', 'days_31_60', '90.00', '0.00', '50.00'],
  ['2026-10-02', 'days_31_60', '90.00', '70.00', '50.00'],
];

test.each(AGES)(
  'on %s it stands in %s with %s, credit %s and unapplied cash %s beside it',
  async (asOf, column, open, credit, unapplied) => {
    const aging = await world.database.reading((tx) => readAging(tx, { asOf, today: '2026-10-03' }));
    const name = 'Harbour Lights Ticketing';
    const net = (Number(open) - Number(credit) - Number(unapplied)).toFixed(2);
    const zeros = {
      disputed: '0.00',
      not_due: '0.00',
      days_1_30: '0.00',
      days_31_60: '0.00',
      days_61_90: '0.00',
      over_90: '0.00',
    };
    expect(aging.partners).toEqual([
      {
        partner_id: 'p-1',
        partner_name: name,
        currency: 'USD',
        ...zeros,
        [column]: open,
        open,
        credit,
        unapplied,
        net,
      },
    ]);
    expect(aging.ties).toBe(true);
  },
);

test('with a clock earlier than the latest entry, aging is of the day of that entry, and ties', async () => {
  const aging = await world.database.reading((tx) => readAging(tx, { today: '2026-09-15' }));
  expect(aging).toMatchObject({ as_of: '2026-10-03', ties: true, documents_differ: [] });
  const balances = await world.database.reading((tx) => readTrialBalance(tx, { today: '2026-09-15', detail: false }));
  expect(balances.as_of).toBe('2026-10-03');
});

test('after the write-off only credit and unapplied cash are left, and the net is below zero', async () => {
  const aging = await world.database.reading((tx) => readAging(tx, { today: '2026-10-03' }));
  expect(aging).toMatchObject({
    as_of: '2026-10-03',
    partners: [{ open: '0.00', credit: '70.00', unapplied: '50.00', net: '-120.00' }],
    ties: true,
    documents_differ: [],
  });
  expect(aging.tie.map(({ account, open_items, journal }) => [account, open_items, journal])).toEqual([
    ['assets:receivable:billed', '0.00', '0.00'],
    ['liabilities:partner-credit', '70.00', '70.00'],
    ['liabilities:unapplied', '50.00', '50.00'],
  ]);
});

test('the account statement brings forward, tells each movement, and ends with what is open', async () => {
  const statement = await world.database.reading((tx) =>
    readAccountStatement(tx, { partnerId: 'p-1', asOf: '2026-09-30', today: '2026-10-03' }),
  );
  expect(statement).toMatchObject({ from: '2026-09-01', as_of: '2026-09-30', ties: true });
  const [account] = statement.accounts;
  expect(account?.opening).toBe('210.00');
  expect(
    account?.lines.map(({ date, fact, document, reference, amount, balance }) => [
      date,
      fact,
      document ?? reference,
      amount,
      balance,
    ]),
  ).toEqual([
    ['2026-09-01', 'document_issued', 'CN-2026-000001', '-70.00', '140.00'],
    ['2026-09-04', 'payment_received', 'FT-1', '-100.00', '40.00'],
    ['2026-09-06', 'payment_received', 'FT-2', '-50.00', '-10.00'],
    ['2026-09-10', 'document_issued', 'CN-2026-000002', '-20.00', '-30.00'],
  ]);
  expect(account?.closing).toBe('-30.00');
  expect(account?.open_items.map(({ number, balance, days_due }) => [number, balance, days_due])).toEqual([
    ['CN-2026-000001', '70.00', null],
    ['INV-2026-000001', '90.00', 30],
  ]);
});

test('a statement of nobody, or one that ends before it begins, is refused', async () => {
  const ask = (request: object) =>
    world.database.reading((tx) => readAccountStatement(tx, { partnerId: 'p-1', today: '2026-10-03', ...request }));
  await expect(ask({ partnerId: 'p-9' })).rejects.toMatchObject({ code: 'partner_unknown' });
  await expect(ask({ from: '2026-10-04' })).rejects.toMatchObject({ code: 'argument_invalid' });
});

test('the journal has a balanced entry for each fact, with its true date, document and reference', async () => {
  const lines = await world.sql(
    `SELECT entry_on::text, fact, account, round(amount, 2)::text AS amount, document, personal(reference) AS reference FROM journal
     WHERE fact NOT IN ('quote_accepted', 'reversal') ORDER BY entry_on, fact, log_no, amount DESC`,
  );
  expect(lines.map((line) => Object.values(line).join(' '))).toEqual([
    '2026-08-01 document_issued assets:receivable:billed:p-1 210.00 INV-2026-000001 ',
    '2026-08-01 document_issued assets:receivable:unbilled:p-1 -210.00 INV-2026-000001 ',
    '2026-09-01 document_issued assets:receivable:unbilled:p-1 70.00 CN-2026-000001 ',
    '2026-09-01 document_issued liabilities:partner-credit:p-1 -70.00 CN-2026-000001 ',
    '2026-09-04 payment_applied liabilities:unapplied:p-1 100.00 INV-2026-000001 FT-1',
    '2026-09-04 payment_applied assets:receivable:billed:p-1 -100.00 INV-2026-000001 FT-1',
    '2026-09-04 payment_received assets:bank 100.00  FT-1',
    '2026-09-04 payment_received liabilities:unapplied:p-1 -100.00  FT-1',
    '2026-09-06 payment_received assets:bank 50.00  FT-2',
    '2026-09-06 payment_received liabilities:unapplied:p-1 -50.00  FT-2',
    '2026-09-10 credit_applied liabilities:partner-credit:p-1 20.00 INV-2026-000001 CN-2026-000002',
    '2026-09-10 credit_applied assets:receivable:billed:p-1 -20.00 INV-2026-000001 CN-2026-000002',
    '2026-09-10 document_issued income:adjustments:p-1 20.00 CN-2026-000002 ',
    '2026-09-10 document_issued liabilities:partner-credit:p-1 -20.00 CN-2026-000002 ',
    '2026-10-01 credit_applied liabilities:partner-credit:p-1 70.00 INV-2026-000002 CN-2026-000001',
    '2026-10-01 credit_applied assets:receivable:billed:p-1 -70.00 INV-2026-000002 CN-2026-000001',
    '2026-10-01 document_issued assets:receivable:billed:p-1 70.00 INV-2026-000002 ',
    '2026-10-01 document_issued assets:receivable:unbilled:p-1 -70.00 INV-2026-000002 ',
    '2026-10-02 credit_released assets:receivable:billed:p-1 70.00 INV-2026-000002 CN-2026-000001',
    '2026-10-02 credit_released liabilities:partner-credit:p-1 -70.00 INV-2026-000002 CN-2026-000001',
    '2026-10-02 document_voided assets:receivable:unbilled:p-1 70.00 INV-2026-000002 ',
    '2026-10-02 document_voided assets:receivable:billed:p-1 -70.00 INV-2026-000002 ',
    '2026-10-03 written_off expenses:bad-debts 90.00 INV-2026-000001 ',
    '2026-10-03 written_off assets:receivable:billed:p-1 -90.00 INV-2026-000001 ',
  ]);
});

test.each([
  ['2026-08-31', 'not_due'],
  ['2026-09-01', 'days_1_30'],
  ['2026-09-30', 'days_1_30'],
  ['2026-10-01', 'days_31_60'],
  ['2026-10-30', 'days_31_60'],
  ['2026-10-31', 'days_61_90'],
  ['2026-11-29', 'days_61_90'],
  ['2026-11-30', 'over_90'],
])('what is due on 2026-08-31 is, on %s, %s', (asOf, bucket) => expect(bucketOf('2026-08-31', asOf)).toBe(bucket));
