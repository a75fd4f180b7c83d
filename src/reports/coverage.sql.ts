import { query, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';
import type { Scope } from '../people/scope.ts';

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
export interface CoverageQuestion {
  readonly asOf: string | undefined;
  readonly scope?: Scope;
}

/**
 * The rows that each closed month bills. If the month's first documents bill as many rows as its close counted, no rows
 * are read. If a document is missing, the month's rows show for which partner the missing document was. The SQL is for
 * use inside a WITH.
 */
const BILLED = `months AS (
       SELECT month, previous, entries FROM closed_months
       WHERE :asOf::date IS NULL OR issued_on <= :asOf::date
     ), whole AS MATERIALIZED (
       SELECT m.month::text FROM months m LEFT JOIN (
         SELECT month, sum(entries) AS entries FROM documents
         WHERE purpose = 'month' AND replaces IS NULL GROUP BY month) AS d USING (month)
       WHERE m.entries = coalesce(d.entries, 0)
     ), billed AS (
       SELECT d.month::text, d.partner_id, d.currency, d.arrangement, d.entries FROM documents d
       WHERE d.purpose = 'month' AND d.replaces IS NULL AND d.month IN (SELECT month FROM whole)
         AND (:scope::text[] IS NULL OR d.partner_id = ANY (:scope::text[]))
       UNION ALL
       SELECT m.month::text, e.partner_id, e.currency, e.arrangement, e.entries
       FROM (SELECT * FROM months WHERE month NOT IN (SELECT month FROM whole)) AS m
       CROSS JOIN LATERAL (
         SELECT partner_id, currency, arrangement, count(*) AS entries FROM ledger_rows
         WHERE posted_month > coalesce(m.previous, '') AND posted_month <= m.month
           AND (:scope::text[] IS NULL OR partner_id = ANY (:scope::text[]))
         GROUP BY partner_id, currency, arrangement) AS e
     ), live AS MATERIALIZED (
       SELECT month, partner_id, currency, arrangement, number, series, sequence FROM live_documents
       WHERE purpose = 'month' AND (:scope::text[] IS NULL OR partner_id = ANY (:scope::text[]))
     )`;

/** The condition that a document d bills the group b, a row of `billed`. */
const DOCUMENT = `d.month = b.month AND d.partner_id = b.partner_id AND d.currency = b.currency
         AND d.arrangement = b.arrangement`;

export const readCells = (
  tx: Transaction,
  given: { asOf: string | null; scope: Scope },
): Promise<(CoverageCell & { partner_id: string })[]> =>
  query(
    tx,
    `WITH ${BILLED}
     SELECT p.partner_id, b.month, sum(b.entries)::bigint AS entries,
            CASE WHEN bool_and(d.number IS NOT NULL) THEN 'document' WHEN b.month IS NOT NULL THEN 'gap' END AS state,
            coalesce(array_agg(d.number ORDER BY d.series, d.sequence) FILTER (WHERE d.number IS NOT NULL),
              '{}') AS documents
     FROM partners p LEFT JOIN billed b USING (partner_id) LEFT JOIN live d ON ${DOCUMENT}
     WHERE :scope::text[] IS NULL OR p.partner_id = ANY (:scope::text[])
     GROUP BY p.partner_id, b.month ORDER BY p.partner_id`,
    given,
  );

export const readClosedMonths = (tx: Transaction, asOf: string | null): Promise<{ month: Month }[]> =>
  query(tx, `SELECT month FROM closed_months WHERE :asOf::date IS NULL OR issued_on <= :asOf::date ORDER BY month`, {
    asOf,
  });

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
