/** Bank lines that are no customer's money, lines that go back, and lines that the bank states again. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { bankLines } from '../../src/lists/bank-lines.ts';
import { methodOf } from '../../src/payments/bank/statement.ts';
import { unbookBankLine } from '../../src/payments/bank-booking.ts';
import { listExceptions } from '../../src/payments/exceptions.ts';
import { refundCredit, returnRefund } from '../../src/payments/refund.ts';
import { readBankReconciliation } from '../../src/reports/bank-reconciliation.ts';
import { quote, reversal } from '../support/world.ts';
import { type Books, inv, openBooks, refusalOf } from './books.ts';

let books: Books;
beforeAll(async () => {
  books = await openBooks();
});
afterEach(() => books.verified());
afterAll(() => books.end());

const HEAD = 'date,amount,currency,account,bank_reference,text,payer,payer_account\n';
let files = 0;
const bank = (...lines: readonly string[]) => {
  files += 1;
  return books.bankText(`lines-${files}.csv`, `${HEAD}${lines.join('\n')}\n`);
};
const idOf = async (reference: string): Promise<number> =>
  (
    await books.sql<{ id: number }>('SELECT bank_line_id::int AS id FROM bank_lines WHERE bank_reference = $1', [
      reference,
    ])
  )[0]?.id ?? 0;
const balanceOf = async (account: string): Promise<number> =>
  Number(
    (await books.sql<{ sum: string }>('SELECT sum(amount) FROM journal WHERE account = $1', [account]))[0]?.sum ?? 0,
  );
const exceptions = () => books.database.reading((tx) => listExceptions(tx, books.settings));
const reconciled = async (account: string) => {
  const found = await books.database.reading((tx) => readBankReconciliation(tx, { account, today: '2026-12-31' }));
  return found.accounts[0];
};

test('check deposits and lockboxes are checks, by code and in words', () => {
  expect(['115', '174', '175', '176', '165', '195', '699'].map((type) => methodOf(type, ''))).toEqual([
    ...['check', 'check', 'check', 'check', 'ach', 'wire', 'other'],
  ]);
  expect(methodOf('', 'LOCKBOX DEPOSIT')).toBe('check');
  expect(methodOf('NCHK', 'paid')).toBe('check');
  expect(methodOf('', 'Check 1044')).toBe('check');
  expect(methodOf('', 'CHECK CARD PURCHASE')).toBe('other');
});

describe("a debit that is no customer's money", () => {
  test('is booked to its account, can be booked elsewhere, and the booking can be taken back', async () => {
    await bank('2026-10-12,-35.00,USD,0031,BK-7008,MONTHLY FEE,,');
    expect(await reconciled('0031')).toMatchObject({
      state: 'items',
      books: '0.00',
      not_in_books: '-35.00',
      bank: '-35.00',
    });
    const bankLineId = await idOf('BK-7008');
    await books.book({ bankLineId });
    expect(await balanceOf('assets:bank:0031')).toBe(-35);
    expect(await balanceOf('expenses:bank-charges')).toBe(35);
    expect(await reconciled('0031')).toMatchObject({ state: 'tied', books: '-35.00', bank: '-35.00', items: [] });
    expect(await refusalOf(books.book({ bankLineId }))).toBe('argument_invalid');
    await books.book({ bankLineId, kind: 'other', account: 'expenses:subscriptions' });
    expect(await balanceOf('expenses:bank-charges')).toBe(0);
    expect(await balanceOf('expenses:subscriptions')).toBe(35);
    await books.database.transaction((tx) => unbookBankLine(tx, books.acting, { bankLineId, reason: 'not ours' }));
    expect(await balanceOf('assets:bank:0031')).toBe(0);
    expect(await reconciled('0031')).toMatchObject({
      state: 'items',
      items: [{ bank_line_id: bankLineId, amount: '-35.00' }],
    });
    await books.book({ bankLineId });
  });

  test('is never booked to an account that invoices and payments move, nor without an account', async () => {
    await bank('2026-10-12,-6.00,USD,0032,BK-1,SOMETHING,,');
    const bankLineId = await idOf('BK-1');
    for (const account of ['assets:bank:0001', 'liabilities:unapplied', 'income:sales', 'payroll', undefined]) {
      expect(await refusalOf(books.book({ bankLineId, kind: 'other', account }))).toBe('argument_invalid');
    }
    expect(await refusalOf(books.book({ bankLineId: 99_999 }))).toBe('argument_invalid');
    await books.book({ bankLineId, kind: 'transfer' });
    expect(await balanceOf('assets:transfers')).toBe(6);
  });

  test("is booked to bank charges by itself if its code is certainly the bank's, but not twice", async () => {
    const bai = (reference: string) =>
      [
        ...['01,BANK,OURS,261013,0600,1,80,,2/', '02,OURS,BANK,1,261012,,USD,2/', '03,0033,USD,,,,/'],
        `16,698,1800,Z,${reference},,MISC FEES/`,
        ...['49,1800,3/', '98,1800,1,5/', '99,1800,1,7/'],
      ].join('\n');
    const first = await books.bankText('fees.bai', bai('F-1'));
    expect(first.new_lines).toMatchObject([
      { outcome: 'booked', needs_review: false, why: 'bank charges, by the code 698' },
    ]);
    expect(await reconciled('0033')).toMatchObject({ state: 'tied', books: '-18.00' });
    const again = await books.bankText('fees-again.bai', bai('F-2'));
    expect(again.new_lines).toMatchObject([
      {
        outcome: 'ignored',
        needs_review: true,
        why: expect.stringContaining('possible duplicate of bank charges: fees.bai'),
      },
    ]);
  });

  test('that returned a payment reverses it, by its line', async () => {
    const { new_lines } = await bank(`2026-10-12,333.33,USD,0034,B-1,${inv(3)},Blue Ridge Arena LLC,`);
    const paymentId = new_lines[0]?.payment_id ?? 0;
    expect(await books.balance(inv(3))).toMatchObject({ status: 'paid' });
    const { new_lines: back } = await bank('2026-10-13,-333.33,USD,0034,X-1,MISC DEBIT,,');
    expect(back).toMatchObject([{ outcome: 'ignored', needs_review: true }]);
    const bankLineId = await idOf('X-1');
    const exception = (await exceptions()).find((each) => each.exception === `line-${bankLineId}`);
    expect(exception?.remedies[0]).toMatchObject({
      action: 'payment.reverse',
      input: { paymentId: String(paymentId), kind: 'returned', bankLineId: String(bankLineId) },
    });
    expect(await refusalOf(books.reverse({ paymentId, bankLineId, kind: 'refunded' }))).toBe('argument_invalid');
    await books.reverse({ paymentId, bankLineId });
    expect(await books.balance(inv(3))).toMatchObject({ status: 'open', amount_paid: '0.00' });
    expect((await exceptions()).map((each) => each.exception)).not.toContain(`line-${bankLineId}`);
    expect(await reconciled('0034')).toMatchObject({ state: 'tied', books: '0.00', bank: '0.00' });
    expect(await refusalOf(books.book({ bankLineId }))).toBe('argument_invalid');
  });
});

test('a payment by hand without an account is in transit until a bank line shows its account', async () => {
  await books.record({ partnerId: 'p-2', method: 'check', amount: '41.41', reference: 'CHECK-1044' });
  const nowhere = async () =>
    (await reconciled(''))?.items.map(({ amount, payment_id }) => [amount, payment_id !== null]);
  expect(await nowhere()).toEqual([['-41.41', true]]);
  const { new_lines } = await bank('2026-10-16,41.41,USD,0035,DEP-1,CHECK-1044,,');
  expect(new_lines).toMatchObject([{ outcome: 'duplicate' }]);
  expect(await reconciled('')).toBeUndefined();
  expect(await reconciled('0035')).toMatchObject({ state: 'tied', books: '41.41', bank: '41.41' });
});

describe('a statement that the bank issues again with another amount', () => {
  const statement = (amount: string, text = inv(7)) =>
    `${HEAD}2026-10-05,${amount},USD,0036,S-A,${text},Blue Ridge Arena LLC,\n`;

  test('is held, names both payments, and offers to reverse either', async () => {
    const first = await books.bankText('s5.csv', statement('120.10'));
    const paid = first.new_lines[0]?.payment_id ?? 0;
    expect(first.new_lines).toMatchObject([{ applied: [{ number: inv(7), amount: '120.10' }] }]);
    const second = await books.bankText('s5-corrected.csv', statement('115.10'));
    const held = second.new_lines[0]?.payment_id ?? 0;
    expect(second.new_lines).toMatchObject([{ applied: [], same_as: [paid], needs_review: true }]);
    expect(second.new_lines[0]?.why).toContain(
      's5.csv has the reference S-A with the amount 120.10, and the bank states it again with another amount',
    );
    const exception = (await exceptions()).find((each) => each.exception === `payment-${held}`);
    expect(exception).toMatchObject({ kind: 'possible_duplicate' });
    const reversals = exception?.remedies.flatMap((each) => ('input' in each ? [each.input['paymentId']] : []));
    expect(reversals).toEqual(expect.arrayContaining([String(paid), String(held)]));
    await books.reverse({ paymentId: paid, reason: 'the bank corrected its amount' });
    expect((await exceptions()).find((each) => each.exception === `payment-${held}`)?.kind).toBe('suggestion');
    await books.apply(held, inv(7));
    expect(await books.balance(inv(7))).toMatchObject({ amount_paid: '115.10' });
  });

  test('is a new payment if the file has the first one too, and an ordinary one on another day', async () => {
    const line = (day: string, amount: string) => `2026-10-${day},${amount},USD,0037,BATCH,thanks,Somebody,`;
    await bank(line('05', '1.10'));
    expect((await bank(line('05', '1.10'), line('05', '1.20'))).new_lines).toMatchObject([{ same_as: [] }]);
    expect((await bank(line('06', '1.30'))).new_lines).toMatchObject([{ same_as: [] }]);
  });
});

test('a refund that comes back is an exception whose remedy records the return by its line', async () => {
  const sale = quote({ partner_id: 'p-1', accepted_at: '2026-10-05T12:00:00Z' });
  await books.rows([sale]);
  books.at('2026-11-02T15:00:00Z');
  await books.close();
  await books.rows([reversal(sale, { accepted_at: '2026-11-01T12:00:00Z' })]);
  books.at('2026-12-02T15:00:00Z');
  await books.close();
  const note = (await books.documents()).find((each) => each.document === 'credit_note');
  const [number, amount] = [note?.number ?? '', note?.balance ?? ''];
  await books.database.transaction((tx) =>
    refundCredit(tx, books.acting, { number, method: 'ach', reference: 'OUT-9001' }),
  );
  expect(await reconciled('')).toMatchObject({ in_transit: amount, bank: '0.00' });
  await bank(`2026-12-02,-${amount},USD,0038,OUT-9001,REFUND ${number},,`);
  expect(await reconciled('0038')).toMatchObject({ state: 'tied', bank: `-${amount}` });
  const bai = [
    ...['01,BANK,OURS,261203,0600,1,80,,2/', '02,OURS,BANK,1,261202,,USD,2/', '03,0038,USD,,,,/'],
    `16,257,${amount.replace('.', '')},Z,RT-77,,INDIVIDUAL ACH RETURN ITEM R03 NO ACCOUNT ORIG OUT-9001 ${number}/`,
    ...[`49,${amount.replace('.', '')},3/`, `98,${amount.replace('.', '')},1,5/`, `99,${amount.replace('.', '')},1,7/`],
  ].join('\n');
  expect((await books.bankText('returned.bai', bai)).new_lines).toMatchObject([
    { outcome: 'ignored', needs_review: true },
  ]);
  const bankLineId = await idOf('RT-77');
  const exception = (await exceptions()).find((each) => each.exception === `line-${bankLineId}`);
  const input = { number, bankLineId: String(bankLineId), reason: 'returned by the bank' };
  expect(exception?.remedies[0]).toMatchObject({ action: 'credit.refund_returned', input });
  await books.database.transaction((tx) => returnRefund(tx, books.acting, { ...input, bankLineId }));
  expect((await books.documents()).find((each) => each.number === number)?.balance).toBe(amount);
  expect((await exceptions()).map((each) => each.exception)).not.toContain(`line-${bankLineId}`);
  expect(await reconciled('0038')).toMatchObject({ state: 'tied', books: '0.00', bank: '0.00' });
});

test('a line says what became of its payment, and not what the import suggested', async () => {
  const reasonOf = async (reference: string) => {
    const asked = { filter: { text: reference }, scope: null, today: '2026-10-31', sort: 'bank_line_id' } as const;
    const rows = await books.database.reading((tx) =>
      bankLines.read(tx, { ...asked, period: null, after: null, limit: null, context: books }),
    );
    return rows[0]?.reason;
  };
  await bank('2026-10-29,77.77,USD,0031,BK-SUGGESTED,THANKS,HARBOUR LIGHTS,');
  const [line] = await books.sql<{ payment_id: number; reason: string }>(
    `SELECT payment_id, reason FROM bank_line_states JOIN bank_lines USING (bank_line_id) WHERE bank_reference = 'BK-SUGGESTED'`,
  );
  expect(line?.reason).toMatch(/ is suggested$/);
  expect(await reasonOf('BK-SUGGESTED')).toBe(line?.reason.replace(/; [^;]*$/, ''));
  const [open] = await books.sql<{ number: string }>(
    `SELECT number FROM document_balances JOIN documents USING (document_id) WHERE partner_id = 'p-1' AND balance = 77.77`,
  );
  await books.apply(Number(line?.payment_id), open?.number ?? '');
  expect(await reasonOf('BK-SUGGESTED')).toBe(`applied to ${open?.number}`);
});
