/** The terms on which a partner pays, in words. Pure. */
import { plural } from '#text';
import { PartnerView } from './partners.sql.ts';

type Terms = Pick<PartnerView, 'payment_terms_days' | 'payment_terms_end_of_month' | 'payment_terms_day'>;

/** Returns `30 days, end of month, next day 15 of a month`. */
export function paymentTermsText(terms: Terms, issuerDays?: number) {
  const { payment_terms_days: days, payment_terms_end_of_month: endOfMonth, payment_terms_day: day } = terms;
  const issuers = issuerDays === undefined ? "the issuer's days" : `${plural(issuerDays, 'day')} (the issuer's)`;
  return [
    days === null ? issuers : plural(days, 'day'),
    ...(endOfMonth ? ['end of month'] : []),
    ...(day === null ? [] : [`next day ${day} of a month`]),
  ].join(', ');
}
