/** Refusals that only the HTTP API returns. */
import { plural } from '#text';
import { answer, bullets, FieldProblem } from './definition.ts';

export const HTTP = {
  request_invalid: answer<{ problems: readonly FieldProblem[] }>(
    400,
    (f) => `The request is invalid:\n${bullets(f.problems, '(body)')}\nCorrect it and send it again.`,
  ),
  route_unknown: answer<{ method: string; path: string }>(404, (f) => `No such endpoint: ${f.path}. See /reference.`),
  method_not_allowed: answer<{ method: string; path: string; allowed: readonly string[] }>(
    405,
    (f) => `${f.path} does not support ${f.method}. Use ${f.allowed.join(' or ')}.`,
  ),
  media_type_unsupported: answer(415, 'Unsupported media type: {media_type}. Send {expected} in UTF-8.'),
  body_too_large: answer(413, 'The body exceeds {limit} bytes.'),
  prefetch_refused: answer(
    422,
    'The request is marked as a prefetch, and a prefetch cannot accept anything. Send the request without the prefetch header.',
  ),
  rate_limited: answer<{ retry_after: number; limit: number }>(
    429,
    (f) => `Too many requests. Retry in ${plural(f.retry_after, 'second')}.`,
  ),
  address_not_allowed: answer(
    403,
    'Requests from {address} are not allowed. Use an allowed network, or contact us to add this one.',
  ),
  token_missing: answer(
    401,
    "The access token is missing. Send 'Authorization: Bearer TOKEN' with a token from POST /api/oauth/token.",
  ),
  token_invalid: answer(401, 'The access token is invalid: {reason}. Get a new one from POST /api/oauth/token.'),
  partner_header_missing: answer(400, 'The header {header} is missing. Send your partner id in this header.'),
  partner_header_mismatch: answer(403, 'The header {header} does not match the partner of the access token.'),
  unavailable: answer<{ retry_after: number; paused?: true | undefined }>(
    503,
    (f) =>
      `${f.paused ? 'Recording is paused for maintenance' : 'The database is unavailable'}. ` +
      `Retry in ${plural(f.retry_after, 'second')}.`,
  ),
  busy: answer<{ retry_after: number }>(
    503,
    (f) => `Too many requests of this kind are under way. Retry in ${plural(f.retry_after, 'second')}.`,
  ),
  rows_busy: answer<{ retry_after: number }>(
    503,
    (f) => `Too many downloads of rows are under way. Retry in ${plural(f.retry_after, 'second')}.`,
  ),
  settlement_file_unknown: answer(
    404,
    'You have sent no settlement file with the SHA-256 {sha256}. Send it to POST /api/v1/settlement-files.',
  ),
  internal: answer(
    500,
    'Internal error. Retry the request; if it fails again, contact us with the request id {request_id}.',
  ),
  webhook_not_configured: answer(404, 'Webhooks are not configured: {variable} is not set.'),
  webhook_signature_invalid: answer(400, 'The webhook was rejected: {reason}.'),
} as const;
