/** A partner's policies, requotes and documents by the API: pages of lists, one document, its PDF and its rows. */
import { createHash } from 'node:crypto';
import { parse } from 'csv-parse/sync';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask, type Caller, PRICED, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
let served: Served;
let caller: Caller;
let other: Caller;

/** Four months of p-1 and one of p-2, which asks for e-invoices. All but April are delivered. */
beforeAll(async () => {
  world = await openWorld();
  const noTax = { category: 'O', reason: 'Not subject to VAT', reason_code: 'VATEX-EU-O' } as const;
  const eInvoice = { contact_name: '', electronic_address: '', registration_id: '12345', no_tax: noTax };
  world.settings = { ...world.settings, issuer: { ...world.settings.issuer, e_invoice: eInvoice } };
  await world.partners([partner(PRICED), partner({ ...PRICED, partner_id: 'p-2', e_invoice: 'facturx' })]);
  world.at('2026-05-02T12:00:00Z');
  await world.rows([
    ...[1, 2, 3, 4].map((month) => quote({ quote_id: `q-${month}`, accepted_at: `2026-0${month}-05T12:00:00Z` })),
    quote({ quote_id: 'q-other', partner_id: 'p-2', accepted_at: '2026-01-06T12:00:00Z' }),
  ]);
  for (const month of ['2026-01', '2026-02', '2026-03']) await world.close(month, { allowEmpty: true });
  await world.deliver();
  await world.close('2026-04', { allowEmpty: true });
  served = await serveWorld(world);
  caller = await served.caller('p-1');
  other = await served.caller('p-2');
});
afterAll(async () => {
  await served.end();
  await world.end();
});

const MINE = ['INV-2026-000001', 'INV-2026-000003', 'INV-2026-000004', 'INV-2026-000005'];
const numbersOf = (body: unknown) => (body as { number: string }[]).map(({ number }) => number);
const nextOf = (headers: Headers) => /^<http:\/\/127\.0\.0\.1(.+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1];

test('a list is read page by page to its end, each document once', async () => {
  const pages: string[][] = [];
  for (let path: string | undefined = '/api/v1/invoices?limit=3'; path !== undefined; ) {
    const { status, body, headers } = await caller.get(path);
    expect(status).toBe(200);
    pages.push(numbersOf(body));
    path = nextOf(headers);
  }
  expect(pages).toEqual([MINE.slice(0, 3), MINE.slice(3)]);
  expect((await caller.get('/api/v1/invoices?limit=4')).headers.get('link')).toBeNull();
});

test('a filter stays on the next page', async () => {
  const { headers, body } = await caller.get('/api/v1/invoices?status=open&limit=1&document=invoice');
  expect(numbersOf(body)).toEqual(MINE.slice(0, 1));
  expect(nextOf(headers)).toBe('/api/v1/invoices?limit=1&status=open&document=invoice&cursor=INV-2026-000001');
  expect(numbersOf((await caller.get('/api/v1/invoices?month=2026-03')).body)).toEqual(['INV-2026-000004']);
  expect((await caller.get('/api/v1/invoices?status=void')).body).toEqual([]);
});

const NO_ITEM = 'is not an item of this list: use the Link header of a page';

test.each([
  ['an unknown parameter', '?mnth=2026-01', 'mnth', 'is not a known parameter'],
  ['a parameter that every object has', '?constructor=1', 'constructor', 'is not a known parameter'],
  ['a parameter twice', '?month=2026-01&month=2026-02', 'month', 'is given more than once'],
  ['a limit of zero', '?limit=0', 'limit', 'must be a whole number from 1 to 1000'],
  ['a limit above the largest', '?limit=1001', 'limit', 'must be a whole number from 1 to 1000'],
  ['a month that is none', '?month=2026-13', 'month', 'must be a month such as 2026-10'],
  ['a cursor with a zero byte', '?cursor=%00', 'cursor', 'is not a document number'],
  ['the cursor of another partner', '?cursor=INV-2026-000002', 'cursor', NO_ITEM],
])('%s is refused by its name', async (_, query, path, reason) => {
  expect(await caller.get(`/api/v1/invoices${query}`)).toMatchObject({
    status: 400,
    body: { code: 'request_invalid', problems: [{ path, reason }] },
  });
});

