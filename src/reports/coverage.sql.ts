import { querying } from '#database/transaction';
import { Month } from '#month';
import { Scope } from '#people/scope';

export type CoverageCell = Readonly<{
  month: Month;
  state: 'document' | 'no_activity' | 'gap';
  documents: readonly string[];
  entries: number;
}>;

/**
 * Asks for the months that were closed by `asOf` (`YYYY-MM-DD`, in the issuer's zone) or for all closed months, and for
 * the partners of `scope`.
 */
export type CoverageQuestion = Readonly<{
  asOf: string | undefined;
  scope?: Scope;
}>;

type CellRow = CoverageCell & Readonly<{ partner_id: string; name: string }>;

/** The rows that each closed month bills, as its close counted them, with the documents that bill them. */
export const readCells = querying<CellRow, { asOf: string | null; scope: Scope }>(`
  WITH billed AS (
    SELECT month::text, partner_id, currency, arrangement, p.entries
    FROM month_partners p JOIN closed_months m USING (month)
    WHERE (:asOf::date IS NULL OR m.issued_on <= :asOf::date)
      AND (:scope::text[] IS NULL OR p.partner_id = ANY (:scope::text[]))
  ), live AS MATERIALIZED (
    SELECT month, partner_id, currency, arrangement, number, series, sequence FROM live_documents
    WHERE purpose = 'month' AND (:scope::text[] IS NULL OR partner_id = ANY (:scope::text[]))
  )
  SELECT p.partner_id, p.name, b.month, sum(b.entries)::bigint AS entries,
         CASE WHEN bool_and(d.number IS NOT NULL) THEN 'document' WHEN b.month IS NOT NULL THEN 'gap' END AS state,
         coalesce(array_agg(d.number ORDER BY d.series, d.sequence) FILTER (WHERE d.number IS NOT NULL),
           '{}') AS documents
  FROM partners p LEFT JOIN billed b USING (partner_id)
  LEFT JOIN live d ON d.month = b.month AND d.partner_id = b.partner_id AND d.currency = b.currency
    AND d.arrangement = b.arrangement
  WHERE :scope::text[] IS NULL OR p.partner_id = ANY (:scope::text[])
  GROUP BY p.partner_id, p.name, b.month ORDER BY p.partner_id`);

export const readClosedMonths = querying<{ month: Month }, { asOf: string | null }>(
  `SELECT month FROM closed_months WHERE :asOf::date IS NULL OR issued_on <= :asOf::date ORDER BY month`,
);
