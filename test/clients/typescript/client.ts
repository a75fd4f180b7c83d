/**
 * A partner's program in TypeScript: types generated from the served description, and a client of them. clients.test.ts
 * generates the types, compiles this strictly and runs it against the program.
 *
 *   client.js sell              sells one quote, raises it and gives a part of it back; prints its id
 *   client.js documents QUOTE   reads every document, its PDF and its rows, and the events, and finds the quote in them
 *   client.js settle            sells one quote of a connected account, and sends the settlement file of its transfer
 */
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import createClient, { type Middleware } from 'openapi-fetch';
import type { components, paths } from './api.js';

const { BASE_URL: baseUrl, PARTNER_ID, CLIENT_ID, CLIENT_SECRET } = process.env;
assert(baseUrl && PARTNER_ID && CLIENT_ID && CLIENT_SECRET, 'set BASE_URL, PARTNER_ID, CLIENT_ID and CLIENT_SECRET');

type Policy = components['schemas']['Policy'];
type Document = components['schemas']['Document'];
type LateRequest = components['schemas']['LateRequest'];

const api = createClient<paths>({ baseUrl });
const header = { 'X-Service-Partner-Id': PARTNER_ID };

/** The data of an answer that must be no problem. */
function expect<Data>(answer: { data?: Data; error?: unknown; response: Response }): Data {
  if (answer.data === undefined) throw new Error(`${answer.response.status} ${JSON.stringify(answer.error)}`);
  return answer.data;
}

/** An answer that is no late request: the rows of its quote are in no archive. */
function atOnce<Data extends object>(answer: Data): Exclude<Data, LateRequest> {
  if ('location' in answer) throw new Error(JSON.stringify(answer));
  return answer as Exclude<Data, LateRequest>;
}

/** A token by the client credentials, at the address that the server's metadata names. */
async function signIn(): Promise<void> {
  const metadata = await fetch(`${baseUrl}/.well-known/oauth-authorization-server`);
  const { token_endpoint: endpoint } = (await metadata.json()) as { token_endpoint: string };
  assert.equal(endpoint, `${baseUrl}/api/oauth/token`);
  const body = { client_id: CLIENT_ID as string, client_secret: CLIENT_SECRET as string };
  const token = expect(await api.POST('/api/oauth/token', { body }));
  assert.equal(token.token_type, 'Bearer');
  const authorize: Middleware = {
    onRequest({ request }) {
      request.headers.set('Authorization', `Bearer ${token.access_token}`);
      return request;
    },
  };
  api.use(authorize);
}

async function pricedPolicy(): Promise<Policy> {
  const policies = expect(await api.GET('/api/v1/policies', { params: { header, query: { limit: 10 } } }));
  const policy = policies.find(({ active, price }) => active && price !== null);
  assert(policy);
  return policy;
}

async function acceptedQuote() {
  const { policy_id } = await pricedPolicy();
  const key = randomUUID();
  const create = () =>
    api.POST('/api/v1/quote', {
      params: { header: { 'Idempotency-Key': key } },
      body: { policy_id, insured_amount: '250.00' },
    });
  const quote = expect(await create());
  const again = await create();
  assert.equal(again.response.headers.get('Idempotent-Replayed'), 'true');
  assert.deepEqual(expect(again), quote);
  const path = { quote_id: quote.quote_id };
  const accepted = expect(await api.GET('/api/v1/quote/{quote_id}/accept', { params: { header, path } }));
  assert.deepEqual(expect(await api.POST('/api/v1/quote/{quote_id}/accept', { params: { header, path } })), accepted);
  assert.equal(expect(await api.GET('/api/v1/quote/{quote_id}', { params: { path } })).status, 'accepted');
  return accepted;
}

async function sell(): Promise<string> {
  const accepted = await acceptedQuote();
  const path = { quote_id: accepted.quote_id };

  const requote = atOnce(
    expect(await api.POST('/api/v1/quote/{quote_id}/requote', { params: { path }, body: { insured_amount: 300 } })),
  );
  const ofRequote = { header, path: { requote_id: requote.requote_id } };
  const raised = expect(await api.GET('/api/v1/requote/{requote_id}/accept', { params: ofRequote }));
  assert.equal(raised.incrementalSpotPrice, requote.incrementalSpotPrice);
  assert.equal(expect(await api.GET('/api/v1/requote/{requote_id}', { params: ofRequote })).status, 'accepted');

  const reversal_id = randomUUID();
  const part = { reversal_id, spotPrice: '-5.00', partnerCut: '-1.50', invoiceAmount: '-3.50' };
  const reverse = () => api.POST('/api/v1/quote/{quote_id}/reverse', { params: { header, path }, body: part });
  const reversal = atOnce(expect(await reverse()));
  assert.deepEqual(expect(await reverse()), reversal);
  assert.equal(reversal.spotPrice, -5);

  // A refusal has one of the codes that its call is described with, so each of these compares is checked by the compiler.
  const { error } = await api.POST('/api/v1/quote/{quote_id}/requote', {
    params: { path },
    body: { insured_amount: '400' },
  });
  assert(error);
  switch (error.code) {
    case 'quote_reversed':
      assert.equal(error.status, 422);
      break;
    case 'quote_not_accepted':
    case 'requote_lower':
      throw new Error(error.detail);
    default:
      throw new Error(`not expected: ${error.code}`);
  }
  const wrong = await api.POST('/api/v1/quote', { body: { policy_id: 'none', insured_amount: 'much' } });
  assert(wrong.error?.code === 'request_invalid');
  assert.deepEqual(
    wrong.error.problems?.map(({ path: field }) => field),
    ['insured_amount'],
  );
  return accepted.quote_id;
}

