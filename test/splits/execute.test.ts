/**
 * A platform makes the requests of its plans through the `stripe` client, at a stand-in that refuses what Stripe's types
 * refuse, and our account, read with its own key, reconciles to the cent.
 */
import Stripe from 'stripe';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Month } from '../../src/month.ts';
import { type Done, executeRequests, SplitUnfinished } from '../../src/processors/stripe/splits/execute.ts';
import { type ProcessorRequest, planRefund, planSplit, type Routing } from '../../src/processors/stripe/splits/plan.ts';
import { planQuote } from '../../src/splits/accepted.ts';
import { accessTo, readAccount } from '../../src/splits/poll.ts';
import { reconcileMonth } from '../../src/splits/reconcile-month.ts';
import { recordReversals } from '../../src/splits/reverse.ts';
import { balanceOf, releaseFees } from '../support/stripe/accounts.ts';
import { type StripeStandIn, startStripe } from '../support/stripe/stand-in.ts';
import { openWorld, partner, quote, requote } from '../support/world.ts';

let standIn: StripeStandIn;
let stripe: Stripe;
let now = new Date('2026-07-15T12:00:10Z');

beforeAll(async () => {
  standIn = await startStripe({ now: () => now });
  const { hostname: host, port } = new URL(standIn.url);
  stripe = new Stripe('sk_test_platform', { protocol: 'http', host, port, telemetry: false, maxNetworkRetries: 0 });
});
afterAll(() => standIn.close());
beforeEach(() => {
  now = new Date('2026-07-15T12:00:10Z');
  for (const account of ['acct_us', 'acct_host']) standIn.state.connect.accounts.add(account);
  standIn.state.connect.keys.set('sk_test_us', 'acct_us');
});
afterEach(() => standIn.startOver());

const REAL: Routing = { split: 'real_time', merchant_of_record: 'platform', connected_account_id: 'acct_us' };
const SEQUENTIAL: Routing = { ...REAL, split: 'sequential', merchant_of_record: 'third_party' };
const HOST = { operator_account: 'acct_host', platform_fee: '1.00' };
const ACCEPTED = {
  ...{ quote_id: 'q-1', enrollment_id: 'e-1', currency: 'USD', accepted_at: '2026-07-15T12:00:00Z' },
  ...{ spotPrice: '10.00', partnerCut: '3.00', invoiceAmount: '7.00' },
};
const CARD = { payment_method: 'pm_card_visa' };
const run = (requests: readonly ProcessorRequest[], given: object = CARD) =>
  executeRequests(stripe, requests, given, { now: () => now });
const unfinished = async (work: Promise<Done[]>): Promise<SplitUnfinished> => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(SplitUnfinished);
  return error as SplitUnfinished;
};
const objects = (what: string) =>
  [...standIn.state.connect.objects.values()].filter(({ object }) => object === what).map(({ id }) => id);
/** After a day the processor has forgotten its idempotency keys. */
const forgetKeys = () => {
  now = new Date(now.getTime() + 25 * 3600 * 1000);
};

test('in real time the customer pays, our account gets the share and the platform the rest of the price', async () => {
  const { requests } = planSplit(ACCEPTED, REAL);
  const [paid] = await run(requests);
  expect(paid).toMatchObject({ does: 'payment', amount: 1000, currency: 'usd', known: false });
  expect([balanceOf(standIn.state, ''), balanceOf(standIn.state, 'acct_us')]).toEqual([300, 700]);
});

test('in sequence the operator is paid, the platform gets the fee, and the transfer names its quote', async () => {
  const { requests } = planSplit(ACCEPTED, SEQUENTIAL, HOST);
  expect(await run(requests)).toMatchObject([
    { does: 'payment', amount: 1000 },
    { does: 'transfer', amount: 700, labelled: true },
  ]);
  const balances = ['acct_host', '', 'acct_us'].map((account) => balanceOf(standIn.state, account));
  expect(balances).toEqual([200, 100, 700]);
  const [told] = [...standIn.state.balanceTransactions.values()].filter(({ type }) => type === 'payment');
  expect(told).toMatchObject({ source: { metadata: { quote_id: 'q-1', enrollment_id: 'e-1' } } });
});

