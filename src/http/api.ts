/** The handlers of the API: each checks the caller and the request, acts in one transaction, and answers. */
import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { DateTime } from 'luxon';
import type { z } from 'zod';
import { fieldProblems } from '../config/validation.ts';
import type { Transaction } from '../database/transaction.ts';
import { documentJson } from '../documents/document.ts';
import { readDocuments } from '../documents/queries.ts';
import { reasonOf, refuse } from '../errors/refusals.ts';
import { ExactNumber, parseExactFields, writeExactJson } from '../json.ts';
import { Amount } from '../money.ts';
import { doesClientLive } from '../partners/client-queries.ts';
import { type Accepted, accept, acceptedQuote, incrementsOf, type Wanted } from '../quotes/accept.ts';
import { type Caller, keepAnswer, type QuoteState, readKeptAnswer } from '../quotes/queries.ts';
import { makeQuote, makeRequote, quoteOf } from '../quotes/quote.ts';
import { planAcceptance, type RoutedAcceptance, readRouted } from '../splits/accepted.ts';
import type { Operation } from './operations.ts';
import * as operations from './operations.ts';
import type { Shared } from './shared.ts';

interface Call<Params, Body, Query> {
  readonly caller: Caller;
  readonly now: DateTime<true>;
  readonly params: Params;
  readonly body: Body;
  readonly query: Query;
}

export function addApi(app: FastifyInstance, shared: Shared): void {
  serve(app, shared, operations.createQuote, async (tx, { body, ...asked }) => {
    const quote = await makeQuote(tx, { policyId: body.policy_id, insuredAmount: body.insured_amount }, asked);
    return quoteAnswer(await quoteOf(tx, quote.quote_id, asked));
  });
  serve(app, shared, operations.readQuote, async (tx, { params, ...asked }) =>
    quoteAnswer(await quoteOf(tx, params.quote_id, asked)),
  );
  serveAcceptances(app, shared, operations.acceptQuote, ({ params, caller, now }) => {
    return { kind: 'quote', id: params.quote_id, caller, now };
  });
  serve(app, shared, operations.createRequote, async (tx, { params, body, ...asked }) => {
    const wanted = { quoteId: params.quote_id, insuredAmount: body.insured_amount };
    const requote = await makeRequote(tx, wanted, asked);
    const { currency, quoteId, requoteId, ...sums } = incrementsOf(requote);
    return {
      requote_id: requoteId,
      quote_id: quoteId,
      currency,
      insured_amount: exact(requote.insured_amount, currency),
      ...increments(sums, currency),
      requoted_at: requote.requoted_at,
    };
  });
  serveAcceptances(app, shared, operations.acceptRequote, ({ params, caller, now }) => {
    return { kind: 'requote', id: params.requote_id, caller, now };
  });
  serve(app, shared, operations.listInvoices, async (tx, { caller }) =>
    (await readDocuments(tx, { partnerId: caller.partnerId })).map(documentJson),
  );
}

// --- Answers ----------------------------------------------------------------------------------------------------------

const exact = (text: string, currency: string): ExactNumber => new ExactNumber(Amount.of(text, currency).toString());

type Sums = Pick<Accepted, 'spotPrice' | 'partnerCut' | 'invoiceAmount'>;

const prices = ({ spotPrice, partnerCut, invoiceAmount }: Sums, currency: string) => ({
  spotPrice: exact(spotPrice, currency),
  partnerCut: exact(partnerCut, currency),
  invoiceAmount: exact(invoiceAmount, currency),
});

const increments = ({ spotPrice, partnerCut, invoiceAmount }: Sums, currency: string) => ({
  incrementalSpotPrice: exact(spotPrice, currency),
  incrementalPartnerCut: exact(partnerCut, currency),
  incrementalInvoiceAmount: exact(invoiceAmount, currency),
});

function quoteAnswer(quote: QuoteState): object {
  const { currency } = quote;
  const accepted = acceptedQuote(quote);
  return {
    quote_id: quote.quote_id,
    policy_id: quote.policy_id,
    currency,
    insured_amount: exact(quote.insured_amount, currency),
    spotPrice: exact(quote.spot_price, currency),
    partnerCut: exact(quote.partner_cut, currency),
    invoiceAmount: exact(quote.invoice_amount, currency),
    quoted_at: quote.quoted_at,
    status: accepted === undefined ? 'open' : quote.reversed ? 'reversed' : 'accepted',
    enrollment_id: accepted?.enrollmentId ?? null,
    accepted_at: accepted?.acceptedAt ?? null,
  };
}

