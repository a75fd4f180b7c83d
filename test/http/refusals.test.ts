/** One reproducible case for every refusal that only the HTTP side answers with, and what a problem document looks like. */

import { createHmac } from 'node:crypto';
import { request } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { monthArchive } from '../../src/actions/archive.ts';
import { runAction } from '../../src/actions/run.ts';
import { CALL_REFUSAL_CODES, type CallRefusalCode, httpStatusOf } from '../../src/errors/refusals.ts';
import type { Month } from '../../src/month.ts';
import { worldOfOldMonths } from '../archive/archived-world.ts';
import { LEDGER_LOCK } from '../support/locks.ts';
import { type Answer, ask, type Caller, PRICED, type Served, serveWorld } from '../support/service.ts';
import {
  openWorld,
  partner,
  quote as quoteRow,
  requote as requoteRow,
  reversal,
  type World,
} from '../support/world.ts';

let world: World;
let served: Served;
let guarded: Served;
let slow: Served;
let failing: Served;
let caller: Caller;
let connected: Caller;
const WEBHOOK_SECRET = 'whsec_one';

beforeAll(async () => {
  world = await openWorld();
  world.at('2026-07-15T12:00:00Z');
  await world.partners([
    partner({
      ...PRICED,
      policies: [
        ...PRICED.policies,
        { ...PRICED.policies[0], policy_id: 'dear', price: { rate: '900000', minimum: '2.00' } },
      ],
    }),
    partner({ ...PRICED, partner_id: 'p-idle' }),
    partner({
      ...{ partner_id: 'p-split', arrangement: 'connected_account', connected_account_id: 'acct_split' },
      ...{ merchant_of_record: 'platform', split: 'real_time' },
      policies: [{ ...PRICED.policies[0], price: { rate: '0.085', minimum: '0' } }],
    }),
  ]);
  const environment = { ...world.environment, stripeWebhookSecrets: new Map([['', [WEBHOOK_SECRET]]]) };
  served = await serveWorld(world, { environment, storeEvents: async () => ({ accounts: [] }), patience: 1 });
  const http = { ...world.settings.http };
  guarded = await serveWorld(world, { settings: { http: { ...http, allow: ['203.0.113.0/24'] } } });
  slow = await serveWorld(world, { settings: { http: { ...http, requests_per_minute: 2 } } });
  // A bug, as it may be one day: what is thrown is no refusal.
  failing = await serveWorld(world, {
    environment,
    storeEvents: () => Promise.reject(new Error('the inside of the program')),
  });
  caller = await served.caller('p-1');
  connected = await served.caller('p-split');
});
afterAll(async () => {
  for (const each of [served, guarded, slow, failing]) await each.end();
  await world.end();
});

const quote = async (policy_id = 'ticket-protection', insured_amount = '250') =>
  caller.post('/api/v1/quote', { policy_id, insured_amount });
const quoteId = async () => (await quote()).body['quote_id'] as string;
const accepted = async () => {
  const id = await quoteId();
  await caller.get(`/api/v1/quote/${id}/accept`);
  return id;
};
const reverse = (id: string, body: object) => caller.post(`/api/v1/quote/${id}/reverse`, body);
const facts = (id: string) => ({
  ...{ partner_id: 'p-1', quote_id: id, policy_id: 'ticket-protection', currency: 'USD' },
  accepted_at: '2026-07-15T11:00:00Z',
});
/** Of a request whose path stands as it is written. */
const statusOf = (path: string) =>
  new Promise<number | undefined>((resolve, reject) => {
    const { hostname, port } = new URL(guarded.url);
    request({ hostname, port, path }, (answer) => resolve(answer.resume().statusCode))
      .on('error', reject)
      .end();
  });
const settle = (of: Caller, text: string) => of.post('/api/v1/settlement-files', text, { 'content-type': 'text/csv' });
const bare = (path: string, headers: Record<string, string> = {}) => ask(`${served.url}${path}`, { headers });

function webhook(at: Served, event: object, secret = WEBHOOK_SECRET): Promise<Answer> {
  const body = JSON.stringify(event);
  const time = Math.floor(world.environment.now().toSeconds());
  const signature = createHmac('sha256', secret).update(`${time}.${body}`).digest('hex');
  return ask(`${at.url}/webhooks/stripe`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'stripe-signature': `t=${time},v1=${signature}` },
    body,
  });
}
const EVENT = { id: 'evt_1', type: 'charge.succeeded', livemode: false, created: 1 };

