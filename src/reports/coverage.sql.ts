import { query, querying, Transaction } from '#database/transaction';
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

/** The rows that each closed month bills, as its close counted them. The SQL is for use inside a WITH. */
const BILLED = `billed AS (
       SELECT month::text, partner_id, currency, arrangement, p.entries
       FROM month_partners p JOIN closed_months m USING (month)
       WHERE (:asOf::date IS NULL OR m.issued_on <= :asOf::date)
         AND (:scope::text[] IS NULL OR p.partner_id = ANY (:scope::text[]))
     ), live AS MATERIALIZED (
       SELECT month, partner_id, currency, arrangement, number, series, sequence FROM live_documents
       WHERE purpose = 'month' AND (:scope::text[] IS NULL OR partner_id = ANY (:scope::text[]))
     )`;

/** The condition that a document d bills the group b, a row of `billed`. */
const DOCUMENT = `d.month = b.month AND d.partner_id = b.partner_id AND d.currency = b.currency
         AND d.arrangement = b.arrangement`;

export const readCells = querying<CoverageCell & { partner_id: string }, { asOf: string | null; scope: Scope }>(`
  WITH ${BILLED}
  SELECT p.partner_id, b.month, sum(b.entries)::bigint AS entries,
         CASE WHEN bool_and(d.number IS NOT NULL) THEN 'document' WHEN b.month IS NOT NULL THEN 'gap' END AS state,
         coalesce(array_agg(d.number ORDER BY d.series, d.sequence) FILTER (WHERE d.number IS NOT NULL),
           '{}') AS documents
  FROM partners p LEFT JOIN billed b USING (partner_id) LEFT JOIN live d ON ${DOCUMENT}
  WHERE :scope::text[] IS NULL OR p.partner_id = ANY (:scope::text[])
  GROUP BY p.partner_id, b.month ORDER BY p.partner_id`);

export const readClosedMonths = querying<{ month: Month }, { asOf: string | null }>(
  `SELECT month FROM closed_months WHERE :asOf::date IS NULL OR issued_on <= :asOf::date ORDER BY month`,
);

export function readGaps(
  tx: Transaction,
  { asOf, scope = null }: CoverageQuestion,
): Promise<{ partner_id: string; gaps: number }[]> {
  return query(
    tx,
    `WITH ${BILLED}
     SELECT b.partner_id, count(DISTINCT b.month) AS gaps
     FROM billed b WHERE NOT EXISTS (SELECT FROM live d WHERE ${DOCUMENT})
     GROUP BY b.partner_id ORDER BY b.partner_id`,
    { asOf: asOf ?? null, scope },
  );
}
