/** The stand-in's payments behave as Stripe's do where a platform would notice: without that, no test of it would. */
import type Stripe from 'stripe';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openPlatform, type Platform } from '../../splits/platform.ts';
import { balanceOf } from './accounts.ts';
import { authenticate } from './payment-intents.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await openPlatform();
});
afterAll(() => platform.standIn.close());
beforeEach(() => platform.startOver());

const NO_REDIRECT = { automatic_payment_methods: { enabled: true, allow_redirects: 'never' } } as const;
const PAYMENT = {
  ...{ amount: 1000, currency: 'usd', confirm: true, payment_method: 'pm_card_visa', metadata: { quote_id: 'q-1' } },
};
const pay = (more: Partial<Stripe.PaymentIntentCreateParams> = {}, options: Stripe.RequestOptions = {}) =>
  platform.stripe.paymentIntents.create({ ...PAYMENT, ...NO_REDIRECT, ...more }, { timeout: 5000, ...options });
const search = async () =>
  (await platform.stripe.paymentIntents.search({ query: "metadata['quote_id']:'q-1'" })).data.map(
    ({ status }) => status,
  );

test('a payment that a server confirms says whether methods may redirect the customer, and where to', async () => {
  await expect(platform.stripe.paymentIntents.create(PAYMENT)).rejects.toThrow(/you must provide a `return_url`/);
  expect(platform.objects('payment_intent')).toEqual([]);
  expect((await pay()).status).toBe('succeeded');
  const back = { ...PAYMENT, return_url: 'https://shop.example' };
  expect((await platform.stripe.paymentIntents.create(back)).status).toBe('succeeded');
  // Before the API version that made methods of the Dashboard the default, it was cards alone.
  const old = await platform.stripe.paymentIntents.create(PAYMENT, { apiVersion: '2022-11-15' });
  expect(old.status).toBe('succeeded');
});

test('search finds a payment a minute late, and as it was then', async () => {
  const { id } = await pay({ payment_method: 'pm_card_threeDSecure2Required' });
  expect(await search()).toEqual([]);
  platform.later(61);
  expect(await search()).toEqual(['requires_action']);
  authenticate(platform.standIn.state, id);
  expect(await search()).toEqual(['requires_action']);
  platform.later(61);
  expect(await search()).toEqual(['succeeded']);
});

test('twenty searches a second are answered', async () => {
  const all = await Promise.allSettled(Array.from({ length: 25 }, search));
  expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(20);
  expect(all.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { statusCode: 429 } });
  platform.later(1);
  expect(await search()).toEqual([]);
});

describe('a payment method', () => {
  test('belongs to one account', async () => {
    const { paymentMethods } = platform.standIn.state.connect;
    paymentMethods.set('pm_ours', { account: '', like: 'pm_card_visa' });
    expect((await pay({ payment_method: 'pm_ours' })).status).toBe('succeeded');
    const theirs = { stripeAccount: 'acct_host' };
    await expect(pay({ payment_method: 'pm_ours' }, theirs)).rejects.toThrow(/platform-owned payment method ID/);
    paymentMethods.set('pm_theirs', { account: 'acct_host', like: 'pm_card_visa' });
    expect((await pay({ payment_method: 'pm_theirs' }, theirs)).status).toBe('succeeded');
    await expect(pay({ payment_method: 'pm_theirs' })).rejects.toMatchObject({ code: 'resource_missing' });
  });

  test('that declines leaves the payment in the error, and a 3-D Secure one asks for the customer', async () => {
    const declined = await pay({ payment_method: 'pm_card_visa_chargeDeclined' }).catch((error: unknown) => error);
    expect(declined).toMatchObject({
      ...{ statusCode: 402, code: 'card_declined', decline_code: 'generic_decline' },
      payment_intent: { id: expect.stringMatching(/^pi_/), status: 'requires_payment_method' },
    });
    const open = await pay({ payment_method: 'pm_card_threeDSecure2Required' });
    expect(open).toMatchObject({
      ...{ status: 'requires_action', next_action: { type: 'use_stripe_sdk' } },
      client_secret: `${open.id}_secret_standin`,
    });
    await expect(platform.stripe.paymentIntents.confirm(open.id)).rejects.toMatchObject({
      code: 'payment_intent_unexpected_state',
    });
  });
});

