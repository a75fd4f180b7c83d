/**
 * A local server that replaces Stripe. It stores objects, refuses requests that violate Stripe's published types,
 * repeats the answer to an idempotency key as Stripe does (including refusals and 500s), and fails in any way that a
 * test requests.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import qs from 'qs';
import { balanceTransactionRoutes } from './balance-transactions.ts';
import { checkoutSessionRoutes } from './checkout-sessions.ts';
import { connectRoutes } from './connect.ts';
import { paymentIntentRoutes } from './payment-intents.ts';
import { complete, paymentLinkRoutes, settle, visit } from './payment-links.ts';
import { loadSchemas, requestProblem } from './schemas.ts';
import {
  NEWEST_VERSION,
  newState,
  type Remembered,
  type Route,
  type State,
  type StripeObject,
  StripeRefusal,
} from './state.ts';

const ROUTES: readonly Route[] = [
  ...paymentLinkRoutes,
  ...checkoutSessionRoutes,
  ...balanceTransactionRoutes,
  ...paymentIntentRoutes,
  ...connectRoutes,
];

/** Stripe forgets a key after about a day. */
const KEY_LIVES_MILLISECONDS = 24 * 3600 * 1000;

export type Failure =
  /** 429, with the seconds after which to ask again. */
  | { readonly how: 'rate_limited'; readonly retryAfterSeconds?: number }
  /** 500 without an effect; its key answers so from then on. */
  | { readonly how: 'fail_before' }
  /** 500 although it was done; its key answers so from then on. */
  | { readonly how: 'fail_after' }
  /** The connection ends before anything is done. */
  | { readonly how: 'drop_before' }
  /** It is done, and the connection ends without an answer. */
  | { readonly how: 'drop_after' }
  /** 409, as while another request works on the same key. */
  | { readonly how: 'busy' }
  /** Answers late. */
  | { readonly how: 'slow'; readonly milliseconds: number };

export interface LoggedRequest {
  readonly method: string;
  readonly path: string;
  readonly params: Record<string, unknown>;
  readonly idempotencyKey: string | undefined;
  /** The API version; undefined if the request was refused before the version was read. */
  version: string | undefined;
  readonly at: number;
  /** Undefined if the connection was ended. */
  status: number | undefined;
  replayed: boolean;
}

export interface StripeStandIn {
  /** For STRIPE_API_BASE. */
  readonly url: string;
  readonly state: State;
  /** Requests so far, the oldest first. */
  readonly requests: LoggedRequest[];
  /** The next so many requests like `POST /v1/payment_links` fail so; all of them, until `heal`, with `Infinity`. */
  readonly fail: (like: string, failure: Failure, times?: number) => void;
  readonly heal: () => void;
  /** Forgets everything. */
  readonly startOver: () => void;
  /** A copy of all that it knows, for another one that goes on from there. */
  readonly memory: () => Memory;
  /** Links that a customer could pay by. */
  readonly activeLinks: () => StripeObject[];
  /** A customer opens a link; undefined if the link is deactivated. */
  readonly visit: (linkId: string) => StripeObject | undefined;
  readonly complete: (sessionId: string, paymentStatus?: 'paid' | 'unpaid') => boolean;
  /** What becomes of a debit that a customer ordered so. */
  readonly settle: (sessionId: string, how: 'paid' | 'failed') => void;
  readonly close: () => Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly body: object;
  readonly headers?: Record<string, string>;
  /** Refused before the call began, so that its key is not spent. */
  readonly unbegun?: boolean;
}

interface Keyed {
  readonly path: string;
  readonly params: object;
  readonly at: number;
  /** Undefined while the first request is under way. */
  answer: Answer | undefined;
}

/** All that a stand-in knows. */
export type Memory = Remembered & { readonly keyed: Map<string, Keyed> };

class Dropped extends Error {}

