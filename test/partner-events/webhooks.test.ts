/** Webhooks: a partner's events arrive signed, in order and at least once; what fails is tried again, and nothing is skipped. */
import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readWebhookHealth } from '../../src/partner-events/health.ts';
import { isPublicAddress, openPoster, publicLookup, urlProblem } from '../../src/partner-events/post.ts';
import { Publisher } from '../../src/partner-events/publish.ts';
import { sendEvents, sendEventsForever } from '../../src/partner-events/send.ts';
import {
  removeWebhook,
  resumeWebhook,
  rotateWebhook,
  type SetWebhook,
  setWebhook,
  type Webhook,
  webhookNamed,
} from '../../src/partner-events/webhook.ts';
import { expectVerified } from '../documents/correcting.ts';
import { serveWorld } from '../support/service.ts';
import { readStatus } from '../support/status.ts';
import { tool } from '../support/tools.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { isSignedWith, type Receiver, startReceiver } from './receiver.ts';

const KEY = 'the-signing-key-of-these-tests-0123456789';
const START = '2026-08-01T10:00:00Z';

let world: World;
let receiver: Receiver;
beforeAll(async () => {
  world = await openWorld();
  await world.partners(['p-1', 'p-2', 'p-3'].map((partner_id) => partner({ partner_id })));
});
beforeEach(async () => {
  world.at(START);
  world.environment = { ...world.environment, webhookKey: KEY };
  receiver = await startReceiver();
});
afterEach(async () => {
  for (const { partner_id } of await world.sql<{ partner_id: string }>(
    'SELECT partner_id FROM webhooks WHERE url IS NOT NULL',
  )) {
    await world.database.transaction((tx) => removeWebhook(tx, world, partner_id));
  }
  await receiver.end();
});
afterAll(() => world.end());

const context = () => ({ ...world, environment: world.environment });
const set = (partnerId = 'p-1', after?: number, url = receiver.url): Promise<SetWebhook> =>
  world.database.transaction((tx) => setWebhook(tx, context(), { partnerId, url, after }));
const send = () => sendEvents(context());
const stateOf = (partnerId = 'p-1'): Promise<Webhook> => world.database.reading((tx) => webhookNamed(tx, partnerId));
const attention = async () => (await world.database.reading((tx) => readStatus(tx, context()))).attention.join('\n');
const now = () => world.environment.now().toJSDate();
const later = (minutes: number) => world.at(world.environment.now().plus({ minutes }).toISO());
const positions = () => receiver.received.map(({ position }) => position);

async function happen(count: number, partnerId = 'p-1'): Promise<void> {
  await world.rows(Array.from({ length: count }, () => quote({ partner_id: partnerId })));
  await new Publisher(world.database).publish(5000);
}

