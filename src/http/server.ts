import { randomBytes, randomUUID } from 'node:crypto';
import Fastify, { FastifyInstance, FastifyReply, FastifyRequest, LogController, RouteHandlerMethod } from 'fastify';
import { addressList } from '#config/addresses';
import { Refusal, refuse } from '#errors/refusals';
import { Publisher } from '#partner-events/publish';
import { Acceptances } from '#quotes/acceptances';
import { Caller } from '#quotes/quotes.sql';
import { readRouted } from '#splits/accepted';
import { addApi } from './api.ts';
import { countCall } from './call.ts';
import { ClientUses } from './client-uses.ts';
import { addFeeds } from './feeds.ts';
import { answerWithin, boundOf, openGates } from './gates.ts';
import { addHealth } from './health.ts';
import { KeyStore } from './keys.ts';
import { addLateRequests } from './late-requests.ts';
import { countOther, networkOf, openLimits, rateHeaders } from './limits.ts';
import { openMetrics } from './metrics.ts';
import { problemsOf, SendProblem } from './problem.ts';
import { addReference } from './reference.tsx';
import { RowStreams } from './row-streams.ts';
import { SecurityLog } from './security-log.ts';
import { addSettlementFiles } from './settlement-files.ts';
import { issuerOf, ServerOptions, Shared, unknownProxies } from './shared.ts';
import { addDiscovery, addTokenExchange } from './token-exchange.ts';
import { TokenIssuer } from './tokens.ts';
import { addWebhooks } from './webhooks.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The media type that the route requires. By default, JSON. */
    mediaType?: string;
  }
  interface FastifyRequest {
    refusal: string | null;
    caller: Caller | null;
    userLogin: string | null;
  }
}

/**
 * The maximum number of connections of all callers together. The limit of open files is higher, unless the host lowers
 * it.
 */
const MOST_CONNECTIONS = 8192;

/** The largest API body that is not a file has a tenth of this size. */
const BODY_LIMIT = 64 * 1024;
/** The longest time for a request to arrive, and for an idle connection. */
const REQUEST_SECONDS = 30;
const HEADERS_SECONDS = 10;
/** The longest time for a client to read a response. Rows have their own limit (row-streams.ts). */
const ANSWER_SECONDS = 60;

const SAFE_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
};

const REQUEST_ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

/** The server does not listen yet. */
export async function buildServer(service: ServerOptions) {
  const { environment, settings, database } = service;
  const issuer = issuerOf(service);
  const sendProblem = problemsOf(issuer);
  const app = openApp(service, sendProblem);
  const metrics = openMetrics(service);
  const keys = new KeyStore(database, environment.now);
  const security = new SecurityLog(service);
  const shared: Shared = {
    ...service,
    keys,
    security,
    tokens: new TokenIssuer(keys, { issuer, environment: environment.name, now: environment.now }),
    limits: openLimits(service, {
      requestsPerMinute: settings.http.requests_per_minute,
      onLimited(kind, key) {
        metrics.limited.inc({ kind });
        security.limited(kind, key);
        service.log.warn({ kind, caller: key }, 'rate limit reached');
      },
    }),
    metrics,
    acceptances: new Acceptances(database, readRouted),
    events: new Publisher(database),
    clientUses: new ClientUses(service),
    rowStreams: new RowStreams(database, service.log),
  };
  const findMethods = collectRoutes(app);
  addParsers(app);
  addRequestChecks(app, shared);
  addRequestLog(app, shared);
  addBounds(app, shared);
  limitConnections(app, shared);
  closeIdleConnections(app);
  // Flushes before and after waiting for requests in progress, which may take longer than a supervisor allows.
  app.addHook('preClose', () => security.flush());
  app.addHook('onClose', async () => {
    shared.limits.close();
    await security.flush();
  });
  app.setErrorHandler(sendProblem);

  addTokenExchange(app, shared);
  addDiscovery(app, shared);
  addApi(app, shared);
  addLateRequests(app, shared);
  addFeeds(app, shared);
  addSettlementFiles(app, shared);
  addReference(app, shared);
  addWebhooks(app, shared);
  addHealth(app, shared);
  service.addPages?.(app, shared);
  app.setNotFoundHandler({ preValidation: limitUnknown(shared) }, async (request, reply) =>
    sendProblem(notFound(request, findMethods), request, reply),
  );
  return app;
}

