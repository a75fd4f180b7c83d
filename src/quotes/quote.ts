/**
 * Makes quotes and requotes: offered prices, which never change. A quote is not in the ledger until it is accepted.
 * Refusals: policy_unknown, policy_not_priced, partner_inactive, policy_inactive, price_too_large (the settings'
 * limit), policy_price_exceeded, price_too_small, quote_unknown, requote_unknown, quote_not_accepted, quote_reversed,
 * requote_lower, increment_too_small, quote_archived, request_invalid.
 */
import { randomUUID } from 'node:crypto';
import { DateTime } from 'luxon';
import { Settings } from '#config/settings';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { OrderFacts } from '#ledger/rows.sql';
import { Amount, amountProblem, isZero, minorDigits } from '#money';
import { PROCESSOR } from '#processors/processors';
import { priceOf, Terms } from './price.ts';
import {
  Caller,
  hasArchivedRows,
  insertQuote,
  insertRequote,
  isConnected,
  PolicyLimit,
  QuoteFacts,
  QuoteState,
  RequoteFacts,
  RequoteState,
  readPolicyTerms,
  readQuotes,
  readRequotes,
} from './quotes.sql.ts';

export type PartnerCall = Readonly<{
  caller: Caller;
  now: DateTime<true>;
  /** Whether the quote was looked up in the archive, and its rows are in the database. */
  recalled?: true;
}>;

type AskedPrice = PartnerCall &
  Readonly<{
    rules: Settings['quotes'];
  }>;

const expiryOf = ({ now, rules }: AskedPrice) =>
  rules.valid_days === null ? null : now.toUTC().plus({ days: rules.valid_days }).toISO();

function allowedPrice(insured: Amount, terms: Terms, { largest_price: limits }: Settings['quotes']) {
  const price = priceOf(insured, terms);
  const { currency } = terms;
  const largest = limits[currency] ?? limits['*'];
  if (largest !== undefined && Amount.of(largest, currency).isLessThan(price.spotPrice)) {
    throw refuse('price_too_large', { currency, largest });
  }
  return price;
}

/** Refuses a price above the policy's largest price, or in a different currency, which cannot be compared. */
export function refuseAbove(
  { policy_id, largest_price, partner_currency }: PolicyLimit & { readonly policy_id: string },
  price: Amount,
) {
  if (largest_price === null) return;
  const { currency } = price;
  if (currency === partner_currency && !Amount.of(largest_price, currency).isLessThan(price)) return;
  const largest = Amount.of(largest_price, partner_currency).toString();
  throw refuse('policy_price_exceeded', {
    policy_id,
    price: price.toString(),
    currency,
    largest,
    in: partner_currency,
  });
}

/** The order of a request or of a row. What a request does not state is null. */
export const orderOf = (given: { readonly [Fact in keyof OrderFacts]?: string | null | undefined }): OrderFacts => ({
  order_reference: given.order_reference ?? null,
  cover_from: given.cover_from ?? null,
  cover_to: given.cover_to ?? null,
});

export async function makeQuote(
  tx: Transaction,
  wanted: { policyId: string; insuredAmount: string; order: OrderFacts },
  { caller, now, rules }: AskedPrice,
) {
  const { partnerId, clientId } = caller;
  const { policyId } = wanted;
  const policy = await readPolicyTerms(tx, { partnerId, policyId, now: now.toISO() });
  if (policy === undefined) throw refuse('policy_unknown', { policy_id: policyId });
  refuseInactive(policy, partnerId, policyId);
  const { currency, price_rate, price_minimum, partner_cut_rate } = policy;
  if (price_rate === null || price_minimum === null) throw refuse('policy_not_priced', { policy_id: policyId });
  const terms = { currency, price_rate, price_minimum, partner_cut_rate };
  const insured = insuredAmount(wanted.insuredAmount, currency);
  const price = allowedPrice(insured, terms, rules);
  refuseAbove({ ...policy, policy_id: policyId }, price.spotPrice);
  const least = await leastAbove(tx, price.spotPrice, { partnerId, now });
  if (least !== undefined) throw refuse('price_too_small', { price: price.spotPrice.toString(), least, currency });
  const quote: QuoteFacts = {
    quote_id: `q-${randomUUID()}`,
    partner_id: partnerId,
    policy_id: policyId,
    insured_amount: insured.toString(),
    ...terms,
    spot_price: price.spotPrice.toString(),
    partner_cut: price.partnerCut.toString(),
    invoice_amount: price.invoiceAmount.toString(),
    quoted_at: now.toUTC().toISO(),
    expires_at: expiryOf({ caller, now, rules }),
    ...wanted.order,
  };
  await insertQuote(tx, { ...quote, client_id: clientId });
  return quote;
}

/**
 * Makes a price for a higher insured amount, with the quote's own terms. The increments are relative to the last
 * accepted price.
 */
