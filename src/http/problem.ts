/** Errors as problem documents (RFC 9457). For a bug, the caller sees only the id of the request. */

import { STATUS_CODES } from 'node:http';
import { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { databaseFailure, sqlstate } from '#database/transaction';
import { httpStatusOf, Refusal, RefusalCode, reasonOf, refuse } from '#errors/refusals';
import { rateHeaders } from './limits.ts';

const LITTLE_TO_READ = 64 * 1024;

const RETRY_SECONDS = 5;
/** A pause of the ledger usually takes minutes. */
const PAUSED_RETRY_SECONDS = 60;

/** SQL states lock_not_available and query_canceled, which our connections' timeouts cause. */
const OUT_OF_PATIENCE: ReadonlySet<string> = new Set(['55P03', '57014']);

/** Keep a server from writing (database/fitness.ts). Clients get `unavailable`; the log has the reason. */
const UNFIT: ReadonlySet<RefusalCode> = new Set([
  'clock_differs',
  'database_read_only',
  'database_newer',
  'database_privileges',
]);

function refusalOf(error: unknown, request: FastifyRequest) {
  if (error instanceof Refusal) {
    return UNFIT.has(error.code) ? refuse('unavailable', { retry_after: RETRY_SECONDS }, error) : error;
  }
  if (OUT_OF_PATIENCE.has(sqlstate(error) ?? '')) return refuse('ledger_busy', { retry_after: RETRY_SECONDS }, error);
  const failure = databaseFailure(error);
  if (failure?.code === 'database_failed' || (failure && UNFIT.has(failure.code)) || isUnreachable(error)) {
    return refuse('unavailable', { retry_after: RETRY_SECONDS }, error);
  }
  // Only operators may see the reason for a pause.
  if (failure?.code === 'paused')
    return refuse('unavailable', { retry_after: PAUSED_RETRY_SECONDS, paused: true }, error);
  if (failure !== undefined) return failure;
  return refusalOfFramework(error as FastifyError, request);
}

/** Or all connections were busy for too long. */
function isUnreachable(error: unknown) {
  if (!(error instanceof Error)) return false;
  const { code } = error as NodeJS.ErrnoException;
  return (
    ['ECONNREFUSED', 'ENOENT', 'ETIMEDOUT', 'ENOTFOUND', 'EPIPE', 'ECONNRESET'].includes(code ?? '') ||
    /timeout expired|timeout exceeded|Cannot use a pool after calling end/.test(error.message)
  );
}

function refusalOfFramework(error: FastifyError, { routeOptions, headers }: FastifyRequest) {
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return refuse('body_too_large', { limit: routeOptions.bodyLimit }, error);
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
    case 'FST_ERR_CTP_INVALID_TYPE':
      return refuse(
        'media_type_unsupported',
        {
          media_type: headers['content-type']?.slice(0, 100) ?? 'none',
          expected: routeOptions.config?.mediaType ?? 'application/json',
        },
        error,
      );
  }
  const status = error.statusCode;
  if (status === undefined || status < 400 || status >= 500) return undefined;
  return refuse('request_invalid', { problems: [{ path: '', reason: reasonOf(error) }] }, error);
}

export type SendProblem = (thrown: unknown, request: FastifyRequest, reply: FastifyReply) => FastifyReply;

/** Sends problem documents, whose types are URLs in the issuer's reference. */
export const problemsOf =
  (issuer: string): SendProblem =>
  (thrown, request, reply) =>
    writeProblem(answerTo(thrown, request, reply), issuer, request, reply);

/** The refusal for a thrown value, with its headers set. Logs errors with a status of 500 or more. */
export function answerTo(thrown: unknown, request: FastifyRequest, reply: FastifyReply) {
  const known = refusalOf(thrown, request);
  const refusal = known ?? refuse('internal', { request_id: request.id });
  if (known === undefined) request.log.error({ err: thrown }, 'failed');
  else if (httpStatusOf(known.code) >= 500) {
    request.log.warn({ code: known.code, reason: reasonOf(known.cause) }, 'refused');
  }
  request.refusal = refusal.code;
  addHeaders(refusal, request, reply);
  return refusal;
}

function addHeaders({ facts }: Refusal, request: FastifyRequest, reply: FastifyReply) {
  type Stated = Readonly<{ allowed?: string[]; retry_after?: number; limit?: number }>;
  const { allowed, retry_after: retryAfter, limit } = facts as Stated;
  if (allowed !== undefined) reply.header('Allow', allowed.join(', '));
  if (hasUnreadBody(request)) reply.header('Connection', 'close');
  if (retryAfter === undefined) return;
  reply.header('Retry-After', String(retryAfter));
  if (limit !== undefined) reply.headers(rateHeaders({ limit, remaining: 0, reset: retryAfter }));
}

function writeProblem(refusal: Refusal, issuer: string, request: FastifyRequest, reply: FastifyReply) {
  const status = httpStatusOf(refusal.code);
  if (status === 401) {
    const missing = refusal.code === 'token_missing';
    reply.header('WWW-Authenticate', missing ? 'Bearer' : 'Bearer error="invalid_token"');
  }
  const problem = problemOf(refusal, issuer, `urn:request:${request.id}`);
  // The response is sent as bytes, because Fastify would add a charset, which RFC 9457's media type does not have.
  return reply
    .code(status)
    .type('application/problem+json')
    .send(Buffer.from(JSON.stringify(problem)));
}

export const problemOf = ({ code, message: detail, facts }: Refusal, issuer: string, instance: string) => {
  const status = httpStatusOf(code);
  return { type: `${issuer}/reference#${code}`, title: STATUS_CODES[status], status, detail, instance, code, ...facts };
};

/** Much is unread, so the connection is closed: Node would read the whole body to keep it open. */
const hasUnreadBody = ({ body, headers }: FastifyRequest) =>
  body === undefined &&
  (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > LITTLE_TO_READ);
