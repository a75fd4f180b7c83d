/**
 * A checkout whose cards decline, whose customers think about it, and whose answers get lost, at a processor that behaves
 * as Stripe does: keys that only repeat a failure, searches that come late, payments that the customer finishes.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { SplitUnfinished } from '../../src/processors/stripe/splits/execute.ts';
import { planDispute, planRefund, planSplit } from '../../src/processors/stripe/splits/plan.ts';
import { credit, payOut, releaseFees } from '../support/stripe/accounts.ts';
import { failRefund, loseDispute } from '../support/stripe/connect.ts';
import { authenticate } from '../support/stripe/payment-intents.ts';
import { ACCEPTED, CARD, CONTROLLED, HOST, openPlatform, type Platform, REAL, SEQUENTIAL } from './platform.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await openPlatform();
});
afterAll(() => platform.standIn.close());
beforeEach(() => platform.startOver());

const realTime = () => planSplit(ACCEPTED, REAL).requests;
const sequence = () => planSplit(ACCEPTED, SEQUENTIAL, HOST).requests;
const DECLINES = { payment_method: 'pm_card_visa_chargeDeclined' };
const AUTHENTICATES = { payment_method: 'pm_card_threeDSecure2Required' };
const asked = (path: string) => platform.standIn.requests.filter((each) => each.path === path).length;
const searches = () => asked('/v1/payment_intents/search');
const PAID_IN_REAL_TIME = [0, 300, 700];
const PAID_IN_SEQUENCE = [200, 100, 700];

describe('a card that declines', () => {
  test('is followed at once by another, on the same payment', async () => {
    await expect(platform.run(realTime(), DECLINES)).rejects.toMatchObject({
      code: 'card_declined',
      payment_intent: { status: 'requires_payment_method', client_secret: expect.any(String) },
    });
    expect(await platform.run(realTime())).toMatchObject([{ does: 'payment', amount: 1000 }]);
    expect(platform.objects('payment_intent')).toHaveLength(1);
    expect(platform.balances()).toEqual(PAID_IN_REAL_TIME);
  });

  test('may be tried a third time on the same day', async () => {
    const { paymentMethods } = platform.standIn.state.connect;
    const mine = { payment_method: 'pm_mine' };
    paymentMethods.set('pm_mine', { account: '', like: DECLINES.payment_method });
    for (let tries = 0; tries < 2; tries += 1) {
      await expect(platform.run(realTime(), mine)).rejects.toMatchObject({ code: 'card_declined' });
    }
    paymentMethods.set('pm_mine', { account: '', like: 'pm_card_visa' });
    expect(await platform.run(realTime(), mine)).toHaveLength(1);
    expect(platform.balances()).toEqual(PAID_IN_REAL_TIME);
  });
});

describe('3-D Secure', () => {
  test('gives the checkout what Stripe.js needs, and the transfer follows as soon as the customer is through', async () => {
    const { code, payment } = await platform.unfinished(platform.run(sequence(), AUTHENTICATES));
    expect({ code, payment }).toEqual({
      code: 'payment_unpaid',
      payment: {
        ...{ id: expect.stringMatching(/^pi_/), status: 'requires_action', account: 'acct_host' },
        client_secret: expect.stringMatching(/^pi_\w+_secret_/),
        next_action: { type: 'use_stripe_sdk', use_stripe_sdk: expect.anything() },
      },
    });
    authenticate(platform.standIn.state, payment?.id ?? '');
    expect(await platform.run(sequence(), AUTHENTICATES)).toMatchObject([
      { does: 'payment', id: payment?.id, known: true },
      { does: 'transfer', amount: 700 },
    ]);
    expect(platform.balances()).toEqual(PAID_IN_SEQUENCE);
  });

  test('that the customer fails leaves the payment to another card', async () => {
    const { payment } = await platform.unfinished(platform.run(realTime(), AUTHENTICATES));
    authenticate(platform.standIn.state, payment?.id ?? '', false);
    expect(await platform.run(realTime())).toMatchObject([{ id: payment?.id }]);
  });

  test('that was given up and cancelled is followed by a new payment on the same day', async () => {
    const { payment } = await platform.unfinished(platform.run(realTime(), AUTHENTICATES));
    await platform.stripe.paymentIntents.cancel(payment?.id ?? '');
    const [paid] = await platform.run(realTime());
    expect(paid?.id).not.toBe(payment?.id);
    expect((await platform.run(realTime())).map(({ id, known }) => ({ id, known }))).toEqual([
      { id: paid?.id, known: true },
    ]);
    expect(platform.balances()).toEqual(PAID_IN_REAL_TIME);
  });

  test('that redirects comes back to the return_url of the plan', async () => {
    const { requests } = planSplit(ACCEPTED, REAL, { return_url: 'https://shop.example/thanks' });
    const { payment } = await platform.unfinished(platform.run(requests, AUTHENTICATES));
    expect(payment?.next_action).toMatchObject({ redirect_to_url: { return_url: 'https://shop.example/thanks' } });
  });
});

describe('a key that only repeats a failure', () => {
  test.each([
    ['POST /v1/payment_intents', 'fail_before'],
    ['POST /v1/payment_intents', 'fail_after'],
    ['POST /v1/transfers', 'fail_before'],
    ['POST /v1/transfers', 'fail_after'],
  ] as const)('is followed by another: %s %s', async (like, how) => {
    platform.standIn.fail(like, { how });
    await expect(platform.run(sequence())).rejects.toMatchObject({ statusCode: 500 });
    const done = await platform.run(sequence());
    expect(await platform.run(sequence())).toMatchObject(done.map(({ id }) => ({ id, known: true })));
    expect([platform.objects('charge').length, platform.objects('transfer').length]).toEqual([2, 1]);
    expect(platform.balances()).toEqual(PAID_IN_SEQUENCE);
  });

  test('of a transfer without a balance does not hold up the transfer once there is one', async () => {
    platform.standIn.state.connect.holdFees = true;
    expect(await platform.unfinished(platform.run(sequence()))).toMatchObject({ code: 'balance_insufficient' });
    expect(await platform.unfinished(platform.run(sequence()))).toMatchObject({ code: 'balance_insufficient' });
    releaseFees(platform.standIn.state);
    expect(await platform.run(sequence())).toMatchObject([{ known: true }, { does: 'transfer', known: false }]);
    expect(platform.balances()).toEqual(PAID_IN_SEQUENCE);
  });

  test('twenty times is left to people', async () => {
    platform.standIn.fail('POST /v1/payment_intents', { how: 'fail_before' }, Number.POSITIVE_INFINITY);
    for (let tries = 0; tries < 20; tries += 1) {
      await expect(platform.run(realTime())).rejects.toMatchObject({ statusCode: 500 });
    }
    platform.standIn.heal();
    expect(await platform.unfinished(platform.run(realTime()))).toMatchObject({ code: 'keys_spent' });
    platform.later(25 * 3600);
    expect(await platform.run(realTime())).toHaveLength(1);
  });
});

describe('search', () => {
  test('is not asked for a sale of today: thirty in a second are paid', async () => {
    await Promise.all(
      Array.from({ length: 30 }, (_, each) =>
        platform.run(planSplit({ ...ACCEPTED, quote_id: `q-${each}` }, REAL).requests),
      ),
    );
    expect(searches()).toBe(0);
    expect(platform.balances()).toEqual([0, 30 * 300, 30 * 700]);
  });

  test('finds what is older than its key, the payment that succeeded before one that did not', async () => {
    platform.standIn.fail('POST /v1/payment_intents', { how: 'fail_after' });
    await expect(platform.run(sequence())).rejects.toMatchObject({ statusCode: 500 });
    const done = await platform.run(sequence());
    expect(platform.objects('payment_intent')).toHaveLength(2);
    platform.later(25 * 3600);
    expect(await platform.run(sequence())).toMatchObject(done.map(({ id }) => ({ id, known: true })));
    expect(searches()).toBe(1);
  });

  test('of a plan that does not say when it was accepted finds nothing yet, and the key does', async () => {
    const { requests } = planSplit({ ...ACCEPTED, accepted_at: undefined }, REAL);
    const [paid] = await platform.run(requests);
    expect(await platform.run(requests)).toMatchObject([{ id: paid?.id, known: true }]);
    expect(searches()).toBe(2);
  });

  test('is not needed by a platform that kept the id of the payment', async () => {
    const [paid] = await platform.run(realTime());
    platform.later(25 * 3600);
    expect(await platform.run(realTime(), { payment_intent: paid?.id })).toMatchObject([{ id: paid?.id, known: true }]);
    expect(searches()).toBe(0);
    const other = planSplit({ ...ACCEPTED, quote_id: 'q-2' }, REAL).requests;
    expect(await platform.unfinished(platform.run(other, { payment_intent: paid?.id }))).toMatchObject({
      code: 'request_differs',
    });
  });
});

test('an answer that is lost is no second charge, wherever it was lost', async () => {
  for (const like of ['POST /v1/payment_intents', 'POST /v1/payment_intents/*', 'POST /v1/transfers']) {
    platform.standIn.fail(like, { how: 'drop_after' }, 2);
    await platform.run(sequence()).catch(() => undefined);
  }
  await platform.run(sequence());
  expect(platform.balances()).toEqual(PAID_IN_SEQUENCE);
});

test('two processes at once charge once', async () => {
  const both = await Promise.all([platform.run(sequence()), platform.run(sequence())]);
  expect(both[0].map(({ id }) => id)).toEqual(both[1].map(({ id }) => id));
  expect(platform.balances()).toEqual(PAID_IN_SEQUENCE);
});

test('another plan for the same quote on the same day is told, and charges nothing', async () => {
  await platform.unfinished(platform.run(sequence(), AUTHENTICATES));
  const other = planSplit(ACCEPTED, SEQUENTIAL, { ...HOST, platform_fee: '2.00' }).requests;
  expect(await platform.unfinished(platform.run(other))).toMatchObject({ code: 'request_differs' });
});

test("a payment on an operator's account takes a payment method of that account", async () => {
  const { paymentMethods } = platform.standIn.state.connect;
  paymentMethods.set('pm_ours', { account: '', like: 'pm_card_visa' });
  paymentMethods.set('pm_theirs', { account: 'acct_host', like: 'pm_card_visa' });
  await expect(platform.run(sequence(), { payment_method: 'pm_ours' })).rejects.toThrow(
    /platform-owned payment method/,
  );
  await platform.run(sequence(), { payment_method: 'pm_theirs' });
  expect(platform.balances()).toEqual(PAID_IN_SEQUENCE);
});

test("a customer's saved card is charged in the customer's name", async () => {
  const { paymentMethods } = platform.standIn.state.connect;
  paymentMethods.set('pm_saved', { account: '', like: 'pm_card_visa', customer: 'cus_1' });
  const other = planSplit({ ...ACCEPTED, quote_id: 'q-2' }, REAL).requests;
  await expect(platform.run(other, { payment_method: 'pm_saved' })).rejects.toThrow(/include the Customer/);
  await platform.run(realTime(), { payment_method: 'pm_saved', customer: 'cus_1' });
  expect(platform.balances()).toEqual(PAID_IN_REAL_TIME);
});

test('the version of the account and of the client do not matter', async () => {
  platform.standIn.state.connect.version = '2022-11-15';
  const old = platform.client({ apiVersion: '2024-06-20' as never });
  await platform.run(sequence(), CARD, old);
  await platform.run(planSplit({ ...ACCEPTED, quote_id: 'q-2' }, REAL).requests, CARD, old);
  expect(new Set(platform.standIn.requests.map(({ version }) => version))).toEqual(new Set(['2026-05-27.dahlia']));
});

test('in real time the transfer and the payment on our account carry their quote', async () => {
  const [paid] = await platform.run(realTime());
  const metadata = { quote_id: 'q-1', enrollment_id: 'e-1' };
  expect(platform.objects('transfer')).toMatchObject([{ id: paid?.transfer, metadata }]);
  const ours = [...platform.standIn.state.balanceTransactions.values()];
  expect(ours).toMatchObject([{ type: 'payment', source: { metadata } }]);
});

describe('what is given back', () => {
  const refunded = (spotPrice: string, invoiceAmount: string) => ({
    ...ACCEPTED,
    ...{ reversal_id: `rv-${spotPrice}`, spotPrice, invoiceAmount },
  });

  test('a refund in sequence leaves nobody with what is not theirs', async () => {
    const [payment, transfer] = await platform.run(sequence());
    const ids = { payment_intent: payment?.id, transfer: transfer?.id };
    await platform.run(planRefund(refunded('4.00', '2.80'), SEQUENTIAL, HOST), ids);
    // Of the operator's 2.00, the platform's 1.00 and our 7.00, four tenths.
    expect(platform.balances()).toEqual([120, 60, 420]);
    await platform.run(planRefund(refunded('6.00', '4.20'), SEQUENTIAL, HOST), ids);
    expect(platform.balances()).toEqual([0, 0, 0]);
  });

  test("of the API's answer to a reversal is given back once, also the day after", async () => {
    const [payment] = await platform.run(realTime());
    const answer = { ...ACCEPTED, reversal_id: 'rv-1', requote_id: null, spotPrice: -4, invoiceAmount: -2.8 };
    const ids = { payment_intent: payment?.id };
    const [made] = await platform.run(planRefund(answer, REAL), ids);
    platform.later(25 * 3600);
    expect(await platform.run(planRefund(answer, REAL), ids)).toMatchObject([{ id: made?.id, known: true }]);
    expect(platform.objects('refund')).toHaveLength(1);
    expect(platform.balances()).toEqual([0, 180, 420]);
  });

  test('a refund that failed later is followed by another, the same day and the day after', async () => {
    const [payment] = await platform.run(planSplit(ACCEPTED, CONTROLLED).requests);
    const [, refund] = planRefund(refunded('4.00', '2.80'), CONTROLLED);
    const again = async () =>
      (await platform.run(refund === undefined ? [] : [refund], { payment_intent: payment?.id }))[0];
    const ids: (string | undefined)[] = [];
    for (let tries = 0; tries < 3; tries += 1) {
      const made = await again();
      expect(made).toMatchObject({ amount: 400, known: false });
      expect(await again()).toMatchObject({ id: made?.id, known: true });
      ids.push(made?.id);
      failRefund(platform.standIn.state, made?.id ?? '');
      expect(platform.balances()).toEqual([0, 300, 700]);
      if (tries === 1) platform.later(25 * 3600);
    }
    const last = await again();
    expect(new Set([...ids, last?.id]).size).toBe(4);
    expect(platform.balances()).toEqual([0, -100, 700]);
  });

  test('a share that our bank has already is asked for before the customer is refunded, and taken once', async () => {
    const [payment, transfer] = await platform.run(planSplit(ACCEPTED, CONTROLLED).requests);
    const ids = { payment_intent: payment?.id, transfer: transfer?.id };
    const plan = planRefund(refunded('10.00', '7.00'), CONTROLLED);
    const { state } = platform.standIn;
    payOut(state, 'acct_us');
    for (let tries = 0; tries < 3; tries += 1) {
      const error = await platform.unfinished(platform.run(plan, ids));
      expect(error).toMatchObject({
        code: 'share_not_available',
        done: [],
        message: expect.stringContaining('paid out'),
      });
      expect(error.message).toContain(String(transfer?.id));
    }
    expect(platform.objects('refund')).toEqual([]);
    // The customer need not wait: the refund alone, and the share when later ones have filled our account.
    credit(state, '', 'usd', 1000);
    await platform.run(
      plan.filter(({ does }) => does === 'refund'),
      ids,
    );
    expect(platform.balances()).toEqual([0, 300, 0]);
    await platform.run(planSplit({ ...ACCEPTED, quote_id: 'q-2' }, CONTROLLED).requests);
    const done = [
      { does: 'transfer_reversal', amount: 700, known: false },
      { does: 'refund', known: true },
    ];
    expect(await platform.run(plan, ids)).toMatchObject(done);
    expect(await platform.run(plan, ids)).toMatchObject([{ known: true }, { known: true }]);
    expect(platform.balances()).toEqual([0, 1300, 0]);
    expect(['refund', 'transfer_reversal'].map((what) => platform.objects(what).length)).toEqual([1, 1]);
  });

  test('a lost dispute waits for our share in sequence, and not in real time', async () => {
    const [payment, transfer] = await platform.run(sequence());
    loseDispute(platform.standIn.state, payment?.id ?? '');
    payOut(platform.standIn.state, 'acct_us');
    const ids = { transfer: transfer?.id, application_fee: payment?.application_fee };
    const lost = planDispute({ ...ACCEPTED, dispute_id: 'dp_1' }, SEQUENTIAL, HOST);
    expect(await platform.unfinished(platform.run(lost, ids))).toMatchObject({ code: 'share_not_available', done: [] });
    expect(platform.objects('fee_refund')).toEqual([]);
    const [other] = await platform.run(planSplit({ ...ACCEPTED, quote_id: 'q-2' }, REAL).requests);
    payOut(platform.standIn.state, 'acct_us');
    // Stripe takes the transfer of a destination charge back whatever is on the account.
    const paid = planDispute({ ...ACCEPTED, quote_id: 'q-2', dispute_id: 'dp_2' }, REAL);
    expect(await platform.run(paid, { transfer: other?.transfer })).toMatchObject([{ amount: 700, known: false }]);
    expect(platform.balances()[2]).toBe(-700);
  });

  test('a refund that failed at once is an error that names it, and asked for again another is made', async () => {
    const [payment, transfer] = await platform.run(planSplit(ACCEPTED, CONTROLLED).requests);
    const back = () =>
      platform.run(planRefund(refunded('4.00', '2.80'), CONTROLLED), {
        ...{ payment_intent: payment?.id, transfer: transfer?.id },
      });
    platform.standIn.state.connect.failRefunds = true;
    for (const nth of [0, 1]) {
      const error = await platform.unfinished(back());
      expect(error).toMatchObject({ code: 'refund_failed', done: [{ does: 'transfer_reversal' }] });
      expect(error.message).toContain(
        `refund ${platform.objects('refund')[nth]?.['id']} is failed (expired_or_canceled_card)`,
      );
      // The customer has nothing yet: the platform has the share for it.
      expect(platform.balances()).toEqual([0, 580, 420]);
    }
    platform.standIn.state.connect.failRefunds = false;
    expect(await back()).toMatchObject([
      { does: 'transfer_reversal', known: true },
      { does: 'refund', known: false },
    ]);
    expect(platform.balances()).toEqual([0, 180, 420]);
    expect(await back()).toMatchObject([{ known: true }, { known: true }]);
  });

  test.each(['fail_before', 'fail_after', 'drop_after'] as const)(
    'is given back once, whatever fails: %s',
    async (how) => {
      const [payment, transfer] = await platform.run(sequence());
      const ids = { payment_intent: payment?.id, transfer: transfer?.id, application_fee: payment?.application_fee };
      const refund = planRefund(refunded('5.00', '3.50'), SEQUENTIAL, HOST);
      const lost = planDispute({ ...ACCEPTED, dispute_id: 'dp_1', invoiceAmount: '3.50' }, SEQUENTIAL, HOST);
      for (const like of ['/v1/refunds', `/v1/transfers/${transfer?.id}/reversals`, '/v1/application_fees/*']) {
        platform.standIn.fail(`POST ${like}`, { how });
      }
      for (let tries = 0; tries < 3; tries += 1) await platform.run([...refund, ...lost], ids).catch(() => undefined);
      await platform.run([...refund, ...lost], ids);
      expect(['refund', 'transfer_reversal', 'fee_refund'].map((what) => platform.objects(what).length)).toEqual([
        1, 2, 2,
      ]);
      expect(platform.balances()).toEqual([450, 50, 0]);
    },
  );

  test('a lost dispute in real time is the platform’s, which takes the share back', async () => {
    const [payment] = await platform.run(realTime());
    loseDispute(platform.standIn.state, payment?.id ?? '');
    expect(platform.balances()).toEqual([0, -700, 700]);
    const lost = planDispute({ ...ACCEPTED, dispute_id: 'dp_1' }, REAL);
    await platform.run(lost, { transfer: payment?.transfer });
    expect(await platform.run(lost, { transfer: payment?.transfer })).toMatchObject([{ known: true }]);
    expect(platform.balances()).toEqual([0, 0, 0]);
  });

  test('a lost dispute in sequence is the operator’s, who gets the share back', async () => {
    const [payment, transfer] = await platform.run(sequence());
    loseDispute(platform.standIn.state, payment?.id ?? '');
    expect(platform.balances()).toEqual([-800, 100, 700]);
    const lost = planDispute({ ...ACCEPTED, dispute_id: 'dp_1' }, SEQUENTIAL, HOST);
    const ids = { transfer: transfer?.id, application_fee: payment?.application_fee };
    await platform.run(lost, ids);
    platform.later(25 * 3600);
    expect(await platform.run(lost, ids)).toMatchObject([{ known: true }, { does: 'fee_refund', known: true }]);
    // The platform's own fee stays with it.
    expect(platform.balances()).toEqual([-100, 100, 0]);
    expect(await platform.unfinished(platform.run(lost, { transfer: transfer?.id }))).toMatchObject({
      code: 'input_missing',
      message: expect.stringMatching(/application_fee/),
    });
  });
});

test('a platform that controls its payouts charges, transfers when the money is there, and refunds', async () => {
  platform.standIn.state.connect.holdFees = true;
  const { requests } = planSplit(ACCEPTED, CONTROLLED);
  expect(await platform.unfinished(platform.run(requests))).toBeInstanceOf(SplitUnfinished);
  releaseFees(platform.standIn.state);
  const [payment, transfer] = await platform.run(requests);
  expect(platform.balances()).toEqual([0, 300, 700]);
  const back = planRefund({ ...ACCEPTED, reversal_id: 'rv-1' }, CONTROLLED);
  await platform.run(back, { payment_intent: payment?.id, transfer: transfer?.id });
  expect(platform.balances()).toEqual([0, 0, 0]);
});

describe('a currency that the platform does not hold', () => {
  const euros = { ...ACCEPTED, currency: 'EUR' };
  const charged = () => platform.objects('charge').length;
  beforeEach(() => {
    const { settles, rates } = platform.standIn.state.connect;
    settles.set('', 'usd');
    rates.set('eur/usd', 1.09);
  });

  test.each([
    ['on its own account', CONTROLLED, {}],
    ['by an operator', SEQUENTIAL, HOST],
  ])('is told by the transfer, with the payment that was made: %s', async (_, routing, options) => {
    const { requests } = planSplit(euros, routing, options);
    for (const known of [false, true]) {
      const error = await platform.unfinished(platform.run(requests));
      expect(error).toMatchObject({ code: 'currency_not_held', done: [{ does: 'payment', known }] });
      expect(error.message).toContain('got the payment in USD and has no EUR');
    }
    expect(charged()).toBe(1);
    // It holds euros from elsewhere: then they are sent.
    platform.standIn.state.connect.balances.set('/eur', 700);
    expect(await platform.run(requests)).toMatchObject([{ known: true }, { does: 'transfer', currency: 'eur' }]);
  });

  test('is refused before the customer is charged, where it is known what the platform holds', () => {
    const plan = (...settlement_currencies: string[]) => planSplit(euros, { ...CONTROLLED, settlement_currencies });
    expect(() => plan('usd', 'GBP')).toThrow(/holds USD, GBP and no EUR/);
    expect(plan('usd', 'eur').requests).toHaveLength(2);
    const free = { ...euros, partnerCut: '10.00', invoiceAmount: '0' };
    expect(planSplit(free, { ...CONTROLLED, settlement_currencies: ['USD'] }).requests).toHaveLength(1);
  });

  test('waits for money that is in it, as ever', async () => {
    platform.standIn.state.connect.holdFees = true;
    const { requests } = planSplit(ACCEPTED, CONTROLLED);
    expect(await platform.unfinished(platform.run(requests))).toMatchObject({ code: 'balance_insufficient' });
  });
});

test('a request that is none of a plan’s is refused', async () => {
  const unknown = { ...realTime()[0], does: 'gift' } as never;
  await expect(platform.run([unknown])).rejects.toThrow(/no plan has the request/);
  expect(platform.standIn.requests).toEqual([]);
});