/** All documents, two by two. */
async function allDocuments(): Promise<Document[]> {
  const found: Document[] = [];
  let cursor: string | undefined;
  do {
    const query = { limit: 2, ...(cursor !== undefined && { cursor }) };
    const page = await api.GET('/api/v1/invoices', { params: { header, query } });
    found.push(...expect(page));
    const next = /<([^>]*)>; rel="next"/.exec(page.response.headers.get('Link') ?? '')?.[1];
    cursor = next === undefined ? undefined : (new URL(next).searchParams.get('cursor') ?? undefined);
  } while (cursor !== undefined);
  return found;
}

async function documents(quoteId: string): Promise<string[]> {
  const all = await allDocuments();
  const bills: string[] = [];
  for (const listed of all) {
    const of = { header, path: { number: listed.number } };
    assert.deepEqual(expect(await api.GET('/api/v1/invoices/{number}', { params: of })), listed);
    const pdf = await api.GET('/api/v1/invoices/{number}/pdf', { params: of, parseAs: 'arrayBuffer' });
    const bytes = Buffer.from(expect<ArrayBuffer>(pdf));
    assert.equal(createHash('sha256').update(bytes).digest('hex'), listed.pdf?.sha256);
    const rows = expect(await api.GET('/api/v1/invoices/{number}/rows', { params: of, parseAs: 'text' }));
    if (rows.includes(quoteId)) bills.push(listed.number);
    if (listed.payment_link !== null) {
      const page = await fetch(listed.payment_link);
      assert.equal(page.status, 200);
      assert((await page.text()).includes(listed.number));
    }
  }
  const { error } = await api.GET('/api/v1/invoices/{number}', { params: { header, path: { number: 'INV-0' } } });
  assert.equal(error?.code, 'invoice_unknown');
  return bills;
}

/** The quote that an event is about, if it is about one. A webhook's body is the same. */
function quoteOf(event: components['schemas']['Event']): string | undefined {
  switch (event.type) {
    case 'quote.accepted':
      assert(event.data.spotPrice > 0);
      return event.data.quote_id;
    case 'requote.accepted':
      assert(event.data.incrementalSpotPrice > 0);
      return event.data.quote_id;
    case 'reversal.recorded':
      assert(event.data.invoiceAmount < 0);
      return event.data.quote_id;
    default:
      // Types that are added later, too.
      return undefined;
  }
}

/** The types of the quote's events, read in order as a program does that has handled none yet. */
async function eventsOf(quoteId: string): Promise<string[]> {
  const types: string[] = [];
  let position = 0;
  for (;;) {
    const query = { limit: 3, cursor: String(position) };
    const events = expect(await api.GET('/api/v1/events', { params: { header, query } }));
    if (events.length === 0) return types;
    for (const event of events) {
      assert.equal(event.position, position + 1);
      position = event.position;
      if (quoteOf(event) === quoteId) types.push(event.type);
    }
  }
}

async function settle(): Promise<string> {
  const { quote_id, split } = await acceptedQuote();
  assert(split);
  const line = [quote_id, 'tr_1', 'py_1', split.share.toFixed(2)].join(',');
  const file = `quote_id,transfer,payment,amount\n${line}\n`;
  const send = (body: string) =>
    api.POST('/api/v1/settlement-files', {
      params: { header },
      body,
      bodySerializer: (text) => text,
      headers: { 'Content-Type': 'text/csv' },
    });
  const first = await send(file);
  const sent = expect(first);
  assert.deepEqual([first.response.status, sent.matched, sent.unmatched], [201, 1, []]);
  const again = await send(file);
  assert.equal(again.response.status, 200);
  const { sha256 } = sent;
  assert.equal(sha256, createHash('sha256').update(file).digest('hex'));
  const read = await api.GET('/api/v1/settlement-files/{sha256}', { params: { header, path: { sha256 } } });
  assert.deepEqual(expect(read), expect(again));

  const { error } = await send(file.replace('py_1', 'py_2').replace(`,${split.share.toFixed(2)}`, ',half'));
  assert(error?.code === 'settlement_invalid');
  assert.deepEqual(
    error.problems?.map(({ line: at, field, code }) => [at, field, code]),
    [[2, 'amount', 'amount_malformed']],
  );
  return quote_id;
}

await signIn();
const [what, quoteId = ''] = process.argv.slice(2);
if (what === 'sell') console.log(JSON.stringify({ quote_id: await sell() }));
else if (what === 'documents')
  console.log(JSON.stringify({ bills: await documents(quoteId), events: await eventsOf(quoteId) }));
else if (what === 'settle') console.log(JSON.stringify({ quote_id: await settle() }));
else throw new Error('usage: client.js sell | documents QUOTE | settle');
