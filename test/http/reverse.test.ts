/** Reversals by call: what a partner gives back, as a ledger row by the ledger's own rules. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Caller, PRICED, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, type World } from '../support/world.ts';

let world: World;
let served: Served;
let caller: Caller;
let other: Caller;

beforeAll(async () => {
  world = await openWorld();
  world.at('2026-07-15T12:00:00Z');
  await world.partners([partner(PRICED), partner({ ...PRICED, partner_id: 'p-2' })]);
  served = await serveWorld(world);
  caller = await served.caller('p-1');
  other = await served.caller('p-2');
});
afterAll(async () => {
  expect(await world.verify()).toMatchObject({ differences: 0 });
  await served.end();
  await world.end();
});

const quoted = async () =>
  (await caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' })).body[
    'quote_id'
  ] as string;
async function accepted(): Promise<string> {
  const id = await quoted();
  await caller.get(`/api/v1/quote/${id}/accept`);
  return id;
}
const reverse = (id: string, body: object, headers = {}) => caller.post(`/api/v1/quote/${id}/reverse`, body, headers);
const rowsOf = (id: string) =>
  world.sql<Record<string, string>>(
    `SELECT kind, spot_price::text, partner_cut::text, invoice_amount::text FROM ledger_rows
     WHERE quote_id = $1 ORDER BY entry_id`,
    [id],
  );

test('without amounts it takes back the quote and its requotes, and the quote is reversed', async () => {
  const id = await accepted();
  const requote = await caller.post(`/api/v1/quote/${id}/requote`, { insured_amount: '300' });
  await caller.get(`/api/v1/requote/${requote.body['requote_id']}/accept`);
  const { status, body, text } = await reverse(id, { reversal_id: 'refund-all' });
  expect(status).toBe(201);
  expect(body).toMatchObject({ reversal_id: 'refund-all', quote_id: id, requote_id: null, currency: 'USD' });
  expect(text).toContain('"spotPrice":-25.50,"partnerCut":-7.65,"invoiceAmount":-17.85');
  expect((await rowsOf(id)).map(({ kind, invoice_amount: amount }) => [kind, Number(amount)])).toEqual([
    ['quote_accepted', 14.87],
    ['requote_accepted', 2.98],
    ['reversal', -17.85],
  ]);
  expect((await caller.get(`/api/v1/quote/${id}`)).body).toMatchObject({ status: 'reversed' });
  expect((await reverse(id, { reversal_id: 'refund-all' })).text).toBe(text);
});

test('it states an order of its own, or none, and not that of the quote', async () => {
  const order = { order_reference: 'ORD-1', cover_from: '2026-07-15', cover_to: '2026-07-31' };
  const asked = { policy_id: 'ticket-protection', insured_amount: '250', ...order };
  const id = (await caller.post('/api/v1/quote', asked)).body['quote_id'] as string;
  await caller.get(`/api/v1/quote/${id}/accept`);
  const part = { spotPrice: '-2.00', partnerCut: '-0.60', invoiceAmount: '-1.40' };
  const nothing = { order_reference: null, cover_from: null, cover_to: null };
  expect(await reverse(id, { reversal_id: 'refund-plain', ...part })).toMatchObject({ status: 201, body: nothing });
  const own = { reversal_id: 'refund-own', ...part, order_reference: 'RMA 1' };
  const { text, body } = await reverse(id, own);
  expect(body).toMatchObject({ ...nothing, order_reference: 'RMA 1' });
  expect((await reverse(id, own)).text).toBe(text);
  expect(await reverse(id, { ...own, order_reference: 'RMA 2' })).toMatchObject({ status: 409 });
  expect(await reverse(id, { ...own, order_reference: undefined })).toMatchObject({ status: 409 });
});

test('a requote that it names is taken back alone', async () => {
  const id = await accepted();
  const requote = await caller.post(`/api/v1/quote/${id}/requote`, { insured_amount: '300' });
  const requoteId = requote.body['requote_id'] as string;
  expect(await reverse(id, { reversal_id: 'refund-open', requote_id: requoteId })).toMatchObject({ status: 400 });
  await caller.get(`/api/v1/requote/${requoteId}/accept`);
  const { text } = await reverse(id, { reversal_id: 'refund-requote', requote_id: requoteId });
  expect(text).toContain('"spotPrice":-4.25,"partnerCut":-1.27,"invoiceAmount":-2.98');
  expect(await reverse(id, { reversal_id: 'refund-again', requote_id: requoteId })).toMatchObject({
    status: 422,
    body: { code: 'reversal_exceeds' },
  });
  // The same amounts of the quote itself are another reversal.
  const ofQuote = { spotPrice: '-4.25', partnerCut: '-1.27', invoiceAmount: '-2.98' };
  expect(await reverse(id, { reversal_id: 'refund-requote', ...ofQuote })).toMatchObject({
    status: 409,
    body: { code: 'reversal_reused' },
  });
});

test('the same reversal again, also six at once, has the same answer and one row', async () => {
  const id = await accepted();
  const part = { reversal_id: 'refund-part', spotPrice: '-2.00', partnerCut: '-0.60', invoiceAmount: -1.4 };
  const answers = await Promise.all([1, 2, 3, 4, 5, 6].map(() => reverse(id, part)));
  expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
  expect(answers[0]?.status).toBe(201);
  expect(await reverse(id, { reversal_id: 'refund-part' })).toMatchObject({
    status: 409,
    body: { code: 'reversal_reused' },
  });
  expect((await rowsOf(id)).length).toBe(2);
});

test('a reversal and the acceptance of a requote at once: one of them is refused, and nothing stays billed', async () => {
  for (let round = 0; round < 6; round += 1) {
    const id = await accepted();
    const requote = await caller.post(`/api/v1/quote/${id}/requote`, { insured_amount: '300' });
    const accept = () => caller.get(`/api/v1/requote/${requote.body['requote_id']}/accept`);
    const both = [() => reverse(id, { reversal_id: `at-once-${id}` }), accept];
    const [one, other] = await Promise.all((round % 2 === 0 ? both : both.reverse()).map((call) => call()));
    const statuses = [one?.status, other?.status].sort();
    const left = (await rowsOf(id)).reduce((sum, row) => sum + Math.round(Number(row['invoice_amount']) * 100), 0);
    // Accepted first, the increment is reversed with the quote; reversed first, it is refused.
    expect({ left, fits: [[200, 201].join(), [201, 422].join()].includes(statuses.join()) }).toEqual({
      left: 0,
      fits: true,
    });
  }
});

test('it is on the invoice of the month in which it was made', async () => {
  const id = await accepted();
  await reverse(id, { reversal_id: 'refund-counted' });
  expect(await world.sql(`SELECT month, arrangement FROM ledger_rows WHERE reversal_id = 'refund-counted'`)).toEqual([
    { month: '2026-07', arrangement: 'invoicing' },
  ]);
  const event = `SELECT subject, details->>'client_id' AS client_id, via FROM audit_events
    WHERE action = 'quote.reverse' AND details->>'reversal_id' = 'refund-counted'`;
  expect(await world.sql(event)).toEqual([{ subject: id, client_id: caller.credentials.client_id, via: 'http' }]);
});

test.each([
  ['more than is left', { spotPrice: '-30.00', partnerCut: '-9.00', invoiceAmount: '-21.00' }, 422, 'reversal_exceeds'],
  ['nothing', { spotPrice: '0', partnerCut: '0', invoiceAmount: '0' }, 400, 'request_invalid'],
  ['an amount above zero', { spotPrice: '1.00', partnerCut: '0.30', invoiceAmount: '0.70' }, 400, 'request_invalid'],
  ['amounts that do not add up', { spotPrice: '-1', partnerCut: '0', invoiceAmount: '0' }, 400, 'request_invalid'],
  ['a tenth of a cent', { spotPrice: '-1.001', partnerCut: '0', invoiceAmount: '-1.001' }, 400, 'request_invalid'],
  ['one amount alone', { spotPrice: '-1.00' }, 400, 'request_invalid'],
  ['a requote of another quote', { requote_id: 'rq-none' }, 400, 'request_invalid'],
])('%s is refused and records nothing', async (_, body, status, code) => {
  const id = await accepted();
  expect(await reverse(id, { reversal_id: 'refund-bad', ...body })).toMatchObject({ status, body: { code } });
  expect((await rowsOf(id)).length).toBe(1);
});

test('an open quote has nothing to reverse, and another partner’s is unknown', async () => {
  const open = await quoted();
  expect(await reverse(open, { reversal_id: 'refund-open' })).toMatchObject({
    status: 422,
    body: { code: 'quote_not_accepted' },
  });
  const mine = await accepted();
  expect(await other.post(`/api/v1/quote/${mine}/reverse`, { reversal_id: 'refund-mine' })).toMatchObject({
    status: 404,
    body: { code: 'quote_unknown' },
  });
});

test('a reversal of an imported quote is recorded as well', async () => {
  await world.rows([
    {
      ...{ kind: 'quote_accepted', partner_id: 'p-1', quote_id: 'q-imported', policy_id: 'ticket-protection' },
      ...{ currency: 'USD', accepted_at: '2026-07-01T10:00:00Z' },
      ...{ spotPrice: '10.00', partnerCut: '3.00', invoiceAmount: '7.00' },
    },
  ]);
  expect(await reverse('q-imported', { reversal_id: 'refund-imported' })).toMatchObject({
    status: 201,
    body: { spotPrice: -10, enrollment_id: null },
  });
});
