/** The account statement within one day: what happened stands in its order and under its name, in the PDF too. */
import { getDocument } from 'pdfjs-dist/legacy/build/pdf.mjs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { firstSettings } from '../../src/config/first-settings.ts';
import { creditInvoice } from '../../src/documents/credit.ts';
import { refundCredit, returnRefund } from '../../src/payments/refund.ts';
import {
  type AccountStatement,
  activityText,
  readAccountStatement,
  withoutOwnCorrections,
} from '../../src/reports/account-statement.ts';
import { renderAccountStatement } from '../../src/reports/account-statement-pdf.ts';
import { type Books, inv, openBooks } from '../payments/books.ts';

let books: Books;
let statement: AccountStatement;
beforeAll(async () => {
  books = await openBooks();
  const today = '2026-10-15';
  // Another partner's, so that payments have higher numbers than what is taken back of them.
  for (const reference of ['A-1', 'A-2']) await books.record({ partnerId: 'p-3', reference, receivedOn: today });
  const paid = async (reference: string, amount: string) =>
    (await books.record({ partnerId: 'p-1', reference, amount, receivedOn: today })).paymentId;
  const back = (paymentId: number, kind: 'returned' | 'refunded' | 'mistake') => books.reverse({ paymentId, kind });
  await back(await paid('B-1', '10'), 'returned');
  await back(await paid('B-2', '20'), 'refunded');
  await back(await paid('B-3', '30'), 'mistake');
  const kept = await paid('B-4', '40');
  await books.reverse({ paymentId: await paid('B-5', '40'), kind: 'duplicate', duplicateOf: kept });
  await books.record({ number: inv(9), reference: 'B-6', amount: '77.77', receivedOn: today });
  const { transaction } = books.database;
  const credit = { number: inv(9), amount: '7.77', reason: 'goodwill' };
  await transaction((tx) => creditInvoice(tx, books.acting, credit));
  const number = 'CN-2026-000001';
  await transaction((tx) => refundCredit(tx, books.acting, { number, method: 'ach', reference: 'OUT-1' }));
  await transaction((tx) => returnRefund(tx, books.acting, { number, reason: 'account closed' }));
  statement = await books.database.reading((tx) => readAccountStatement(tx, { partnerId: 'p-1', today, from: today }));
});
afterAll(() => books.end());

const MOVED: readonly (readonly [what: string, amount: string])[] = [
  ['payment B-1', '-10.00'],
  ['payment returned B-1', '10.00'],
  ['payment B-2', '-20.00'],
  ['payment refunded B-2', '20.00'],
  ['payment B-3', '-30.00'],
  ['recorded by mistake: B-3', '30.00'],
  ['payment B-4', '-40.00'],
  ['payment B-5', '-40.00'],
  ['recorded twice: B-5', '40.00'],
  ['payment B-6', '-77.77'],
  ['CN-2026-000001', '-7.77'],
  ['credit paid out: CN-2026-000001', '7.77'],
  ['refund returned: CN-2026-000001', '-7.77'],
];

test('a payment stands before its return, a refund before it came back, each under its name', () => {
  const lines = statement.accounts[0]?.lines ?? [];
  expect(lines.map((line) => [activityText(line), line.amount])).toEqual(MOVED);
  expect(lines.map((line) => line.kind).filter((kind) => kind !== null)).toEqual([
    ...['returned', 'refunded', 'mistake', 'duplicate'],
  ]);
  expect(statement).toMatchObject({ ties: true, accounts: [{ opening: '2308.27', closing: '2182.73' }] });
});

test('the PDF says the same', async () => {
  const pay = { accounts: [], links: new Map<string, string>() };
  const issuer = { ...firstSettings('sandbox').issuer, logo: null } as Parameters<
    typeof renderAccountStatement
  >[0]['issuer'];
  const pdf = await renderAccountStatement({ statement, pay, issuer, sandbox: false });
  const page = await (await getDocument({ data: new Uint8Array(pdf), verbosity: 0 }).promise).getPage(1);
  const text = (await page.getTextContent()).items.map((item) => ('str' in item ? item.str : '')).join(' ');
  const said = [
    'Payment B-1 returned',
    'Payment B-2 refunded',
    'Payment B-3, recorded by mistake',
    'Payment B-5, recorded twice',
  ];
  const places = said.map((each) => text.indexOf(each));
  expect(places).toEqual([...places].sort((one, other) => one - other));
  expect(places[0]).toBeGreaterThan(0);
});

test.each([
  [
    'is left out',
    ['small_difference -12.00', 'payment_received -88.00', 'small_difference_undone 12.00', 'small_difference -12.00'],
    ['payment_received 12.00', 'small_difference 0.00'],
  ],
  [
    'is left out each time',
    [
      ...['small_difference -12.00', 'small_difference_undone 12.00'],
      ...['small_difference -12.00', 'small_difference_undone 12.00'],
    ],
    [],
  ],
  [
    'leaves what was taken back once more',
    ['small_difference -12.00', 'small_difference_undone 12.00', 'small_difference_undone 12.00'],
    ['small_difference_undone 112.00'],
  ],
] as const)('of our own corrections, a difference written off and taken back on one day %s', (_, moved, read) => {
  const line = (written: string) => {
    const [fact, amount = ''] = written.split(' ') as ['payment_received' | 'small_difference', string];
    const dated = { partner_id: 'p-1', date: '2026-03-01', dated_on: '2026-03-01' };
    return { ...dated, fact, kind: null, document: 'INV-2026-000001', reference: null, amount, balance: '0' };
  };
  const account = {
    ...{ currency: 'USD', opening: '100.00', closing: '0.00', open_items: [], unapplied: '0.00', ties: true },
    aging: { not_due: '0', days_1_30: '0', days_31_60: '0', days_61_90: '0', over_90: '0' },
    lines: moved.map(line),
  };
  expect(withoutOwnCorrections(account).map(({ fact, balance }) => `${fact} ${balance}`)).toEqual(read);
});
