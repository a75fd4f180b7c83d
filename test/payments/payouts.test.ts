/** Payouts of the processor: they bring what was left with it, less a plausible fee. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { settlePayout } from '../../src/payments/settle-payouts.ts';
import { type Books, inv, openBooks, refusalOf } from './books.ts';
import { stripePayment } from './stripe-events.ts';

let books: Books;
beforeAll(async () => {
  books = await openBooks();
});
afterAll(async () => {
  await books.verified();
  await books.end();
});

const HEAD = 'date,amount,currency,account,bank_reference,text,payer,payer_account\n';
let lines = 0;
/** A bank line that names a payment of the processor. */
async function payout(day: string, amount: string, id: string) {
  lines += 1;
  const text = `${HEAD}${day},${amount},USD,0001,PO-${lines},STRIPE TRANSFER ${id},STRIPE,\n`;
  const [line] = (await books.bankText(`payout-${lines}.csv`, text)).new_lines;
  return line;
}
/** What a link payment brought: undefined while that is not known. */
const settled = async (id: string) =>
  (
    await books.sql(
      `SELECT s.gross::text, s.fees::text FROM payout_settlements s JOIN payout_payments p USING (payout_id)
       JOIN payments y USING (payment_id) WHERE personal(y.reference) = '${id}'`,
    )
  )[0];
const settle = async (payments: readonly string[]) => {
  const [open] = await books.sql(
    `SELECT payout_id::int FROM payouts LEFT JOIN payout_settlements s USING (payout_id)
     WHERE s.payout_id IS NULL ORDER BY payout_id DESC LIMIT 1`,
  );
  const ids = (await books.payments()).filter((each) => payments.includes(each.reference));
  return books.database.transaction((tx) =>
    settlePayout(tx, books.acting, {
      payoutId: open?.['payout_id'] as number,
      paymentIds: ids.map((each) => each.payment_id),
    }),
  );
};

test('a payout brings the rest of a partly refunded payment, less a fee of that', async () => {
  const linked = stripePayment({ invoice: inv(2), amount: 84000, key: 'PART', on: '2026-10-05' });
  await books.events([linked.completed(), linked.refunded(10000)]);
  await payout('2026-10-09', '719.70', linked.ids.intent);
  expect(await settled(linked.ids.intent)).toEqual({ gross: '740.00', fees: '20.30' });
});

test('a refund after the payout does not reduce it, in whichever order they are reported', async () => {
  const linked = stripePayment({ invoice: inv(6), amount: 84000, key: 'LATE', on: '2026-10-05' });
  await books.events([linked.completed()]);
  const [payment] = (await books.payments()).filter((each) => each.reference === linked.ids.intent);
  await books.reverse({ paymentId: payment?.payment_id ?? 0, kind: 'refunded', on: '2026-10-12' });
  await payout('2026-10-09', '818.00', linked.ids.intent);
  expect(await settled(linked.ids.intent)).toEqual({ gross: '840.00', fees: '22.00' });
});

test('an implausible fee is not recorded: finance settles the payout', async () => {
  const one = stripePayment({ invoice: inv(5), amount: 98050, key: 'FEE1', on: '2026-10-05' });
  const other = stripePayment({ invoice: inv(1), amount: 125000, key: 'FEE2', on: '2026-10-06' });
  await books.events([one.completed(), other.completed()]);
  const line = await payout('2026-10-09', '10.00', one.ids.intent);
  expect(line).toMatchObject({
    outcome: 'payout',
    needs_review: true,
    why: expect.stringMatching(/settle it by hand/),
  });
  expect(await settled(one.ids.intent)).toBeUndefined();
  expect(await books.payments()).toHaveLength(4);
  await settle([one.ids.intent]);
  expect(await settled(one.ids.intent)).toEqual({ gross: '980.50', fees: '970.50' });
  // More than was with the processor: nothing new came in either.
  const more = await payout('2026-10-10', '2000.00', other.ids.intent);
  expect(more).toMatchObject({ outcome: 'payout', needs_review: true });
  expect(await refusalOf(settle([other.ids.intent]))).toBe('payout_not_settled');
  expect(await books.payments()).toHaveLength(4);
  await payout('2026-10-11', '1220.00', other.ids.intent);
  expect(await settled(other.ids.intent)).toEqual({ gross: '1250.00', fees: '30.00' });
});

test('a payment is in one payout only', async () => {
  const linked = stripePayment({ invoice: inv(9), amount: 7777, key: 'ONCE', on: '2026-10-05' });
  await books.events([linked.completed()]);
  await payout('2026-10-09', '75.00', linked.ids.intent);
  const payments = (await books.payments()).length;
  expect(await payout('2026-10-10', '75.00', linked.ids.intent)).toMatchObject({
    outcome: 'payout',
    needs_review: true,
  });
  expect(await books.payments()).toHaveLength(payments);
});

test('a payout of the day before a payment does not bring it', async () => {
  const linked = stripePayment({ invoice: inv(7), amount: 12010, key: 'EARLY', on: '2026-10-10' });
  await books.events([linked.completed()]);
  expect(await payout('2026-10-09', '120.10', linked.ids.intent)).toMatchObject({ needs_review: true });
  expect(await refusalOf(settle([linked.ids.intent]))).toBe('payout_not_settled');
});

test('a payout does not bring a payment that was recorded by mistake', async () => {
  const { paymentId } = await books.record({
    amount: '60',
    method: 'link',
    number: inv(11),
    reference: 'pi_MISTAKEN1',
  });
  await books.reverse({ paymentId, kind: 'mistake' });
  expect(await payout('2026-10-15', '60.00', 'pi_MISTAKEN1')).toMatchObject({ outcome: 'payout', needs_review: true });
  expect(await refusalOf(settle(['pi_MISTAKEN1']))).toBe('payout_not_settled');
});

test("the processor's account is not learned as a payer's from link money that the bank reports first", async () => {
  const line =
    '2026-10-09,101.00,USD,0001,PO-ACC,STRIPE TRANSFER pi_ACCOUNT0000000000000000 INV-2026-000011,Blue Ridge Arena,ST-100001';
  const { new_lines } = await books.bankText('account.csv', `${HEAD}${line}\n`);
  expect(new_lines).toMatchObject([{ outcome: 'payment', applied: [{ number: inv(11) }] }]);
  expect(await books.sql(`SELECT * FROM payer_accounts WHERE payer_account = 'ST-100001'`)).toEqual([]);
});