test('one document is the same as on the list, and another partner’s is unknown', async () => {
  const { body } = await caller.get('/api/v1/invoices/INV-2026-000003');
  expect(body).toEqual(((await caller.get('/api/v1/invoices')).body as unknown as object[])[1]);
  for (const path of ['', '/pdf', '/rows']) {
    expect(await other.get(`/api/v1/invoices/INV-2026-000003${path}`)).toMatchObject({
      status: 404,
      body: { code: 'invoice_unknown', number: 'INV-2026-000003' },
    });
  }
});

test('a number that no document can have is unknown', async () => {
  for (const path of ['/%00', '/%00/pdf', '/INV-2026-000003%2e/rows']) {
    expect(await caller.get(`/api/v1/invoices${path}`)).toMatchObject({
      status: 404,
      body: { code: 'invoice_unknown' },
    });
  }
});

test('the PDF is the file that was issued', async () => {
  const url = `${served.url}/api/v1/invoices/INV-2026-000001`;
  const headers = { authorization: `Bearer ${caller.token}`, 'x-service-partner-id': 'p-1' };
  const answer = await fetch(`${url}/pdf`, { headers });
  expect(answer.headers.get('content-type')).toBe('application/pdf');
  const sha256 = createHash('sha256')
    .update(Buffer.from(await answer.arrayBuffer()))
    .digest('hex');
  expect((await ask(url, { headers })).body['pdf']).toMatchObject({ sha256 });
});

test('pdf_not_ready: before its delivery', async () => {
  expect(await caller.get('/api/v1/invoices/INV-2026-000005/pdf')).toMatchObject({
    status: 503,
    body: { code: 'pdf_not_ready', number: 'INV-2026-000005', retry_after: 60 },
  });
});

test('the e-invoice is the file that was issued, and another partner’s is unknown', async () => {
  const [kept] = await world.sql<{ xml: Buffer }>('SELECT xml FROM document_e_invoices');
  const { status, headers, text } = await other.get('/api/v1/invoices/INV-2026-000002/e-invoice');
  expect([status, headers.get('content-type')]).toEqual([200, 'application/xml']);
  expect(text).toBe(kept?.xml.toString());
  expect(text).toContain('<ram:ID>INV-2026-000002</ram:ID>');
  expect(await caller.get('/api/v1/invoices/INV-2026-000002/e-invoice')).toMatchObject({
    status: 404,
    body: { code: 'invoice_unknown' },
  });
});

test('e_invoice_unknown: the partner asked for none', async () => {
  expect(await caller.get('/api/v1/invoices/INV-2026-000001/e-invoice')).toMatchObject({
    status: 404,
    body: { code: 'e_invoice_unknown', number: 'INV-2026-000001' },
  });
});

test('the rows are those that the document bills', async () => {
  const { text, headers } = await caller.get('/api/v1/invoices/INV-2026-000003/rows');
  expect(headers.get('content-disposition')).toBe('attachment; filename="INV-2026-000003-rows.csv"');
  const rows = parse(text, { columns: true, bom: true }) as Record<string, string>[];
  expect(rows.map(({ quote_id, document, spotPrice }) => ({ quote_id, document, spotPrice }))).toEqual([
    { quote_id: 'q-2', document: 'INV-2026-000003', spotPrice: '10.00' },
  ]);
});

test('policies are listed with the terms that quotes are priced by', async () => {
  const { body, headers } = await caller.get('/api/v1/policies?limit=1');
  expect(body).toMatchObject([
    { policy_id: 'ticket-protection', active: true, currency: 'USD', price: { rate: '0.085', minimum: '2.00' } },
  ]);
  const next = await caller.get(nextOf(headers) as string);
  expect(next.body).toMatchObject([{ policy_id: 'unpriced', price: null }]);
  expect(next.headers.get('link')).toBeNull();
  expect(await caller.get('/api/v1/policies?cursor=trip-delay')).toMatchObject({
    status: 400,
    body: { code: 'request_invalid', problems: [{ path: 'cursor', reason: NO_ITEM }] },
  });
});

