/** The check of the items stored as open in closed books. */
import { inMonth } from './query.ts';

/**
 * The items stored as open at a month's end follow from those of the previous month's end and from what was issued,
 * received, settled or taken back during the month. The items of each month are therefore proved by the items of the
 * month before.
 */
export const OPEN_ITEMS_OF_CLOSED_BOOKS = `closes AS (
  SELECT month, previous FROM book_closes WHERE ${inMonth('month')}
), of_documents (id, entry_on, amount) AS (
  SELECT document_id, entry_on, amount FROM balance_changes
  UNION ALL
  -- Voids are applied below: a void document is never open, regardless of what was applied to it or released.
  SELECT document_id, undone_on, -amount FROM balance_changes WHERE undone AND changes <> 'amount_due'
), of_cash (id, partner_id, entry_on, amount) AS (
  SELECT payment_id, partner_id, entry_on, amount FROM cash_changes
  UNION ALL
  SELECT payment_id, partner_id, undone_on, -amount FROM cash_changes WHERE undone
), moved AS (
  -- Grouped by the month of the books. The first month includes everything before it, and no later month is missing.
  SELECT 'document' AS what, id, NULL AS partner_id,
         greatest(to_char(entry_on, 'YYYY-MM') COLLATE "C", (SELECT min(month) FROM book_closes)) AS month,
         sum(amount) AS amount
  FROM of_documents GROUP BY id, 4
  UNION ALL
  SELECT 'payment', id, partner_id,
         greatest(to_char(entry_on, 'YYYY-MM') COLLATE "C", (SELECT min(month) FROM book_closes)), sum(amount)
  FROM of_cash GROUP BY id, partner_id, 4
), stored AS (
  SELECT 'document' AS what, document_id AS id, NULL AS partner_id, month, balance AS amount FROM book_open_documents
  UNION ALL
  SELECT 'payment', payment_id, partner_id, month, amount FROM book_unapplied_cash
), compared AS (
  SELECT c.month, m.what, m.id, m.partner_id, m.amount AS found, 0 AS stored
  FROM closes c JOIN moved m ON m.month = c.month
  UNION ALL
  SELECT c.month, s.what, s.id, s.partner_id, s.amount, 0 FROM closes c JOIN stored s ON s.month = c.previous
  UNION ALL
  SELECT c.month, s.what, s.id, s.partner_id, 0, s.amount FROM closes c JOIN stored s ON s.month = c.month
), inspected AS (
  SELECT c.month, c.what, c.id, c.partner_id,
         CASE WHEN v.document_id IS NULL THEN sum(c.found) ELSE 0 END AS found, sum(c.stored) AS stored
  FROM compared c
  LEFT JOIN voids v ON c.what = 'document' AND v.document_id = c.id
                   AND to_char(v.entry_on, 'YYYY-MM') COLLATE "C" <= c.month
  GROUP BY c.month, c.what, c.id, c.partner_id, v.document_id
), differences AS (
  SELECT format('%s %s at the end of %s', i.what, coalesce(d.number, i.id::text), i.month) AS subject,
         format('was stored as open with %s; by the facts it was %s', trim_scale(i.stored),
                trim_scale(i.found)) AS detail
  FROM inspected i LEFT JOIN documents d ON i.what = 'document' AND d.document_id = i.id
  WHERE i.found <> i.stored
)`;
