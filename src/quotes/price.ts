/** Prices an insured amount (contract, HTTP). All functions are pure. */
import { refuse } from '#errors/refusals';
import { Amount, amountProblem, minorDigits } from '#money';

/** The terms of a price: the policy's for a quote, the quote's for a requote. */
export type Terms = Readonly<{
  currency: string;
  price_rate: string;
  price_minimum: string;
  partner_cut_rate: string;
}>;

/** Every amount is below 10^15 (contract, Amounts). */
const LARGEST = '999999999999999';

export type Price = Readonly<{
  spotPrice: Amount;
  partnerCut: Amount;
  invoiceAmount: Amount;
}>;

/**
 * spotPrice is the insured amount × rate, at least the minimum. partnerCut is spotPrice × the cut's rate. Both
 * spotPrice and partnerCut are rounded half up to the minor unit. invoiceAmount is spotPrice less partnerCut. With the
 * same terms, a higher insured amount lowers none of the three amounts.
 */
export function priceOf(insured: Amount, terms: Terms): Price {
  const byRate = insured.timesHalfUp(terms.price_rate);
  const minimum = Amount.halfUp(terms.price_minimum, terms.currency);
  const spotPrice = byRate.isLessThan(minimum) ? minimum : byRate;
  const { currency } = terms;
  if (amountProblem(spotPrice.toString(), minorDigits(currency) as number) !== undefined) {
    throw refuse('price_too_large', { currency, largest: LARGEST });
  }
  const partnerCut = spotPrice.timesHalfUp(terms.partner_cut_rate);
  return { spotPrice, partnerCut, invoiceAmount: spotPrice.minus(partnerCut) };
}
