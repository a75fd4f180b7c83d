/** Checks of closed books: no later fact is dated in them, and their balances have not changed. */
import { inMonth } from './query.ts';

/**
 * Every journal entry is dated on or after its event, in a month whose books were open when it was recorded. Facts are
 * numbered in the order of recording, so no clock decides which came first.
 */
export const ENTRIES_IN_OPEN_BOOKS = `inspected AS (
  SELECT f.*, (SELECT max(b.month) FROM book_closes b WHERE b.facts_to < f.log_no) AS closed
  FROM dated_facts f WHERE ${inMonth(`to_char(f.entry_on, 'YYYY-MM')`)}
), differences AS (
  SELECT format('%s %s', fact, id) AS subject,
         format('of %s is dated %s; the books were closed to %s when it was recorded', dated_on, entry_on,
                coalesce(closed, 'no month')) AS detail
  FROM inspected WHERE entry_on < dated_on OR to_char(entry_on, 'YYYY-MM') COLLATE "C" <= closed
)`;

/**
 * The balances stored for a month's end are those of the previous month's end plus the postings of the month. The
 * journal therefore still gives the same balances, month by month, as when the books were closed.
 */
export const BALANCES_OF_CLOSED_BOOKS = `closes AS (
  SELECT month, previous FROM book_closes WHERE ${inMonth('month')}
), months AS MATERIALIZED (
  -- Grouped once, however many months are compared.
  SELECT month, account, currency, amount FROM journal_months
  WHERE month > :after AND month <= coalesce(:month::text, (SELECT max(month) FROM closes))
), posted AS (
  SELECT c.month, j.account, j.currency, j.amount AS journal, 0 AS stored
  FROM closes c JOIN months j ON j.month > coalesce(c.previous, '') AND j.month <= c.month
  UNION ALL
  SELECT c.month, b.account, b.currency, b.amount, 0 FROM closes c JOIN book_balances b ON b.month = c.previous
  UNION ALL
  SELECT c.month, b.account, b.currency, 0, b.amount FROM closes c JOIN book_balances b ON b.month = c.month
), inspected AS (
  SELECT month, account, currency, sum(journal) AS journal, sum(stored) AS stored
  FROM posted GROUP BY month, account, currency
), differences AS (
  SELECT format('%s at the end of %s', account, month) AS subject,
         format('was %s %s when the books were closed; the journal now gives %s', trim_scale(stored), currency,
                trim_scale(journal)) AS detail
  FROM inspected WHERE journal <> stored
)`;

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
  SELECT payment_id, partner_id, entry_on, amount FROM payments
  UNION ALL
  SELECT payment_id, from_partner_id, entry_on, -amount FROM payment_assignments
  UNION ALL
  SELECT payment_id, partner_id, entry_on, amount FROM payment_assignments
  UNION ALL
  SELECT payment_id, partner_id, entry_on, -amount FROM payment_applications
  UNION ALL
  SELECT a.payment_id, a.partner_id, u.entry_on, a.amount
  FROM payment_unapplications u JOIN payment_applications a USING (payment_application_id)
  UNION ALL
  SELECT payment_id, partner_id, entry_on, -amount FROM payment_reversals
  UNION ALL
  SELECT r.payment_id, i.partner_id, i.entry_on, r.amount
  FROM payment_reinstatements i JOIN payment_reversals r USING (payment_reversal_id)
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
