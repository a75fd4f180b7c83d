/** The figures of a delivery, and the rows that may explain why they differ from the stated ones. */
import { query, querying, Transaction } from '#database/transaction';

// Rows that are not rejected: new rows, duplicates, and rows that are held.
const DELIVERED = `s.code IS NULL
  AND NOT EXISTS (SELECT FROM findings f WHERE f.seq = s.seq AND f.code NOT IN ('duplicate', 'held'))`;

export const sumDelivered = querying<{ file: number; currency: string; entries: number; invoice_amount: string }>(`
  SELECT file, currency, count(*) AS entries, trim_scale(sum(invoice_amount)) AS invoice_amount
  FROM staged s WHERE ${DELIVERED} GROUP BY file, currency`);

export type Suspect = Readonly<{
  file: number;
  line: number;
  field: string;
  reason: string;
}>;

/**
 * Finds rows that repeat another row of the delivery, rows that together explain a difference because they equal others
 * except for their id, and otherwise rows whose amount is exactly a difference.
 */
export function findSuspects(
  tx: Transaction,
  differences: readonly Readonly<{
    file: number | null;
    currency: string | null;
    difference: string;
  }>[],
  limit: number,
): Promise<Suspect[]> {
  return query(
    tx,
    `WITH differences AS (
       SELECT * FROM json_to_recordset(:differences::json) AS d (file integer, currency text, difference numeric)
     ), delivered AS (
       SELECT s.seq, s.file, s.line, s.currency, s.invoice_amount,
              first_value(s.line) OVER same AS same_line, row_number() OVER same AS same_nth,
              first_value(s.line) OVER alike AS alike_line, row_number() OVER alike AS alike_nth
       FROM staged s WHERE ${DELIVERED}
       WINDOW same AS (PARTITION BY s.partner_id, s.kind, s.own_id ORDER BY s.seq),
              alike AS (PARTITION BY s.partner_id, s.kind, s.policy_id, s.currency, s.accepted_at, s.spot_price,
                s.partner_cut, s.invoice_amount, s.enrollment_id, s.order_reference ORDER BY s.seq)
     ), judged AS (
       SELECT w.*, d.currency AS of_currency, d.difference,
              sum(CASE WHEN d.currency IS NULL THEN 1 ELSE w.invoice_amount END)
                FILTER (WHERE w.alike_nth > 1) OVER (PARTITION BY d.file, d.currency) AS alike_sum
       FROM differences d
       JOIN delivered w ON (d.file IS NULL OR w.file = d.file) AND (d.currency IS NULL OR w.currency = d.currency)
       WHERE w.same_nth > 1 OR w.alike_nth > 1 OR d.currency IS NOT NULL AND w.invoice_amount = d.difference
     )
     SELECT file, line, field, reason FROM (
       SELECT DISTINCT ON (seq) seq, file, line, CASE WHEN same_nth > 1 THEN '' ELSE 'invoiceAmount' END AS field,
              CASE WHEN same_nth > 1 THEN format('repeats line %s', same_line)
                   WHEN alike_nth > 1 AND alike_sum = difference
                     THEN format('equals line %s except for its id', alike_line)
                   ELSE format('is exactly the difference in %s', of_currency) END AS reason
       FROM judged
       WHERE same_nth > 1 OR alike_sum = difference AND alike_nth > 1
         OR of_currency IS NOT NULL AND invoice_amount = difference AND alike_sum IS DISTINCT FROM difference
       ORDER BY seq, of_currency) AS named
     ORDER BY seq LIMIT :limit`,
    { differences: JSON.stringify(differences), limit },
  );
}