test('if the platform may not write to our account, the settlement file must name the quote', async () => {
  standIn.state.connect.readOnly.add('acct_us');
  expect(await run(planSplit(ACCEPTED, SEQUENTIAL, HOST).requests)).toMatchObject([{}, { labelled: false }]);
});

test.each([
  ['at once', () => {}],
  ['after the processor has forgotten its keys', forgetKeys],
])('asked for again %s, nothing is done twice', async (_when, meanwhile) => {
  const { requests } = planSplit(ACCEPTED, SEQUENTIAL, HOST);
  const first = await run(requests);
  const [payment, transfer] = first.map(({ id }) => id);
  const back = planRefund({ ...ACCEPTED, reversal_id: 'rv-1' }, SEQUENTIAL, HOST);
  const refunded = await run(back, { payment_intent: payment, transfer });
  const balances = () => ['acct_host', '', 'acct_us'].map((account) => balanceOf(standIn.state, account));
  const before = balances();
  meanwhile();
  expect((await run(requests)).map(({ id, known }) => ({ id, known }))).toEqual(
    first.map(({ id }) => ({ id, known: true })),
  );
  expect(await run(back, { payment_intent: payment, transfer })).toEqual(
    refunded.map((each) => ({ ...each, known: true })),
  );
  expect(balances()).toEqual(before);
});

test.each(['drop_after', 'fail_before'] as const)('whatever is cut off (%s) is done once in the end', async (how) => {
  const { requests } = planSplit(ACCEPTED, SEQUENTIAL, HOST);
  for (const like of ['POST /v1/payment_intents', 'POST /v1/transfers']) {
    standIn.fail(like, { how });
    // After a lost connection the client may retry by itself.
    await run(requests).catch(() => undefined);
    // A failed key repeats its error for a day.
    if (how === 'fail_before') forgetKeys();
  }
  await run(requests);
  expect(['acct_host', '', 'acct_us'].map((account) => balanceOf(standIn.state, account))).toEqual([200, 100, 700]);
});

test('a transfer is made when the money is available, and not before', async () => {
  standIn.state.connect.holdFees = true;
  const { requests } = planSplit(ACCEPTED, SEQUENTIAL, HOST);
  const { code, done } = await unfinished(run(requests));
  expect({ code, done }).toMatchObject({ code: 'balance_insufficient', done: [{ does: 'payment', amount: 1000 }] });
  releaseFees(standIn.state);
  expect(await run(requests)).toMatchObject([{ known: true }, { does: 'transfer', amount: 700, known: false }]);
});

test('an unconfirmed payment is not charged again, and nothing is transferred', async () => {
  const { requests } = planSplit(ACCEPTED, SEQUENTIAL, HOST);
  const given = { payment_method: 'pm_card_authenticationRequired' };
  expect(await unfinished(run(requests, given))).toMatchObject({ code: 'payment_unpaid', done: [] });
  expect(await unfinished(run(requests))).toMatchObject({ code: 'payment_unpaid' });
  expect(objects('payment_intent')).toHaveLength(1);
  expect([objects('charge'), objects('transfer')]).toEqual([[], []]);
});

test("a declined card throws the processor's error, and another card may be tried", async () => {
  const { requests } = planSplit(ACCEPTED, REAL);
  await expect(run(requests, { payment_method: 'pm_card_visa_chargeDeclined' })).rejects.toMatchObject({
    code: 'card_declined',
  });
  expect(await run(requests)).toMatchObject([{ does: 'payment', amount: 1000 }]);
  expect(objects('payment_intent')).toHaveLength(1);
});

