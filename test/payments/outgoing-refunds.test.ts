/** Refunds as the bank pays them out: matched to those that finance has recorded, so that accounts by bank tie. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readExceptions } from '../../src/payments/exceptions.sql.ts';
import type { OutgoingLine, RecordedRefund } from '../../src/payments/outgoing-refunds.sql.ts';
import { refundOf } from '../../src/payments/outgoing-refunds.ts';
import { refundCredit, returnRefund } from '../../src/payments/refund.ts';
import { quote, reversal } from '../support/world.ts';
import { type Books, inv, openBooks } from './books.ts';

let books: Books;
beforeAll(async () => {
  books = await openBooks();
});
afterAll(async () => {
  await books.verified();
  await books.end();
});

const HEAD = 'date,amount,currency,account,bank_reference,text,payer,payer_account\n';
let files = 0;
const bank = (...lines: readonly string[]) => {
  files += 1;
  return books.bankText(`refunds-${files}.csv`, `${HEAD}${lines.join('\n')}\n`);
};
const balances = () =>
  books.sql<{ account: string; amount: string }>(
    `SELECT account, sum(amount)::text AS amount FROM journal WHERE control = 'assets:bank' GROUP BY account
     HAVING sum(amount) <> 0 ORDER BY account`,
  );

const line: OutgoingLine = {
  ...{ bank_line_id: 1, account: '0007', booked_on: '2026-10-14', currency: 'USD', amount: '12.50' },
  payee: 'HARBOUR LIGHTS',
  texts: ['OUT-5521', 'refund of credit'],
  freed: false,
};
const refund: RecordedRefund = {
  ...{
    credit_refund_id: 1,
    payment_reversal_id: null,
    document: 'CN-2026-000001',
    payment_id: null,
    partner_id: 'p-1',
  },
  ...{ payee: 'Harbour Lights Ticketing', currency: 'USD', amount: '12.5', refunded_on: '2026-10-12', texts: [''] },
  received_by: null,
};

test('a debit pays the refund of its amount with its reference, its credit note or its payee', () => {
  const evidence = (given: Partial<OutgoingLine>, ...refunds: readonly Partial<RecordedRefund>[]) =>
    refundOf(
      { ...line, ...given },
      refunds.map((each) => ({ ...refund, ...each })),
    )?.evidence;
  expect(evidence({ payee: null }, { texts: ['OUT-5521'] })).toBe('both have OUT-5521');
  expect(evidence({ payee: null, texts: ['CREDIT CN-2026-000001'] }, {})).toBe('both have CN-2026-000001');
  expect(evidence({ payee: null }, { document: null, texts: ['sent back, OUT-5521'] })).toBe('both have OUT-5521');
  expect(evidence({}, {})).toBe('the same amount, and the line names Harbour Lights Ticketing');
  expect(evidence({ payee: 'Somebody' }, {})).toBeUndefined();
  expect(evidence({ amount: '12.51' }, { texts: ['OUT-5521'] })).toBeUndefined();
  expect(evidence({ currency: 'EUR' }, { texts: ['OUT-5521'] })).toBeUndefined();
  expect(evidence({ booked_on: '2026-11-12' }, {})).toBeUndefined();
  // A reference decides between two partners; without one nobody does.
  expect(evidence({}, { partner_id: 'p-2', payee: 'Harbour Lights East' }, { texts: ['OUT-5521'] })).toContain('OUT');
  expect(evidence({ payee: 'HARBOUR LIGHTS' }, {}, { partner_id: 'p-2', payee: 'Harbour Lights' })).toBeUndefined();
});

test('a credit refund and a payment refund leave the account that the bank shows, whichever comes first', async () => {
  const sale = quote({ partner_id: 'p-1', accepted_at: '2026-10-05T12:00:00Z' });
  await books.rows([sale, reversal(sale, { accepted_at: '2026-10-06T12:00:00Z' })]);
  const wrong = quote({ partner_id: 'p-1', accepted_at: '2026-09-05T12:00:00Z', quote_id: 'q-wrong' });
  await books.rows([wrong]);
  books.at('2026-11-02T15:00:00Z');
  await books.close();
  await books.rows([reversal(wrong, { accepted_at: '2026-11-01T12:00:00Z' })]);
  books.at('2026-12-02T15:00:00Z');
  await books.close();
  const note = (await books.documents()).find((each) => each.document === 'credit_note');
  const number = note?.number ?? '';
  const amount = note?.balance ?? '';
  await books.database.transaction((tx) =>
    refundCredit(tx, books.acting, { number, method: 'wire', reference: 'OUT-5521' }),
  );
  expect(await balances()).toEqual([{ account: 'assets:bank', amount: `-${amount}` }]);
  const report = await bank(`2026-12-02,-${amount},USD,0007,OUT-5521,OUTGOING WIRE,Harbour Lights,`);
  expect(report.new_lines).toMatchObject([
    { outcome: 'refund', needs_review: false, why: `pays the refund of ${number} of 2026-12-02: both have OUT-5521` },
  ]);
  expect(report.outcomes).toMatchObject({ refund: 1, ignored: 0 });
  expect(await balances()).toEqual([{ account: 'assets:bank:0007', amount: `-${amount}` }]);
  // The bank returns it to the account that it left.
  await books.database.transaction((tx) => returnRefund(tx, books.acting, { number, reason: 'account closed' }));
  expect(await balances()).toEqual([]);

  // A payment that is sent back: the bank's line comes first, from another account.
  const paid = await bank(`2026-12-01,77.77,USD,0007,IN-1,${inv(9)},Harbour Lights Ticketing,`);
  const again = await bank('2026-12-02,-77.77,USD,0008,OUT-77,SENT BACK IN-1,Harbour Lights Ticketing,');
  expect(again.new_lines).toMatchObject([
    { outcome: 'ignored', needs_review: true, why: expect.stringContaining('if this is a refund, record the refund') },
  ]);
  const paymentId = paid.new_lines[0]?.payment_id ?? 0;
  await books.reverse({ paymentId, kind: 'refunded', reason: 'paid twice, OUT-77', on: '2026-12-02' });
  expect(await balances()).toEqual([
    { account: 'assets:bank:0007', amount: '77.77' },
    { account: 'assets:bank:0008', amount: '-77.77' },
  ]);
  // Each refund is paid once.
  const third = await bank('2026-12-02,-77.77,USD,0008,OUT-78,SENT BACK,Harbour Lights Ticketing,');
  expect(third.new_lines).toMatchObject([{ outcome: 'ignored' }]);
});

test('the refund of a deposit whose payer nobody knows is matched by its amount and account, if it is the only one', async () => {
  for (const [order, day] of [
    ['refund first', '2026-12-01'],
    ['debit first', '2026-12-02'],
  ] as const) {
    const amount = order === 'refund first' ? '31.17' : '31.19';
    const paid = await bank(`${day},${amount},USD,0007,${amount},thanks,,`);
    const paymentId = paid.new_lines[0]?.payment_id ?? 0;
    const debit = () => bank(`${day},-${amount},USD,0007,X${amount},transfer,,`);
    const reverse = () => books.reverse({ paymentId, kind: 'refunded', reason: 'sent back', on: day });
    if (order === 'refund first') {
      await reverse();
      expect((await debit()).new_lines).toMatchObject([{ outcome: 'refund', payment_id: paymentId }]);
    } else {
      await debit();
      await reverse();
    }
    expect(
      await books.sql(
        'SELECT count(*) FROM live_refund_matches m JOIN bank_lines l USING (bank_line_id) WHERE l.amount = $1',
        [amount],
      ),
    ).toEqual([{ count: '1' }]);
  }
  // From another account than received it, the amount says nothing.
  const paid = await bank('2026-12-02,31.21,USD,0007,31.21,thanks,,');
  await books.reverse({ paymentId: paid.new_lines[0]?.payment_id ?? 0, kind: 'refunded', reason: 'sent back' });
  expect((await bank('2026-12-02,-31.21,USD,0008,X31.21,transfer,,')).new_lines).toMatchObject([
    { outcome: 'ignored' },
  ]);
  await books.verified();
});

/** Two payments of one amount, both of which finance has sent back. */
async function refundTwo(amount: string, references: readonly [string, string], day = '2026-12-02'): Promise<void> {
  for (const [at, reference] of references.entries()) {
    const { paymentId } = await books.record({
      ...{ amount, partnerId: 'p-1', receivedOn: `2026-11-0${at + 1}`, reference: `IN-${amount}-${at}`, again: true },
    });
    await books.reverse({ paymentId, kind: 'refunded', reason: `paid twice${reference && `, ${reference}`}`, on: day });
  }
}
const heldLines = async (amount: string) =>
  (await books.database.reading((tx) => readExceptions(tx))).filter((each) => each.amount === `-${amount}`);
