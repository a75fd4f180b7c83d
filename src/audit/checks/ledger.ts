/** Checks of ledger rows, acceptances and closed months. */
import { inMonth, OF_MONTH } from './query.ts';

/**
 * Requotes and reversals belong to a quote of the same policy and currency and never take its sums below zero; no quote
 * is accepted twice. Only the quotes that have such rows, `changed`, are summed, one in twelve, and only those that may
 * have been accepted twice, `suspected`, counted. Summing every quote took 3.5 µs a row, this takes 2. `rows` says whose
 * quotes are looked at.
 */
const rowsWithinTheirQuotes = (rows: string, changed: string, suspected: string) => `quotes AS MATERIALIZED (
  SELECT partner_id, quote_id, sum(spot_price) AS spot_price, sum(partner_cut) AS partner_cut,
         sum(invoice_amount) AS invoice_amount, count(*) FILTER (WHERE kind = 'quote_accepted') AS acceptances,
         min(policy_id) = max(policy_id) AS one_policy, min(currency) = max(currency) AS one_currency,
         coalesce(bool_or(kind = 'quote_accepted' AND ${rows}), false) AS accepted_here
  FROM ledger_rows WHERE (partner_id, quote_id) IN (${changed})
  GROUP BY partner_id, quote_id
), suspected AS MATERIALIZED (
  ${suspected}
), repeated AS (
  SELECT partner_id, quote_id, count(*) AS acceptances FROM ledger_rows
  WHERE kind = 'quote_accepted' AND (partner_id, quote_id) IN (SELECT partner_id, quote_id FROM suspected)
  GROUP BY partner_id, quote_id HAVING count(*) > 1
  UNION
  SELECT partner_id, quote_id, acceptances FROM quotes WHERE acceptances > 1
), inspected AS (
  SELECT FROM ledger_rows WHERE kind = 'quote_accepted' AND ${rows} UNION ALL SELECT FROM quotes WHERE NOT accepted_here
), differences AS (
  SELECT format('quote %s of %s', quote_id, partner_id) AS subject,
         format('%s acceptance(s), %s, %s, sums %s %s %s', acceptances,
                CASE WHEN one_policy THEN 'one policy' ELSE 'several policies' END,
                CASE WHEN one_currency THEN 'one currency' ELSE 'several currencies' END,
                spot_price, partner_cut, invoice_amount) AS detail
  FROM quotes
  WHERE acceptances = 0 OR NOT one_policy OR NOT one_currency OR least(spot_price, partner_cut, invoice_amount) < 0
  UNION ALL
  SELECT format('quote %s of %s', quote_id, partner_id), format('is accepted %s times', acceptances) FROM repeated
)`;

/** Acceptances that have the hash of another one. Eight bytes for a quote are grouped three times as fast as its ids. */
function alike(rows: string): string {
  const hash = `hash_record_extended(ROW(partner_id, quote_id), 0)`;
  const acceptances = `FROM ledger_rows WHERE kind = 'quote_accepted' AND ${rows}`;
  return `SELECT partner_id, quote_id ${acceptances}
    AND ${hash} IN (SELECT ${hash} ${acceptances} GROUP BY 1 HAVING count(*) > 1)`;
}

export const ROWS_WITHIN_THEIR_QUOTES = rowsWithinTheirQuotes(
  'true',
  `SELECT partner_id, quote_id FROM ledger_rows WHERE kind <> 'quote_accepted'`,
  alike('true'),
);

/**
 * The same of the quotes that a month has a row of, with their rows of any month. The rows of other months pass by once,
 * half a microsecond each; to look for each quote of the month by its key took 14.
 */
export const ROWS_OF_MONTH_WITHIN_THEIR_QUOTES = rowsWithinTheirQuotes(
  OF_MONTH,
  `SELECT partner_id, quote_id FROM ledger_rows
   WHERE kind <> 'quote_accepted' AND (partner_id, quote_id) IN (SELECT partner_id, quote_id FROM ledger_rows WHERE ${OF_MONTH})`,
  `${alike(OF_MONTH)}
  UNION ALL
  SELECT partner_id, quote_id FROM ledger_rows
  WHERE kind = 'quote_accepted' AND NOT ${OF_MONTH}
    AND (partner_id, quote_id) IN (SELECT partner_id, quote_id FROM ledger_rows WHERE kind = 'quote_accepted' AND ${OF_MONTH})`,
);

/** What was accepted over HTTP is in the ledger as it was offered: same partner, ids, policy, currency and amounts. */
export const ACCEPTANCES_ARE_THEIR_ROWS = `accepted AS (
  SELECT a.partner_id, a.posted_month, a.entry_id, 'quote_accepted' AS kind, a.quote_id, NULL AS requote_id, q.policy_id,
         q.currency, q.spot_price, q.partner_cut, q.invoice_amount
  FROM quote_acceptances a JOIN quotes q ON q.quote_id = a.quote_id
  UNION ALL
  SELECT a.partner_id, a.posted_month, a.entry_id, 'requote_accepted', a.quote_id, a.requote_id, q.policy_id,
         q.currency, r.spot_price - r.accepted_spot_price, r.partner_cut - r.accepted_partner_cut,
         r.invoice_amount - r.accepted_invoice_amount
  FROM requote_acceptances a
  JOIN requotes r ON r.requote_id = a.requote_id
  JOIN quotes q ON q.quote_id = a.quote_id
), inspected AS (
  SELECT * FROM accepted WHERE ${inMonth('posted_month')}
), differences AS (
  SELECT format('%s of %s', coalesce(a.requote_id, a.quote_id), a.partner_id) AS subject,
         format('accepted at %s = %s + %s %s, in the ledger %s', a.spot_price, a.partner_cut, a.invoice_amount, a.currency,
                coalesce(format('%s = %s + %s %s', e.spot_price, e.partner_cut, e.invoice_amount, e.currency), 'nothing')) AS detail
  FROM inspected a
  LEFT JOIN ledger_rows e ON e.partner_id = a.partner_id AND e.posted_month = a.posted_month AND e.entry_id = a.entry_id
  WHERE (e.kind, e.quote_id, e.requote_id, e.policy_id, e.currency, e.spot_price, e.partner_cut, e.invoice_amount)
    IS DISTINCT FROM
        (a.kind, a.quote_id, a.requote_id, a.policy_id, a.currency, a.spot_price, a.partner_cut, a.invoice_amount)
)`;

/** Closed months are one chain without a hole, and none is closed before the one that it follows. */
export const MONTHS_FOLLOW = `inspected AS (
  SELECT m.*, p.closed_at AS previous_closed_at, p.month AS found_previous, min(m.month) OVER () AS first_month
  FROM closed_months m LEFT JOIN closed_months p ON p.month = m.previous
), differences AS (
  SELECT month AS subject, format('follows %s', coalesce(previous, 'nothing')) AS detail
  FROM inspected
  WHERE CASE WHEN month = first_month THEN previous IS NOT NULL
             ELSE found_previous IS NULL OR month <> month_after(found_previous) END
)`;