test('what the plan leaves to the platform must be given', async () => {
  const { requests } = planSplit(ACCEPTED, REAL);
  expect(await unfinished(run(requests, {}))).toMatchObject({
    code: 'input_missing',
    message: expect.stringMatching(/payment_method/),
  });
  const refund = planRefund({ ...ACCEPTED, reversal_id: 'rv-1' }, REAL);
  expect(await unfinished(run(refund, {}))).toMatchObject({
    code: 'input_missing',
    message: expect.stringMatching(/payment_intent/),
  });
  expect(standIn.requests).toEqual([]);
});

test('a month of executed plans, refunds and the documented form reconciles to the cent', async () => {
  const world = await openWorld({ stripe: standIn.url });
  try {
    world.environment = { ...world.environment, connectedKeys: new Map([['acct_us', 'sk_test_us']]) };
    await world.partners([
      partner({ arrangement: 'connected_account', ...REAL }),
      partner({ partner_id: 'p-2', arrangement: 'connected_account', ...SEQUENTIAL }),
    ]);
    const raised = quote({ quote_id: 'raised' });
    await world.rows([
      ...['plain', 'partly', 'wholly', 'documented'].map((quote_id) => quote({ quote_id })),
      ...['sequential', 'given-back'].map((quote_id) => quote({ quote_id, partner_id: 'p-2' })),
      raised,
      requote(raised, { requote_id: 'raise' }),
      requote(quote({ quote_id: 'documented' }), { requote_id: 'by-the-letter' }),
    ]);
    const executed = new Map<string, Done[]>();
    for (const quoteId of ['plain', 'partly', 'wholly', 'raised', 'documented', 'sequential', 'given-back']) {
      const options =
        quoteId === 'sequential' || quoteId === 'given-back' ? HOST : ({ requote_form: 'as_documented' } as const);
      const { plans } = await world.database.reading((tx) =>
        planQuote(tx, { quoteId, ...(quoteId === 'documented' || 'operator_account' in options ? options : {}) }),
      );
      const done: Done[] = [];
      for (const { requests } of plans) done.push(...(await run(requests)));
      executed.set(quoteId, done);
    }
    const give = async (quote_id: string, routing: Routing, spotPrice: string, invoiceAmount: string) => {
      const [payment, transfer] = executed.get(quote_id) as [Done, Done?];
      const refunded = { quote_id, reversal_id: `rv-${quote_id}`, currency: 'USD', spotPrice, invoiceAmount };
      const options = routing === SEQUENTIAL ? HOST : {};
      await run(planRefund(refunded, routing, options), { payment_intent: payment.id, transfer: transfer?.id });
    };
    now = new Date('2026-07-20T12:00:00Z');
    await give('partly', REAL, '3.33', '2.33');
    await give('wholly', REAL, '10.00', '7.00');
    await give('given-back', SEQUENTIAL, '10.00', '7.00');

    await readAccount(world.database, world, accessTo(world.environment, 'acct_us'));
    const found = await world.database.reading((tx) =>
      reconcileMonth(tx, { settings: world.settings, now: world.environment.now() }, '2026-07' as Month),
    );
    expect(Object.fromEntries(found.exceptions.map((each) => [each.quote_id, [each.status, each.open]]))).toEqual({
      partly: ['reversed', '2.33'],
      wholly: ['reversed', '7.00'],
      'given-back': ['reversed', '7.00'],
      // Of 5.00 with a share of 3.50, the fee of 3.50 went to the platform: we keep 1.50.
      documented: ['misrouted', '2.00'],
    });
    const routed = found.partners.reduce((sum, each) => sum + Math.round(Number(each.routed) * 100), 0);
    expect(routed).toBe(balanceOf(standIn.state, 'acct_us'));
    const { recorded } = await world.database.transaction((tx) => recordReversals(tx, world, '2026-07' as Month));
    expect(recorded.map(({ quote_id }) => quote_id).sort()).toEqual(['given-back', 'wholly']);
    const { checks } = await world.verify();
    expect(checks.filter((check) => check.differences.length > 0)).toEqual([]);
  } finally {
    await world.end();
  }
});
