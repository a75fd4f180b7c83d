/** What an acceptance tells a partner of a connected account: the requests for its processor, the same as `split plan`. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { STRIPE_VERSION } from '../../src/processors/processors.ts';
import { planQuote } from '../../src/splits/accepted.ts';
import { type Answer, ask, type Caller, PRICED, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, type World } from '../support/world.ts';

let world: World;
let served: Served;
let callers: Record<'p-1' | 'p-real' | 'p-seq' | 'p-dinar' | 'p-small' | 'p-turns', Caller>;
let described: { paths: Record<string, { get: { parameters: object[] } }> };

const connected = (partner_id: string, more: object = {}) =>
  partner({
    ...PRICED,
    partner_id,
    arrangement: 'connected_account',
    connected_account_id: `acct_${partner_id.slice(2)}`,
    merchant_of_record: 'platform',
    split: 'real_time',
    ...more,
  });

const CHEAP = [{ ...PRICED.policies[0], price: { rate: '0.085', minimum: '0' } }];

beforeAll(async () => {
  world = await openWorld();
  world.at('2026-07-15T12:00:00.250Z');
  const dinar = [{ ...PRICED.policies[0], price: { rate: '0.0815', minimum: '0' } }];
  await world.partners([
    partner(PRICED),
    connected('p-real'),
    connected('p-seq', { split: 'sequential', merchant_of_record: 'third_party' }),
    connected('p-small', { policies: CHEAP }),
    partner({ partner_id: 'p-turns', policies: CHEAP }),
    connected('p-dinar', { currency: 'KWD', policies: dinar }),
  ]);
  served = await serveWorld(world);
  const ids = ['p-1', 'p-real', 'p-seq', 'p-dinar', 'p-small', 'p-turns'] as const;
  const opened = await Promise.all(ids.map(async (id) => [id, await served.caller(id)] as const));
  callers = Object.fromEntries(opened) as typeof callers;
  described = (await ask(`${served.url}/openapi.json`)).body as unknown as typeof described;
});
afterAll(async () => {
  await served.end();
  await world.end();
});

const accept = (caller: Caller, what: 'quote' | 'requote', id: unknown, query = ''): Promise<Answer> =>
  caller.get(`/api/v1/${what}/${id}/accept${query}`);
async function quoted(caller: Caller, insured = '250'): Promise<string> {
  const body = { policy_id: 'ticket-protection', insured_amount: insured };
  return (await caller.post('/api/v1/quote', body)).body['quote_id'] as string;
}
const plansOf = async (quoteId: string, options = {}) =>
  (await world.database.reading((tx) => planQuote(tx, { quoteId, ...options }))).plans.map(({ requests }) => requests);

test('an invoiced partner gets no split plan', async () => {
  const { body } = await accept(callers['p-1'], 'quote', await quoted(callers['p-1']));
  expect(body).not.toHaveProperty('split');
});

test('a real-time split is one payment that routes exactly the share', async () => {
  const id = await quoted(callers['p-real']);
  const answer = await accept(callers['p-real'], 'quote', id);
  const { quote_id, enrollment_id } = answer.body;
  const metadata = { quote_id, enrollment_id };
  expect(answer.body['split']).toEqual({
    ...{ split: 'real_time', merchant_of_record: 'platform', connected_account_id: 'acct_real' },
    settlement_currencies: null,
    share: 14.87,
    requests: [
      {
        ...{ does: 'payment', method: 'POST', path: '/v1/payment_intents', add: ['payment_method'] },
        headers: { 'Idempotency-Key': `quote:${id}:payment`, 'Stripe-Version': STRIPE_VERSION },
        accepted_at: '2026-07-15T12:00:00.250Z',
        params: {
          ...{ amount: 2125, currency: 'usd', confirm: true, metadata },
          automatic_payment_methods: { enabled: true, allow_redirects: 'never' },
          transfer_data: { destination: 'acct_real', amount: 1487, metadata, payment_data: { metadata } },
        },
      },
    ],
    problem: null,
  });
  expect(answer.text).toContain('"share":14.87,');
  // Accepted again, it is the same answer.
  expect((await accept(callers['p-real'], 'quote', id)).text).toBe(answer.text);
});

test('a quote in a currency in which the platform is not paid out is accepted without requests', async () => {
  const euro = { split: 'sequential', currency: 'EUR', settlement_currencies: ['EUR', 'USD'] };
  await world.partners([connected('p-euro', euro)]);
  const caller = await served.caller('p-euro');
  const [held, late] = [await quoted(caller), await quoted(caller)];
  expect((await accept(caller, 'quote', held)).body['split']).toMatchObject({ problem: null, requests: [{}, {}] });
  await world.partners([connected('p-euro', { ...euro, currency: 'USD', settlement_currencies: ['USD'] })]);
  const answer = await accept(caller, 'quote', late);
  expect(answer).toMatchObject({ status: 200, body: { split: { settlement_currencies: ['USD'], requests: null } } });
  const { problem } = answer.body['split'] as { problem: object };
  expect(problem).toEqual({ code: 'currency_not_held', reason: expect.stringContaining('holds USD and no EUR') });
  // `split plan` says the same of it.
  const { plans } = await world.database.reading((tx) => planQuote(tx, { quoteId: late }));
  expect(plans).toMatchObject([{ requests: [], problem }]);
});

test('a requote has a split of its own, of the increments', async () => {
  const id = await quoted(callers['p-real']);
  const first = await accept(callers['p-real'], 'quote', id);
  const requote = await callers['p-real'].post(`/api/v1/quote/${id}/requote`, { insured_amount: '300' });
  const second = await accept(callers['p-real'], 'requote', requote.body['requote_id']);
  expect(second.body['split']).toMatchObject({
    share: 2.98,
    requests: [{ params: { transfer_data: { amount: 298 } } }],
  });
  const told = [first, second].map(({ body }) => (body['split'] as { requests: object }).requests);
  expect(told).toEqual(await plansOf(id));
});

describe('an amount that the processor would refuse to charge', () => {
  const requoted = (caller: Caller, id: unknown, insured_amount: string) =>
    caller.post(`/api/v1/quote/${id}/requote`, { insured_amount });

  test('is not offered, and what the partner can do is said', async () => {
    const small = { policy_id: 'ticket-protection', insured_amount: '5.00' };
    const answer = await callers['p-small'].post('/api/v1/quote', small);
    expect(answer).toMatchObject({
      ...{ status: 422, body: { code: 'price_too_small', price: '0.43', least: '0.50', currency: 'USD' } },
      text: expect.stringMatching(/higher insured amount, or ask us for a minimum price of 0\.50/),
    });
    const id = await quoted(callers['p-small'], '120.00');
    await accept(callers['p-small'], 'quote', id);
    expect((await requoted(callers['p-small'], id, '121.00')).body).toMatchObject({
      ...{ code: 'increment_too_small', increment: '0.09', least: '0.50' },
    });
  });

  test('is offered where nothing is charged, and from the least amount on', async () => {
    const id = await quoted(callers['p-small'], '100.00');
    await accept(callers['p-small'], 'quote', id);
    expect((await requoted(callers['p-small'], id, '100.00')).status).toBe(201);
    expect((await requoted(callers['p-small'], id, '105.89')).status).toBe(201);
    expect(
      (await callers['p-small'].post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '0' })).status,
    ).toBe(201);
  });

  test('is offered to a partner who is invoiced', async () => {
    const id = await quoted(callers['p-1'], '120.00');
    await accept(callers['p-1'], 'quote', id);
    expect((await requoted(callers['p-1'], id, '121.00')).status).toBe(201);
  });

  test('is reported with the acceptance of a quote from before the partner had a connected account', async () => {
    const id = await quoted(callers['p-turns'], '5.00');
    await world.partners([connected('p-turns', { policies: CHEAP, arrangement_from: '2026-07' })]);
    const { status, body } = await accept(callers['p-turns'], 'quote', id);
    expect(status).toBe(200);
    expect(body['split']).toMatchObject({
      ...{ requests: null, problem: { code: 'amount_too_small', reason: expect.stringMatching(/we invoice it/) } },
    });
  });
});

test("a sequential split needs the operator's account, and takes the platform's own fee", async () => {
  const id = await quoted(callers['p-seq']);
  expect((await accept(callers['p-seq'], 'quote', id)).body['split']).toMatchObject({
    ...{ split: 'sequential', merchant_of_record: 'third_party', share: 14.87, requests: null },
    problem: { code: 'operator_missing', reason: expect.stringMatching(/7\.4\.3/) },
  });
  const { body } = await accept(callers['p-seq'], 'quote', id, '?operator_account=acct_host&platform_fee=1.50');
  expect(body['split']).toMatchObject({
    problem: null,
    requests: [
      { does: 'payment', headers: { 'Stripe-Account': 'acct_host' }, params: { application_fee_amount: 1487 + 150 } },
      { does: 'transfer', params: { amount: 1487, destination: 'acct_seq' } },
    ],
  });
  const options = { operator_account: 'acct_host', platform_fee: '1.50' };
  expect([(body['split'] as { requests: object }).requests]).toEqual(await plansOf(id, options));
});

test('an amount that the processor cannot write is accepted, with the reason why it is not split', async () => {
  const { status, body } = await accept(callers['p-dinar'], 'quote', await quoted(callers['p-dinar'], '10.01'));
  expect(status).toBe(200);
  expect(body['split']).toMatchObject({ requests: null, problem: { code: 'amount_inexpressible' } });
});

test.each([
  ['operator_account=nobody', 'operator_account'],
  ['platform_fee=1e3', 'platform_fee'],
  ['platform_fee=-1', 'platform_fee'],
])('an input that can be none is refused, and nothing is accepted: %s', async (query, field) => {
  const id = await quoted(callers['p-seq']);
  const answer = await callers['p-seq'].get(`/api/v1/quote/${id}/accept?${query}`);
  expect(answer).toMatchObject({ status: 400, body: { code: 'request_invalid', problems: [{ path: field }] } });
  expect((await callers['p-seq'].get(`/api/v1/quote/${id}`)).body['status']).toBe('open');
});

test('the inputs are described', () => {
  for (const path of ['/api/v1/quote/{quote_id}/accept', '/api/v1/requote/{requote_id}/accept']) {
    const names = described.paths[path]?.get.parameters.map((each) => (each as { name: string }).name);
    expect(names).toEqual(expect.arrayContaining(['operator_account', 'platform_fee']));
  }
});