describe('a webhook', () => {
  test('sends what happens from now on, each event as the API shows it, signed by the specification', async () => {
    await happen(2);
    const { secret, acknowledged } = await set();
    await happen(3);
    await send();
    expect(positions()).toEqual([1, 2, 3].map((each) => acknowledged + each));
    for (const request of receiver.received) {
      expect(isSignedWith(secret as string, request, now())).toBe(true);
      expect(isSignedWith(secret as string, { ...request, body: `${request.body} ` }, now())).toBe(false);
      expect(request.headers).toMatchObject({ 'webhook-id': request.event_id, 'content-type': 'application/json' });
    }
    const served = await serveWorld(world);
    const caller = await served.caller('p-1');
    const { text } = await caller.get(`/api/v1/events?cursor=${acknowledged}`);
    expect(`[${receiver.received.map(({ body }) => body).join(',')}]`).toBe(text);
    await served.end();
    expect(await stateOf()).toMatchObject({ state: 'active', acknowledged: acknowledged + 3, waiting: 0 });
    await send();
    expect(receiver.received).toHaveLength(3);
  });

  test('is checked by Python’s standard library, as in the documentation', async () => {
    const { secret } = await set();
    await happen(1);
    await send();
    const script = `
import base64, hashlib, hmac, json, sys
given = json.load(sys.stdin)
key = base64.b64decode(given["secret"].removeprefix("whsec_"))
signed = "{webhook-id}.{webhook-timestamp}.".format(**given["headers"]) + given["body"]
expected = "v1," + base64.b64encode(hmac.new(key, signed.encode(), hashlib.sha256).digest()).decode()
print(any(hmac.compare_digest(expected, each) for each in given["headers"]["webhook-signature"].split(" ")))`;
    const input = JSON.stringify({ secret, ...receiver.received[0] });
    expect(spawnSync(tool('python3'), ['-c', script], { input, encoding: 'utf8' }).stdout.trim()).toBe('True');
  });

  test('sends each partner its own events, and to a partner without one nothing', async () => {
    const [first, second] = [await set('p-1'), await set('p-2')];
    await happen(2, 'p-1');
    await happen(2, 'p-2');
    await happen(2, 'p-3');
    await send();
    const whose = receiver.received.map((request) =>
      [first, second].map(({ secret }) => isSignedWith(secret as string, request, now())),
    );
    expect(whose.filter(([one]) => one)).toHaveLength(2);
    expect(whose.filter(([, two]) => two)).toHaveLength(2);
    expect(receiver.received).toHaveLength(4);
    expect(new Set(receiver.received.map(({ event_id: id }) => id)).size).toBe(4);
  });

  test('begins where it is told to, and again there when it is resumed', async () => {
    await happen(1);
    await set('p-1', 0);
    await send();
    const all = positions();
    expect(all).toEqual(all.map((_, index) => index + 1));
    await world.database.transaction((tx) => resumeWebhook(tx, context(), { partnerId: 'p-1', after: all.length - 1 }));
    await send();
    expect(positions()).toEqual([...all, all.length]);
  });

  test('signs with both secrets for a day after a rotation, and no longer', async () => {
    const { secret: old } = await set();
    const { secret: fresh, previous_secret_until: until } = await world.database.transaction((tx) =>
      rotateWebhook(tx, context(), 'p-1'),
    );
    expect([fresh === old, until]).toEqual([false, '2026-08-02T10:00:00Z']);
    await happen(1);
    await send();
    world.at('2026-08-02T10:00:00Z');
    await happen(1);
    await send();
    const [first, last] = receiver.received;
    const signs = (secret: string | null, request = first) =>
      request !== undefined && isSignedWith(secret as string, request, request === first ? new Date(START) : now());
    expect([signs(old), signs(fresh), signs(old, last), signs(fresh, last)]).toEqual([true, true, false, true]);
  });

  test('has no secret in the database, and never the same one again', async () => {
    const { secret } = await set();
    await world.database.transaction((tx) => removeWebhook(tx, context(), 'p-1'));
    const again = await set();
    expect(again.secret).not.toBe(secret);
    const stored = await world.sql<{ text: string }>(
      `SELECT w::text || (SELECT string_agg(e::text, '') FROM audit_events e) AS text FROM webhooks w`,
    );
    for (const each of [secret, again.secret, KEY]) {
      expect(stored.map(({ text }) => text).join()).not.toContain(each?.replace('whsec_', ''));
    }
    const actions = await world.sql<{ action: string }>(
      `SELECT action FROM audit_events WHERE action LIKE 'webhook.%' ORDER BY event_id DESC LIMIT 3`,
    );
    expect(actions.map(({ action }) => action)).toEqual(['webhook.set', 'webhook.remove', 'webhook.set']);
  });

  test('keeps its place and its secret when its URL changes', async () => {
    const { secret } = await set();
    await happen(2);
    const moved = await set('p-1', undefined, `${receiver.url}?token=private`);
    expect(moved).toMatchObject({ secret: null, waiting: 2 });
    await send();
    expect(receiver.received.map((request) => isSignedWith(secret as string, request, now()))).toEqual([true, true]);
    const [event] = await world.sql<{ text: string }>(
      `SELECT details::text AS text FROM audit_events ORDER BY event_id DESC LIMIT 1`,
    );
    expect(event?.text).toContain('/events');
    expect(event?.text).not.toContain('private');
  });

  test('is not signed with another key: it waits, and the status says so', async () => {
    await set();
    await happen(1);
    world.environment = { ...world.environment, webhookKey: `${KEY}-another` };
    await send();
    expect(receiver.received).toEqual([]);
    expect(await attention()).toMatch(
      /webhook of p-1 sends nothing: WEBHOOK_SIGNING_KEY is not the key .*'reckoner webhook rotate p-1'/,
    );
    const { secret } = await world.database.transaction((tx) => rotateWebhook(tx, context(), 'p-1'));
    await send();
    expect(receiver.received.map((request) => isSignedWith(secret as string, request, now()))).toEqual([true]);
  });
});

