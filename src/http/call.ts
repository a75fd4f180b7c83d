/** The steps of every API call: caller, rate limit, validation, transaction and idempotency key. */
import { hash } from 'node:crypto';
import { Readable } from 'node:stream';
import { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { DateTime } from 'luxon';
import { z } from 'zod';
import { fieldProblems } from '#config/validation';
import { Transaction } from '#database/transaction';
import { CallRefusalCode, reasonOf, refuse } from '#errors/refusals';
import { parseExactFields, repeatedName, writeExactJson } from '#json';
import { doesClientLive } from '#partners/clients.sql';
import { Caller, keepAnswer, readKeptAnswer } from '#quotes/quotes.sql';
import { rateHeaders } from './limits.ts';
import { Operation } from './operation.ts';
import { issuerOf, Shared } from './shared.ts';

type Call<Params, Body, Query> = Readonly<{
  caller: Caller;
  now: DateTime<true>;
  params: Params;
  body: Body;
  query: Query;
}>;

type JsonAnswer = Readonly<{
  status: number;
  text: string;
  /** Whether this response was stored for an idempotency key. */
  replayed?: boolean;
}>;

/** A response that is a file, or JSON with additional headers. */
export class Content {
  readonly body: string | Buffer | Readable;
  readonly headers: Readonly<Record<string, string>>;

  constructor(body: string | Buffer | Readable, headers: Readonly<Record<string, string>>) {
    this.body = body;
    this.headers = headers;
  }
}

/** A result with the operation's other status. */
export class OtherResult {
  readonly result: unknown;

  constructor(result: unknown) {
    this.result = result;
  }
}
type Answer = JsonAnswer | Content;

type RequestKey = Readonly<{
  key: string;
  sha256: string;
}>;

export type CallOf<Params extends z.ZodType, Body extends z.ZodType | undefined, Query extends z.ZodType> = Call<
  z.output<Params>,
  Body extends z.ZodType ? z.output<Body> : undefined,
  z.output<Query>
>;

type Handler<Params extends z.ZodType, Body extends z.ZodType | undefined, Query extends z.ZodType, Before> = (
  tx: Transaction,
  call: CallOf<Params, Body, Query>,
  before: Before | undefined,
) => Promise<unknown>;

/**
 * Serves an operation in its own transaction. The result of `work` is the JSON response, or a Content. `before` runs
 * before the transaction, and passes its result to `work`.
 */
export function serve<Params extends z.ZodType, Body extends z.ZodType | undefined, Query extends z.ZodType, Before>(
  app: FastifyInstance,
  shared: Shared,
  operation: Operation<Params, Body, Query>,
  work: Handler<Params, Body, Query, Before>,
  before?: (call: CallOf<Params, Body, Query>) => Promise<Before | undefined>,
) {
  route(app, shared, operation, async (call, key) => {
    const prepared = await before?.(call);
    return answerOnce(shared, operation, { ...call, key }, async (tx) => {
      const result = await work(tx, call, prepared);
      if (result instanceof Content) return result;
      if (result instanceof OtherResult) {
        return { status: operation.otherwise?.status ?? operation.status, text: writeExactJson(result.result) };
      }
      return { status: operation.status, text: writeExactJson(result) };
    });
  });
}

/**
 * Responds in one transaction, unless the client is revoked. A known idempotency key gets the stored response. A
 * refusal is rolled back, so its key stays unused.
 */
export function answerOnce(
  shared: Shared,
  operation: Operation,
  asked: Readonly<{ caller: Caller; now: DateTime<true>; key: RequestKey | undefined }>,
  answering: (tx: Transaction) => Promise<Answer>,
) {
  return insideTransaction(shared, operation, async (tx) => {
    const { caller, key } = asked;
    if (!(await doesClientLive(tx, caller))) throw refuse('token_invalid', { reason: 'its client was revoked' });
    return key === undefined ? answering(tx) : onceByKey(tx, { ...asked, ...key }, () => answering(tx));
  });
}

/** Adds a route that checks the caller, the rate limit and the request before `action` runs. */
export function route<Params extends z.ZodType, Body extends z.ZodType | undefined, Query extends z.ZodType>(
  app: FastifyInstance,
  shared: Shared,
  operation: Operation<Params, Body, Query>,
  action: (call: CallOf<Params, Body, Query>, key: RequestKey | undefined) => Promise<Answer>,
) {
  const { environment, settings } = shared;
  const url = operation.path.replace(/\{(\w+)\}/g, ':$1');
  const handler = async (request: FastifyRequest, reply: FastifyReply) => {
    const caller = request.caller as Caller;
    checkPartnerHeader(request, settings.partner_id_header, operation.partnerHeader, caller);
    if (operation.action === 'accepts' && isPrefetch(request)) throw refuse('prefetch_refused', {});
    const params = readParams(operation, request);
    const body =
      operation.body === undefined
        ? undefined
        : operation.file === undefined
          ? readBody(operation.body, request)
          : readFile(operation.file.type, request);
    const key = request.method === 'POST' ? idempotencyKey(request) : undefined;
    const query = readQuery(operation, request);
    const call = { caller, now: environment.now(), params, body, query } as CallOf<Params, Body, Query>;
    const answer = await action(call, key === undefined ? undefined : { key, sha256: fingerprint(request, body) });
    if (answer instanceof Content) return reply.headers(answer.headers).send(answer.body);
    if (answer.replayed === true) reply.header('Idempotent-Replayed', 'true');
    const { location } = (answer.status === 202 ? JSON.parse(answer.text) : {}) as { location?: string };
    if (location !== undefined) reply.header('Location', location);
    return reply.code(answer.status).type('application/json; charset=utf-8').send(answer.text);
  };
  const { file } = operation;
  app.route({
    ...{ method: [...operation.methods], url, handler },
    // Checks the token before the body is read.
    onRequest: (request: FastifyRequest, reply: FastifyReply) => countCall(request, reply, shared),
    config: { bound: boundFor(operation), ...(file !== undefined && { mediaType: file.type }) },
    ...(file !== undefined && { bodyLimit: file.bytes }),
  });
}

function boundFor({ action, file, answer, query }: Operation) {
  if (action === 'accepts') return 'acceptances';
  if (action === 'makes') return file === undefined ? 'changes' : 'uploads';
  if (answer === 'text/csv') return 'rows';
  if (answer === 'application/pdf' || answer === 'application/xml') return 'files';
  return 'limit' in ((query as { shape?: object }).shape ?? {}) ? 'lists' : 'reads';
}

/**
 * A page of a list. If `items` has one more than the limit, the header `Link` has the URL of the next page (RFC 8288).
 */
export function pageOf<
  Item,
  Cursor extends string | number,
  Query extends { limit: number; cursor?: Cursor | undefined },
>(
  shared: Shared,
  { path }: Operation,
  { query, items, cursorOf }: { query: Query; items: readonly Item[]; cursorOf: (item: Item) => Cursor },
) {
  const shown = items.slice(0, query.limit);
  const headers: Record<string, string> = { 'Content-Type': 'application/json; charset=utf-8' };
  const last = shown.at(-1);
  if (items.length > query.limit && last !== undefined) {
    const next = new URLSearchParams();
    for (const [name, value] of Object.entries({ ...query, cursor: cursorOf(last) })) {
      if (value !== undefined) next.set(name, String(value));
    }
    headers['Link'] = `<${issuerOf(shared)}${path}?${next}>; rel="next"`;
  }
  return new Content(writeExactJson(shown), headers);
}

/** A read has one snapshot. A write restarts if another request with the same key was answered first. */
async function insideTransaction(
  { database }: Shared,
  operation: Operation,
  work: (tx: Transaction) => Promise<Answer>,
) {
  if (operation.action === 'reads') return database.reading(work);
  try {
    return await database.transaction(work);
  } catch (error) {
    if (!(error instanceof KeyTaken)) throw error;
    return database.transaction(work);
  }
}

/** Another request with the same key was answered first. */
class KeyTaken extends Error {}

async function onceByKey(
  tx: Transaction,
  { caller, key, sha256, now }: RequestKey & Readonly<{ caller: Caller; now: DateTime<true> }>,
  answering: () => Promise<Answer>,
) {
  const { partnerId } = caller;
  const kept = await readKeptAnswer(tx, { partnerId, key });
  if (kept !== undefined) {
    if (kept.request_sha256 !== sha256) throw refuse('idempotency_key_reused', { key });
    return { status: kept.status, text: kept.answer, replayed: true };
  }
  const answer = await answering();
  if (answer instanceof Content) throw new Error('a response with a file cannot be stored for an idempotency key');
  const first = await keepAnswer(tx, {
    partnerId,
    key,
    requestSha256: sha256,
    status: answer.status,
    answer: answer.text,
    now: now.toISO(),
  });
  if (!first) throw new KeyTaken();
  return answer;
}

/** Does not depend on the order and spacing of JSON fields. */
const fingerprint = (request: FastifyRequest, body: unknown) =>
  hash('sha256', `${request.method} ${request.url}\n${JSON.stringify(body ?? null)}`);

/**
 * Counts a call against the client's rate limit or, without a valid token, the network's. Sets the RateLimit headers.
 * Refusals: token_missing, token_invalid, rate_limited.
 */
export async function countCall(
  request: FastifyRequest,
  reply: FastifyReply,
  { tokens, limits, clientUses }: Pick<Shared, 'tokens' | 'limits' | 'clientUses'>,
) {
  const count = (key: string) => void reply.headers(rateHeaders(limits.request('call', key)));
  try {
    request.caller = await tokens.verify(bearerToken(request));
  } catch (error) {
    count(request.ip);
    throw error;
  }
  count(request.caller.clientId);
  clientUses.called(request.caller.clientId);
}

function bearerToken(request: FastifyRequest) {
  const header = request.headers.authorization;
  if (header === undefined || header.trim() === '') throw refuse('token_missing', {});
  const token = /^Bearer +([A-Za-z0-9._~+/-]+=*) *$/i.exec(header)?.[1];
  if (token === undefined) throw refuse('token_invalid', { reason: 'the Authorization header is not "Bearer TOKEN"' });
  return token;
}

/** If present, the header is checked even if it is not required (service.md 5.4). */
function checkPartnerHeader(request: FastifyRequest, name: string, rule: Operation['partnerHeader'], caller: Caller) {
  const given = request.headers[name.toLowerCase()];
  if (given === undefined) {
    if (rule === 'required') throw refuse('partner_header_missing', { header: name });
    return;
  }
  if (given !== caller.partnerId) throw refuse('partner_header_mismatch', { header: name });
}

/** Browsers and proxies send these before a user makes a request. */
function isPrefetch(request: FastifyRequest) {
  const { purpose, 'sec-purpose': secPurpose, 'x-moz': xMoz, 'x-purpose': xPurpose } = request.headers;
  return [purpose, secPurpose, xMoz, xPurpose].flat().some((value) => /prefetch|preview|prerender/i.test(value ?? ''));
}

function idempotencyKey(request: FastifyRequest) {
  const given = request.headers['idempotency-key'];
  if (given === undefined) return undefined;
  if (typeof given === 'string' && /^[\x21-\x7e]{1,255}$/.test(given)) return given;
  throw refuse('request_invalid', {
    problems: [{ path: 'Idempotency-Key', reason: 'must be 1 to 255 printable ASCII characters without spaces' }],
  });
}

/** A malformed id is refused as unknown. */
const UNKNOWN = {
  requote_id: 'requote_unknown',
  quote_id: 'quote_unknown',
  number: 'invoice_unknown',
  request_id: 'late_request_unknown',
  sha256: 'settlement_file_unknown',
} as const satisfies Record<string, CallRefusalCode>;

function readParams(operation: Operation, request: FastifyRequest) {
  const parsed = operation.params.safeParse(request.params);
  if (parsed.success) return parsed.data;
  const params = request.params as Record<keyof typeof UNKNOWN, string>;
  for (const [name, code] of Object.entries(UNKNOWN)) if (name in params) throw refuse(code, params);
  throw refuse('request_invalid', { problems: fieldProblems(parsed.error) });
}

function readQuery(operation: Operation, request: FastifyRequest) {
  const query = request.query as Record<string, unknown>;
  const twice = Object.keys(query).filter((name) => Array.isArray(query[name]));
  const problems = twice.map((path) => ({ path, reason: 'is given more than once' }));
  if (problems.length > 0) throw refuse('request_invalid', { problems });
  const parsed = operation.query.safeParse(query);
  if (parsed.success) return parsed.data;
  const known = (operation.query as { shape?: object }).shape ?? {};
  throw refuse('request_invalid', {
    problems: fieldProblems(parsed.error).map((problem) =>
      Object.hasOwn(known, problem.path) ? problem : { ...problem, reason: 'is not a known parameter' },
    ),
  });
}

const PROBLEMS_TOLD = 20;

const malformed = (reason: string) => refuse('request_invalid', { problems: [{ path: '', reason }] });

function checkMediaType({ headers, body }: FastifyRequest, expected: string, form: RegExp) {
  const type = headers['content-type'] ?? '';
  if (form.test(type)) return;
  if (body === undefined) throw malformed('has no body');
  throw refuse('media_type_unsupported', { media_type: type.slice(0, 100) || 'no type', expected });
}

/** Returns the text of a file with its byte order mark, so that the text's hash is the file's hash. */
function readFile(type: 'text/csv', request: FastifyRequest) {
  checkMediaType(request, type, /^text\/csv *(; *(charset="?utf-8"?|header="?present"?) *)*$/i);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(request.body as Buffer);
  } catch {
    throw malformed('is not UTF-8');
  }
}

function readBody(schema: z.ZodType, request: FastifyRequest) {
  checkMediaType(request, 'application/json', /^application\/json *(; *charset="?utf-8"? *)?$/i);
  let value: unknown;
  let twice: string | undefined;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(request.body as Buffer);
    value = parseExactFields(text);
    twice = repeatedName(text);
  } catch (error) {
    throw malformed(`is not JSON in UTF-8: ${reasonOf(error)}`);
  }
  if (twice !== undefined) {
    throw refuse('request_invalid', { problems: [{ path: twice, reason: 'is given more than once' }] });
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success)
    throw refuse('request_invalid', { problems: fieldProblems(parsed.error).slice(0, PROBLEMS_TOLD) });
  return parsed.data;
}
