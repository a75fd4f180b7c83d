/**
 * Ten thousand hostile requests: bad tokens, wrong partners, huge and broken bodies, odd encodings, repeated and crossed
 * ids, from a printed seed. None is answered as a failure of ours, and nothing is recorded that should not be. `npm
 * test` sends a twentieth of them.
 */
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { seeded } from '../support/random.ts';
import { type Caller, PRICED, type Served, serveWorld } from '../support/service.ts';
import { times } from '../support/sweep.ts';
import { openWorld, partner, type World } from '../support/world.ts';

const REQUESTS = times({ few: 500, short: 1_000, long: 10_000 });
const AT_ONCE = 16;

let world: World;
let served: Served;
let own: Caller;
let other: Caller;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner(PRICED), partner({ ...PRICED, partner_id: 'p-2' })]);
  served = await serveWorld(world, {
    settings: { http: { ...world.settings.http, requests_per_minute: 1_000_000 } },
    environment: { ...world.environment, stripeWebhookSecrets: new Map([['', ['whsec_x']]]) },
    storeEvents: () => {
      throw new Error('nothing unsigned may be stored');
    },
  });
  [own, other] = [await served.caller('p-1'), await served.caller('p-2')];
});
afterAll(async () => {
  await served.end();
  await world.end();
});

/** One request as bytes, so that anything can be sent; gives the status, or 0 where the connection was shut. */
function send(method: string, path: string, headers: readonly string[], body: Buffer): Promise<number> {
  const { hostname, port } = new URL(served.url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    let text = '';
    // A "100 Continue" may go before the answer.
    const done = () => resolve(Number([...text.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].at(-1)?.[1] ?? 0));
    socket.setTimeout(10_000, () => socket.destroy());
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    socket.on('error', () => {}).on('close', done);
    socket.on('connect', () => {
      const head = [
        `${method} ${path} HTTP/1.1`,
        'Host: x',
        'Connection: close',
        ...headers,
        `Content-Length: ${body.length}`,
      ];
      socket.write(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), body]));
    });
  });
}