test('a new signing key overlaps with the previous one, until each partner has its new secret', async () => {
  const { secret: old } = await set();
  await happen(1);
  const rotated = { ...world.environment, webhookKey: `${KEY}-another`, webhookKeyBefore: KEY };
  world.environment = rotated;
  await send();
  const { secret } = await world.database.transaction((tx) => rotateWebhook(tx, context(), 'p-1'));
  await happen(1);
  await send();
  const signed = (by: string | null) => receiver.received.map((request) => isSignedWith(by as string, request, now()));
  expect([signed(old), signed(secret)]).toEqual([
    [true, true],
    [false, true],
  ]);
  // The previous key is removed after the overlap.
  world.at(world.environment.now().plus({ hours: 25 }).toISO());
  world.environment = { ...rotated, now: world.environment.now, webhookKeyBefore: undefined };
  await happen(1);
  await send();
  expect([signed(old)[2], signed(secret)[2]]).toEqual([false, true]);
});

describe('a failure', () => {
  test.each<[what: string, answer: ReturnType<Receiver['answer']>, says: string]>([
    ['an error', 500, 'it answered 500'],
    ['a redirect', 'http://127.0.0.1:9/', 'it answered 307'],
    ['a refusal', 401, 'it answered 401'],
  ])('by %s is tried again later, and nothing after it is sent before', async (_, answer, says) => {
    const { acknowledged: from } = await set();
    await happen(3);
    receiver.answer = ({ position }) => (position === from + 2 ? answer : 200);
    await send();
    await send();
    expect(positions()).toEqual([from + 1, from + 2]);
    expect(await stateOf()).toMatchObject({ state: 'failing', acknowledged: from + 1, waiting: 2, last_failure: says });
    receiver.answer = () => 200;
    later(1);
    await send();
    expect(positions()).toEqual([from + 1, from + 2, from + 2, from + 3]);
    expect(await stateOf()).toMatchObject({ state: 'active', waiting: 0, last_failure: null });
  });

  test('of the connection is one, too', async () => {
    await set('p-1', undefined, 'http://127.0.0.1:1/');
    await happen(1);
    await send();
    expect((await stateOf()).last_failure).toContain('ECONNREFUSED');
  });

  test('without an answer ends after ten seconds', async () => {
    await set();
    await happen(1);
    receiver.answer = () => 'never';
    const began = Date.now();
    await send();
    expect(Date.now() - began).toBeGreaterThan(9_000);
    expect((await stateOf()).last_failure).toBe('no answer within 10 seconds');
  });

  test('waits as long as the partner’s server asks for', async () => {
    await set();
    await happen(1);
    receiver.answer = () => ({ status: 429, retryAfter: '7200' });
    await send();
    expect((await stateOf()).next_attempt_at).toBe('2026-08-01T12:00:00Z');
  });

  test('waits until the time that the partner’s server names', async () => {
    await set();
    await happen(1);
    receiver.answer = () => ({ status: 503, retryAfter: new Date(Date.now() + 7_200_000).toUTCString() });
    await send();
    expect((await stateOf()).next_attempt_at).toMatch(/^2026-08-01T1(1:59:|2:00:00)/);
  });

  test('for three days pauses it, with what to do; it goes on where it stopped', async () => {
    const { acknowledged: from } = await set();
    await happen(2);
    receiver.answer = () => 503;
    let attempts = 0;
    for (; (await stateOf()).state !== 'paused'; attempts += 1) {
      await send();
      if (attempts === 8)
        expect(await attention()).toMatch(/webhook of p-1 has failed since .* \(it answered 503\); 2 events are/);
      const { next_attempt_at: next } = await stateOf();
      if (next !== null) world.at(next);
    }
    expect(attempts).toBeGreaterThan(10);
    const hours = (now().getTime() - Date.parse(START)) / 3_600_000;
    expect([hours >= 72, hours < 80]).toEqual([true, true]);
    expect(await attention()).toMatch(
      /webhook of p-1 has been paused since .* \(it answered 503\); 2 events are waiting.*'reckoner webhook resume p-1'/,
    );
    const health = await world.database.reading((tx) => readWebhookHealth(tx, world.environment));
    expect(health).toMatchObject({ active: 0, waiting: 2, troubled: [{ partner_id: 'p-1', state: 'paused' }] });
    receiver.answer = () => 200;
    receiver.received.length = 0;
    await send();
    expect(receiver.received).toEqual([]);
    await world.database.transaction((tx) => resumeWebhook(tx, context(), { partnerId: 'p-1' }));
    await send();
    expect(positions()).toEqual([from + 1, from + 2]);
    const [pause] = await world.sql<{ subject: string }>(
      `SELECT subject FROM audit_events WHERE action = 'webhook.pause'`,
    );
    expect(pause).toEqual({ subject: 'p-1' });
  });

  test('with 410 pauses it at once', async () => {
    await set();
    await happen(1);
    receiver.answer = () => 410;
    await send();
    expect(await stateOf()).toMatchObject({ state: 'paused', last_failure: 'it answered 410', waiting: 1 });
  });

  test('of one partner’s server does not keep the others from theirs', async () => {
    const silent = await startReceiver();
    silent.answer = () => 'never';
    await set('p-1', undefined, silent.url);
    await set('p-2');
    const stop = new AbortController();
    const running = sendEventsForever(context(), stop.signal);
    await happen(1, 'p-1');
    await happen(2, 'p-2');
    while (silent.received.length === 0 || receiver.received.length < 2) await sleep(20);
    await happen(1, 'p-2');
    while (receiver.received.length < 3) await sleep(20);
    expect(await stateOf('p-1')).toMatchObject({ state: 'active', waiting: 1 });
    stop.abort();
    await silent.end();
    await running;
    expect(await stateOf('p-2')).toMatchObject({ waiting: 0 });
  });
});

