/**
 * Days sales outstanding: open invoices ÷ what the last three billed months billed × the days of these months. A document
 * belongs to the month that it bills, not to its day of issue, so the result is independent of the day of the close.
 */
import { Amount } from '#values';

export const DSO_FORMULA =
  'Open invoices ÷ (invoices less credit notes of the last three billed months) × the days of these months';

/**
 * SQL: invoices less credit notes of these months with tax, by partner and currency, by the entries up to `:asOf`. An
 * item that an opening carried over counts with the amount that was issued, in the month of its date.
 */
export const BILLED = `billed_days AS (
       SELECT first, last, last_day(last) - (first || '-01')::date + 1 AS days
       FROM (SELECT max(month) AS last,
                    to_char((max(month) || '-01')::date - interval '2 months', 'YYYY-MM') AS first
             FROM (SELECT month::text FROM closed_months WHERE issued_on <= :asOf::date
                   UNION ALL SELECT to_char(cut_over_on, 'YYYY-MM') FROM openings
                   WHERE cut_over_on <= :asOf::date) AS billed_months) AS three
     ), billed AS (
       SELECT d.partner_id, d.currency, sum(document_sign(d.document) * coalesce(d.original_amount, d.gross)) AS amount
       FROM billed_days b JOIN documents d ON d.month BETWEEN b.first AND b.last
       WHERE d.document <> 'statement' AND d.entry_on <= :asOf::date
         AND NOT EXISTS (SELECT FROM voids v WHERE v.document_id = d.document_id AND v.entry_on <= :asOf::date)
       GROUP BY d.partner_id, d.currency
     )`;

/** `days` are those of the billed months; null before the first. */
export type Billed = Readonly<{ amount: string; days: number | null }>;

/** Null if nothing was billed. */
export function daysSalesOutstanding(open: Amount, billed: Billed | undefined) {
  if (!billed?.days) return null;
  const amount = Amount.of(billed.amount, open.currency);
  return amount.isPositive() ? open.partsOf(amount, billed.days) : null;
}