const debit = (amount: string, reference: string, text = 'SENT BACK') =>
  `2026-12-02,-${amount},USD,0007,${reference},${text},Harbour Lights Ticketing,`;

test('one debit in two bank files confirms one refund, and the second line is held', async () => {
  await refundTwo('61.00', ['', '']);
  expect((await bank(debit('61.00', 'OUT-61'))).new_lines).toMatchObject([{ outcome: 'refund' }]);
  const again = await bank(debit('61.00', ''));
  expect(again.new_lines).toMatchObject([
    { outcome: 'ignored', needs_review: true, why: expect.stringMatching(/possible duplicate of the debit.*OUT-61/) },
  ]);
  // It is listed until finance says that it is the same, and a refund recorded later does not take it either.
  await refundTwo('61.00', ['', '']);
  expect(await heldLines('61.00')).toMatchObject([{ kind: 'bank_line', reason: again.new_lines[0]?.why }]);
  expect(await books.sql(`SELECT count(*)::int AS count FROM refund_matches WHERE amount = 61`)).toEqual([
    { count: 1 },
  ]);
});

test('two debits of one day and amount confirm two refunds where their references tell them apart', async () => {
  await refundTwo('62.00', ['OUT-620001', 'OUT-620002']);
  expect((await bank(debit('62.00', 'OUT-620001'))).new_lines).toMatchObject([{ outcome: 'refund' }]);
  expect((await bank(debit('62.00', 'OUT-620002'))).new_lines).toMatchObject([
    { outcome: 'refund', needs_review: false },
  ]);
  // A held line is matched once a refund with its reference is recorded.
  await refundTwo('63.00', ['', '']);
  await bank(debit('63.00', 'OUT-630001'));
  const other = await bank(debit('63.00', 'OUT-630002'));
  expect(other.new_lines).toMatchObject([{ outcome: 'ignored', needs_review: true }]);
  expect(await heldLines('63.00')).toHaveLength(1);
  await refundTwo('63.00', ['OUT-630002', '']);
  expect(await heldLines('63.00')).toEqual([]);
});