/** What a server answers to bytes that no HTTP client would send. */
function raw(at: Served, bytes: string): Promise<string> {
  const { hostname, port } = new URL(at.url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString();
    });
    socket.on('end', () => resolve(text)).on('error', reject);
  });
}

/** What a partner is answered whose rows of January are in the archive. */
async function ofArchived(call: (theirs: Caller) => Promise<Answer>): Promise<Answer> {
  const own = await worldOfOldMonths();
  const there = await serveWorld(own, { patience: 1 });
  try {
    const theirs = await there.caller('p-1');
    await theirs.get('/api/v1/events');
    await runAction({ ...own }, monthArchive, { month: '2026-01' as Month, store: 'cold' });
    return await call(theirs);
  } finally {
    await there.end();
    await own.end();
  }
}

const CASES: Record<
  Exclude<CallRefusalCode, 'unavailable' | 'pdf_not_ready' | 'e_invoice_unknown'>,
  { when: string; run: () => Promise<Answer> }
> = {
  request_invalid: { when: 'the insured amount is no decimal', run: () => quote('ticket-protection', '1e5') },
  route_unknown: { when: 'nothing is at the path', run: () => bare('/api/v2/quote') },
  method_not_allowed: { when: 'a quote is asked for by GET', run: () => caller.get('/api/v1/quote') },
  media_type_unsupported: {
    when: 'the body is XML',
    run: () => caller.post('/api/v1/quote', '<quote/>', { 'content-type': 'application/xml' }),
  },
  body_too_large: {
    when: 'the body has 65 KiB',
    run: () => caller.post('/api/v1/quote', { policy_id: 'x'.repeat(65 * 1024), insured_amount: '1' }),
  },
  prefetch_refused: {
    when: 'an acceptance is prefetched',
    run: async () => caller.get(`/api/v1/quote/${await quoteId()}/accept`, { purpose: 'prefetch' }),
  },
  rate_limited: {
    when: 'a third call comes where two a minute are allowed',
    run: async () => {
      for (const _ of [1, 2]) await ask(`${slow.url}/openapi.json`);
      return ask(`${slow.url}/openapi.json`);
    },
  },
  address_not_allowed: {
    when: 'the address is not on the list, however the path is written',
    run: async () => {
      for (const path of ['/%61pi/v1/invoices', 'http://x/api/v1/invoices', '/api/v1/nothing']) {
        expect({ path, status: await statusOf(path) }).toEqual({ path, status: 403 });
      }
      return ask(`${guarded.url}/api/v1/invoices`);
    },
  },
  token_missing: { when: 'there is no token', run: () => bare('/api/v1/invoices') },
  token_invalid: {
    when: 'the token is no token',
    run: () => bare('/api/v1/invoices', { authorization: 'Bearer abc' }),
  },
  partner_header_missing: {
    when: 'the partner’s header is missing',
    run: () => bare('/api/v1/invoices', { authorization: `Bearer ${caller.token}` }),
  },
  partner_header_mismatch: {
    when: 'the header names another partner',
    run: () => caller.get('/api/v1/invoices', { 'x-service-partner-id': 'p-idle' }),
  },
  quote_unknown: { when: 'nobody made the quote', run: () => caller.get('/api/v1/quote/q-nobody') },
  requote_unknown: { when: 'nobody made the requote', run: () => caller.get('/api/v1/requote/rq-nobody/accept') },
  busy: {
    when: 'one partner sends a twelfth settlement file while one is read and ten wait',
    run: () =>
      world.database.asOwner(async (tx) => {
        await tx.knex.raw('LOCK TABLE settlement_files IN ACCESS EXCLUSIVE MODE');
        const file = (nth: number) => `quote_id,transfer,payment,amount\nq-busy,tr_${nth},py_${nth},7.00\n`;
        const twelve = Array.from({ length: 12 }, (_, nth) => settle(connected, file(nth)));
        return Promise.race(twelve);
      }),
  },
  rows_busy: {
    when: 'a fifth download of rows begins while four are under way',
    run: async () => {
      const own = await openWorld();
      await own.partners([partner(PRICED)]);
      await own.rows([quoteRow()]);
      await own.close();
      const there = await serveWorld(own, { patience: 1 });
      const theirs = await there.caller('p-1');
      const path = '/api/v1/invoices/INV-2026-000001/rows';
      try {
        return await own.database.asOwner(async (tx) => {
          // The document is found; its rows wait.
          await tx.knex.raw('LOCK TABLE ledger_rows IN ACCESS EXCLUSIVE MODE');
          const five = await Promise.allSettled([1, 2, 3, 4, 5].map(() => theirs.get(path)));
          const answered = five.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
          return answered.find(({ body }) => body['code'] === 'rows_busy') as Answer;
        });
      } finally {
        await there.end();
        await own.end();
      }
    },
  },
  events_archived: {
    when: 'a partner reads events of rows that are archived',
    run: () => ofArchived((theirs) => theirs.get('/api/v1/events')),
  },
  quote_archived: {
    when: 'a partner foresees a reversal of a quote that it does not have, and has rows of old months in the archive',
    run: () => ofArchived((theirs) => theirs.get('/api/v1/quote/q-none/reverse/preview')),
  },
  late_request_unknown: {
    when: 'the number is of no late request',
    run: () => caller.get('/api/v1/late-requests/17'),
  },
  invoice_unknown: {
    when: 'the number is another partner’s',
    run: () => caller.get('/api/v1/invoices/INV-2026-000099'),
  },
  policy_unknown: { when: 'the partner has no such policy', run: () => quote('nobodys') },
  policy_not_priced: { when: 'the policy has no price', run: () => quote('unpriced') },
  partner_inactive: {
    when: 'the partner is not active',
    run: async () => {
      const idle = await served.caller('p-idle');
      await world.partners([partner({ ...PRICED, partner_id: 'p-idle', active: false })]);
      return idle.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '1' });
    },
  },
  policy_inactive: {
    when: 'the policy is not active any more',
    run: async () => {
      const id = await quoteId();
      await world.partners([partner({ policies: [{ ...PRICED.policies[0], active: false }] })]);
      try {
        return await caller.get(`/api/v1/quote/${id}/accept`);
      } finally {
        await world.partners([partner(PRICED)]);
      }
    },
  },
  price_too_large: { when: 'the price has sixteen digits', run: () => quote('dear', '999999999999999') },
  policy_price_exceeded: {
    when: 'the price is above the largest of the policy',
    run: async () => {
      await world.partners([partner({ policies: [{ ...PRICED.policies[0], largest_price: '84.99' }] })]);
      try {
        return await quote('ticket-protection', '1000');
      } finally {
        await world.partners([partner(PRICED)]);
      }
    },
  },
  price_too_small: {
    when: 'a connected account would have to charge less than the processor does',
    run: () => connected.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '5.00' }),
  },
  increment_too_small: {
    when: 'a connected account would have to charge an increment that is less than the processor does',
    run: async () => {
      const body = { policy_id: 'ticket-protection', insured_amount: '120.00' };
      const id = (await connected.post('/api/v1/quote', body)).body['quote_id'];
      await connected.get(`/api/v1/quote/${id}/accept`);
      return connected.post(`/api/v1/quote/${id}/requote`, { insured_amount: '121.00' });
    },
  },
  quote_not_accepted: {
    when: 'an open quote is requoted',
    run: async () => caller.post(`/api/v1/quote/${await quoteId()}/requote`, { insured_amount: '300' }),
  },
  quote_reversed: {
    when: 'a reversed quote is requoted',
    run: async () => {
      const id = await accepted();
      const amounts = { spotPrice: '-1.00', partnerCut: '-0.30', invoiceAmount: '-0.70' };
      expect(await world.rows([reversal(facts(id), amounts)])).toMatchObject({ accepted: 1 });
      return caller.post(`/api/v1/quote/${id}/requote`, { insured_amount: '300' });
    },
  },
  quote_expired: {
    when: 'a quote of July is accepted in September',
    run: async () => {
      const id = await quoteId();
      world.at('2026-09-15T12:00:00Z');
      try {
        return await (await served.caller('p-1')).get(`/api/v1/quote/${id}/accept`);
      } finally {
        world.at('2026-07-15T12:00:00Z');
      }
    },
  },
  requote_lower: {
    when: 'less is to be insured',
    run: async () => caller.post(`/api/v1/quote/${await accepted()}/requote`, { insured_amount: '200' }),
  },
  requote_stale: {
    when: 'another requote was recorded meanwhile',
    run: async () => {
      const id = await accepted();
      const made = await caller.post(`/api/v1/quote/${id}/requote`, { insured_amount: '300' });
      expect(await world.rows([requoteRow(facts(id))])).toMatchObject({ accepted: 1 });
      return caller.get(`/api/v1/requote/${made.body['requote_id']}/accept`);
    },
  },
  reversal_exceeds: {
    when: 'nothing is left of the quote',
    run: async () => {
      const id = await accepted();
      await reverse(id, { reversal_id: `${id}-1` });
      return reverse(id, { reversal_id: `${id}-2` });
    },
  },
  reversal_reused: {
    when: 'one reversal_id is used for two quotes',
    run: async () => {
      await reverse(await accepted(), { reversal_id: 'refund-1' });
      return reverse(await accepted(), { reversal_id: 'refund-1' });
    },
  },
  recorded_otherwise: {
    when: 'the row of the quote was imported',
    run: async () => {
      const id = await quoteId();
      const amounts = { spotPrice: '21.25', partnerCut: '6.38', invoiceAmount: '14.87' };
      await world.rows([{ kind: 'quote_accepted', ...facts(id), ...amounts }]);
      return caller.get(`/api/v1/quote/${id}/accept`);
    },
  },
  idempotency_key_reused: {
    when: 'one key is used for two quotes',
    run: async () => {
      const make = (insured_amount: string) =>
        caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount }, { 'idempotency-key': 'k' });
      await make('1');
      return make('2');
    },
  },
  ledger_busy: {
    when: 'a close holds the ledger',
    run: async () => {
      const id = await quoteId();
      return world.database.transaction(async (tx) => {
        await tx.knex.raw(LEDGER_LOCK);
        return caller.get(`/api/v1/quote/${id}/accept`);
      });
    },
  },
  settlement_invalid: {
    when: 'a settlement file has an amount that its currency cannot have',
    run: () => settle(connected, 'quote_id,transfer,payment,amount\nq-1,tr_1,py_1,7.005\n'),
  },
  partner_not_connected: {
    when: 'an invoiced partner sends a settlement file',
    run: () => settle(caller, 'quote_id,transfer,payment,amount\n'),
  },
  month_not_begun: {
    when: 'a partner states the totals of a month to come',
    run: () => caller.post('/api/v1/feeds', { month: '2099-01', count: 0, totals: {} }),
  },
  settlement_file_unknown: {
    when: 'no settlement file has the hash',
    run: () => connected.get(`/api/v1/settlement-files/${'0'.repeat(64)}`),
  },
  internal: { when: 'the program has a mistake', run: () => webhook(failing, EVENT) },
  webhook_not_configured: { when: 'no webhook secret is set', run: () => webhook(slow, EVENT) },
  webhook_signature_invalid: {
    when: 'a webhook is signed with another secret',
    run: () => webhook(served, EVENT, 'x'),
  },
};