/** The payment values of service.md 2.2, or 2.3 for a requote, with the split plan of a connected account. */
function acceptanceAnswer({ accepted, routed }: RoutedAcceptance, query: operations.SplitQuery): object {
  // What the partner of a connected account must ask its processor for (service.md 7).
  const plan = routed && planAcceptance(routed, query);
  const { quoteId, requoteId, enrollmentId, currency, acceptedAt } = accepted;
  const facts = { quote_id: quoteId, enrollment_id: enrollmentId, currency, accepted_at: acceptedAt };
  const split = plan && { split: { ...plan, share: exact(plan.share, currency) } };
  return requoteId === null
    ? { ...facts, ...prices(accepted, currency), ...split }
    : { requote_id: requoteId, ...facts, ...increments(accepted, currency), ...split };
}

// --- Checks of every call -----------------------------------------------------------------------------------------------

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** An idempotency key and the request that it stands for. */
interface RequestKey {
  readonly key: string;
  readonly sha256: string;
}

type CallOf<Params extends z.ZodType, Body extends z.ZodType | undefined, Query extends z.ZodType> = Call<
  z.output<Params>,
  Body extends z.ZodType ? z.output<Body> : undefined,
  z.output<Query>
>;

type Handler<Params extends z.ZodType, Body extends z.ZodType | undefined, Query extends z.ZodType> = (
  tx: Transaction,
  call: CallOf<Params, Body, Query>,
) => Promise<unknown>;

/** A call that does one act in a transaction of its own. */
function serve<Params extends z.ZodType, Body extends z.ZodType | undefined, Query extends z.ZodType>(
  app: FastifyInstance,
  shared: Shared,
  operation: Operation<Params, Body, Query>,
  work: Handler<Params, Body, Query>,
): void {
  route(app, shared, operation, (call, key) =>
    insideTransaction(shared, operation, async (tx) => {
      if (!(await doesClientLive(tx, call.caller))) throw refuse('token_invalid', { reason: 'its client was revoked' });
      const answering = async () => ({ status: operation.status, text: writeExactJson(await work(tx, call)) });
      return key === undefined ? answering() : onceByKey(tx, { ...call, ...key }, answering);
    }),
  );
}

/**
 * A call that accepts, batched with others that arrive at the same time. A call with an idempotency key, which an
 * acceptance does not need, runs alone: one transaction stores its answer and its key.
 */
function serveAcceptances<Params extends z.ZodType>(
  app: FastifyInstance,
  shared: Shared,
  operation: Operation<Params, undefined, typeof operations.splitQuery>,
  wantedBy: (call: CallOf<Params, undefined, typeof operations.splitQuery>) => Wanted,
): void {
  const { metrics, acceptances } = shared;
  route(app, shared, operation, async (call, key) => {
    const wanted = wantedBy(call);
    const answerWith = (found: RoutedAcceptance) => ({
      status: operation.status,
      text: writeExactJson(acceptanceAnswer(found, call.query)),
    });
    const alone = async (tx: Transaction) => {
      const [found] = await readRouted([await accept(tx, wanted)], (work) => work(tx));
      return answerWith(found as RoutedAcceptance);
    };
    const answer =
      key === undefined
        ? answerWith(await acceptances.accept(wanted))
        : await insideTransaction(shared, operation, (tx) => onceByKey(tx, { ...call, ...key }, () => alone(tx)));
    metrics.acceptances.inc({ kind: wanted.kind });
    return answer;
  });
}

/** Checks every call before its act: the caller, the rate limit and the request. */
function route<Params extends z.ZodType, Body extends z.ZodType | undefined, Query extends z.ZodType>(
  app: FastifyInstance,
  shared: Shared,
  operation: Operation<Params, Body, Query>,
  act: (call: CallOf<Params, Body, Query>, key: RequestKey | undefined) => Promise<Answer>,
): void {
  const { environment, settings, limits } = shared;
  const url = operation.path.replace(/\{(\w+)\}/g, ':$1');
  const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const caller = await callerOf(request, shared);
    await limits.request(caller.clientId);
    request.partnerId = caller.partnerId;
    checkPartnerHeader(request, settings.partner_id_header, operation.partnerHeader, caller);
    if (operation.act === 'accepts' && isPrefetch(request)) throw refuse('prefetch_refused', {});
    const params = readParams(operation, request);
    const body = operation.body === undefined ? undefined : readBody(operation.body, request);
    const key = request.method === 'POST' ? idempotencyKey(request) : undefined;
    const query = readQuery(operation, request);
    const call = { caller, now: environment.now(), params, body, query } as CallOf<Params, Body, Query>;
    const answer = await act(call, key === undefined ? undefined : { key, sha256: fingerprint(request, body) });
    return reply.code(answer.status).type('application/json; charset=utf-8').send(answer.text);
  };
  app.route({ method: [...operation.methods], url, handler });
}

/** Reads in one snapshot. A write starts again if another request took the idempotency key first. */
async function insideTransaction(
  { database }: Shared,
  operation: Operation,
  work: (tx: Transaction) => Promise<Answer>,
): Promise<Answer> {
  if (operation.act === 'reads') return database.reading(work);
  try {
    return await database.transaction(work);
  } catch (error) {
    if (!(error instanceof KeyTaken)) throw error;
    return database.transaction(work);
  }
}

