/**
 * Whatever changes what is open of a document changes its balance, the open items of the day and the journal by the same
 * amount on the same day, and so does undoing it after the books of its month were closed.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { undoWriteOff } from '../../src/documents/write-off.ts';
import { refundCredit, returnRefund } from '../../src/payments/refund.ts';
import { type Books, booksOf, inv } from '../payments/books.ts';
import { openWorld, partner } from '../support/world.ts';
import { type Corrections, correctionsOf, expectVerified, refund, sale } from './correcting.ts';

let books: Books;
let action: Corrections;
beforeAll(async () => {
  books = booksOf(await openWorld(), { small_difference: { USD: '25.00' } });
  action = correctionsOf(books);
});
afterAll(() => books.end());

type Changes = Readonly<Record<string, string>>;
type Step = readonly [day: string, happens: string, act: () => Promise<unknown>, changes: Changes];

const [CN_1, CN_2] = ['CN-2026-000001', 'CN-2026-000002'] as const;

const of = (partner_id: string) => ({ partner_id });
const [theirs, other] = [sale('2026-06', '40', of('p-4')), sale('2026-06', '40', of('p-5'))];
const paid = (partnerId: string, amount: string) => books.record({ partnerId, amount, receivedOn: '2026-08-02' });

const STEPS: readonly Step[] = [
  ['2026-07-02', 'June is invoiced', () => books.close('2026-06'), { [inv(1)]: '40', [inv(2)]: '40' }],
  [
    '2026-08-02',
    'July is invoiced, and credited where it is below zero',
    async () => {
      const sales = ['p-1', 'p-2', 'p-3'].map((each) => sale('2026-07', '100', of(each)));
      await books.rows([...sales, refund(theirs, '2026-07'), refund(other, '2026-07')]);
      await books.close('2026-07');
    },
    { [inv(3)]: '100', [inv(4)]: '100', [inv(5)]: '100', [CN_1]: '40', [CN_2]: '40' },
  ],
  [
    '2026-08-03',
    'a payment is applied in part',
    async () => books.apply((await paid('p-1', '99')).paymentId, inv(3), '60'),
    { [inv(3)]: '-60' },
  ],
  [
    '2026-08-04',
    'a payment is applied of which a bank kept a little',
    async () => books.apply((await paid('p-2', '99.50')).paymentId, inv(4)),
    { [inv(4)]: '-100' },
  ],
  ['2026-08-05', 'an invoice is written off', () => action.writeOff(inv(5)), { [inv(5)]: '-100' }],
  ['2026-08-06', 'credit is applied', () => action.apply(CN_1, inv(1)), { [CN_1]: '-40', [inv(1)]: '-40' }],
  [
    '2026-08-07',
    'credit is paid out',
    () =>
      books.database.transaction((tx) =>
        refundCredit(tx, books.acting, { number: CN_2, amount: '30', method: 'wire', reference: 'OUT-1' }),
      ),
    { [CN_2]: '-30' },
  ],
  [
    '2026-09-02',
    'August is invoiced, and the books of all three months are closed',
    async () => {
      await books.rows([sale('2026-08', '100', of('p-6'))]);
      await books.close('2026-08');
      await books.closeBooks('2026-06', '2026-07', '2026-08');
    },
    { [inv(6)]: '100' },
  ],
  ['2026-09-03', 'a payment is unapplied', async () => books.unapply(1), { [inv(3)]: '60' }],
  ['2026-09-04', 'a payment is unapplied, and what the bank kept with it', () => books.unapply(2), { [inv(4)]: '100' }],
  [
    '2026-09-05',
    'a write-off is undone',
    () => books.database.transaction((tx) => undoWriteOff(tx, books, { number: inv(5), reason: 'they pay after all' })),
    { [inv(5)]: '100' },
  ],
  ['2026-09-06', 'credit is taken back', () => action.unapply(CN_1, inv(1)), { [CN_1]: '40', [inv(1)]: '40' }],
  [
    '2026-09-07',
    'the bank returns credit that was paid out',
    () =>
      books.database.transaction((tx) => returnRefund(tx, books.acting, { number: CN_2, reason: 'account closed' })),
    { [CN_2]: '30' },
  ],
  ['2026-09-08', 'an invoice is voided', () => action.voided(inv(6)), { [inv(6)]: '-100' }],
];

/** The documents that a query of numbers and amounts has, without those at zero. */
async function changesBy(query: string, day?: string): Promise<Changes> {
  const rows = await books.sql<{ number: string; amount: string }>(
    `SELECT number, trim_scale(sum(amount))::text AS amount FROM (${query}) AS changes
     GROUP BY number HAVING sum(amount) <> 0 ORDER BY number`,
    day === undefined ? [] : [day],
  );
  return Object.fromEntries(rows.map(({ number, amount }) => [number, amount]));
}