describe('an idempotency key', () => {
  const repeated = { headers: { 'idempotent-replayed': 'true' } };

  test('repeats what came of a call that began, for a day', async () => {
    const declines = () => pay({ payment_method: 'pm_card_visa_chargeDeclined' }, { idempotencyKey: 'k-1' });
    await expect(declines()).rejects.toMatchObject({ statusCode: 402 });
    await expect(declines()).rejects.toMatchObject({ statusCode: 402, ...repeated });
    const transfer = { amount: 700, currency: 'usd', destination: 'acct_us' };
    const send = () => platform.stripe.transfers.create(transfer, { idempotencyKey: 'k-2' });
    await expect(send()).rejects.toMatchObject({ statusCode: 400, code: 'balance_insufficient' });
    await pay();
    await expect(send()).rejects.toMatchObject({ code: 'balance_insufficient', ...repeated });
    platform.later(24 * 3600);
    expect((await send()).amount).toBe(700);
  });

  test('is not spent by parameters that are wrong', async () => {
    await expect(pay({ amount: 49 }, { idempotencyKey: 'k-3' })).rejects.toMatchObject({ code: 'amount_too_small' });
    expect((await pay({}, { idempotencyKey: 'k-3' })).status).toBe('succeeded');
  });
});

test.each([
  ['usd', 49, 50],
  ['gbp', 29, 30],
  ['huf', 17_499, 17_500],
  ['jpy', 49, 50],
  ['thb', 999, 1000],
])('the least amount of %s is refused below and taken from there on', async (currency, below, least) => {
  await expect(pay({ currency, amount: below })).rejects.toMatchObject({ code: 'amount_too_small' });
  expect((await pay({ currency, amount: least })).status).toBe('succeeded');
});

test('an account without a balance in the currency of a share gets it converted', async () => {
  const { settles, rates } = platform.standIn.state.connect;
  settles.set('acct_us', 'usd');
  rates.set('eur/usd', 1.09);
  const { id } = await pay({ currency: 'eur', transfer_data: { destination: 'acct_us', amount: 700 } });
  const [moved] = [...platform.standIn.state.balanceTransactions.values()];
  expect(moved).toMatchObject({
    ...{ type: 'payment', amount: 763, net: 763, currency: 'usd', exchange_rate: 1.09 },
    source: { amount: 700, currency: 'eur' },
  });
  expect([balanceOf(platform.standIn.state, 'acct_us'), balanceOf(platform.standIn.state, 'acct_us', 'eur')]).toEqual([
    763, 0,
  ]);
  await platform.stripe.refunds.create({ payment_intent: id, reverse_transfer: true });
  expect(balanceOf(platform.standIn.state, 'acct_us')).toBe(0);
});

test('a request is read by the API version that it names, or by that of the account', async () => {
  const routed = {
    ...PAYMENT,
    ...NO_REDIRECT,
    transfer_data: { destination: 'acct_us', amount: 700, payment_data: { metadata: { quote_id: 'q-1' } } },
  };
  const named = (apiVersion: string) => platform.stripe.paymentIntents.create(routed, { apiVersion });
  await expect(named('2025-11-17.clover')).rejects.toThrow('Received unknown parameter: transfer_data[payment_data]');
  expect((await named('2026-05-27.dahlia')).status).toBe('succeeded');
  await expect(named('2027-01-01.none')).rejects.toThrow('Invalid Stripe API version');
  await expect(named('newest')).rejects.toThrow('Invalid Stripe API version');
});

test('a refund gives the application fee back in proportion, where there is one', async () => {
  const stripeAccount = 'acct_host';
  const { id } = await pay({ application_fee_amount: 400 }, { stripeAccount });
  const back = { payment_intent: id, amount: 250, refund_application_fee: true };
  await platform.stripe.refunds.create(back, { stripeAccount });
  expect(platform.balances()).toEqual([450, 300, 0]);
  const none = await pay();
  await expect(
    platform.stripe.refunds.create({ payment_intent: none.id, refund_application_fee: true }),
  ).rejects.toThrow(/has no application fee/);
});