test(`${REQUESTS} hostile requests cause no server error and record nothing`, async () => {
  const { seed, random } = seeded();
  process.stdout.write(`hostile requests: seed ${seed}\n`);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const bytes = (length: number) => Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));
  const quoteId = (await own.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' })).body[
    'quote_id'
  ] as string;
  const accepted = (await own.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' })).body[
    'quote_id'
  ] as string;
  await own.get(`/api/v1/quote/${accepted}/accept`);
  const requoteId = (await own.post(`/api/v1/quote/${accepted}/requote`, { insured_amount: '300' })).body[
    'requote_id'
  ] as string;
  const counts = async () =>
    (
      await world.sql(
        `SELECT (SELECT count(*) FROM ledger_rows) AS entries, (SELECT count(*) FROM quotes) AS quotes, (SELECT count(*) FROM requotes) AS requotes,
                (SELECT count(*) FROM idempotency_keys) AS keys, (SELECT count(*) FROM api_clients) AS clients,
                (SELECT count(*) FROM settlement_files) AS settlement_files`,
      )
    )[0];
  const before = await counts();

  const ids = () =>
    pick([
      quoteId,
      requoteId,
      accepted,
      'q-1',
      '%00',
      '%ff%fe',
      '..%2f..',
      "' OR 1=1--",
      'a'.repeat(600),
      '%E2%80%AE',
      '{}',
      '-',
      '',
    ]);
  const paths = () =>
    pick([
      `/api/v1/quote/${ids()}/accept`,
      `/api/v1/requote/${ids()}/accept`,
      `/api/v1/quote/${ids()}/requote`,
      `/api/v1/quote/${ids()}`,
      '/api/v1/quote',
      '/api/v1/invoices',
      '/api/v1/settlement-files',
      `/api/v1/settlement-files/${ids()}`,
      '/api/oauth/token',
      '/webhooks/stripe',
      `/pay/${ids()}`,
      `/pay/${ids()}/invoice.pdf`,
      '/api/v1/quote?x=%zz',
      '//api/v1/quote',
      '/%',
    ]);
  // No authority that could do anything: none, broken, another partner's, or one's own with another's header.
  const authorities = () =>
    pick([
      [],
      ['Authorization: Bearer'],
      [`Authorization: Bearer ${own.token.slice(0, -5)}`],
      [`Authorization: Bearer ${bytes(20).toString('base64')}`],
      [`Authorization: Basic ${bytes(20).toString('base64')}`],
      [`Authorization: Bearer ${own.token}`, 'X-Service-Partner-Id: p-2'],
      [`Authorization: Bearer ${own.token}`, 'X-Service-Partner-Id: \xff\xfe'],
      [`Authorization: Bearer ${own.token}`, 'X-Service-Partner-Id: p-1', 'X-Service-Partner-Id: p-1'],
      [`Authorization: Bearer ${own.token}`, `Authorization: Bearer ${other.token}`, 'X-Service-Partner-Id: p-2'],
      [`Authorization: Bearer ${other.token}`, 'X-Service-Partner-Id: p-2', `Idempotency-Key: ${'k'.repeat(300)}`],
      [`Authorization: Bearer ${'a'.repeat(9000)}`],
    ]);
  const types = () =>
    pick([
      'application/json',
      'application/json; charset=utf-16',
      'text/html',
      'text/csv',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/json;;;',
      '\x7f',
    ]);
  const bodies = () =>
    pick([
      () => Buffer.alloc(0),
      () => bytes(Math.floor(random() * 300)),
      () => Buffer.from('['.repeat(20_000)),
      () => Buffer.from(`{"a":${'{"a":'.repeat(5000)}1${'}'.repeat(5001)}`),
      () => Buffer.alloc(80_000, 'a'),
      () => Buffer.from('{"policy_id":"ticket-protection","insured_amount":1e400}'),
      () => Buffer.from('{"policy_id":"ticket-protection","insured_amount":"-5"}'),
      () => Buffer.from('{"policy_id":"\\u0000","insured_amount":"\\ud800"}'),
      () => Buffer.from('{"__proto__":{"policy_id":"x"},"constructor":1}'),
      () => Buffer.from('{"policy_id":"ticket-protection","insured_amount":"5","insured_amount":{}}'),
      () => Buffer.from('{"client_id":"\\u0000","client_secret":"\\ud800"}'),
      () => Buffer.from('client_id=%00&client_secret=%ff'),
      () => Buffer.from('\ufeff{}', 'utf16le'),
      () => Buffer.from('quote_id,transfer,payment,amount\nq-1,tr_1,py_1,7.00\n'),
      () => Buffer.from(`quote_id,transfer,payment,amount\n"q\u0000,"",'=1+1,${'9'.repeat(2000)}`),
    ])();
  const extras = () =>
    pick<string[]>([
      [],
      ['Expect: 100-continue'],
      ['X-Request-Id: \xff'],
      ['Content-Encoding: gzip'],
      ['Range: bytes=0-1'],
      ['X-HTTP-Method-Override: POST'],
      ['X-Forwarded-For: 127.0.0.1, \x01'],
      ['Idempotency-Key: a', 'Idempotency-Key: b'],
    ]);
  const statuses = new Map<number, number>();
  const failures: string[] = [];
  let sent = 0;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (sent < REQUESTS) {
        sent += 1;
        const [method, path] = [pick(['GET', 'POST', 'PUT', 'HEAD', 'DELETE', 'OPTIONS', 'PATCH']), paths()];
        const headers = [...authorities(), `Content-Type: ${types()}`, ...extras()];
        const status = await send(method, path, headers, bodies());
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (status >= 500) failures.push(`${status} ${method} ${path} ${headers.join(' | ')}`);
      }
    }),
  );
  process.stdout.write(
    `answers: ${[...statuses]
      .sort()
      .map(([status, count]) => `${status}: ${count}`)
      .join(', ')}\n`,
  );
  expect(failures).toEqual([]);
  expect(await counts()).toEqual(before);
  // It has looked at all of it: refusals of every kind, and no success that changes anything.
  for (const status of [400, 401, 403, 404, 405, 413, 415]) expect(statuses.get(status) ?? 0).toBeGreaterThan(0);
  expect(await world.verify()).toMatchObject({ differences: 0 });
  expect((await own.get(`/api/v1/quote/${quoteId}/accept`)).status).toBe(200);
}, 600_000);