const balances = () =>
  changesBy('SELECT number, balance AS amount FROM documents JOIN document_balances USING (document_id)');

const inOpenItems = (day: string) =>
  changesBy(
    `SELECT number, balance AS amount FROM open_items($1::date) JOIN documents USING (document_id)
     UNION ALL
     SELECT number, -balance FROM open_items($1::date - 1) JOIN documents USING (document_id)`,
    day,
  );

/** An entry that applies credit names the invoice as its document and the credit note as its reference. */
const inJournal = (day: string) =>
  changesBy(
    `SELECT d.number, CASE d.document WHEN 'invoice' THEN j.amount ELSE -j.amount END AS amount
     FROM journal_of_facts j JOIN documents d
       ON CASE d.document WHEN 'invoice' THEN j.control = 'assets:receivable:billed' AND d.number = j.document
                          ELSE j.control = 'liabilities:partner-credit' AND d.number IN (j.document, j.reference) END
     WHERE j.entry_on = $1::date`,
    day,
  );

const minus = (after: Changes, before: Changes): Changes =>
  Object.fromEntries(
    Object.keys({ ...before, ...after })
      .map((number) => [number, String(Number(after[number] ?? 0) - Number(before[number] ?? 0))] as const)
      .filter(([, change]) => change !== '0'),
  );

test('each fact changes the balance, the open items and the journal by the same amount on its day, and again when undone', async () => {
  await books.partners([1, 2, 3, 4, 5, 6].map((each) => partner(of(`p-${each}`))));
  await books.rows([theirs, other]);
  for (const [day, happens, act, changes] of STEPS) {
    books.at(`${day}T15:00:00Z`);
    const before = await balances();
    await act();
    const balance = minus(await balances(), before);
    const [openItems, journal] = [await inOpenItems(day), await inJournal(day)];
    expect({ happens, balance, openItems, journal }).toEqual({
      ...{ happens, balance: changes, openItems: changes, journal: changes },
    });
  }
  // What was undone later was open, or not, on its day all the same.
  for (const [day, happens, , changes] of STEPS) {
    expect([happens, await inOpenItems(day), await inJournal(day)]).toEqual([happens, changes, changes]);
  }
  await expectVerified(books);
  // Each SELECT of the view has had its fact, done and undone: a new kind belongs into the steps.
  const [kinds] = await books.sql<{ done: number; undone: number; selects: number }>(
    `SELECT count(*) FILTER (WHERE done)::int AS done, count(*) FILTER (WHERE undone)::int AS undone,
            cardinality(string_to_array(pg_get_viewdef('balance_changes'), 'UNION ALL')) AS selects
     FROM (SELECT true AS done, bool_or(undone) AS undone FROM balance_changes GROUP BY document, fact) AS kinds`,
  );
  // The issue of invoices and of credit notes is one SELECT; no credit note was voided.
  expect(kinds).toEqual({ selects: 7, done: 8, undone: 7 });
});
