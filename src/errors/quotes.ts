/** Refusals about quotes, requotes and a partner's documents, which only the HTTP API returns. */
import { plural } from '#text';
import { defineAnswer } from './definition.ts';

export const QUOTES = {
  quote_unknown: defineAnswer<{ quote_id: string }>(404, (f) => `No such quote: ${f.quote_id}. Check the id.`),
  requote_unknown: defineAnswer<{ requote_id: string }>(404, (f) => `No such requote: ${f.requote_id}. Check the id.`),
  events_archived: defineAnswer<{ after: number }>(
    410,
    (f) =>
      `Events up to ${f.after} belong to old months and are not available any more. Read on with after=${f.after}.`,
  ),
  invoice_unknown: defineAnswer<{ number: string }>(
    404,
    (f) => `You have no document ${f.number}. Check the number, or see GET /api/v1/invoices.`,
  ),
  pdf_not_ready: defineAnswer<{ number: string; retry_after: number }>(
    503,
    (f) => `The PDF of ${f.number} has not been rendered yet. Retry in ${plural(f.retry_after, 'second')}.`,
  ),
  e_invoice_unknown: defineAnswer<{ number: string }>(
    404,
    (f) => `${f.number} has no e-invoice: none was requested when it was issued, or it has not been sent yet.`,
  ),
  policy_unknown: defineAnswer<{ policy_id: string }>(
    404,
    (f) => `No such policy: ${f.policy_id}. Use a policy that is configured for your account.`,
  ),
  policy_not_priced: defineAnswer<{ policy_id: string }>(
    422,
    (f) => `Policy ${f.policy_id} has no price. Contact us to configure one.`,
  ),
  partner_inactive: defineAnswer<{ partner_id: string }>(
    422,
    (f) => `Partner ${f.partner_id} is inactive and cannot create or accept quotes. Contact us to activate it.`,
  ),
  policy_inactive: defineAnswer<{ policy_id: string }>(
    422,
    (f) => `Policy ${f.policy_id} is inactive, so nothing can be quoted or accepted under it. Use another policy.`,
  ),
  price_too_large: defineAnswer<{ currency: string; largest: string }>(
    422,
    (f) => `The price would exceed ${f.largest} ${f.currency}, the largest price we quote. Insure less, or contact us.`,
  ),
  policy_price_exceeded: defineAnswer<{
    policy_id: string;
    price: string;
    currency: string;
    largest: string;
    in: string;
  }>(
    422,
    (f) =>
      `The price would come to ${f.price} ${f.currency}, above ${f.largest} ${f.in}, the limit of policy ` +
      `${f.policy_id}. Insure less, or ask us to raise the limit.`,
  ),
  price_too_small: defineAnswer<{ price: string; least: string; currency: string }>(
    422,
    (f) =>
      `The price would be ${f.price} ${f.currency}, but your payment processor accepts no charge below ${f.least} ` +
      `${f.currency}. Quote a higher insured amount, or ask us for a minimum price of ${f.least} in this policy.`,
  ),
  increment_too_small: defineAnswer<{ increment: string; least: string; currency: string }>(
    422,
    (f) =>
      `The price would rise by ${f.increment} ${f.currency}, which cannot be split: your payment processor accepts no ` +
      `charge below ${f.least} ${f.currency}. Requote when the price rises by that much, or keep the accepted price.`,
  ),
  quote_not_accepted: defineAnswer<{ quote_id: string }>(
    422,
    (f) =>
      `Quote ${f.quote_id} has not been accepted: there is nothing to requote or reverse. Accept it, or create a new quote.`,
  ),
  quote_archived: defineAnswer<{ quote_id: string }>(
    409,
    (f) =>
      `The rows of quote ${f.quote_id} may be in the archive. Send the reversal itself: it becomes a late request.`,
  ),
  late_request_unknown: defineAnswer<{ request_id: string }>(404, (f) => `You have no late request ${f.request_id}.`),
  quote_reversed: defineAnswer<{ quote_id: string }>(
    422,
    (f) => `Quote ${f.quote_id} has been reversed and can no longer be requoted. Create a new quote.`,
  ),
  quote_expired: defineAnswer<{ id: string; expired_at: string }>(
    422,
    (f) => `${f.id} could only be accepted until ${f.expired_at}. Ask for a new price.`,
  ),
  requote_lower: defineAnswer<{ accepted: string; asked: string; currency: string }>(
    422,
    (f) =>
      `A requote cannot lower the price: it would be ${f.asked} ${f.currency}, and ${f.accepted} ${f.currency} has ` +
      'been accepted. Use a reversal to return the difference.',
  ),
  requote_stale: defineAnswer<{ requote_id: string; quote_id: string }>(
    409,
    (f) =>
      `Requote ${f.requote_id} is out of date: the accepted price of quote ${f.quote_id} has changed. Requote again.`,
  ),
  reversal_reused: defineAnswer<{ reversal_id: string; quote_id: string }>(
    409,
    (f) =>
      `Reversal ${f.reversal_id} was already sent with different content, for quote ${f.quote_id}. ` +
      'Use a new reversal_id for each reversal.',
  ),
  reversal_exceeds: defineAnswer<{ quote_id: string; reason: string }>(
    422,
    (f) =>
      `A reversal cannot exceed what is left of quote ${f.quote_id}: ${f.reason}. ` +
      'The reversal.recorded events of the quote show what was already reversed; reverse no more than the rest.',
  ),
  recorded_otherwise: defineAnswer<{ id: string }>(
    409,
    (f) => `${f.id} was imported into the ledger, not accepted through this API. Ask finance which record is correct.`,
  ),
  idempotency_key_reused: defineAnswer<{ key: string }>(
    409,
    (f) => `The Idempotency-Key ${f.key} was used for a different request. Use a new key for each new request.`,
  ),
  ledger_busy: defineAnswer<{ retry_after: number }>(
    503,
    (f) =>
      'The ledger is locked by a month close or another import. Nothing was recorded. Retry in ' +
      `${plural(f.retry_after, 'second')}.`,
  ),
} as const;
