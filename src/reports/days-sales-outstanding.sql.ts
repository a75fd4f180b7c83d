/**
 * Days sales outstanding: open invoices ÷ what the last three closed months billed × the days of these months. After the
 * first and the second close, it is one month or two. A document belongs to the month that it bills, not to its day of
 * issue, so the result is independent of the day of the close.
 */
import { Amount } from '#values';

export const DSO_FORMULA =
  'Open invoices ÷ (invoices less credit notes of the last three closed months, or fewer) × the days of these months';

/**
 * SQL: invoices less credit notes of these months with tax, by partner and currency, by the entries up to `:asOf`. What
 * the previous system billed is unknown but for the items that were open, so its months do not count. An item that was
 * carried over into a closed month counts with the amount that was issued.
 */
export const BILLED = `billed_days AS (
       SELECT first, last, last_day(last) - (first || '-01')::date + 1 AS days
       FROM (SELECT max(month)::text AS last,
                    greatest(min(month), to_char((max(month) || '-01')::date - interval '2 months', 'YYYY-MM')) AS first
             FROM closed_months WHERE issued_on <= :asOf::date) AS three
     ), billed AS (
       SELECT d.partner_id, d.currency, sum(document_sign(d.document) * coalesce(d.original_amount, d.gross)) AS amount
       FROM billed_days b JOIN documents d ON d.month BETWEEN b.first AND b.last
       WHERE d.document <> 'statement' AND d.entry_on <= :asOf::date
         AND NOT EXISTS (SELECT FROM voids v WHERE v.document_id = d.document_id AND v.entry_on <= :asOf::date)
       GROUP BY d.partner_id, d.currency
     )`;

/** `days` are those of the closed months; null before the first. */
export type Billed = Readonly<{ amount: string; days: number | null }>;

/** Null if nothing was billed. */
export function daysSalesOutstanding(open: Amount, billed: Billed | undefined) {
  if (!billed?.days) return null;
  const amount = Amount.of(billed.amount, open.currency);
  return amount.isPositive() ? open.partsOf(amount, billed.days) : null;
}
