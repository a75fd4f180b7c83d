/** What strangers can make a server do: how often, how much at once, and for how long. */

import { createHmac } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import type { FastifyReply } from 'fastify';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { answerWithin, Gate } from '../../src/http/gates.ts';
import { addCounts } from '../../src/http/server.sql.ts';
import { commit, packageVersion } from '../../src/package.ts';
import { ask, PRICED, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

const SECRET = 'whsec_one';
let world: World;
let served: Served;
const others: Served[] = [];
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner(PRICED)]);
  served = await limited(5);
});
afterAll(async () => {
  for (const each of [served, ...others]) await each.end();
  await world.end();
});

/** A server that believes X-Forwarded-For, so that each test has addresses of its own. */
const limited = (requests_per_minute: number) =>
  serveWorld(world, {
    settings: { http: { ...world.settings.http, requests_per_minute, trust_proxy: ['127.0.0.1'] } },
    environment: { ...world.environment, stripeWebhookSecrets: new Map([['', [SECRET]]]) },
    storeEvents: async () => ({ accounts: [] }),
  });
const another = async (requests_per_minute: number) => {
  const made = await limited(requests_per_minute);
  others.push(made);
  return made;
};
const from = (address: string, path: string, at = served, init: RequestInit = {}) =>
  ask(`${at.url}${path}`, { ...init, headers: { ...init.headers, 'x-forwarded-for': address } });
const statuses = async (times: number, work: () => Promise<{ status: number }>) => {
  const all: number[] = [];
  for (let nth = 0; nth < times; nth += 1) all.push((await work()).status);
  return all;
};

test.each([
  ['a page', '/pay/x', 404],
  ['a path that is none', '/nothing', 404],
  ['a path of the API that is none', '/api/nothing', 404],
  ['the description of the API', '/openapi.json', 200],
  ['the reference', '/reference', 200],
  ['the signing keys', '/.well-known/jwks.json', 200],
  ['the discovery document', '/.well-known/openid-configuration', 200],
])('%s is answered five times a minute to a network, where five are allowed', async (name, path, status) => {
  const address = `198.51.100.${name.length}`;
  expect(await statuses(6, () => from(address, path))).toEqual([...Array<number>(5).fill(status), 429]);
  // Nobody else is kept out, and probes are answered always.
  expect((await from('198.51.100.250', path)).status).toBe(status);
  expect(await statuses(20, () => from(address, '/healthz'))).toEqual(Array(20).fill(200));
  expect(await statuses(20, () => from(address, '/readyz'))).toEqual(Array(20).fill(200));
});

test('who opens a payment page too often reads so on a page, with when to come back', async () => {
  const address = '198.51.100.78';
  await statuses(5, () => from(address, '/pay/x'));
  const { status, headers, text } = await from(address, '/pay/x');
  expect([status, headers.get('content-type'), Number(headers.get('retry-after')) > 0]).toEqual([
    ...[429, 'text/html; charset=utf-8', true],
  ]);
  expect(text).toMatch(
    /This page is temporarily unavailable[\s\S]*Too many requests\. Retry in \d+ seconds?\. Nothing was changed\./,
  );
});

test('a network that asks for pages too often can still exchange its secret', async () => {
  const address = '198.51.100.77';
  await statuses(6, () => from(address, '/pay/x'));
  const { client_id, client_secret } = await served.client('p-1');
  const exchange = () =>
    from(address, '/api/oauth/token', served, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ client_id, client_secret }),
    });
  expect(await statuses(6, exchange)).toEqual([200, 200, 200, 200, 200, 429]);
});

test('two servers of one database count together, within a second or two', async () => {
  const [one, other] = [await another(40), await another(40)];
  const address = '203.0.113.40';
  expect(await statuses(40, () => from(address, '/pay/x', one))).toEqual(Array(40).fill(404));
  // The other counts by itself until it has heard of it.
  await expect
    .poll(async () => (await from(address, '/pay/x', other)).status, { timeout: 10_000, interval: 200 })
    .toBe(429);
  const [row] = await world.sql(`SELECT requests FROM request_counts WHERE key = $1`, [`page ${address}`]);
  expect(Number(row?.['requests'])).toBeGreaterThanOrEqual(40);
});

test('requests and failed sign-ins are counted by their own clocks, so that neither forgets the other', async () => {
  const request = (key: string) =>
    world.database.transaction((tx) => addCounts(tx, { keys: [key], requests: [1], seconds: 60, now: null }));
  const wrong = () =>
    from('198.51.100.91', '/api/oauth/token', served, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ client_id: 'c-0123456789', client_secret: 'wrong' }),
    });
  const now = world.environment.now();
  for (const at of ['2020-01-01T00:00:00Z', '2040-01-01T00:00:00Z']) {
    world.at(at);
    await request(`call ${at}`);
    await wrong();
    expect((await request(`call ${at}`))[0]?.requests).toBe(2);
  }
  world.at(now.toISO() as string);
  const kept = await world.sql(`SELECT key FROM request_counts WHERE key LIKE '%198.51.100.91 c-0123456789'`);
  expect(kept).toHaveLength(1);
});