test('a refund that was recorded again is matched to the line of the first', async () => {
  const { number = '', balance = '' } = (await books.documents()).find((each) => each.document === 'credit_note') ?? {};
  const part = (reference: string) =>
    books.database.transaction((tx) =>
      refundCredit(tx, books.acting, { number, amount: '3.00', method: 'wire', reference, again: true }),
    );
  expect(balance).not.toBe('');
  const before = await balances();
  await part('');
  await bank(debit('3.00', 'OUT-30003000', number));
  await books.database.transaction((tx) => returnRefund(tx, books.acting, { number, reason: 'recorded wrongly' }));
  expect(await balances()).toEqual(before);
  await part('OUT-30003000');
  const after = await balances();
  const at = (all: typeof after, name: string) => Number(all.find((each) => each.account === name)?.amount ?? 0);
  expect(at(after, 'assets:bank:0007') - at(before, 'assets:bank:0007')).toBe(-3);
  // The bank returned that one too. What is sent a day later is other money.
  await books.database.transaction((tx) => returnRefund(tx, books.acting, { number, reason: 'account closed' }));
  books.at('2026-12-03T15:00:00Z');
  await part('OUT-30003001');
  expect(await books.sql(`SELECT count(*)::int AS count FROM refund_matches WHERE amount = 3`)).toEqual([{ count: 2 }]);
});
