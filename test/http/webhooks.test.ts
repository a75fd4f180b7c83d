/** The door for the processor's webhooks: what it lets in, and what it hands on. */
import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { storeEvents } from '../../src/payments/processor-events/store.ts';
import { ask, type Served, serveWorld } from '../support/service.ts';
import { openWorld, type World } from '../support/world.ts';

const SECRETS = ['whsec_old', 'whsec_new'];
const NOW = 1_785_578_400; // 2026-08-01T10:00:00Z

let world: World;
let served: Served;
let stored: string[] = [];
let hinted: string[] = [];
beforeAll(async () => {
  world = await openWorld();
  served = await serveWorld(world, {
    environment: {
      ...world.environment,
      stripeWebhookSecrets: new Map([
        ['', SECRETS],
        ['acct_1', ['whsec_acct_1']],
      ]),
    },
    storeEvents: async (_tx, _acting, { text, account }) => {
      stored.push(text);
      return { accounts: account === undefined ? [] : [account] };
    },
    onEventsStored: (accounts) => hinted.push(...accounts),
  });
});
beforeEach(() => {
  stored = [];
  hinted = [];
});
afterAll(async () => {
  await served.end();
  await world.end();
});

const BODY = '{\n  "id": "evt_1",\n  "amount": 12345678901234567890.10,\n  "note": "a\\nb — ü"\n}';
const sign = (secret: string, at = NOW, body = BODY) =>
  createHmac('sha256', secret).update(`${at}.${body}`).digest('hex');
