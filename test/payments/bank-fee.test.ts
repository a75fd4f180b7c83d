/** A payment that a bank kept a fee of: one action pays several invoices and writes the fee to bank charges. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { query } from '../../src/database/transaction.ts';
import { Refusal } from '../../src/errors/refusals.ts';
import { applyPayment } from '../../src/payments/apply.ts';
import { openPaymentContext } from '../../src/payments/context.ts';
import { reinstate } from '../../src/payments/reverse.ts';
import { type Books, HARBOUR, inv, MUNICH, openBooks } from './books.ts';

/** What Harbour owes: 1,250.00, 980.50 and 77.77, which is 2,308.27 in all. */
const ALL = [inv(9), inv(1), inv(5)];

let books: Books;
let wires = 0;
beforeAll(async () => {
  books = await openBooks({ small_difference: { USD: '25.00' } });
});
beforeEach(() => {
  wires += 1;
});
afterAll(() => books?.end());

async function wire(amount: string): Promise<number> {
  return (await books.record({ partnerId: HARBOUR, amount, reference: `WIRE-${wires}` })).paymentId;
}
const apply = (paymentId: number, numbers: string[], more: { fee?: string; amount?: string }): Promise<number> =>
  books.database.transaction((tx) => applyPayment(tx, books.acting, { paymentId, numbers, ...more }));
async function charged(): Promise<string> {
  const [sum] = await books.sql<{ amount: string }>(
    `SELECT coalesce(sum(amount), 0)::text AS amount FROM journal WHERE account = 'expenses:bank-charges'`,
  );
  return sum?.amount ?? '';
}
const balances = async () => Promise.all(ALL.map(async (number) => (await books.balance(number)).balance));

test('a wire pays three invoices less the fee of a bank in one action, and all of it is undone in one', async () => {
  const paymentId = await wire('2293.27');
  await apply(paymentId, ALL, { fee: '15.00' });
  expect(await balances()).toEqual(['0.00', '0.00', '0.00']);
  expect(await books.payment(paymentId)).toMatchObject({
    unapplied: '0.00',
    applications: [
      { number: inv(9), amount: '77.77', small_difference: null },
      { number: inv(1), amount: '1235.00', small_difference: '15.00' },
      { number: inv(5), amount: '980.50', small_difference: null },
    ],
  });
  expect(await charged()).toBe('15.00');
  const [event] = await books.sql<{ details: object }>(
    `SELECT details FROM audit_events WHERE action = 'payment.apply' ORDER BY event_id DESC LIMIT 1`,
  );
  expect(event?.details).toMatchObject({ numbers: ALL, fee: '15.00' });
  await books.unapply(paymentId);
  expect(await balances()).toEqual(['77.77', '1250.00', '980.50']);
  expect(Number(await charged())).toBe(0);
  await books.verified();
});

test('beside the fee a small difference is written to bank charges as well', async () => {
  const paymentId = await wire('2290.00');
  await apply(paymentId, ALL, { fee: '15.00' });
  expect(await balances()).toEqual(['0.00', '0.00', '0.00']);
  expect(await charged()).toBe('18.27');
  await books.unapply(paymentId);
  await books.verified();
});

describe('after a payment less a fee', () => {
  test('a refund of a part of it leaves just that part owed again: the bank has kept its fee all the same', async () => {
    const paymentId = await wire('2293.27');
    await apply(paymentId, ALL, { fee: '15.00' });
    const { reopened } = await books.reverse({ paymentId, kind: 'refunded', amount: '1000.00' });
    expect(reopened).toEqual([inv(5), inv(1)]);
    // 980.50 of the one, and 19.50 of the one that bore the fee.
    expect(await balances()).toEqual(['0.00', '19.50', '980.50']);
    expect(await charged()).toBe('15.00');
    await books.verified();
    await books.reverse({ paymentId, kind: 'refunded' });
    expect(await balances()).toEqual(['77.77', '1250.00', '980.50']);
    expect(Number(await charged())).toBe(0);
    await books.verified();
  });

  test('a dispute that is won brings the fee back with the payment', async () => {
    const paymentId = await wire('1235.00');
    await apply(paymentId, [inv(1)], { fee: '15.00' });
    await books.reverse({ paymentId, kind: 'disputed' });
    expect((await books.balance(inv(1))).balance).toBe('1250.00');
    await books.database.transaction(async (tx) => {
      const context = await openPaymentContext(tx, books.acting, {
        ...{ action: 'payment.events', subject: 'inbox', details: {} },
      });
      const [row] = await query<{ id: number }>(tx, 'SELECT max(payment_reversal_id) AS id FROM payment_reversals');
      await reinstate(tx, context, row?.id ?? 0, '2026-10-14');
    });
    expect((await books.balance(inv(1))).balance).toBe('0.00');
    expect(await charged()).toBe('15.00');
    await books.unapply(paymentId);
  });
});

test('a fee that is more than the percent of small differences is taken, because somebody named it', async () => {
  const paymentId = await wire('57.77');
  await apply(paymentId, [inv(9)], { fee: '20' });
  expect(await books.balance(inv(9))).toMatchObject({ balance: '0.00', amount_paid: '57.77', credited: '20.00' });
  await books.unapply(paymentId);
});

describe('a fee is refused', () => {
  const cases: readonly [
    when: string,
    given: { amount: string; numbers: string[]; fee: string; of?: string },
    says: RegExp,
  ][] = [
    [
      'that the settings do not allow',
      { amount: '2282.27', numbers: ALL, fee: '26.00' },
      /allows at most 25\.00 USD\. Leave the fee out, and write off the rest/,
    ],
    [
      'that leaves more than a small difference open',
      { amount: '2000.00', numbers: ALL, fee: '15.00' },
      /payment and fee are 2,015\.00 USD, but 2,308\.27 USD is open\. Correct the fee, or leave it out for a partial payment/,
    ],
    [
      'where the payment pays everything without it',
      { amount: '2308.27', numbers: ALL, fee: '15.00' },
      /but 2,308\.27 USD is open\. Leave the fee out, or name the other invoices that the payment pays/,
    ],
    [
      'that is as much as the largest of the invoices',
      { amount: '5.00', numbers: [inv(9)], fee: '77.77' },
      /it is not less than the open 77\.77 USD/,
    ],
    ['beside an amount', { amount: '100.00', numbers: [inv(9)], fee: '1.00', of: '70.00' }, /goes without --amount/],
    ['that is no amount', { amount: '100.00', numbers: [inv(9)], fee: '-3' }, /-3/],
  ];
  test.each(cases)('%s, and nothing is applied', async (_when, { amount, numbers, fee, of }, says) => {
    const paymentId = await wire(amount);
    const refused = await apply(paymentId, numbers, { fee, ...(of !== undefined && { amount: of }) }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(refused).toBeInstanceOf(Refusal);
    expect((refused as Refusal).message).toMatch(says);
    expect(await books.payment(paymentId)).toMatchObject({ applied: '0.00', applications: [] });
  });

  test('in a currency of which the settings name no small difference', async () => {
    const { paymentId } = await books.record({
      partnerId: MUNICH,
      amount: '490.00',
      currency: 'EUR',
      reference: 'SEPA-1',
    });
    await expect(apply(paymentId, [inv(4)], { fee: '10.00' })).rejects.toThrow(
      /"small_difference" in settings\.json has no amount for EUR\. Set the highest fee that a bank may keep/,
    );
  });
});
