/**
 * Checks of the journal. Both checks group the journal by month, which takes a second for a million rows, so one
 * statement runs both.
 */
import { quoteFacts } from '../../splits/reconcile.sql.ts';
import { checkQuery, type Finding, findingOf, inMonth } from './query.ts';

const JOURNAL_CHECKS = ['journal_balances', 'processor_account_ties'] as const;
export type JournalFindings = Readonly<Record<(typeof JOURNAL_CHECKS)[number], Finding>>;

const monthOf = (date: string) => `to_char(${date}, 'YYYY-MM') COLLATE "C"`;

// journal_balances: the entry of every fact balances in each currency, and is dated on or after the fact. Ledger rows
// are checked by the sums of their months. A row's three postings are its three amounts, so an unbalanced entry shows
// up as an unbalanced row (rows_balance, rows_in_their_months). Checking 3 million postings one by one took three times
// as long as the close.
//
// processor_account_ties: the amount expected from the processor, by partner and currency, is the same whether it is
// computed from quotes (as in reconcile) or from the facts. This check always covers all months. The facts agree with
// the journal, month by month. To verify one month, a direct comparison of quotes with the journal would have to group
// the rows of all months.
const SQL = `WITH months AS MATERIALIZED (
  SELECT month, control, partner_id, currency, amount FROM journal_months WHERE ${inMonth('month')}
), journal_balances AS (
  SELECT fact, log_no::text AS log_no, currency, month, sum(amount) AS off, min(entry_on) AS entry_on,
    min(dated_on) AS dated_on
  FROM journal_of_facts WHERE ${inMonth('month')}
  GROUP BY fact, log_no, currency, month
  UNION ALL
  SELECT 'month', month, currency, month, sum(amount), (month || '-01')::date, (month || '-01')::date
  FROM months GROUP BY month, currency
), journal_balances_differences AS (
  SELECT format('%s %s', fact, log_no) AS subject,
         format('debits less credits are %s %s; happened on %s, entered on %s', off, currency, dated_on,
           entry_on) AS detail
  FROM journal_balances WHERE off <> 0 OR left(entry_on::text, 7) <> month OR entry_on < dated_on
), quotes AS (
  SELECT partner_id, currency,
         sum(CASE kind WHEN 'share' THEN paid - amount WHEN 'billed' THEN -amount ELSE amount END) AS amount
  FROM (${quoteFacts('all')}) AS facts
  GROUP BY partner_id, quote_id, currency HAVING bool_or(kind NOT IN ('share', 'billed'))
), facts AS MATERIALIZED (
  SELECT posted_month AS month, partner_id, currency, sum(invoice_amount) AS amount
  FROM ledger_rows WHERE arrangement = 'connected_account' GROUP BY posted_month, partner_id, currency
  UNION ALL
  SELECT ${monthOf('r.entry_on')}, r.partner_id, r.currency, coalesce(p.amount, 0) - r.amount
  FROM share_allocations r
  LEFT JOIN (SELECT share_allocation_id, sum(amount) AS amount FROM share_payments GROUP BY share_allocation_id) AS p
    USING (share_allocation_id)
  UNION ALL
  SELECT ${monthOf('d.entry_on')}, b.partner_id, b.currency, -b.amount
  FROM missing_shares b JOIN documents d USING (document_id)
  UNION ALL
  SELECT ${monthOf('v.entry_on')}, b.partner_id, b.currency, b.amount
  FROM missing_shares b JOIN voids v USING (document_id)
), processor_account_ties AS (
  SELECT 'by quotes' AS one, 'by facts' AS other, partner_id, currency, sum(by_one) AS by_one, sum(by_other) AS by_other
  FROM (SELECT partner_id, currency, amount AS by_one, 0 AS by_other FROM quotes
        UNION ALL SELECT partner_id, currency, 0, amount FROM facts) AS of_all
  GROUP BY partner_id, currency
  UNION ALL
  SELECT 'by the facts of ' || month, 'by the journal', partner_id, currency, sum(by_one), sum(by_other)
  FROM (SELECT month, partner_id, currency, amount AS by_one, 0 AS by_other FROM facts WHERE ${inMonth('month')}
        UNION ALL
        SELECT month, partner_id, currency, 0, amount FROM months
          WHERE control = 'assets:receivable:processor') AS of_month
  GROUP BY month, partner_id, currency
), processor_account_ties_differences AS (
  SELECT format('assets:receivable:processor of %s', partner_id) AS subject,
         format('%s %s %s, %s %s', one, by_one, currency, other, by_other) AS detail
  FROM processor_account_ties WHERE by_one <> by_other
)
SELECT ${JOURNAL_CHECKS.map(findingOf).join(', ')}`;

export const checkJournal = checkQuery<JournalFindings>('check_journal', SQL);