for (const [code, { when, run }] of Object.entries(CASES)) {
  test(`${code}: ${when}`, async () => {
    const { status, headers, body, text } = await run();
    expect([body['code'], status]).toEqual([code, httpStatusOf(code as CallRefusalCode)]);
    expect(headers.get('content-type')).toBe('application/problem+json');
    expect(body).toMatchObject({
      type: `http://127.0.0.1/reference#${code}`,
      status,
      title: expect.stringMatching(/\w/) as string,
      detail: expect.stringMatching(/\.$/) as string,
      instance: `urn:request:${headers.get('x-request-id')}`,
    });
    expect(text).not.toMatch(/inside of the program|\n\s+at |SELECT|postgres/);
    // What to do is for our own people: a partner has none of our commands.
    expect(text).not.toMatch(/reckoner [a-z]|"remedies"|\/console\//);
    if ([429, 503].includes(status)) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  });
}

test('unavailable: while the database is down; the same request works when it is back', async () => {
  const own = await serveWorld(world);
  const theirs = await own.caller('p-1');
  await own.database.close();
  const answer = await theirs.get('/api/v1/invoices');
  expect([answer.status, answer.body['code'], answer.headers.get('retry-after')]).toEqual([503, 'unavailable', '5']);
  const page = await ask(`${own.url}/pay/${'a'.repeat(32)}`);
  expect([page.status, page.headers.get('retry-after')]).toEqual([503, '5']);
  expect(page.text).toContain('<p>The database is unavailable. Retry in 5 seconds. Nothing was changed.</p>');
  expect((await ask(`${own.url}/readyz`)).status).toBe(503);
  expect((await ask(`${own.url}/healthz`)).status).toBe(200);
  await own.end();
});

test('bytes that are not HTTP are refused', async () => {
  expect(await raw(served, 'GET / HTTP/1.1\r\nHost: x\r\nbroken header\r\n\r\n')).toContain('400 Bad Request');
});

test('every refusal of the HTTP server has a case here', () => {
  // A document without its PDF or e-invoice: invoices.test.ts.
  expect([...Object.keys(CASES), 'unavailable', 'pdf_not_ready', 'e_invoice_unknown'].sort()).toEqual(
    [...CALL_REFUSAL_CODES].sort(),
  );
});
