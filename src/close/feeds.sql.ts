import { query, queryOne, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';

export interface ExpectedFeed {
  readonly partner_id: string;
  readonly name: string;
  readonly arrived: boolean;
}

export const readExpectedFeeds = (
  tx: Transaction,
  given: { month: Month; monthsCompared: number; allowed: readonly string[] },
): Promise<ExpectedFeed[]> =>
  query(
    tx,
    // The lines of documents name the months whose rows they bill. Late rows may not be billed yet, so late rows are
    // looked up in the ledger. A scalar subquery costs one probe of the primary key for each partner and month. EXISTS
    // may read the whole ledger.
    `WITH compared AS MATERIALIZED (
       SELECT month FROM closed_months WHERE month < :month ORDER BY month DESC LIMIT :monthsCompared
     ), billed AS MATERIALIZED (
       SELECT DISTINCT d.partner_id, l.month FROM documents d JOIN document_lines l USING (document_id)
       WHERE d.month >= (SELECT min(month) FROM compared) AND l.month IN (SELECT month FROM compared)
     )
     SELECT p.partner_id, p.name,
            (SELECT true FROM ledger_rows r
             WHERE r.partner_id = p.partner_id AND r.posted_month >= :month AND r.month = :month LIMIT 1)
            IS NOT NULL AS arrived
     FROM partners p
     WHERE p.inactive_since IS NULL AND p.partner_id <> ALL (:allowed::text[])
       AND (SELECT count(*) > 0 AND bool_and((p.partner_id, c.month) IN (SELECT partner_id, month FROM billed) OR (
              SELECT true FROM ledger_rows r
              WHERE r.partner_id = p.partner_id AND r.posted_month > c.month AND r.month = c.month
              LIMIT 1) IS NOT NULL)
            FROM compared c)
     ORDER BY p.partner_id`,
    given,
  );

export const readWhetherEmpty = (tx: Transaction, month: Month): Promise<{ empty: boolean }> =>
  queryOne(
    tx,
    `SELECT (SELECT true FROM partners p
             WHERE (SELECT true FROM ledger_rows r
                    WHERE r.partner_id = p.partner_id AND r.posted_month = :month LIMIT 1) LIMIT 1) IS NULL AS empty`,
    { month },
  );
