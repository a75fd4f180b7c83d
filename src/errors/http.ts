/** Refusals about HTTP requests, callers and webhooks. Only the HTTP side answers with them. */
import { answer, bullets, type FieldProblem } from './definition.ts';

export const HTTP = {
  request_invalid: answer<{ problems: readonly FieldProblem[] }>(
    400,
    (f) => `The request cannot be used:\n${bullets(f.problems)}\nCorrect it and send it again.`,
  ),
  route_unknown: answer<{ method: string; path: string }>(
    404,
    (f) => `There is nothing at ${f.path}. The calls there are stand at /reference.`,
  ),
  method_not_allowed: answer<{ method: string; path: string; allowed: readonly string[] }>(
    405,
    (f) => `${f.path} does not take ${f.method}. Use ${f.allowed.join(' or ')}.`,
  ),
  media_type_unsupported: answer<{ media_type: string }>(
    415,
    (f) => `A body of ${f.media_type} is not understood. Send application/json in UTF-8.`,
  ),
  body_too_large: answer<{ limit: number }>(413, (f) => `The body is larger than the ${f.limit} bytes that are read.`),
  prefetch_refused: answer<Record<string, never>>(
    422,
    () =>
      'Nothing is accepted ahead of need: this request says that it is a prefetch. Send it without when it is meant.',
  ),
  rate_limited: answer<{ retry_after: number }>(
    429,
    (f) => `There were too many requests. Wait ${f.retry_after} second(s), then go on more slowly.`,
  ),
  address_not_allowed: answer<{ address: string }>(
    403,
    (f) => `Calls from ${f.address} are not allowed. Ask for its network to be added, or call from an allowed one.`,
  ),
  token_missing: answer<Record<string, never>>(
    401,
    () => "There is no access token. Send 'Authorization: Bearer TOKEN' with a token from POST /api/oauth/token.",
  ),
  token_invalid: answer<{ reason: string }>(
    401,
    (f) => `The access token is not accepted: ${f.reason}. Get a new one from POST /api/oauth/token.`,
  ),
  partner_header_missing: answer<{ header: string }>(
    400,
    (f) => `The header ${f.header} is missing. Send your partner id in it.`,
  ),
  partner_header_mismatch: answer<{ header: string }>(
    403,
    (f) => `The header ${f.header} names another partner than the one that the token was given to.`,
  ),
  unavailable: answer<{ retry_after: number }>(
    503,
    () => 'The database cannot be reached at present. Send the same request again in a few seconds.',
  ),
  internal: answer<{ request_id: string }>(
    500,
    (f) =>
      `Something failed on our side. Send the request again; if it goes on, tell us the request id ${f.request_id}.`,
  ),
  webhook_not_configured: answer<{ variable: string }>(
    404,
    (f) => `No webhook is expected here: ${f.variable} is not set.`,
  ),
  webhook_signature_invalid: answer<{ reason: string }>(400, (f) => `The webhook is not accepted: ${f.reason}.`),
} as const;
