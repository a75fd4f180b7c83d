/** Refusals about quotes, requotes and a partner's documents, which only the HTTP API returns. */
import { plural } from '#text';
import { answer } from './definition.ts';

export const QUOTES = {
  quote_unknown: answer(404, 'No such quote: {quote_id}. Check the id.'),
  requote_unknown: answer(404, 'No such requote: {requote_id}. Check the id.'),
  events_archived: answer(
    410,
    'Events up to {after} belong to old months and are not available any more. Read on with after={after}.',
  ),
  invoice_unknown: answer(404, 'You have no document {number}. Check the number, or see GET /api/v1/invoices.'),
  pdf_not_ready: answer<{ number: string; retry_after: number }>(
    503,
    (f) => `The PDF of ${f.number} has not been rendered yet. Retry in ${plural(f.retry_after, 'second')}.`,
  ),
  e_invoice_unknown: answer(
    404,
    '{number} has no e-invoice: none was requested when it was issued, or it has not been sent yet.',
  ),
  policy_unknown: answer(404, 'No such policy: {policy_id}. Use a policy that is configured for your account.'),
  policy_not_priced: answer(422, 'Policy {policy_id} has no price. Contact us to configure one.'),
  partner_inactive: answer(
    422,
    'Partner {partner_id} is inactive and cannot create or accept quotes. Contact us to activate it.',
  ),
  policy_inactive: answer(
    422,
    'Policy {policy_id} is inactive, so nothing can be quoted or accepted under it. Use another policy.',
  ),
  price_too_large: answer(
    422,
    'The price would exceed {largest} {currency}, the largest price we quote. Insure less, or contact us.',
  ),
  policy_price_exceeded: answer(422, [
    'The price would come to {price} {currency}, above {largest} {in}, the limit of policy ',
    '{policy_id}. Insure less, or ask us to raise the limit.',
  ]),
  price_too_small: answer(422, [
    'The price would be {price} {currency}, but your payment processor accepts no charge below {least} ',
    '{currency}. Quote a higher insured amount, or ask us for a minimum price of {least} in this policy.',
  ]),
  increment_too_small: answer(422, [
    'The price would rise by {increment} {currency}, which cannot be split: your payment processor accepts no ',
    'charge below {least} {currency}. Requote when the price rises by that much, or keep the accepted price.',
  ]),
  quote_not_accepted: answer(
    422,
    'Quote {quote_id} has not been accepted: there is nothing to requote or reverse. Accept it, or create a new quote.',
  ),
  quote_archived: answer(
    409,
    'The rows of quote {quote_id} may be in the archive. Send the reversal itself: it becomes a late request.',
  ),
  late_request_unknown: answer(404, 'You have no late request {request_id}.'),
  quote_reversed: answer(422, 'Quote {quote_id} has been reversed and can no longer be requoted. Create a new quote.'),
  quote_expired: answer(422, '{id} could only be accepted until {expired_at}. Ask for a new price.'),
  requote_lower: answer(422, [
    'A requote cannot lower the price: it would be {asked} {currency}, and {accepted} {currency} has ',
    'been accepted. Use a reversal to return the difference.',
  ]),
  requote_stale: answer(
    409,
    'Requote {requote_id} is out of date: the accepted price of quote {quote_id} has changed. Requote again.',
  ),
  reversal_reused: answer(409, [
    'Reversal {reversal_id} was already sent with different content, for quote {quote_id}. ',
    'Use a new reversal_id for each reversal.',
  ]),
  reversal_exceeds: answer(422, [
    'A reversal cannot exceed what is left of quote {quote_id}: {reason}. ',
    'The reversal.recorded events of the quote show what was already reversed; reverse no more than the rest.',
  ]),
  recorded_otherwise: answer(
    409,
    '{id} was imported into the ledger, not accepted through this API. Ask finance which record is correct.',
  ),
  idempotency_key_reused: answer(
    409,
    'The Idempotency-Key {key} was used for a different request. Use a new key for each new request.',
  ),
  ledger_busy: answer<{ retry_after: number }>(
    503,
    (f) =>
      'The ledger is locked by a month close or another import. Nothing was recorded. Retry in ' +
      `${plural(f.retry_after, 'second')}.`,
  ),
} as const;