const TIME = () => Math.floor(world.environment.now().toSeconds());
const sign = (body: string, secret = SECRET) =>
  `t=${TIME()},v1=${createHmac('sha256', secret).update(`${TIME()}.${body}`).digest('hex')}`;
const webhook = (address: string, signature: string, body = '{}') =>
  from(address, '/webhooks/stripe', served, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'stripe-signature': signature },
    body,
  });

test('a network that signs sixty webhooks wrongly in a minute is refused, but not its right signatures', async () => {
  const wrong = () => webhook('192.0.2.66', sign('{}', 'another'));
  expect(new Set(await statuses(60, wrong))).toEqual(new Set([400]));
  expect((await wrong()).status).toBe(429);
  // All customers of a processor send from its addresses, so anybody can send wrong signatures from there.
  expect((await webhook('192.0.2.66', sign('{}'))).status).toBe(200);
  expect((await webhook('192.0.2.67', sign('{}'))).status).toBe(200);
  const large = ' '.repeat(64 * 1024);
  expect((await webhook('192.0.2.66', sign(large), large)).status).toBe(429);
  expect(served.log()).toContain('webhook refused: bad signature');
  expect(served.log()).toContain('192.0.2.66');
  const { text } = await ask(`${served.url}/metrics`);
  expect(text).toMatch(/^reckoner_webhook_signatures_refused_total 60$/m);
  expect(text).toMatch(/^reckoner_rate_limits_reached_total\{kind="signature"\} 1$/m);
});

test('a webhook without a signature is refused before its body arrives', async () => {
  const { port } = new URL(served.url);
  const answered = await new Promise<number>((resolve, reject) => {
    const sent = httpRequest(
      { port, path: '/webhooks/stripe', method: 'POST', headers: { 'content-length': 1_000_000 } },
      (answer) => {
        resolve(answer.statusCode ?? 0);
        sent.destroy();
      },
    );
    sent.on('error', reject);
    // No more than this comes.
    sent.write('{');
  });
  expect(answered).toBe(400);
});

test('every request has an id of ours; the caller’s own stands beside it', async () => {
  const answer = await from('192.0.2.9', '/nothing', served, { headers: { 'x-request-id': 'their-id-1' } });
  const id = answer.headers.get('x-request-id');
  expect(id).toMatch(/^[0-9a-f-]{36}$/);
  expect(answer.headers.get('x-correlation-id')).toBe('their-id-1');
  expect(answer.body['instance']).toBe(`urn:request:${id}`);
  const line = served
    .log()
    .split('\n')
    .find((each) => each.includes('their-id-1'));
  expect(JSON.parse(line ?? '{}')).toMatchObject({ reqId: id, caller_request_id: 'their-id-1', remote: '192.0.2.9' });
});

test('a trace of the caller goes on with a span of ours, and an invalid one is ignored', async () => {
  const [trace, parent] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'];
  const given = (traceparent: string) => from('192.0.2.9', '/traced', served, { headers: { traceparent } });
  for (const valid of [`00-${trace}-${parent}-01`, `cc-${trace}-${parent}-01-more`]) {
    const answer = await given(valid);
    const [, span] =
      new RegExp(`^00-${trace}-([0-9a-f]{16})-01$`).exec(answer.headers.get('traceresponse') ?? '') ?? [];
    expect(span).not.toBe(parent);
    const line = served
      .log()
      .split('\n')
      .find((each) => each.includes(span ?? 'none'));
    expect(JSON.parse(line ?? '{}')).toMatchObject({ trace_id: trace, parent_id: parent, span_id: span, status: 404 });
  }
  for (const invalid of [
    ...[`00-${trace}-${parent}-01-more`, `ff-${trace}-${parent}-01`, `00-${'0'.repeat(32)}-${parent}-01`],
    ...[`00-${trace}-${'0'.repeat(16)}-01`, `00-${trace.toUpperCase()}-${parent}-01`, `00-${trace}-${parent}`, 'x'],
  ])
    expect((await given(invalid)).headers.get('traceresponse')).toBeNull();
});

/** What bytes are answered with, as far as they are. */
const raw = (bytes: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(served.url);
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString();
    });
    socket.on('end', () => resolve(text)).on('error', reject);
  });

test('two Host headers, or a request without a version, are refused', async () => {
  expect(await raw('GET /reference HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n')).toContain(' 400 ');
  expect(await raw('GET /healthz\r\n\r\n')).not.toContain(' 200 ');
});

test('an expectation that the server does not know is refused like any request, with headers and a description', async () => {
  const ask = (path: string, expected: string) =>
    raw(`GET ${path} HTTP/1.1\r\nHost: a\r\nExpect: ${expected}\r\nConnection: close\r\n\r\n`);
  const answer = await ask('/healthz', 'x');
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  expect(answer).toMatch(/^x-content-type-options: nosniff\r$/im);
  expect(answer).toContain('expects something other than 100-continue');
  expect(await ask('/healthz', '100-continue')).toContain(' 200 ');
});

