/** The HTTP side of a world, listening at a free port of this machine, and callers that use it like partners. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import type { Settings } from '../../src/config/settings.ts';
import { type Database, openDatabase } from '../../src/database/database.ts';
import { buildServer } from '../../src/http/server.ts';
import type { ServerOptions } from '../../src/http/shared.ts';
import { type Credentials, createClient, revokeClient } from '../../src/partners/clients.ts';
import { readPartners } from '../../src/partners/partners.sql.ts';
import { thisProcess } from '../../src/people/audit-events.ts';
import { addPortal } from '../../src/portal/plugin.tsx';
import { contradiction } from './described.ts';
import type { World } from './world.ts';

export interface Served {
  readonly url: string;
  /** Its own connections, with the patience of `serve`. */
  readonly database: Database;
  /** Everything that it has logged so far. */
  readonly log: () => string;
  readonly client: (partnerId: string) => Promise<Credentials>;
  /** A caller with its own token. */
  readonly caller: (partnerId: string) => Promise<Caller>;
  readonly end: () => Promise<void>;
}

export interface Answer<Body = Record<string, unknown>> {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Body;
}

export interface Caller {
  readonly partnerId: string;
  readonly credentials: Credentials;
  readonly token: string;
  readonly get: (path: string, headers?: Record<string, string>) => Promise<Answer>;
  readonly post: (path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>;
}

/**
 * The pricing of a partner that can get quotes: 8.5 % of the insured amount, at least 2.00, of which the partner keeps
 * 30 %.
 */
export const PRICED = {
  policies: [
    {
      policy_id: 'ticket-protection',
      name: 'Ticket Protection',
      kind: 'non_insurance',
      partner_cut_rate: '0.30',
      price: { rate: '0.085', minimum: '2.00' },
    },
    { policy_id: 'unpriced', name: 'Not Yet Priced', kind: 'insurance', partner_cut_rate: '0.30' },
  ],
};

export async function serveWorld(
  world: World,
  options: { settings?: Partial<Settings> | undefined; patience?: number; poolSize?: number } & Partial<
    Omit<ServerOptions, 'settings' | 'database'>
  > = {},
): Promise<Served> {
  const { settings: changed, patience = 5, poolSize = 16, ...given } = options;
  const database = await openDatabase(world.environment, {
    poolSize,
    patience: { lockSeconds: patience, statementSeconds: 20 },
  });
  let log = '';
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      log += chunk.toString();
      done();
    },
  });
  const settings: Settings = { ...world.settings, public_url: 'http://127.0.0.1', ...changed };
  const service = {
    environment: world.environment,
    settings,
    database,
    log: pino(stream),
    addPages: addPortal,
    ...given,
  };
  const app = await buildServer(service);
  const server = app.server;
  await app.listen({ host: '127.0.0.1', port: 0 });
  if (!server.listening) await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const { environment } = service;
  const client = (partnerId: string) =>
    database.transaction((tx) =>
      createClient(
        tx,
        partnerId,
        {},
        { actor: thisProcess('command'), environment: environment.name, now: environment.now() },
      ),
    );
  return {
    url,
    database,
    log: () => log,
    client,
    caller: async (partnerId) => callerWith(url, await client(partnerId)),
    async end() {
      await app.close();
      await database.close();
    },
  };
}

/**
 * A complete sequence over HTTP: partner p-1 of a world gets pricing and a quote, raises the quote and accepts both,
 * and one of its clients is revoked. Afterwards every table of the API has rows.
 */
export async function tradeByHttp(world: World): Promise<void> {
  const [known] = await world.database.reading((tx) => readPartners(tx, 'p-1'));
  const { account_statement: _, policies = [], ...own } = known ?? {};
  const price = { rate: '0.085', minimum: '2' };
  const priced = { ...own, policies: policies.map((policy) => ({ ...policy, price })) };
  await world.partners([Object.fromEntries(Object.entries(priced).filter(([, value]) => value !== null))]);
  const served = await serveWorld(world);
  const caller = await served.caller('p-1');
  const body = { policy_id: 'ticket-protection', insured_amount: '250' };
  const made = await caller.post('/api/v1/quote', body, { 'idempotency-key': 'first' });
  await caller.get(`/api/v1/quote/${made.body['quote_id']}/accept`);
  const raised = await caller.post(`/api/v1/quote/${made.body['quote_id']}/requote`, { insured_amount: '300' });
  const last = await caller.get(`/api/v1/requote/${raised.body['requote_id']}/accept`);
  if (last.status !== 200) throw new Error(last.text);
  const { client_id } = await served.client('p-1');
  const action = { actor: world.actor, environment: world.environment.name, now: world.environment.now() };
  await served.database.transaction((tx) => revokeClient(tx, client_id, action));
  await served.end();
}

/** Exchanges credentials for a token and calls with it. */
export async function callerWith(url: string, credentials: Credentials): Promise<Caller> {
  const { client_id, client_secret, partner_id: partnerId } = credentials;
  const exchanged = await ask(`${url}/api/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_id, client_secret }),
  });
  const token = exchanged.body['access_token'] as string;
  const own = { authorization: `Bearer ${token}`, 'x-service-partner-id': partnerId };
  return {
    partnerId,
    credentials,
    token,
    get: (path, headers = {}) => ask(`${url}${path}`, { headers: { ...own, ...headers } }),
    post: (path, body, headers = {}) =>
      ask(`${url}${path}`, {
        method: 'POST',
        headers: { ...own, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      }),
  };
}

/** One request; a JSON answer is parsed as well. An answer of the API must match its description. */
export async function ask(url: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(url, { redirect: 'manual', ...init });
  const text = await response.text();
  const json = /json/.test(response.headers.get('content-type') ?? '');
  const answer = {
    status: response.status,
    headers: response.headers,
    text,
    body: (json && text !== '' ? JSON.parse(text) : {}) as Record<string, unknown>,
  };
  const method = init.method ?? 'GET';
  const wrong =
    method !== 'HEAD' && new URL(url).pathname.startsWith('/api/')
      ? await contradiction(url, method, answer)
      : undefined;
  if (wrong !== undefined) throw new Error(wrong);
  return answer;
}
