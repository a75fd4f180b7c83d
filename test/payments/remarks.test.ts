/** What an import says of money that it applies, and money that is for a written-off invoice or for nobody's invoice. */
import { afterAll, beforeEach, expect, test } from 'vitest';
import { exceptionJson } from '../../src/cli/commands/payment/exceptions.ts';
import { undoWriteOff, writeOffInvoice } from '../../src/documents/write-off.ts';
import { Amount } from '../../src/money.ts';
import { closeException, listExceptions } from '../../src/payments/exceptions.ts';
import { areDigitsSwapped } from '../../src/payments/match.ts';
import { type Books, inv, openBooks, refusalOf } from './books.ts';

let books: Books;
beforeEach(async () => {
  await books?.end();
  books = await openBooks();
});
afterAll(() => books.end());

const HEAD = 'date,amount,currency,account,bank_reference,text,payer,payer_account\n';
const listed = () =>
  books.database.reading(async (tx) => Promise.all((await listExceptions(tx, books.settings)).map(exceptionJson)));
const imported = (line: string) => books.bankText(`${line.length}.csv`, `${HEAD}${line}\n`);

test.each([
  ['548.46', '584.46', true],
  ['1225.00', '1252.00', true],
  ['58.44', '54.84', true],
  ['548.46', '548.64', true],
  ['548.46', '554.46', false],
  ['548.46', '846.54', false],
  ['48.46', '484.60', false],
])('whether %s is %s with two neighboring digits changed over: %s', (one, other, swapped) => {
  expect(areDigitsSwapped(Amount.of(one, 'USD'), Amount.of(other, 'USD'))).toBe(swapped);
});

test('a part payment with two digits changed over says what stays open, until the rest is paid', async () => {
  const { new_lines } = await imported(`2026-10-14,1205.00,USD,1,B-1,${inv(1)},Harbour Lights Ticketing,ACC-90001`);
  expect(new_lines).toMatchObject([
    {
      ...{ needs_review: false, remark: true, applied: [{ number: inv(1), amount: '1205.00' }] },
      why: `pays a part of ${inv(1)}; 45.00 USD stays open; 1,250.00 USD was owed: digits may be swapped`,
    },
  ]);
  expect(await listed()).toMatchObject([
    {
      ...{ kind: 'digits_swapped', exception: `payment-${new_lines[0]?.payment_id}`, amount: '45.00' },
      reason: `1205.00 of 1250.00 was paid of ${inv(1)}, and 45.00 is left open: digits may be swapped`,
    },
  ]);
  await books.record({ amount: '45.00', number: inv(1), reference: 'REST' });
  expect(await listed()).toEqual([]);
  await books.verified();
});

test('a part payment with two digits changed over that was meant is closed with a reason', async () => {
  const { new_lines } = await imported(`2026-10-14,1205.00,USD,1,B-1,${inv(1)},Harbour Lights Ticketing,ACC-90001`);
  const exception = `payment-${new_lines[0]?.payment_id}`;
  await books.database.transaction((tx) =>
    closeException(tx, books.acting, { exception, reason: 'they pay in parts' }),
  );
  expect(await listed()).toEqual([]);
  await books.verified();
});

test("an exact amount from a known account is held where the text names another partner's invoice", async () => {
  await imported(`2026-10-13,1250.00,USD,1,B-1,${inv(1)},Harbour Lights Ticketing,ACC-90001`);
  const { new_lines } = await imported(`2026-10-14,77.77,USD,1,B-2,${inv(4)},Harbour Lights Ticketing,ACC-90001`);
  expect(new_lines).toMatchObject([
    {
      ...{ needs_review: true, applied: [], suggested: [{ number: inv(9), amount: '77.77' }] },
      why: `${inv(4)} is named, but it is in EUR, and the payment in USD; ${inv(9)} is suggested`,
    },
  ]);
});

test('a payment that names a written-off invoice comes with the command that reopens it', async () => {
  const action = { number: inv(1), reason: 'insolvent' };
  await books.database.transaction((tx) => writeOffInvoice(tx, books, action));
  const { new_lines } = await imported(`2026-10-14,1250.00,USD,1,B-1,${inv(1)},Harbour Lights Ticketing,ACC-90001`);
  const id = new_lines[0]?.payment_id ?? 0;
  expect(new_lines[0]?.why).toContain(`${inv(1)} is written off; undoing the write-off reopens it`);
  const [exception] = await listed();
  expect(exception?.commands.slice(0, 2)).toEqual([
    `reckoner invoice write-off --undo ${inv(1)} --reason REASON`,
    `reckoner payment apply ${id} --invoice ${inv(1)}`,
  ]);
  await books.database.transaction((tx) => undoWriteOff(tx, books, action));
  expect((await listed())[0]?.commands).toEqual([`reckoner payment apply ${id} --invoice ${inv(1)}`]);
  await books.apply(id, inv(1));
  expect(await books.balance(inv(1))).toMatchObject({ status: 'paid', amount_paid: '1250.00', credited: '0.00' });
  await books.verified();
});

test('so does one that was recorded for it; one of another currency or with a number that has to be guessed does not', async () => {
  const { paymentId } = await books.record({ amount: '1250.00', number: inv(1) });
  await books.unapply(paymentId);
  await books.database.transaction((tx) => writeOffInvoice(tx, books, { number: inv(1), reason: 'insolvent' }));
  await imported(`2026-10-14,12.00,EUR,1,B-1,${inv(1)},Somebody,`);
  await imported('2026-10-14,13.00,USD,1,B-2,INV-2026-1,Somebody Else,');
  const reopening = (await listed()).filter(({ commands }) => commands.some((each) => each.includes(' --undo ')));
  expect(reopening).toMatchObject([{ payment_id: paymentId, reference: 'FT-1' }]);
});

test("money that is no customer's is booked to an account: it stays in the bank and is nobody's unapplied cash", async () => {
  const { new_lines } = await imported('2026-10-14,12.05,USD,1,B-1,GROSS INTEREST,,');
  const paymentId = new_lines[0]?.payment_id ?? 0;
  expect((await listed())[0]?.commands).toContain(
    `reckoner payment reverse ${paymentId} --as other --reason REASON --account income:ACCOUNT (if it is not a customer's)`,
  );
  const book = (account: string | undefined, kind: 'other' | 'mistake' = 'other') =>
    books.reverse({ paymentId, kind, account, reason: 'bank interest' });
  for (const account of [
    undefined,
    'interest',
    'income:Interest',
    'assets:bank:1',
    'liabilities:unapplied',
    'income:sales',
  ]) {
    expect(await refusalOf(book(account))).toBe('argument_invalid');
  }
  expect(await refusalOf(book('income:interest', 'mistake'))).toBe('argument_invalid');
  await book('income:interest');
  expect(await listed()).toEqual([]);
  expect(
    await books.sql(
      `SELECT account, sum(amount)::text AS amount FROM journal_of_facts
       WHERE account NOT LIKE '%receivable%' AND account NOT LIKE 'income:sales%'
       GROUP BY account HAVING sum(amount) <> 0 ORDER BY account`,
    ),
  ).toEqual([
    { account: 'assets:bank:1', amount: '12.05' },
    { account: 'income:interest', amount: '-12.05' },
  ]);
  expect(await books.payment(paymentId)).toMatchObject({ status: 'reversed', unapplied: '0.00' });
  await books.verified();
});