test('policies state the cancellation terms in force and those that come, but not those that are over', async () => {
  const terms = (from: string | null, window_days: number | null) => ({
    ...{ from, window_days, after_window: window_days && 'none', cut: window_days && 'in_proportion' },
    before_cover_only: window_days === null ? null : false,
  });
  const file = (...all: ReturnType<typeof terms>[]) => ({
    ...partner(PRICED),
    policies: PRICED.policies.map((policy, at) =>
      at > 0
        ? policy
        : { ...policy, cancellation: all.map(({ from, window_days }) => ({ ...(from && { from }), window_days })) },
    ),
  });
  const stated = async () => (await caller.get('/api/v1/policies')).body as unknown as { cancellation: object[] }[];
  expect((await stated()).map(({ cancellation }) => cancellation)).toEqual([[], []]);
  const [first, second, later] = [terms(null, 14), terms('2026-04-20', 30), terms('2026-12-01', 60)];
  await world.partners([file(first, second, later)]);
  expect((await stated()).map(({ cancellation }) => cancellation)).toEqual([[second, later], []]);
  const end = terms('2026-12-01', null);
  await world.partners([file(first, end)]);
  expect((await stated())[0]?.cancellation).toEqual([first, end]);
  await world.partners([file(first, terms('2026-04-20', null))]);
  expect((await stated())[0]?.cancellation).toEqual([]);
});

test('a requote can be read: open, accepted, and stale once another was accepted', async () => {
  const made = await caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' });
  const quoteId = made.body['quote_id'] as string;
  await caller.get(`/api/v1/quote/${quoteId}/accept`);
  const requote = async (insured_amount: string) =>
    (await caller.post(`/api/v1/quote/${quoteId}/requote`, { insured_amount })).body['requote_id'] as string;
  const [first, second] = [await requote('300'), await requote('350')];
  const read = async (id: string) => (await caller.get(`/api/v1/requote/${id}`)).body;
  expect(await read(first)).toMatchObject({ requote_id: first, status: 'open', accepted_at: null });
  const { body } = await caller.get(`/api/v1/requote/${second}/accept`);
  expect(await read(second)).toMatchObject({
    ...{ status: 'accepted', enrollment_id: body['enrollment_id'], accepted_at: body['accepted_at'] },
    incrementalSpotPrice: body['incrementalSpotPrice'],
  });
  expect(await read(first)).toMatchObject({ status: 'stale', enrollment_id: null });
  expect((await other.get(`/api/v1/requote/${first}`)).status).toBe(404);
});

test('every answer says what is left of the rate limit', async () => {
  const { headers } = await caller.get('/api/v1/policies');
  expect(headers.get('ratelimit-limit')).toBe(String(world.settings.http.requests_per_minute));
  const left = Number(headers.get('ratelimit-remaining'));
  expect(Number((await caller.get('/api/v1/policies')).headers.get('ratelimit-remaining'))).toBe(left - 1);
  expect(Number(headers.get('ratelimit-reset'))).toBeLessThanOrEqual(60);
});

test('an answer without a call says so too: of the client that its token names, else of its address', async () => {
  const leftBy = async (path: string, token: string | undefined, method = 'GET') => {
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const answer = await fetch(new URL(path, served.url), { method, headers });
    return [answer.status, Number(answer.headers.get('ratelimit-remaining'))];
  };
  for (const token of [caller.token, undefined, 'none']) {
    const [, left = 0] = await leftBy('/api/v1/none', token);
    expect(await leftBy('/api/v1/none', token)).toEqual([404, left - 1]);
    expect(await leftBy('/api/v1/policies', token, 'DELETE')).toEqual([405, left - 2]);
    expect(await leftBy('/api/v1/policies', token)).toEqual([token === caller.token ? 400 : 401, left - 3]);
  }
  // Exchanges have a limit of their own.
  const [, left = 0] = await leftBy('/api/oauth/token', undefined, 'POST');
  expect(await leftBy('/api/oauth/token', undefined, 'POST')).toEqual([400, left - 1]);
});
