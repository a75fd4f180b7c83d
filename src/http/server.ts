/** The HTTP side put together: what every request passes, and the routes. Nothing listens before `listen`. */
import { randomUUID } from 'node:crypto';
import { BlockList, isIPv6 } from 'node:net';
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import type { Environment } from '../config/environment.ts';
import type { Settings } from '../config/settings.ts';
import type { Database } from '../database/database.ts';
import { refuse } from '../errors/refusals.ts';
import type { Wanted } from '../quotes/accept.ts';
import { openAcceptances } from '../quotes/acceptances.ts';
import { type RoutedAcceptance, readRouted } from '../splits/accepted.ts';
import { addApi } from './api.ts';
import { type Keyring, openKeyring } from './keys.ts';
import { type Limits, openLimits } from './limits.ts';
import { type Metrics, openMetrics } from './metrics.ts';
import { addOperations } from './operating.ts';
import { addPaymentPages } from './payment-page.ts';
import { sendProblem } from './problem.ts';
import { addReference } from './reference.ts';
import { addDiscovery, addTokenExchange } from './token-exchange.ts';
import { openTokenOffice, type TokenOffice } from './tokens.ts';
import { addWebhooks, type StoreEvents } from './webhooks.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The code of the refusal that it was answered with. */
    refusal: string | null;
    /** Whose it is, once that is known. */
    partnerId: string | null;
  }
}

export interface Service {
  readonly environment: Environment;
  readonly settings: Settings;
  readonly database: Database;
  readonly log: FastifyBaseLogger;
  /** Where the processor's events go; without it none are taken. */
  readonly storeEvents?: StoreEvents | undefined;
  /** Told when events were stored, for whoever works them off, and of which connected accounts of ours. */
  readonly onEventsStored?: ((accounts: readonly string[]) => void) | undefined;
}

/** What the routes share. */
export interface Shared extends Service {
  readonly keyring: Keyring;
  readonly tokens: TokenOffice;
  readonly limits: Limits;
  readonly metrics: Metrics;
  /** Accepts a quote or a requote, with others that arrive at the same time, with what its split follows from. */
  readonly acceptances: (wanted: Wanted) => Promise<RoutedAcceptance>;
}

/** No body of the API needs a tenth of it. */
const BODY_LIMIT = 64 * 1024;
const REQUEST_SECONDS = 30;

const SAFE_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
};

const REQUEST_ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

/** Where the world finds this service: the issuer of its tokens. */
export const issuerOf = ({ settings }: Pick<Service, 'settings'>): string =>
  settings.public_url === '' ? 'http://127.0.0.1:8080' : settings.public_url.replace(/\/+$/, '');

export async function buildServer(service: Service): Promise<FastifyInstance> {
  const { environment, settings, database, log } = service;
  const { trust_proxy: proxies } = settings.http;
  const app = Fastify({
    loggerInstance: log,
    // Our own line instead: it names the route and not the address, which may hold a payment page's token.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: BODY_LIMIT,
    // HEAD on an acceptance must not reach it; the pages say themselves that they take HEAD.
    exposeHeadRoutes: false,
    trustProxy: proxies.length === 0 ? false : proxies,
    connectionTimeout: REQUEST_SECONDS * 1000,
    requestTimeout: REQUEST_SECONDS * 1000,
    keepAliveTimeout: 75_000,
    forceCloseConnections: 'idle',
    genReqId: ({ headers }) => {
      const given = headers['x-request-id'];
      return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID();
    },
    routerOptions: { maxParamLength: 512 },
    frameworkErrors: (error, request, reply) => void sendProblem(error, request, reply),
  });
  const metrics = openMetrics(service);
  const limits = openLimits(settings.http.requests_per_minute);
  const keyring = openKeyring(database, environment.now);
  const tokens = openTokenOffice(keyring, {
    issuer: issuerOf(service),
    environment: environment.name,
    now: environment.now,
  });

  const routes: { method: string; pattern: RegExp }[] = [];
  app.addHook('onRoute', ({ method, url }) => {
    const pattern = new RegExp(`^${url.replace(/[.]/g, '\\.').replace(/:[a-z_]+/g, '[^/]+')}$`);
    for (const each of [method].flat()) routes.push({ method: each, pattern });
  });
  app.decorateRequest('refusal', null);
  app.decorateRequest('partnerId', null);
  addParsers(app);
  let warned = proxies.length > 0;
  function warnOfProxy(forwarded: unknown): void {
    if (warned || forwarded === undefined) return;
    warned = true;
    log.warn(
      "a proxy sends X-Forwarded-For, and 'http.trust_proxy' names none: all callers behind it count as one address",
    );
  }
  const allowed = addressList(settings.http.allow);
  const secure = issuerOf(service).startsWith('https:');
  app.addHook('onRequest', async (request, reply) => {
    reply.headers({ 'X-Request-Id': request.id, ...SAFE_HEADERS });
    if (secure) reply.header('Strict-Transport-Security', 'max-age=31536000');
    // By the route that was found: the address as it was sent may be encoded, or absolute.
    const path = request.routeOptions.url ?? request.url;
    if (path.startsWith('/api/') && settings.http.allow.length > 0 && !allowed(request.ip)) {
      throw refuse('address_not_allowed', { address: request.ip });
    }
  });
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? '(none)';
    const { method, partnerId, refusal } = request;
    warnOfProxy(request.headers['x-forwarded-for']);
    const facts = { method, route, status: reply.statusCode, ms: Math.round(reply.elapsedTime * 10) / 10 };
    metrics.requests.observe({ method, route, status: reply.statusCode }, reply.elapsedTime / 1000);
    request.log.info({ ...facts, ...(partnerId && { partner: partnerId }), ...(refusal && { refusal }) }, 'answered');
  });
  // Stopping closes the connections that are idle. Those that still wait for their answer must not be kept after it.
  let stopping = false;
  app.addHook('preClose', async () => {
    stopping = true;
  });
  app.addHook('onSend', async (_request, reply, payload) => {
    if (stopping) reply.header('Connection', 'close');
    return payload;
  });
  app.setErrorHandler(sendProblem);

  const acceptances = openAcceptances(database, readRouted);
  const shared: Shared = { ...service, keyring, tokens, limits, metrics, acceptances };
  addTokenExchange(app, shared);
  addDiscovery(app, shared);
  addApi(app, shared);
  addReference(app, shared);
  addPaymentPages(app, shared);
  addWebhooks(app, shared);
  addOperations(app, shared);

  // Last, when all routes are known: a path that takes other methods is 405, any other 404.
  app.setNotFoundHandler((request, reply) => {
    const { method } = request;
    const path = request.url.split('?')[0] ?? '';
    const others = [...new Set(routes.filter((route) => route.pattern.test(path)).map((route) => route.method))];
    const refusal =
      others.length > 0
        ? refuse('method_not_allowed', { method, path, allowed: others })
        : refuse('route_unknown', { method, path });
    return sendProblem(refusal, request, reply);
  });
  return app;
}

/** Bodies reach their routes as the bytes that came: signatures are over them, and numbers are read from their text. */
function addParsers(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  for (const type of ['application/json', 'application/x-www-form-urlencoded']) {
    app.addContentTypeParser(type, { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  }
}

/** Whether an address is in one of these networks. */
export function addressList(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', prefix] = network.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (prefix === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(prefix), family);
  }
  return (address) => {
    // An IPv4 caller of a socket that takes both families.
    const plain = address.replace(/^::ffff:(?=\d+\.)/i, '');
    return list.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4');
  };
}