test('two workers at once send each event once, in order', async () => {
  const { acknowledged: from } = await set();
  await happen(120);
  await Promise.all([send(), send(), send()]);
  await send();
  expect(positions()).toEqual(Array.from({ length: 120 }, (_, index) => from + index + 1));
  await expectVerified(world);
});

describe('in production', () => {
  test.each([
    ['http', 'http://partner.example/in', 'does not begin with https://'],
    ['a password', 'https://a:b@partner.example/in', 'contains a user name or a password'],
    ['a fragment', 'https://partner.example/in#x', 'contains a fragment'],
    ['this machine', 'https://localhost/in', 'is not a public address'],
    ['a loopback address', 'https://127.0.0.1/in', 'is not a public address'],
    ['the same in another notation', 'https://2130706433/in', 'is not a public address'],
    ['a private address', 'https://10.1.2.3/in', 'is not a public address'],
    ['an address of the cloud’s metadata', 'https://169.254.169.254/latest', 'is not a public address'],
    ['a loopback address of IPv6', 'https://[::1]/in', 'is not a public address'],
    ['an IPv4 address in an IPv6 one', 'https://[::ffff:10.0.0.1]/in', 'is not a public address'],
    ['no URL', 'partner', 'is not a URL such as https://partner.example/events'],
    ['a URL without a host', 'https:///etc/passwd', 'is not a URL such as https://partner.example/events'],
  ])('events do not go to %s', (_, url, reason) => {
    expect(urlProblem(url, true)).toBe(reason);
  });

  test('they go to public addresses', () => {
    for (const url of [
      'https://partner.example/in?key=1',
      'https://93.184.215.14:8443/',
      'https://[2606:2800:21f::1]/',
    ]) {
      expect(urlProblem(url, true)).toBeUndefined();
    }
    const others = ['0.0.0.0', '100.64.0.1', '172.31.0.1', '192.168.1.1', '198.18.0.1', '224.0.0.1', '255.255.255.255'];
    const sixes = ['::', 'fe80::1', 'fc00::1', 'ff02::1', '64:ff9b::a00:1', '2002:a00:1::', '2001:db8::1', '2001::1'];
    sixes.push(
      '2001:2::1',
      '2001:10::1',
      '2001:20::1',
      '3fff::1',
      '5f00::1',
      '100::1',
      '64:ff9b:1::1',
      '::ffff:10.0.0.1',
    );
    for (const address of [...others, ...sixes, 'no address'])
      expect([address, isPublicAddress(address)]).toEqual([address, false]);
    for (const address of ['8.8.8.8', '172.32.0.1', '2606:4700::1111']) expect(isPublicAddress(address)).toBe(true);
  });

  test('a name that leads into a private network is refused when it is connected to', async () => {
    const resolving = (...addresses: string[]) =>
      new Promise((resolve) => {
        const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
        publicLookup((_host, _options, done) => done(null, found))('partner.example', { all: true }, (error, given) =>
          resolve(error?.message ?? given),
        );
      });
    expect(await resolving('8.8.8.8')).toEqual([{ address: '8.8.8.8', family: 4 }]);
    expect(await resolving('8.8.8.8', '10.0.0.7')).toBe(
      'partner.example resolves to 10.0.0.7, which is not a public address',
    );
    expect(await resolving()).toBe('partner.example has no address');
  });

  test('the request itself looks, whatever was stored', async () => {
    const poster = openPoster(true);
    await expect(poster.post('https://127.0.0.1/in', {}, '{}')).rejects.toThrow('the URL is not a public address');
    await expect(poster.post('https://localhost./in', {}, '{}')).rejects.toThrow('the URL is not a public address');
    poster.close();
  });
});