function openApp({ settings, log }: ServerOptions, sendProblem: SendProblem) {
  const { trust_proxy: proxies } = settings.http;
  const app = Fastify({
    loggerInstance: log,
    // addRequestLog logs the route, because a URL may contain a payment page's token.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: BODY_LIMIT,
    // A HEAD request must not accept a quote. Pages add their HEAD routes themselves.
    exposeHeadRoutes: false,
    trustProxy: proxies.length === 0 ? false : proxies,
    connectionTimeout: REQUEST_SECONDS * 1000,
    requestTimeout: REQUEST_SECONDS * 1000,
    keepAliveTimeout: 75_000,
    // By default, only every 30 seconds.
    http: { headersTimeout: HEADERS_SECONDS * 1000, connectionsCheckingInterval: 2000 },
    forceCloseConnections: 'idle',
    // Ours, so that no caller imitates another one's log lines. Theirs is logged separately.
    genReqId: () => randomUUID(),
    routerOptions: { maxParamLength: 512 },
    frameworkErrors: (error, request, reply) => void sendProblem(error, request, reply),
  });
  app.decorateRequest('refusal', null);
  app.decorateRequest('caller', null);
  app.decorateRequest('userLogin', null);
  app.decorateRequest('onAnswer', null);
  return app as unknown as FastifyInstance;
}

function collectRoutes(app: FastifyInstance): (path: string) => string[] {
  const routes: { method: string; pattern: RegExp }[] = [];
  app.addHook('onRoute', ({ method, url }) => {
    const pattern = new RegExp(`^${url.replace(/[.]/g, '\\.').replace(/:[a-z_]+/g, '[^/]+')}$`);
    for (const each of [method].flat()) routes.push({ method: each, pattern });
  });
  return (path) => [...new Set(routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method))];
}

/** Raw bytes for routes: webhook signatures cover them, and exact numbers are parsed from the text. */
function addParsers(app: FastifyInstance) {
  app.removeAllContentTypeParsers();
  for (const type of ['application/json', 'application/x-www-form-urlencoded', 'text/csv']) {
    app.addContentTypeParser(type, { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  }
}

function addRequestChecks(app: FastifyInstance, shared: Shared) {
  const { allow } = shared.settings.http;
  const allowed = addressList(allow);
  const secure = issuerOf(shared).startsWith('https:');
  app.addHook('onRequest', async (request, reply) => {
    reply.headers({ 'X-Request-Id': request.id, ...SAFE_HEADERS });
    const theirs = callersId(request);
    if (theirs !== undefined) reply.header('X-Correlation-Id', theirs);
    const trace = traceOf(request.headers['traceparent']);
    if (trace !== undefined) {
      const { flags, ...ids } = trace;
      request.log = request.log.child(ids);
      reply.header('traceresponse', `00-${ids.trace_id}-${ids.span_id}-${flags}`);
    }
    refuseOddHttp(request);
    if (secure) reply.header('Strict-Transport-Security', 'max-age=31536000');
    // The route that matched, because the client may have sent an encoded or absolute URL.
    const path = request.routeOptions.url ?? request.url;
    if (path.startsWith('/api/') && allow.length > 0 && !allowed(request.ip)) {
      reply.headers(rateHeaders(shared.limits.request('call', request.ip)));
      throw refuse('address_not_allowed', { address: request.ip });
    }
  });
}

/** The caller's trace (W3C Trace Context) with our own span. An invalid header is ignored, as the standard asks. */
function traceOf(given: string | string[] | undefined) {
  const found = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-.*)?$/.exec(
    String(given),
  );
  if (found === null || (found[1] === '00' && found[5] !== undefined)) return undefined;
  const [, , trace_id, parent_id, flags] = found;
  return { trace_id, parent_id, span_id: randomBytes(8).toString('hex'), flags };
}

function callersId({ headers }: FastifyRequest) {
  const given = headers['x-request-id'];
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : undefined;
}

/** HTTP/0.9, unknown expectations, and a second Host header, because a proxy may have used the other one. */
function refuseOddHttp({ raw }: FastifyRequest) {
  const hosts = raw.rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === 'host');
  const reason =
    (raw.httpVersionMajor < 1 && 'is not HTTP/1.1') ||
    (hosts.length > 1 && 'has more than one Host header') ||
    (!/^(100-continue)?$/i.test(raw.headers.expect ?? '') && 'expects something other than 100-continue');
  if (reason) throw refuse('request_invalid', { problems: [{ path: '', reason }] });
}

