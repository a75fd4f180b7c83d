/** The stand-in refuses what Stripe would refuse: without that, the tests that use it would prove nothing. */
import Stripe from 'stripe';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { linkRequest } from '../../../src/processors/stripe/payment-links.ts';
import { requestProblem, stripeVersion } from './schemas.ts';
import { type StripeStandIn, startStripe } from './stand-in.ts';

let standIn: StripeStandIn;
let stripe: Stripe;
let now = new Date('2026-08-01T10:00:00Z');
beforeAll(async () => {
  standIn = await startStripe({ now: () => now });
  const { hostname: host, port } = new URL(standIn.url);
  stripe = new Stripe('sk_test_tests', { host, port, protocol: 'http', maxNetworkRetries: 0 });
});
afterAll(() => standIn.close());
beforeEach(() => standIn.startOver());

const order = (more: Partial<Parameters<typeof linkRequest>[0]> = {}) =>
  linkRequest({
    ...{ installation: 'i1', invoice: 'INV-1', version: 1, partnerId: 'p-1', month: '2026-07' },
    ...{ currency: 'USD', unitAmount: 700, methods: ['card'], ...more },
  });

test('the types are those of the installed version', () => {
  expect(stripeVersion).toBe(Stripe.PACKAGE_VERSION);
});

describe('by the published types', () => {
  const problem = (params: object) => requestProblem('payment_link_create', structuredClone(params) as never);
  const form = { line_items: [{ quantity: '1', price_data: { currency: 'usd', unit_amount: '700' } }] };

  test('what the program asks for is taken', () => expect(problem(order())).toBeUndefined());

  test.each([
    ['an unknown parameter', { ...form, amount: '700' }, 'parameter_unknown', 'amount'],
    ['an unknown one deep inside', { ...form, restrictions: { limit: '1' } }, undefined, undefined],
    ['a missing one', {}, 'parameter_missing', 'line_items'],
    ['a missing one deep inside', { line_items: [{ price_data: { unit_amount: '1' } }] }, undefined, undefined],
    [
      'a text where a number belongs',
      { line_items: [{ quantity: 'many' }] },
      'parameter_invalid',
      'line_items[0][quantity]',
    ],
    [
      'a text where a list belongs',
      { ...form, payment_method_types: 'card' },
      'parameter_invalid',
      'payment_method_types',
    ],
  ])('%s is refused', (_, params, code, param) => {
    const found = problem(params);
    expect(found).toBeDefined();
    if (code !== undefined) expect(found).toMatchObject({ code, param });
  });
});

describe('by what Stripe says besides', () => {
  test.each([
    ['too small an amount', order({ unitAmount: 49 }), 'amount_too_small'],
    ['too large an amount', order({ unitAmount: 100_000_000 }), 'amount_too_large'],
    ['half a cent', order({ unitAmount: 700.5 }), 'parameter_invalid_integer'],
    ['three decimals that do not end in 0', order({ currency: 'KWD', unitAmount: 10_125 }), undefined],
    ['ACH debit of euros', order({ currency: 'EUR', methods: ['us_bank_account'] }), undefined],
  ])('%s is refused', async (_, params, code) => {
    const refused = await stripe.paymentLinks.create(params).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(Stripe.errors.StripeInvalidRequestError);
    if (code !== undefined) expect(refused).toMatchObject({ code });
    expect(standIn.activeLinks()).toEqual([]);
  });

  test('an unknown parameter on the wire, too', async () => {
    const params = { ...order(), amount: 700 } as Stripe.PaymentLinkCreateParams;
    await expect(stripe.paymentLinks.create(params)).rejects.toThrow('Received unknown parameter: amount');
  });
});

describe('an idempotency key', () => {
  const under = (idempotencyKey: string, params = order()) => stripe.paymentLinks.create(params, { idempotencyKey });

  test('gives the first answer again, for a day', async () => {
    const first = await under('k1');
    expect((await under('k1')).id).toBe(first.id);
    now = new Date('2026-08-02T11:00:00Z');
    expect((await under('k1')).id).not.toBe(first.id);
  });

  test('gives a 500 again too, whether or not it was done', async () => {
    standIn.fail('POST /v1/payment_links', { how: 'fail_after' });
    await expect(under('k2')).rejects.toMatchObject({ statusCode: 500 });
    await expect(under('k2')).rejects.toMatchObject({ statusCode: 500 });
    expect(standIn.activeLinks()).toHaveLength(1);
  });

  test('is for one request', async () => {
    await under('k3');
    await expect(under('k3', order({ unitAmount: 800 }))).rejects.toMatchObject({ type: 'StripeIdempotencyError' });
  });

  test('is not spent by a request that was refused', async () => {
    await expect(under('k4', order({ unitAmount: 1 }))).rejects.toThrow();
    expect((await under('k4')).active).toBe(true);
  });
});

test('a session is made by a visit, ends after a day, and cannot be expired twice', async () => {
  const link = await stripe.paymentLinks.create(order());
  const session = standIn.visit(link.id);
  const other = standIn.visit(link.id);
  await stripe.checkout.sessions.expire(session?.id as string);
  await expect(stripe.checkout.sessions.expire(session?.id as string)).rejects.toThrow('can be expired');
  now = new Date(now.getTime() + 25 * 3600 * 1000);
  expect((await stripe.checkout.sessions.retrieve(other?.id as string)).status).toBe('expired');
});

test('a link is paid once where it says so, and opens for nobody after it was switched off', async () => {
  const link = await stripe.paymentLinks.create(order());
  expect(standIn.complete(standIn.visit(link.id)?.id as string)).toBe(true);
  expect(standIn.visit(link.id)).toBeUndefined();
  const another = await stripe.paymentLinks.create(order());
  await stripe.paymentLinks.update(another.id, { active: false });
  expect(standIn.visit(another.id)).toBeUndefined();
});

test('a list begins with the newest and goes on page by page', async () => {
  const ids: string[] = [];
  for (let made = 0; made < 5; made += 1) ids.unshift((await stripe.paymentLinks.create(order())).id);
  const first = await stripe.paymentLinks.list({ limit: 2 });
  const second = await stripe.paymentLinks.list({ limit: 2, starting_after: first.data[1]?.id as string });
  expect([...first.data, ...second.data].map(({ id }) => id)).toEqual(ids.slice(0, 4));
  expect([first.has_more, second.has_more]).toEqual([true, true]);
});

test('a key that is none of Stripe’s test keys is refused', async () => {
  const { hostname: host, port } = new URL(standIn.url);
  const stranger = new Stripe('nonsense', { host, port, protocol: 'http', maxNetworkRetries: 0 });
  await expect(stranger.paymentLinks.list()).rejects.toMatchObject({ statusCode: 401 });
});
