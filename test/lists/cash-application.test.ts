/** How well the credits of bank files are applied, by month: what a person takes back counts, what the bank takes back does not. */
import { afterAll, beforeEach, expect, test } from 'vitest';
import { rerunDocument } from '../../src/documents/rerun.ts';
import { voidDocument } from '../../src/documents/void.ts';
import { cashApplication } from '../../src/lists/cash-application.ts';
import { BLUE_RIDGE, type Books, HARBOUR, inv, openBooks } from '../payments/books.ts';

let books: Books;
beforeEach(async () => {
  await books?.end();
  books = await openBooks();
});
afterAll(() => books.end());

const report = () =>
  books.database.reading((tx) =>
    cashApplication.read(tx, {
      ...{ filter: {}, scope: null, period: null, today: '2026-10-15', sort: '-month', after: null, limit: null },
      context: { ...books, settings: books.settings },
    }),
  );
const row = async (month = 'total') => (await report()).find((each) => each.month === month);

let lines = 0;
/** A bank file of one line; the id of its payment. */
async function credit(amount: string, text: string, payer: string, on = '2026-10-13'): Promise<number> {
  lines += 1;
  const head = 'date,amount,currency,account,bank_reference,text,payer,payer_account\n';
  const line = `${on},${amount},USD,1,B-${lines},${text},${payer},\n`;
  const { new_lines } = await books.bankText(`${lines}.csv`, `${head}${line}`);
  return new_lines[0]?.payment_id as number;
}
const named = (sequence: number, amount: string, payer: string, on?: string) =>
  credit(amount, `PAYMENT ${inv(sequence)}`, payer, on);
const NORTH = 'SOCIETE THEATRALE DU NORD';
const RIDGE = 'BLUE RIDGE ARENA LLC';

test('without a bank file there is nothing to report', async () => {
  await books.record({ amount: '840.00', number: inv(2), reference: 'FT-1' });
  expect(await report()).toEqual([]);
});

test('what the program applies in full is touchless, and what a person applies is not', async () => {
  await named(2, '840.00', NORTH);
  await named(3, '333.33', RIDGE, '2026-09-20');
  await books.apply(await credit('77.77', 'THANKS', 'J Smith'), inv(9));
  expect(await report()).toMatchObject([
    { month: 'total', credits: 3, applied: 2, undone: 0, precision: '100.0', touchless: 2, touchless_share: '66.6' },
    { month: '2026-10', credits: 2, applied: 1, precision: '100.0', touchless: 1, touchless_share: '50.0' },
    { month: '2026-09', credits: 1, applied: 1, precision: '100.0', touchless: 1, touchless_share: '100.0' },
  ]);
});

test('a month without an automatic application has no precision', async () => {
  await credit('55.01', 'THANKS', 'J Smith');
  expect(await row()).toMatchObject({ credits: 1, applied: 0, precision: null, touchless: 0, touchless_share: '0.0' });
});

test('what a person unapplies was wrong, unless the payment pays the same invoice again', async () => {
  const wrong = await named(2, '840.00', NORTH);
  await named(3, '333.33', RIDGE);
  await books.unapply(wrong);
  const undone = { applied: 2, undone: 1, undone_payments: [wrong], precision: '50.0', touchless: 1 };
  expect(await row()).toMatchObject(undone);
  await books.apply(wrong, inv(6));
  expect(await row()).toMatchObject(undone);
  await books.unapply(wrong);
  await books.apply(wrong, inv(2));
  expect(await row()).toMatchObject({ undone: 0, undone_payments: [], precision: '100.0', touchless: 1 });
});

test('a payer that a person corrects was wrong; one that a person names at first was not known', async () => {
  const wrong = await named(2, '840.00', NORTH);
  await books.assign(wrong, HARBOUR);
  await books.assign(await credit('55.01', 'THANKS', 'J Smith'), BLUE_RIDGE);
  expect(await row()).toMatchObject({ credits: 2, applied: 1, undone: 1, undone_payments: [wrong], touchless: 0 });
});

test('what the bank returns was right, and what is no payment of a customer was not', async () => {
  const returned = await named(2, '840.00', NORTH);
  await books.reverse({ paymentId: returned, kind: 'returned', reason: 'R01' });
  expect(await row()).toMatchObject({ applied: 1, undone: 0, precision: '100.0', touchless: 1 });
  const mistaken = await named(3, '333.33', RIDGE);
  await books.reverse({ paymentId: mistaken, kind: 'other', reason: 'interest', account: 'income:interest' });
  expect(await row()).toMatchObject({ applied: 2, undone: 1, undone_payments: [mistaken], precision: '50.0' });
});

test('a credit whose rest stays unapplied is not touchless', async () => {
  await named(2, '900.00', NORTH);
  expect(await row()).toMatchObject({ applied: 1, touchless: 0, precision: '100.0' });
});

const voided = (number: string) =>
  books.database.transaction((tx) => voidDocument(tx, books, { number, reason: 'wrong rows' }));
async function replaced(number: string): Promise<string> {
  const { issued } = await books.database.transaction((tx) => rerunDocument(tx, books, number, { newTerms: false }));
  return issued[0]?.number as string;
}

test('an invoice that was replaced twice was paid rightly if the payment pays the last replacement', async () => {
  const payment = await named(2, '840.00', NORTH);
  let number = inv(2);
  for (let times = 0; times < 2; times += 1) {
    await books.unapply(payment);
    await voided(number);
    number = await replaced(number);
    expect(await row()).toMatchObject({ applied: 1, undone: 1 });
    await books.apply(payment, number);
  }
  expect(await row()).toMatchObject({ applied: 1, undone: 0, precision: '100.0' });
  await books.unapply(payment);
  expect(await row()).toMatchObject({ applied: 1, undone: 1 });
});

test('an invoice that is voided without a replacement was paid rightly, unless the cash had already moved', async () => {
  const right = await named(2, '840.00', NORTH);
  await books.unapply(right);
  await voided(inv(2));
  expect(await row()).toMatchObject({ applied: 1, undone: 0, precision: '100.0' });
  const wrong = await named(3, '333.33', RIDGE);
  await books.unapply(wrong);
  await books.apply(wrong, inv(6), '10.00');
  await voided(inv(3));
  expect(await row()).toMatchObject({ applied: 2, undone: 1, undone_payments: [wrong] });
});

test('cash of a wrong invoice or payer counts as wrong although it is then refunded', async () => {
  const unapplied = await named(2, '840.00', NORTH);
  await books.unapply(unapplied);
  await books.reverse({ paymentId: unapplied, kind: 'refunded', reason: 'paid twice' });
  const assigned = await named(3, '333.33', RIDGE);
  await books.assign(assigned, HARBOUR);
  await books.reverse({ paymentId: assigned, kind: 'refunded', reason: 'not ours' });
  expect(await row()).toMatchObject({ applied: 2, undone: 2, undone_payments: [assigned, unapplied] });
});
