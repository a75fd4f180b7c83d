/** Orders and cover that a partner states with a quote: the acceptance records them, and the event has them. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Caller, PRICED, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, type World } from '../support/world.ts';

const ORDER = { order_reference: '#1001 "B"', cover_from: '2026-07-15', cover_to: '2026-08-31' };
const NO_ORDER = { order_reference: null, cover_from: null, cover_to: null };
const ASKED = { policy_id: 'ticket-protection', insured_amount: '250' };

let world: World;
let served: Served;
let caller: Caller;
beforeAll(async () => {
  world = await openWorld();
  world.at('2026-07-15T12:00:00Z');
  await world.partners([partner(PRICED)]);
  served = await serveWorld(world);
  caller = await served.caller('p-1');
});
afterAll(async () => {
  expect(await world.verify()).toMatchObject({ differences: 0 });
  await served.end();
  await world.end();
});

const ordersOf = (quoteId: unknown) =>
  world.sql(
    `SELECT kind, order_reference, cover_from::text, cover_to::text FROM ledger_rows WHERE quote_id = $1 ORDER BY entry_id`,
    [quoteId],
  );

test('the acceptance of a quote records its order, and a requote states its own', async () => {
  const quoted = await caller.post('/api/v1/quote', { ...ASKED, ...ORDER });
  expect(quoted).toMatchObject({ status: 201, body: { ...ORDER, status: 'open' } });
  const id = quoted.body['quote_id'];
  expect((await caller.get(`/api/v1/quote/${id}`)).body).toMatchObject(ORDER);
  await caller.get(`/api/v1/quote/${id}/accept`);
  const plain = await caller.post(`/api/v1/quote/${id}/requote`, { insured_amount: '260' });
  expect(plain.body).toMatchObject(NO_ORDER);
  await caller.get(`/api/v1/requote/${plain.body['requote_id']}/accept`);
  const own = { cover_from: '2026-07-15', cover_to: '2026-12-31' };
  const longer = await caller.post(`/api/v1/quote/${id}/requote`, { insured_amount: '270', ...own });
  expect(longer.body).toMatchObject({ ...NO_ORDER, ...own });
  await caller.get(`/api/v1/requote/${longer.body['requote_id']}/accept`);
  expect(await ordersOf(id)).toEqual([
    { kind: 'quote_accepted', ...ORDER },
    { kind: 'requote_accepted', ...NO_ORDER },
    { kind: 'requote_accepted', ...NO_ORDER, ...own },
  ]);
});

test('a quote without an order has none', async () => {
  const { body } = await caller.post('/api/v1/quote', ASKED);
  expect(body).toMatchObject(NO_ORDER);
  await caller.get(`/api/v1/quote/${body['quote_id']}/accept`);
  expect(await ordersOf(body['quote_id'])).toEqual([{ kind: 'quote_accepted', ...NO_ORDER }]);
});

test.each([
  ['an empty reference', { order_reference: '' }, 'order_reference'],
  ['a line end in a reference', { order_reference: 'a\nb' }, 'order_reference'],
  ['a day that does not exist', { cover_from: '2026-02-30' }, 'cover_from'],
  ['a day before 1970', { cover_from: '1969-12-31' }, 'cover_from'],
  ['cover that only ends', { cover_to: '2026-07-31' }, 'cover_to'],
  ['cover that ends after 2099', { cover_from: '2026-07-31', cover_to: '2100-07-30' }, 'cover_to'],
  ['cover that ends before it begins', { cover_from: '2026-07-31', cover_to: '2026-07-30' }, 'cover_to'],
])('%s is refused with its field', async (_, order, field) => {
  const { status, text } = await caller.post('/api/v1/quote', { ...ASKED, ...order });
  expect([status, text]).toEqual([400, expect.stringContaining(field)]);
});