const send = async (signature: string | undefined, body: string | Buffer = BODY, query = '') => {
  const answer = await ask(`${served.url}/webhooks/stripe${query}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(signature === undefined ? {} : { 'stripe-signature': signature }),
    },
    body: new Uint8Array(Buffer.from(body)),
  });
  return [answer.status, answer.body['code'] ?? 'ok'];
};

test('an event signed over its bytes is stored unchanged, on one line', async () => {
  expect(await send(`t=${NOW},v1=${sign('whsec_old')}`)).toEqual([200, 'ok']);
  expect(stored).toEqual(['{   "id": "evt_1",   "amount": 12345678901234567890.10,   "note": "a\\nb — ü" }']);
});

test('both secrets work during a rotation, and one valid signature of several is enough', async () => {
  for (const secret of SECRETS) expect(await send(`t=${NOW},v1=${sign(secret)}`)).toEqual([200, 'ok']);
  expect(await send(`t=${NOW},v0=x,v1=${'0'.repeat(64)},v1=${sign('whsec_new')}`)).toEqual([200, 'ok']);
});

test('an event of a connected account names the account in the address, and makes it be read', async () => {
  expect(await send(`t=${NOW},v1=${sign('whsec_acct_1')}`, BODY, '?account=acct_1')).toEqual([200, 'ok']);
  expect(hinted).toEqual(['acct_1']);
  expect(await send(`t=${NOW},v1=${sign('whsec_new')}`, BODY, '?account=acct_1&account=acct_2')).toEqual([
    ...[400, 'request_invalid'],
  ]);
  expect(await send('t=1,v1=0', BODY, '?account=acct_1')).toEqual([400, 'webhook_signature_invalid']);
  expect(hinted).toEqual(['acct_1']);
});

test('the secret of one account signs for no other', async () => {
  const refused = [400, 'webhook_signature_invalid'];
  expect(await send(`t=${NOW},v1=${sign('whsec_new')}`, BODY, '?account=acct_1')).toEqual(refused);
  expect(await send(`t=${NOW},v1=${sign('whsec_acct_1')}`)).toEqual(refused);
  const unknown = await send(`t=${NOW},v1=${sign('whsec_acct_1')}`, BODY, '?account=acct_2');
  expect(unknown).toEqual([404, 'webhook_not_configured']);
  expect(stored).toEqual([]);
  for (const [signedBy, account] of [
    ['', 'acct_1'],
    ['acct_1', 'acct_2'],
  ] as const) {
    const event = { id: 'evt_9', object: 'event', type: 'a.b', created: NOW, livemode: false, data: { object: {} } };
    const text = JSON.stringify({ ...event, account });
    const action = world.database.transaction((tx) => storeEvents(tx, world, { name: 'webhook', text, signedBy }));
    await expect(action).rejects.toMatchObject({ code: 'processor_events_invalid' });
  }
});

test.each([
  ['300 s old', -300, 200],
  ['301 s old', -301, 400],
  ['300 s ahead', 300, 200],
  ['301 s ahead', 301, 400],
])('a signature that is %s', async (_, offset, status) => {
  expect((await send(`t=${NOW + offset},v1=${sign('whsec_new', NOW + offset)}`))[0]).toBe(status);
});

test.each([
  ['no signature', undefined],
  ['an empty one', ''],
  ['no time', `v1=${sign('whsec_new')}`],
  ['no v1', `t=${NOW}`],
  ['a signature of another secret', `t=${NOW},v1=${sign('whsec_other')}`],
  ['a signature of the empty secret', `t=${NOW},v1=${sign('')}`],
  ['a signature of another time', `t=${NOW},v1=${sign('whsec_new', NOW + 1)}`],
  ['a signature of another body', `t=${NOW},v1=${sign('whsec_new', NOW, '{}')}`],
  ['half a signature', `t=${NOW},v1=${sign('whsec_new').slice(0, 32)}`],
  ['a time that is no number', `t=now,v1=${sign('whsec_new')}`],
])('%s is refused and nothing is stored', async (_, signature) => {
  expect(await send(signature)).toEqual([400, 'webhook_signature_invalid']);
  expect(stored).toEqual([]);
});

test('a body that is not UTF-8, or larger than a megabyte, is refused', async () => {
  const bytes = Buffer.from([0x7b, 0xff, 0x7d]);
  const hash = createHmac('sha256', 'whsec_new').update(`${NOW}.`).update(bytes).digest('hex');
  expect(await send(`t=${NOW},v1=${hash}`, bytes)).toEqual([400, 'request_invalid']);
  expect(await send(`t=${NOW},v1=${sign('whsec_new')}`, 'x'.repeat(1024 * 1024 + 1))).toEqual([413, 'body_too_large']);
  expect(stored).toEqual([]);
});

test('a signed event that nobody can keep is refused as such', async () => {
  const storing = await serveWorld(world, {
    environment: { ...world.environment, stripeWebhookSecrets: new Map([['', SECRETS]]) },
    storeEvents,
  });
  const event = (object: string) =>
    `{"id":"evt_9","object":"event","type":"x","created":${NOW},"livemode":false,"data":{"object":{"a":${object}}}}`;
  try {
    for (const odd of [`${'['.repeat(200_000)}${']'.repeat(200_000)}`, '9'.repeat(500_000), '1e200000']) {
      const body = event(odd);
      const answer = await ask(`${storing.url}/webhooks/stripe`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'stripe-signature': `t=${NOW},v1=${sign('whsec_new', NOW, body)}`,
        },
        body,
      });
      expect(answer).toMatchObject({ status: 400, body: { code: 'processor_events_invalid' } });
    }
    expect(await world.sql(`SELECT FROM processor_events`)).toEqual([]);
  } finally {
    await storing.end();
  }
});

test('a thin event is refused with what to change at Stripe', async () => {
  const storing = await serveWorld(world, {
    environment: { ...world.environment, stripeWebhookSecrets: new Map([['', SECRETS]]) },
    storeEvents,
  });
  const body = JSON.stringify({
    ...{ id: 'evt_1', object: 'v2.core.event', type: 'v1.refund.failed', created: '2026-07-15T12:00:00Z' },
    ...{ livemode: false, related_object: { id: 're_1', type: 'refund', url: '/v1/refunds/re_1' } },
  });
  try {
    const answer = await ask(`${storing.url}/webhooks/stripe`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'stripe-signature': `t=${NOW},v1=${sign('whsec_new', NOW, body)}`,
      },
      body,
    });
    expect(answer).toMatchObject({ status: 400, body: { code: 'processor_events_invalid' } });
    expect(answer.text).toContain('replace the endpoint with one that sends snapshot payloads');
  } finally {
    await storing.end();
  }
});

test('a body that is too large is told the limit of webhooks', async () => {
  const answer = await ask(`${served.url}/webhooks/stripe`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'stripe-signature': `t=${NOW},v1=${sign('whsec_new')}` },
    body: 'x'.repeat(1024 * 1024 + 1),
  });
  expect(answer).toMatchObject({ status: 413, body: { code: 'body_too_large', limit: 1024 * 1024 } });
});
