/** An acceptance from the API or from a partner's program, and its checks. */
import { Metadata } from './client.ts';
import { SplitImpossible } from './requests.ts';
import { isNamedByStripe, smallestUnit } from './smallest-unit.ts';

/**
 * An amount in major units: a decimal text, or a number from a JSON parser. A number from a JSON parser is exact,
 * because Stripe's amounts have at most eight digits.
 */
export type Decimal = string | number;

type Ids = Readonly<{
  quote_id: string;
  enrollment_id?: string | null | undefined;
  currency: string;
  /**
   * The time of acceptance, ISO 8601. If the time is missing, execution searches for each payment before creating one.
   */
  accepted_at?: string | null | undefined;
}>;

/** An accepted quote, or a requote with the fields of a quote and incremental values (7.2.2). */
export type Accepted = Ids &
  Readonly<{
    requote_id?: string | null | undefined;
    spotPrice: Decimal;
    partnerCut: Decimal;
    invoiceAmount: Decimal;
  }>;

export type AcceptedRequote = Ids &
  Readonly<{
    requote_id: string;
    incrementalSpotPrice: Decimal;
    incrementalPartnerCut: Decimal;
    incrementalInvoiceAmount: Decimal;
  }>;

/** Amounts are in the smallest unit. The currency is in capitals. */
export type Checked = Readonly<{
  quote_id: string;
  requote_id: string | undefined;
  accepted_at: string | undefined;
  currency: string;
  metadata: Metadata;
  price: string;
  share: string;
  priceUnits: number;
  shareUnits: number;
}>;

/** Throws SplitImpossible. */
export function checkAccepted(accepted: Accepted | AcceptedRequote): Checked {
  const [spotPrice, partnerCut, invoiceAmount] =
    'incrementalSpotPrice' in accepted
      ? [accepted.incrementalSpotPrice, accepted.incrementalPartnerCut, accepted.incrementalInvoiceAmount]
      : [accepted.spotPrice, accepted.partnerCut, accepted.invoiceAmount];
  const { quote_id } = accepted;
  const requote_id = accepted.requote_id ?? undefined;
  const accepted_at = accepted.accepted_at ?? undefined;
  // A requote without its id would be mistaken for the quote.
  if ('incrementalSpotPrice' in accepted) identifier('requote_id', accepted.requote_id);
  const currency = currencyOf(accepted.currency);
  const priceUnits = unitsOf(spotPrice, currency);
  const shareUnits = unitsOf(invoiceAmount, currency);
  if (shareUnits > priceUnits) {
    const message = `the share of ${invoiceAmount} is more than the price of ${spotPrice} ${currency}`;
    throw new SplitImpossible('share_too_large', message);
  }
  if (unitsOf(partnerCut, currency) + shareUnits !== priceUnits) {
    const message = `${partnerCut} and ${invoiceAmount} ${currency} do not add up to the price of ${spotPrice}`;
    throw new SplitImpossible('parts_differ', message);
  }
  return {
    ...{ quote_id, requote_id, accepted_at, currency, metadata: metadataOf(accepted) },
    ...{ price: String(spotPrice), share: String(invoiceAmount), priceUnits, shareUnits },
  };
}

/** Returns a currency in capitals; Stripe itself uses lower case. Throws SplitImpossible. */
export function currencyOf(given: string) {
  const currency = given.toUpperCase();
  if (isNamedByStripe(currency)) return currency;
  throw new SplitImpossible('currency_unknown', `Stripe accepts no payments in '${given}'`);
}

/** Throws SplitImpossible. */
export function unitsOf(amount: Decimal, currency: string) {
  const unit = smallestUnit(String(amount), currency);
  if ('reason' in unit) throw new SplitImpossible('amount_inexpressible', unit.reason);
  return unit.units;
}

/**
 * Checks an identifier. Identifiers have the same form as those of the service, because idempotency keys and searches
 * contain them. Throws SplitImpossible.
 */
export function identifier(name: string, value: string) {
  if (typeof value === 'string' && /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/.test(value)) return value;
  const message = `${name} '${value}' is not an identifier: 1 to 128 of A-Z a-z 0-9 . _ : -, with a letter or digit first`;
  throw new SplitImpossible('identifier_invalid', message);
}

/** Returns the metadata by which reconciliation finds the quote (7.3.6, 7.4.7). Throws SplitImpossible. */
export function metadataOf({
  quote_id,
  requote_id,
  enrollment_id,
}: Pick<Accepted, 'quote_id' | 'requote_id' | 'enrollment_id'>): Metadata {
  return {
    quote_id: identifier('quote_id', quote_id),
    ...(requote_id === undefined || requote_id === null ? {} : { requote_id: identifier('requote_id', requote_id) }),
    ...(enrollment_id === undefined || enrollment_id === null ? {} : { enrollment_id }),
  };
}
