/** The HTTP server: its routes and the hooks of every request. */
import { randomUUID } from 'node:crypto';
import Fastify, { type FastifyInstance, type FastifyRequest, LogController } from 'fastify';
import { Refusal, refuse } from '../errors/refusals.ts';
import { Publisher } from '../partner-events/publish.ts';
import { Acceptances } from '../quotes/acceptances.ts';
import type { Caller } from '../quotes/queries.ts';
import { readRouted } from '../splits/accepted.ts';
import { addApi } from './api.ts';
import { countCall } from './call.ts';
import { addHealth } from './health.ts';
import { KeyStore } from './keys.ts';
import { openLimits, rateHeaders } from './limits.ts';
import { openMetrics } from './metrics.ts';
import { addPaymentPages } from './payment-page.ts';
import { problemsOf, type SendProblem } from './problem.ts';
import { addReference } from './reference.ts';
import { RowStreams } from './row-streams.ts';
import { addSettlementFiles } from './settlement-files.ts';
import { addressList, issuerOf, type Service, type Shared } from './shared.ts';
import { addDiscovery, addTokenExchange } from './token-exchange.ts';
import { TokenIssuer } from './tokens.ts';
import { addWebhooks } from './webhooks.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** That a file which is sent must have; JSON if absent. */
    mediaType?: string;
  }
  interface FastifyRequest {
    /** The code of its refusal. */
    refusal: string | null;
    /** Who sent it, once known. */
    caller: Caller | null;
  }
}

/** Ten times what any body of the API needs but a file. */
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

/** The server with all its routes. It does not listen yet. */
export async function buildServer(service: Service): Promise<FastifyInstance> {
  const { environment, settings, database } = service;
  const issuer = issuerOf(service);
  const sendProblem = problemsOf(issuer);
  const app = openApp(service, sendProblem);
  const metrics = openMetrics(service);
  const keys = new KeyStore(database, environment.now);
  const shared: Shared = {
    ...service,
    keys,
    tokens: new TokenIssuer(keys, { issuer, environment: environment.name, now: environment.now }),
    limits: openLimits(service, settings.http.requests_per_minute),
    metrics,
    acceptances: new Acceptances(database, readRouted),
    events: new Publisher(database),
    rowStreams: new RowStreams(database, service.log),
  };
  const findMethods = collectRoutes(app);
  addParsers(app);
  addRequestChecks(app, shared);
  addRequestLog(app, shared);
  closeIdleConnections(app);
  app.setErrorHandler(sendProblem);

  addTokenExchange(app, shared);
  addDiscovery(app, shared);
  addApi(app, shared);
  addSettlementFiles(app, shared);
  addReference(app, shared);
  addPaymentPages(app, shared);
  addWebhooks(app, shared);
  addHealth(app, shared);
  app.setNotFoundHandler(async (request, reply) => {
    if (request.url.startsWith('/api/')) await countCall(request, reply, shared).catch(unlessLimited);
    return sendProblem(notFound(request, findMethods), request, reply);
  });
  return app;
}

function openApp({ settings, log }: Service, sendProblem: SendProblem): FastifyInstance {
  const { trust_proxy: proxies } = settings.http;
  const app = Fastify({
    loggerInstance: log,
    // addRequestLog logs the route instead of the URL, which may contain a payment page's token.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: BODY_LIMIT,
    // HEAD must not accept a quote. Pages declare HEAD themselves.
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
  app.decorateRequest('refusal', null);
  app.decorateRequest('caller', null);
  return app as unknown as FastifyInstance;
}

/** Collects the routes that are added from now on. The result gives the methods that a path accepts. */
function collectRoutes(app: FastifyInstance): (path: string) => string[] {
  const routes: { method: string; pattern: RegExp }[] = [];
  app.addHook('onRoute', ({ method, url }) => {
    const pattern = new RegExp(`^${url.replace(/[.]/g, '\\.').replace(/:[a-z_]+/g, '[^/]+')}$`);
    for (const each of [method].flat()) routes.push({ method: each, pattern });
  });
  return (path) => [...new Set(routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method))];
}

/** Routes get the body's raw bytes: webhooks sign them, and numbers are read from their text. */
function addParsers(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  for (const type of ['application/json', 'application/x-www-form-urlencoded', 'text/csv']) {
    app.addContentTypeParser(type, { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  }
}

function addRequestChecks(app: FastifyInstance, shared: Shared): void {
  const { allow } = shared.settings.http;
  const allowed = addressList(allow);
  const secure = issuerOf(shared).startsWith('https:');
  app.addHook('onRequest', async (request, reply) => {
    reply.headers({ 'X-Request-Id': request.id, ...SAFE_HEADERS });
    if (secure) reply.header('Strict-Transport-Security', 'max-age=31536000');
    // Check the matched route: the URL as sent may be encoded or absolute.
    const path = request.routeOptions.url ?? request.url;
    if (path.startsWith('/api/') && allow.length > 0 && !allowed(request.ip)) {
      reply.headers(rateHeaders(await shared.limits.request(request.ip)));
      throw refuse('address_not_allowed', { address: request.ip });
    }
  });
}

function addRequestLog(app: FastifyInstance, { settings, log, metrics }: Shared): void {
  let warned = settings.http.trust_proxy.length > 0;
  function warnOfProxy(forwarded: unknown): void {
    if (warned || forwarded === undefined) return;
    warned = true;
    log.warn(
      "a proxy sends X-Forwarded-For, but 'http.trust_proxy' names no proxy: all callers behind it count as one address",
    );
  }
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? '(none)';
    const { method, caller, refusal } = request;
    warnOfProxy(request.headers['x-forwarded-for']);
    const facts = { method, route, status: reply.statusCode, ms: Math.round(reply.elapsedTime * 10) / 10 };
    metrics.requests.observe({ method, route, status: reply.statusCode }, reply.elapsedTime / 1000);
    request.log.info(
      {
        ...{ ...facts, remote: request.ip },
        ...(caller && { partner: caller.partnerId, client: caller.clientId }),
        ...(refusal && { refusal }),
      },
      'answered',
    );
  });
}

/** While the server stops, Fastify closes idle connections; busy ones are closed after their response. */
function closeIdleConnections(app: FastifyInstance): void {
  let stopping = false;
  app.addHook('preClose', async () => {
    stopping = true;
  });
  app.addHook('onSend', async (_request, reply, payload) => {
    if (stopping) reply.header('Connection', 'close');
    return payload;
  });
}

/** A path that is none is said without a token, too. */
function unlessLimited(error: unknown): void {
  if (error instanceof Refusal && error.code === 'rate_limited') throw error;
}

/** 405 for a path that takes other methods, 404 for any other. */
function notFound({ method, url }: FastifyRequest, findMethods: (path: string) => string[]): Refusal {
  const path = url.split('?')[0] ?? '';
  const allowed = findMethods(path);
  return allowed.length > 0
    ? refuse('method_not_allowed', { method, path, allowed })
    : refuse('route_unknown', { method, path });
}