/** Another request under the same key was answered first: roll back and give that answer. */
class KeyTaken extends Error {}

async function onceByKey(
  tx: Transaction,
  { caller, key, sha256, now }: RequestKey & { caller: Caller; now: DateTime<true> },
  answering: () => Promise<Answer>,
): Promise<Answer> {
  const { partnerId } = caller;
  const kept = await readKeptAnswer(tx, { partnerId, key });
  if (kept !== undefined) {
    if (kept.request_sha256 !== sha256) throw refuse('idempotency_key_reused', { key });
    return { status: kept.status, text: kept.answer };
  }
  const answer = await answering();
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

/** A hash of the request that ignores the order and spacing of its fields. */
const fingerprint = (request: FastifyRequest, body: unknown): string =>
  createHash('sha256')
    .update(`${request.method} ${request.url}\n${JSON.stringify(body ?? null)}`)
    .digest('hex');

/** Counts a caller without a valid token by its address. */
async function callerOf(request: FastifyRequest, { tokens, limits }: Shared): Promise<Caller> {
  try {
    return await tokens.verify(bearerToken(request));
  } catch (error) {
    await limits.request(request.ip);
    throw error;
  }
}

function bearerToken(request: FastifyRequest): string {
  const header = request.headers.authorization;
  if (header === undefined || header.trim() === '') throw refuse('token_missing', {});
  const token = /^Bearer +([A-Za-z0-9._~+/-]+=*) *$/i.exec(header)?.[1];
  if (token === undefined) throw refuse('token_invalid', { reason: 'the Authorization header is not "Bearer TOKEN"' });
  return token;
}

/** service.md 5.4. Checked when present, even where it is not required. */
function checkPartnerHeader(
  request: FastifyRequest,
  name: string,
  rule: Operation['partnerHeader'],
  caller: Caller,
): void {
  const given = request.headers[name.toLowerCase()];
  if (given === undefined) {
    if (rule === 'required') throw refuse('partner_header_missing', { header: name });
    return;
  }
  if (given !== caller.partnerId) throw refuse('partner_header_mismatch', { header: name });
}

/** Browsers, proxies and link previews mark requests that no user made yet. */
function isPrefetch(request: FastifyRequest): boolean {
  const { purpose, 'sec-purpose': secPurpose, 'x-moz': xMoz, 'x-purpose': xPurpose } = request.headers;
  return [purpose, secPurpose, xMoz, xPurpose].flat().some((value) => /prefetch|preview|prerender/i.test(value ?? ''));
}

function idempotencyKey(request: FastifyRequest): string | undefined {
  const given = request.headers['idempotency-key'];
  if (given === undefined) return undefined;
  if (typeof given === 'string' && /^[\x21-\x7e]{1,255}$/.test(given)) return given;
  throw refuse('request_invalid', {
    problems: [{ path: 'Idempotency-Key', reason: 'must be 1 to 255 printable ASCII characters without spaces' }],
  });
}

/** A malformed id of a quote or requote is refused like an unknown one; any other parameter as an invalid request. */
function readParams(operation: Operation, request: FastifyRequest): unknown {
  const parsed = operation.params.safeParse(request.params);
  if (parsed.success) return parsed.data;
  const { quote_id: quoteId, requote_id: requoteId } = request.params as { quote_id?: string; requote_id?: string };
  if (requoteId !== undefined) throw refuse('requote_unknown', { requote_id: requoteId });
  if (quoteId !== undefined) throw refuse('quote_unknown', { quote_id: quoteId });
  throw refuse('request_invalid', { problems: fieldProblems(parsed.error) });
}

function readQuery(operation: Operation, request: FastifyRequest): unknown {
  const parsed = operation.query.safeParse(request.query);
  if (!parsed.success) throw refuse('request_invalid', { problems: fieldProblems(parsed.error) });
  return parsed.data;
}

function readBody(schema: z.ZodType, request: FastifyRequest): unknown {
  const malformed = (reason: string) => refuse('request_invalid', { problems: [{ path: '', reason }] });
  const type = request.headers['content-type'] ?? '';
  if (!/^application\/json *(; *charset="?utf-8"? *)?$/i.test(type)) {
    if (request.body === undefined) throw malformed('has no body');
    throw refuse('media_type_unsupported', { media_type: type.slice(0, 100) || 'no type' });
  }
  let value: unknown;
  try {
    value = parseExactFields(new TextDecoder('utf-8', { fatal: true }).decode(request.body as Buffer));
  } catch (error) {
    throw malformed(`is not JSON in UTF-8: ${reasonOf(error)}`);
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw refuse('request_invalid', { problems: fieldProblems(parsed.error) });
  return parsed.data;
}