test('the metrics are not for who comes through a proxy that the settings do not name', async () => {
  const plain = await serveWorld(world);
  others.push(plain);
  expect((await ask(`${plain.url}/metrics`)).status).toBe(200);
  const names = ['X-Forwarded-For', 'Forwarded', 'X-Real-IP', 'Via', 'X-Forwarded-Proto', 'X-Original-URL'];
  names.push('CF-Connecting-IP', 'True-Client-IP', 'X-Client-IP', 'Fastly-Client-IP', 'X-Envoy-External-Address');
  const elsewhere = await serveWorld(world, {
    settings: { http: { ...world.settings.http, trust_proxy: ['192.0.2.1'] } },
  });
  others.push(elsewhere);
  for (const header of names) {
    for (const { url } of [plain, elsewhere]) {
      const { status } = await ask(`${url}/metrics`, { headers: { [header]: 'x' } });
      expect([header, status]).toEqual([header, 403]);
    }
  }
  const { port } = new URL(plain.url);
  // As nginx passes it on if it is told nothing else.
  const bare = `GET /metrics HTTP/1.0\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`;
  const answer = await new Promise<string>((resolve) => {
    const socket = connect(Number(port), '127.0.0.1', () => socket.write(bare));
    socket.on('data', (chunk) => resolve(chunk.toString()));
  });
  expect(answer).toContain(' 403 ');
});

test('the metrics have the version, the process and the connections; probes are no lines of the log', async () => {
  const quiet = await serveWorld(world);
  others.push(quiet);
  for (const path of ['/healthz', '/readyz']) await ask(`${quiet.url}${path}`);
  const { text } = await ask(`${quiet.url}/metrics`);
  expect(text).toContain(`reckoner_build_info{version="${packageVersion}",commit="${commit}"} 1`);
  for (const name of [
    'process_resident_memory_bytes',
    'nodejs_eventloop_lag_p99_seconds',
    'reckoner_http_connections',
  ]) {
    expect(text).toMatch(new RegExp(`^${name} [0-9.e-]+$`, 'm'));
  }
  expect(text).toMatch(/^reckoner_database_connections\{pool="transactions",state="used"\} \d+$/m);
  expect(quiet.log()).not.toContain('answered');
});

test('the metrics count the open rows anew only after a rest', async () => {
  const own = await serveWorld(world);
  others.push(own);
  const open = async () =>
    Number(/^reckoner_open_entries (\d+)$/m.exec((await ask(`${own.url}/metrics`)).text)?.[1] ?? Number.NaN);
  // Counting takes half a second: whoever holds the table for that long makes it so.
  await world.database.asOwner(async (tx) => {
    await tx.knex.raw('LOCK TABLE job_runs IN ACCESS EXCLUSIVE MODE');
    const first = open();
    await new Promise((resolve) => setTimeout(resolve, 500));
    return [first];
  });
  const before = await open();
  await world.rows([quote({ accepted_at: '2026-06-03T12:00:00Z' })]);
  expect(await open()).toBe(before);
});

test('security.txt names whom to tell of a vulnerability', async () => {
  const named = await serveWorld(world, { settings: { security_contact: 'security@issuer.example' } });
  others.push(named);
  const { text, headers } = await ask(`${named.url}/.well-known/security.txt`);
  expect(headers.get('content-type')).toContain('text/plain');
  expect(text).toMatch(/^Contact: mailto:security@issuer\.example\nExpires: \d{4}-\d{2}-\d{2}T/);
});

test('a gate lets callers in by turns, however many requests one of them has', async () => {
  const gate = new Gate({ atOnce: 1, waiting: 10 });
  const done: string[] = [];
  const pass = async (caller: string) => {
    await gate.enter(caller);
    await new Promise((resolve) => setTimeout(resolve, 1));
    done.push(caller);
    gate.leave();
  };
  const many = Array.from({ length: 6 }, () => pass('many'));
  const few = pass('few');
  // Half of the places to wait are the most that one caller gets.
  await expect(pass('many')).rejects.toMatchObject({ code: 'busy' });
  await Promise.all([...many, few]);
  expect(done.indexOf('few')).toBeLessThanOrEqual(2);
  expect(done).toHaveLength(7);
  expect(gate.running).toBe(0);
});

test('who waits for a database that never answers is told so before 30 seconds, and its place stays taken', async () => {
  vi.useFakeTimers();
  try {
    const gate = new Gate({ atOnce: 1, waiting: 0 });
    await gate.enter('p-1');
    let answerAtLast = (_: unknown) => {};
    const working = new Promise((resolve) => {
      answerAtLast = resolve;
    });
    const reply = { request: { onAnswer: null }, elapsedTime: 0 } as unknown as FastifyReply;
    const answered = expect(answerWithin(gate, reply, working)).rejects.toMatchObject({ code: 'unavailable' });
    await vi.advanceTimersByTimeAsync(27_000);
    await answered;
    await expect(gate.enter('p-1')).rejects.toMatchObject({ code: 'busy' });
    answerAtLast('too late');
    await vi.advanceTimersByTimeAsync(1);
    expect(gate.running).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});