export async function startStripe(
  options: { port?: number; now?: () => Date; onRequest?: (request: LoggedRequest) => void; memory?: Memory } = {},
): Promise<StripeStandIn> {
  const memory = structuredClone(options.memory);
  const state = newState(options.now ?? (() => new Date()), memory);
  const keyed = memory?.keyed ?? new Map<string, Keyed>();
  const requests: LoggedRequest[] = [];
  let failures: { like: string; failure: Failure; times: number }[] = [];

  function nextFailure(method: string, path: string): Failure | undefined {
    const found = failures.find(({ like, times }) => times > 0 && matches(like, method, path));
    if (found !== undefined) found.times -= 1;
    return found?.failure;
  }

  async function answer(request: IncomingMessage, logged: LoggedRequest): Promise<Answer> {
    const failure = nextFailure(logged.method, logged.path);
    if (failure?.how === 'slow') await new Promise((resolve) => setTimeout(resolve, failure.milliseconds));
    if (failure?.how === 'drop_before') throw new Dropped();
    if (failure?.how === 'rate_limited') {
      const headers =
        failure.retryAfterSeconds === undefined ? {} : { 'retry-after': String(failure.retryAfterSeconds) };
      return refusal(new StripeRefusal(429, 'Too many requests.', { code: 'rate_limit' }), headers);
    }
    if (failure?.how === 'busy') return refusal(keyInUse());
    const key = /^Bearer ([sr]k_test_\w+)$/.exec(request.headers.authorization ?? '')?.[1];
    if (key === undefined || key.endsWith('_revoked')) {
      return refusal(new StripeRefusal(401, `Invalid API Key provided: ${key ?? 'none'}`));
    }
    const route = ROUTES.find(({ method, path }) => method === logged.method && path.test(logged.path));
    if (route === undefined) {
      return refusal(new StripeRefusal(404, `Unrecognized request URL (${logged.method}: ${logged.path}).`));
    }
    const named = request.headers['stripe-account'];
    if (typeof named === 'string' && !state.connect.accounts.has(named)) {
      return refusal(new StripeRefusal(403, `The key does not have access to account '${named}'.`));
    }
    const account = typeof named === 'string' ? named : (state.connect.keys.get(key) ?? '');
    const asked = request.headers['stripe-version'];
    const version = typeof asked === 'string' ? asked : state.connect.version;
    logged.version = version;
    if (!/^20\d\d-\d\d-\d\d(\.[a-z]+)?$/.test(version) || version.slice(0, 10) > NEWEST_VERSION.slice(0, 10)) {
      return refusal(new StripeRefusal(400, `Invalid Stripe API version: ${version}`));
    }
    const work = () => action(route, logged, { account, version: version.slice(0, 10) }, failure);
    const isKeyed = logged.method === 'POST' && logged.idempotencyKey !== undefined;
    // Each account has keys of its own.
    const done = isKeyed ? once(`${account}/${logged.idempotencyKey}`, logged, work) : work();
    if (failure?.how === 'drop_after') throw new Dropped();
    return done;
  }

  /** The first answer to a key, given again to the same request for a day. */
  function once(key: string, logged: LoggedRequest, work: () => Answer): Answer {
    const known = keyed.get(key);
    const now = state.now().getTime();
    if (known !== undefined && now - known.at < KEY_LIVES_MILLISECONDS) {
      if (known.path !== logged.path || !isDeepStrictEqual(known.params, logged.params)) {
        const message = 'Keys for idempotent requests can only be used with the same parameters.';
        return refusal(new StripeRefusal(400, message, { type: 'idempotency_error' }));
      }
      if (known.answer === undefined) {
        return refusal(keyInUse());
      }
      logged.replayed = true;
      return { ...known.answer, headers: { ...known.answer.headers, 'idempotent-replayed': 'true' } };
    }
    const kept: Keyed = { path: logged.path, params: structuredClone(logged.params), at: now, answer: undefined };
    keyed.set(key, kept);
    const made = work();
    // What was refused before it began is not kept; whatever came of a call that began is.
    if (made.unbegun === true) keyed.delete(key);
    else kept.answer = structuredClone(made);
    return made;
  }

  function action(
    route: Route,
    logged: LoggedRequest,
    by: { account: string; version: string },
    failure: Failure | undefined,
  ): Answer {
    const broken = refusal(new StripeRefusal(500, 'An unknown error occurred.', { type: 'api_error' }));
    if (failure?.how === 'fail_before') return broken;
    const params = structuredClone(logged.params);
    const problem = requestProblem(route.request, params);
    if (problem !== undefined) return refusal(new StripeRefusal(400, problem.message, problem));
    const id = route.path.exec(logged.path)?.[1] ?? '';
    let done: Answer;
    try {
      done = { status: 200, body: structuredClone(route.action({ state, id, ...by, params })) };
    } catch (error) {
      if (error instanceof StripeRefusal) return refusal(error);
      throw error;
    }
    if (failure?.how === 'fail_after') return broken;
    return done;
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://stripe.test');
    const bought = /^\/buy\/test_(\w+)$/.exec(url.pathname)?.[1];
    if (bought !== undefined) {
      const session = state.paymentLinks.has(`plink_${bought}`) ? visit(state, `plink_${bought}`) : undefined;
      const text = session === undefined ? 'This link is no longer active.' : JSON.stringify(session, null, 2);
      response.writeHead(session === undefined ? 410 : 200, { 'content-type': 'text/plain; charset=utf-8' }).end(text);
      return;
    }
    const session = state.sessions.get(/^\/c\/pay\/(\w+)$/.exec(url.pathname)?.[1] ?? '');
    if (session !== undefined) {
      response.writeHead(session['status'] === 'open' ? 200 : 410, { 'content-type': 'text/plain; charset=utf-8' });
      response.end(JSON.stringify(session, null, 2));
      return;
    }
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const form = pieces.length > 0 ? Buffer.concat(pieces).toString('utf8') : url.search.slice(1);
    const logged: LoggedRequest = {
      method: request.method ?? 'GET',
      path: url.pathname,
      params: qs.parse(form, { depth: 12, arrayLimit: 1000, parameterLimit: 5000 }) as Record<string, unknown>,
      idempotencyKey: request.headers['idempotency-key'] as string | undefined,
      version: undefined,
      at: Date.now(),
      status: undefined,
      replayed: false,
    };
    requests.push(logged);
    try {
      const { status, body, headers } = await answer(request, logged);
      logged.status = status;
      options.onRequest?.(logged);
      response.writeHead(status, {
        'content-type': 'application/json',
        'request-id': `req_${requests.length}`,
        ...headers,
      });
      response.end(JSON.stringify(body));
    } catch (error) {
      if (error instanceof Dropped) request.socket.destroy();
      else response.writeHead(500).end(String(error));
    }
  }

  loadSchemas();
  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((listening) => server.listen(options.port ?? 0, '127.0.0.1', listening));
  state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: state.url,
    state,
    requests,
    fail(like, failure, times = 1) {
      failures.push({ like, failure, times });
    },
    heal() {
      failures = [];
    },
    startOver() {
      failures = [];
      requests.length = 0;
      keyed.clear();
      state.paymentLinks.clear();
      state.sessions.clear();
      state.intentMetadata.clear();
      state.balanceTransactions.clear();
      const { connect } = state;
      for (const each of [connect.accounts, connect.keys, connect.readOnly, connect.objects, connect.owners])
        each.clear();
      for (const each of [connect.paymentMethods, connect.history, connect.settles, connect.rates]) each.clear();
      connect.searches = [];
      connect.version = NEWEST_VERSION;
      connect.balances.clear();
      connect.heldFees.length = 0;
      connect.holdFees = false;
      connect.failRefunds = false;
    },
    memory() {
      const { made, paymentLinks, sessions, intentMetadata, balanceTransactions, connect } = state;
      return structuredClone({ made, paymentLinks, sessions, intentMetadata, balanceTransactions, connect, keyed });
    },
    activeLinks: () => [...state.paymentLinks.values()].filter((link) => link['active'] === true),
    visit: (linkId) => visit(state, linkId),
    complete: (sessionId, paymentStatus) => complete(state, sessionId, paymentStatus),
    settle: (sessionId, how) => settle(state, sessionId, how),
    async close() {
      server.closeAllConnections();
      await new Promise<void>((closed) => server.close(() => closed()));
    },
  };
}

function keyInUse(): StripeRefusal {
  const message = 'There is currently another in-progress request using this idempotency key.';
  return new StripeRefusal(409, message, { type: 'idempotency_error', code: 'idempotency_key_in_use' });
}

/** `POST /v1/payment_links` is that path; `POST /v1/payment_links/*` whatever lies below it; `*` everything. */
function matches(like: string, method: string, path: string): boolean {
  if (like === '*') return true;
  const [wantedMethod, wantedPath = ''] = like.split(' ');
  if (wantedMethod !== method) return false;
  return wantedPath.endsWith('/*') ? path.startsWith(wantedPath.slice(0, -1)) : path === wantedPath;
}

function refusal(error: StripeRefusal, headers: Record<string, string> = {}): Answer {
  const { type, code, message, param, decline_code, payment_intent } = error;
  const body = structuredClone({ error: { type, code, message, param, decline_code, payment_intent } });
  return { status: error.status, body, headers, unbegun: !error.begun };
}
