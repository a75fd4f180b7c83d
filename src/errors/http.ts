/** Refusals that only the HTTP API returns. */
import { plural } from '#text';
import { bullets, defineAnswer, FieldProblem } from './definition.ts';

export const HTTP = {
  request_invalid: defineAnswer<{ problems: readonly FieldProblem[] }>(
    400,
    (f) => `The request is invalid:\n${bullets(f.problems, '(body)')}\nCorrect it and send it again.`,
  ),
  route_unknown: defineAnswer<{ method: string; path: string }>(
    404,
    (f) => `No such endpoint: ${f.path}. See /reference.`,
  ),
  method_not_allowed: defineAnswer<{ method: string; path: string; allowed: readonly string[] }>(
    405,
    (f) => `${f.path} does not support ${f.method}. Use ${f.allowed.join(' or ')}.`,
  ),
  media_type_unsupported: defineAnswer<{ media_type: string; expected: string }>(
    415,
    (f) => `Unsupported media type: ${f.media_type}. Send ${f.expected} in UTF-8.`,
  ),
  body_too_large: defineAnswer<{ limit: number }>(413, (f) => `The body exceeds ${f.limit} bytes.`),
  prefetch_refused: defineAnswer<Record<string, never>>(
    422,
    () =>
      'The request is marked as a prefetch, and a prefetch cannot accept anything. Send the request without the prefetch header.',
  ),
  rate_limited: defineAnswer<{ retry_after: number; limit: number }>(
    429,
    (f) => `Too many requests. Retry in ${plural(f.retry_after, 'second')}.`,
  ),
  address_not_allowed: defineAnswer<{ address: string }>(
    403,
    (f) => `Requests from ${f.address} are not allowed. Use an allowed network, or contact us to add this one.`,
  ),
  token_missing: defineAnswer<Record<string, never>>(
    401,
    () => "The access token is missing. Send 'Authorization: Bearer TOKEN' with a token from POST /api/oauth/token.",
  ),
  token_invalid: defineAnswer<{ reason: string }>(
    401,
    (f) => `The access token is invalid: ${f.reason}. Get a new one from POST /api/oauth/token.`,
  ),
  partner_header_missing: defineAnswer<{ header: string }>(
    400,
    (f) => `The header ${f.header} is missing. Send your partner id in this header.`,
  ),
  partner_header_mismatch: defineAnswer<{ header: string }>(
    403,
    (f) => `The header ${f.header} does not match the partner of the access token.`,
  ),
  unavailable: defineAnswer<{ retry_after: number; paused?: true | undefined }>(
    503,
    (f) =>
      `${f.paused ? 'Recording is paused for maintenance' : 'The database is unavailable'}. ` +
      `Retry in ${plural(f.retry_after, 'second')}.`,
  ),
  busy: defineAnswer<{ retry_after: number }>(
    503,
    (f) => `Too many requests of this kind are under way. Retry in ${plural(f.retry_after, 'second')}.`,
  ),
  rows_busy: defineAnswer<{ retry_after: number }>(
    503,
    (f) => `Too many downloads of rows are under way. Retry in ${plural(f.retry_after, 'second')}.`,
  ),
  settlement_file_unknown: defineAnswer<{ sha256: string }>(
    404,
    (f) => `You have sent no settlement file with the SHA-256 ${f.sha256}. Send it to POST /api/v1/settlement-files.`,
  ),
  internal: defineAnswer<{ request_id: string }>(
    500,
    (f) => `Internal error. Retry the request; if it fails again, contact us with the request id ${f.request_id}.`,
  ),
  webhook_not_configured: defineAnswer<{ variable: string }>(
    404,
    (f) => `Webhooks are not configured: ${f.variable} is not set.`,
  ),
  webhook_signature_invalid: defineAnswer<{ reason: string }>(400, (f) => `The webhook was rejected: ${f.reason}.`),
} as const;
