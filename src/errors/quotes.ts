/** Refusals about quotes and requotes. Only the HTTP side answers with them. */
import { answer } from './definition.ts';

export const QUOTES = {
  quote_unknown: answer<{ quote_id: string }>(404, (f) => `There is no quote ${f.quote_id}. Check its id.`),
  requote_unknown: answer<{ requote_id: string }>(404, (f) => `There is no requote ${f.requote_id}. Check its id.`),
  policy_unknown: answer<{ policy_id: string }>(
    404,
    (f) => `There is no policy ${f.policy_id}. Use one of those that were configured for you.`,
  ),
  policy_not_priced: answer<{ policy_id: string }>(
    422,
    (f) => `Policy ${f.policy_id} has no price to quote by. Ask for one to be configured.`,
  ),
  partner_inactive: answer<{ partner_id: string }>(
    422,
    (f) => `Partner ${f.partner_id} is not active: nothing new is quoted or accepted. Ask for it to be activated.`,
  ),
  policy_inactive: answer<{ policy_id: string }>(
    422,
    (f) => `Policy ${f.policy_id} is not active: nothing new is quoted or accepted under it. Use another policy.`,
  ),
  price_too_large: answer<{ currency: string }>(
    422,
    (f) => `The price would not be below 1000000000000000 ${f.currency}. Insure a smaller amount.`,
  ),
  quote_not_accepted: answer<{ quote_id: string }>(
    422,
    (f) =>
      `Quote ${f.quote_id} is not accepted, and only an accepted price can be raised. Accept it, or make a new quote.`,
  ),
  quote_reversed: answer<{ quote_id: string }>(
    422,
    (f) => `Quote ${f.quote_id} was reversed, whole or in part, and is requoted no more. Make a new quote.`,
  ),
  requote_lower: answer<{ accepted: string; asked: string; currency: string }>(
    422,
    (f) =>
      `The price would be ${f.asked} ${f.currency}, and ${f.accepted} is accepted already: a requote never lowers. ` +
      'What must be given back is reversed.',
  ),
  requote_stale: answer<{ requote_id: string; quote_id: string }>(
    409,
    (f) =>
      `Requote ${f.requote_id} starts from a price of quote ${f.quote_id} that is no longer the last accepted one. ` +
      'Make a new requote.',
  ),
  recorded_otherwise: answer<{ id: string }>(
    409,
    (f) => `The ledger has ${f.id} from an import, not from an acceptance here. Ask finance which of the two is right.`,
  ),
  idempotency_key_reused: answer<{ key: string }>(
    409,
    (f) => `The Idempotency-Key ${f.key} was used for another request. Use a new key for a new request.`,
  ),
  ledger_busy: answer<{ retry_after: number }>(
    503,
    () => 'The ledger is busy with a month-close. Nothing was recorded; send the same request again in a few seconds.',
  ),
} as const;