function addBounds(app: FastifyInstance, { metrics }: Shared) {
  const gates = openGates();
  const bounded = new WeakSet<RouteHandlerMethod>();
  app.addHook('onRoute', (route) => {
    const name = boundOf(route.url, route.config);
    const gate = gates[name];
    const { handler } = route;
    if (name === 'fixed' || bounded.has(handler)) return;
    route.handler = async function limited(request, reply) {
      await gate.enter(request.caller?.clientId ?? networkOf(request.ip));
      const working = Promise.resolve().then(() => handler.call(this, request, reply));
      return answerWithin(gate, reply, working);
    };
    bounded.add(route.handler);
    metrics.busy.labels(name).set(0);
  });
  app.addHook('onSend', async (request, _reply, payload) => {
    request.onAnswer?.();
    return payload;
  });
  metrics.onRead(() => {
    for (const [name, gate] of Object.entries(gates))
      if (name !== 'fixed') metrics.busy.set({ bound: name }, gate.running);
  });
}

function limitConnections(app: FastifyInstance, { metrics, log }: Shared) {
  const { server } = app;
  server.maxConnections = MOST_CONNECTIONS;
  // Node itself would answer 417, without headers or a line in the log.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  let open = 0;
  let toldAt = Number.NEGATIVE_INFINITY;
  server.on('connection', (socket) => {
    open += 1;
    socket.once('close', () => {
      open -= 1;
    });
    // To make room.
    if (open > 0.9 * MOST_CONNECTIONS && open % 100 === 0) server.closeIdleConnections();
  });
  server.on('drop', () => {
    metrics.droppedConnections.inc();
    if (performance.now() - toldAt < 60_000) return;
    toldAt = performance.now();
    log.warn({ connections: MOST_CONNECTIONS }, 'connections refused: there are too many');
  });
  metrics.onRead(() => metrics.connections.set(open));
  app.addHook('onRequest', async (request, reply) => {
    if (request.routeOptions.config?.bound === 'rows') return;
    const late = setTimeout(() => request.raw.destroy(), ANSWER_SECONDS * 1000).unref();
    reply.raw.once('close', () => clearTimeout(late));
  });
}

/** Probes come every few seconds, so only failures are logged. */
const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

function addRequestLog(app: FastifyInstance, { environment, settings, log, metrics }: Shared) {
  const isBehindUnknownProxy = unknownProxies(settings);
  let warned = settings.http.trust_proxy.length > 0;
  const warnOfProxy = (why: string) => {
    warned = true;
    log.warn(`${why}, but 'http.trust_proxy' names no proxy: all callers behind it count as one address`);
  };
  if (!warned && environment.name === 'production' && settings.public_url !== '') {
    warnOfProxy(`the public address is ${settings.public_url}`);
  }
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? '(none)';
    const { method, caller, refusal, userLogin } = request;
    if (!warned && isBehindUnknownProxy(request)) warnOfProxy('a proxy forwards requests');
    const facts = { method, route, status: reply.statusCode, ms: Math.round(reply.elapsedTime * 10) / 10 };
    metrics.requests.observe({ method, route, status: reply.statusCode }, reply.elapsedTime / 1000);
    const level = (PROBES.has(route) && reply.statusCode < 400) || reply.statusCode === 429 ? 'debug' : 'info';
    const theirs = callersId(request);
    request.log[level](
      {
        ...{ ...facts, remote: request.ip },
        ...(theirs !== undefined && { caller_request_id: theirs }),
        ...(caller && { partner: caller.partnerId, client: caller.clientId }),
        ...(userLogin && { user: userLogin }),
        ...(refusal && { refusal }),
      },
      'answered',
    );
  });
}

/** While stopping, Fastify closes idle connections, and this hook a busy one after its response. */
function closeIdleConnections(app: FastifyInstance) {
  let stopping = false;
  app.addHook('preClose', async () => {
    stopping = true;
  });
  app.addHook('onSend', async (_request, reply, payload) => {
    if (stopping) reply.header('Connection', 'close');
    return payload;
  });
}

/** Even without a token. */
function limitUnknown(shared: Shared) {
  const count = countOther(shared.limits);
  return async (request: FastifyRequest, reply: FastifyReply) => {
    if (!request.url.startsWith('/api/')) return count(request);
    return countCall(request, reply, shared).catch((error: unknown) => {
      if (error instanceof Refusal && error.code === 'rate_limited') throw error;
    });
  };
}

function notFound({ method, url }: FastifyRequest, findMethods: (path: string) => string[]) {
  const path = url.split('?')[0] ?? '';
  const allowed = findMethods(path);
  return allowed.length > 0
    ? refuse('method_not_allowed', { method, path, allowed })
    : refuse('route_unknown', { method, path });
}
