/**
 * The checks of the journal, over one reading of its months: to group a million rows takes a second, and both need it.
 */
import { sendWithin, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';
import type { Finding } from './checks.ts';
import { found } from './queries.ts';

export type JournalFindings = Readonly<Record<'journal_balances' | 'processor_ties', Finding>>;

const ofMonth = (column: string) => `(CAST(:month AS text) IS NULL OR ${column} = :month)`;
const monthOf = (date: string) => `to_char(${date}, 'YYYY-MM') COLLATE "C"`;

// Balances: every fact's entry does in its currency, and none is dated before what it tells of. Rows by the sums of their
// months: the three postings of a row are its own three amounts, so that one which does not balance is a row that does
// not (rows_balance), dated within its own month (rows_in_their_months). Line by line, 3 million postings of a million
// rows took three times as long as the close that they are held against.
//
// Ties: what the journal says is to come by the processor is, month by month, what was accepted less what came of it and
// what was billed instead. What of a share pays such an invoice is of that and not of the quote.
const SQL = `WITH months AS MATERIALIZED (
  SELECT month, control, partner_id, currency, amount FROM journal_months WHERE ${ofMonth('month')}
), facts AS (
  SELECT fact, fact_id::text AS fact_id, currency, month, sum(amount) AS off, min(entry_on) AS entry_on, min(dated_on) AS dated_on
  FROM journal_of_facts WHERE ${ofMonth('month')}
  GROUP BY fact, fact_id, currency, month
), journal_balances AS (
  SELECT * FROM facts
  UNION ALL
  SELECT 'month', month, currency, month, sum(amount), (month || '-01')::date, (month || '-01')::date
  FROM months GROUP BY month, currency
), journal_balances_differences AS (
  SELECT format('%s %s', fact, fact_id) AS subject,
         format('its debits less its credits are %s %s; dated %s, entered %s', off, currency, dated_on, entry_on) AS detail
  FROM journal_balances WHERE off <> 0 OR left(entry_on::text, 7) <> month OR entry_on < dated_on
), open AS (
  SELECT posted_month AS month, partner_id, currency, sum(invoice_amount) AS amount FROM entries
  WHERE arrangement = 'connected_account' AND ${ofMonth('posted_month')} GROUP BY posted_month, partner_id, currency
  UNION ALL
  SELECT ${monthOf('r.entry_on')}, r.partner_id, r.currency, coalesce(p.amount, 0) - r.amount
  FROM routed_shares r
  LEFT JOIN (SELECT routed_share_id, sum(amount) AS amount FROM share_payments GROUP BY routed_share_id) AS p
    USING (routed_share_id)
  WHERE ${ofMonth(monthOf('r.entry_on'))}
  UNION ALL
  SELECT ${monthOf('d.entry_on')}, b.partner_id, b.currency, -b.amount
  FROM missing_shares b JOIN documents d USING (document_id) WHERE ${ofMonth(monthOf('d.entry_on'))}
  UNION ALL
  SELECT ${monthOf('v.entry_on')}, b.partner_id, b.currency, b.amount
  FROM missing_shares b JOIN voids v USING (document_id) WHERE ${ofMonth(monthOf('v.entry_on'))}
), processor_ties AS (
  SELECT month, partner_id, currency, sum(open) AS open, sum(posted) AS posted
  FROM (SELECT month, partner_id, currency, amount AS open, 0 AS posted FROM open
        UNION ALL
        SELECT month, partner_id, currency, 0, amount FROM months WHERE control = 'assets:receivable:processor') AS both_ways
  GROUP BY month, partner_id, currency
), processor_ties_differences AS (
  SELECT format('assets:receivable:processor of %s', partner_id) AS subject,
         format('%s leaves %s %s open, the journal has %s', month, open, currency, posted) AS detail
  FROM processor_ties WHERE open <> posted
)
SELECT ${['journal_balances', 'processor_ties'].map(found).join(', ')}`;

const JUDGE_JOURNAL = { name: 'judge_journal', text: SQL.replaceAll(':month', '$1') };

/** Of one closed month, or of everything. */
export async function judgeJournal(tx: Transaction, month: Month | null): Promise<JournalFindings> {
  const [judged] = (await sendWithin(tx)<JournalFindings>(JUDGE_JOURNAL, [month])) as [JournalFindings];
  return judged;
}