export async function makeRequote(
  tx: Transaction,
  wanted: { quoteId: string; insuredAmount: string; order: OrderFacts },
  { caller, now, rules }: AskedPrice,
) {
  const { partnerId, clientId } = caller;
  const quote = await quoteOf(tx, wanted.quoteId, { caller, now });
  const { quote_id, currency } = quote;
  if (quote.accepted_at === null) throw refuse('quote_not_accepted', { quote_id });
  if (quote.reversed) throw refuse('quote_reversed', { quote_id });
  refuseInactive(quote, partnerId, quote.policy_id);
  const insured = insuredAmount(wanted.insuredAmount, currency);
  const price = allowedPrice(insured, quote, rules);
  refuseAbove(quote, price.spotPrice);
  if (quote.archived) throw refuse('quote_archived', { quote_id });
  const accepted = {
    spotPrice: Amount.of(quote.accepted_spot_price, currency),
    partnerCut: Amount.of(quote.accepted_partner_cut, currency),
    invoiceAmount: Amount.of(quote.accepted_invoice_amount, currency),
  };
  if ((['spotPrice', 'partnerCut', 'invoiceAmount'] as const).some((part) => price[part].isLessThan(accepted[part]))) {
    const asked = price.spotPrice.toString();
    throw refuse('requote_lower', { accepted: accepted.spotPrice.toString(), asked, currency });
  }
  const increment = price.spotPrice.minus(accepted.spotPrice);
  const least = await leastAbove(tx, increment, { partnerId, now });
  if (least !== undefined) throw refuse('increment_too_small', { increment: increment.toString(), least, currency });
  const requote: RequoteFacts = {
    requote_id: `rq-${randomUUID()}`,
    quote_id,
    partner_id: partnerId,
    step: quote.steps + 1,
    currency,
    insured_amount: insured.toString(),
    accepted_spot_price: accepted.spotPrice.toString(),
    accepted_partner_cut: accepted.partnerCut.toString(),
    accepted_invoice_amount: accepted.invoiceAmount.toString(),
    spot_price: price.spotPrice.toString(),
    partner_cut: price.partnerCut.toString(),
    invoice_amount: price.invoiceAmount.toString(),
    requoted_at: now.toUTC().toISO(),
    expires_at: expiryOf({ caller, now, rules }),
    ...wanted.order,
  };
  await insertRequote(tx, { ...requote, client_id: clientId });
  return requote;
}

/**
 * The processor's minimum charge, if the amount is below it. The minimum concerns only partners that route our share
 * through a connected account, because they charge each quote and requote separately. A price of zero is not charged.
 */
async function leastAbove(
  tx: Transaction,
  amount: Amount,
  { partnerId, now }: { partnerId: string; now: DateTime<true> },
) {
  const least = PROCESSOR.leastCharge(amount.currency);
  if (least === undefined || amount.isZero() || !amount.isLessThan(Amount.of(least, amount.currency))) return undefined;
  return (await isConnected(tx, { partnerId, now: now.toISO() })) ? least : undefined;
}

/** Reads the calling partner's quote. A quote of a different partner is refused like an unknown quote. */
export async function quoteOf(tx: Transaction, quoteId: string, { caller, now }: PartnerCall) {
  const [found] = await readQuotes(tx, [{ ...caller, quoteId, now: now.toISO() }]);
  const quote = found?.quote;
  if (quote === undefined) throw refuse('quote_unknown', { quote_id: quoteId });
  return quote;
}

/** Refuses a quote without a ledger row in the database, if the row may be in the archive. */
export async function refuseArchived(tx: Transaction, quoteId: string, asked: PartnerCall) {
  const { caller, now, recalled } = asked;
  const [found] = await readQuotes(tx, [{ ...caller, quoteId, now: now.toISO() }]);
  const archived = found?.quote?.archived ?? (!recalled && (await hasArchivedRows(tx, caller.partnerId)));
  if (archived) throw refuse('quote_archived', { quote_id: quoteId });
}

export async function requoteOf(
  tx: Transaction,
  requoteId: string,
  asked: PartnerCall,
): Promise<{ requote: RequoteState; quote: QuoteState }> {
  const { partnerId } = asked.caller;
  const requote = (await readRequotes(tx, [{ partnerId, requoteId }])).get(`${partnerId} ${requoteId}`);
  if (requote === undefined) throw refuse('requote_unknown', { requote_id: requoteId });
  return { requote, quote: await quoteOf(tx, requote.quote_id, asked) };
}

export function refuseInactive(
  facts: { partner_inactive: boolean; policy_inactive: boolean },
  partnerId: string,
  policyId: string,
) {
  if (facts.partner_inactive) throw refuse('partner_inactive', { partner_id: partnerId });
  if (facts.policy_inactive) throw refuse('policy_inactive', { policy_id: policyId });
}

function insuredAmount(text: string, currency: string) {
  const problem = amountProblem(text, minorDigits(currency) as number);
  const reason = problem?.reason ?? (text.startsWith('-') && !isZero(text) ? 'is below zero' : undefined);
  if (reason !== undefined) throw refuse('request_invalid', { problems: [{ path: 'insured_amount', reason }] });
  return Amount.of(text, currency);
}
