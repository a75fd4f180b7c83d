/** Checks of ledger rows, acceptances and closed months. */
import { inMonth, OF_MONTH } from './query.ts';

/**
 * Requotes and reversals belong to a quote of the same policy and currency, and never make the quote's sums negative.
 * No quote is accepted twice. `rows` selects the rows in scope. Only `changed` quotes, which have a requote or reversal
 * (about one in twelve), are summed. Only `suspected` quotes, which may have been accepted twice, are counted. This
 * takes 2 µs per row instead of 3.5.
 */
const rowsWithinTheirQuotes = (rows: string, changed: string, suspected: string) => `quotes AS MATERIALIZED (
  SELECT partner_id, quote_id, sum(spot_price) AS spot_price, sum(partner_cut) AS partner_cut,
         sum(invoice_amount) AS invoice_amount, count(*) FILTER (WHERE kind = 'quote_accepted') AS acceptances,
         min(policy_id) = max(policy_id) AS one_policy, min(currency) = max(currency) AS one_currency,
         coalesce(bool_or(kind = 'quote_accepted' AND ${rows}), false) AS accepted_here
  FROM ledger_rows WHERE (partner_id, quote_id) IN (${changed})
  GROUP BY partner_id, quote_id
),
-- Grouping by the 8-byte hash is three times as fast as by the ids.
accepted AS MATERIALIZED (
  SELECT coalesce(sum(rows), 0)::bigint AS rows, array_agg(hash) FILTER (WHERE rows > 1) AS shared
  FROM (SELECT ${HASH} AS hash, count(*) AS rows ${acceptances(rows)} GROUP BY 1) AS hashes
), suspected AS MATERIALIZED (
  ${suspected}
), repeated AS (
  SELECT partner_id, quote_id, count(*) AS acceptances FROM ledger_rows
  WHERE kind = 'quote_accepted' AND (partner_id, quote_id) IN (SELECT partner_id, quote_id FROM suspected)
  GROUP BY partner_id, quote_id HAVING count(*) > 1
  UNION
  SELECT partner_id, quote_id, acceptances FROM quotes WHERE acceptances > 1
), counted AS (
  SELECT (SELECT rows FROM accepted) + (SELECT count(*) FROM quotes WHERE NOT accepted_here) AS items
), differences AS (
  SELECT format('quote %s of %s', quote_id, partner_id) AS subject,
         format('accepted %s times, %s, %s, sums %s %s %s', acceptances,
                CASE WHEN one_policy THEN 'one policy' ELSE 'several policies' END,
                CASE WHEN one_currency THEN 'one currency' ELSE 'several currencies' END,
                spot_price, partner_cut, invoice_amount) AS detail
  FROM quotes
  WHERE acceptances = 0 OR NOT one_policy OR NOT one_currency OR least(spot_price, partner_cut, invoice_amount) < 0
  UNION ALL
  SELECT format('quote %s of %s', quote_id, partner_id), format('is accepted %s times', acceptances) FROM repeated
)`;

const HASH = `hashtextextended(quote_id, hashtextextended(partner_id, 0))`;
const acceptances = (rows: string) => `FROM ledger_rows WHERE kind = 'quote_accepted' AND ${rows}`;

/** Acceptances that share a hash with another acceptance. */
const sharingAHash = (rows: string) =>
  `SELECT partner_id, quote_id ${acceptances(rows)} AND ${HASH} IN (SELECT unnest(shared) FROM accepted)`;

export const ROWS_WITHIN_THEIR_QUOTES = rowsWithinTheirQuotes(
  'true',
  `SELECT partner_id, quote_id FROM ledger_rows WHERE kind <> 'quote_accepted'`,
  sharingAHash('true'),
);

/**
 * The same check for the quotes that have a row in the month, including the rows of these quotes in other months.
 * Scanning the rows of other months once takes 0.5 µs per row; looking up each quote by its key took 14 µs.
 */
export const ROWS_OF_MONTH_WITHIN_THEIR_QUOTES = rowsWithinTheirQuotes(
  OF_MONTH,
  `SELECT partner_id, quote_id FROM ledger_rows
   WHERE kind <> 'quote_accepted'
     AND (partner_id, quote_id) IN (SELECT partner_id, quote_id FROM ledger_rows WHERE ${OF_MONTH})`,
  `${sharingAHash(OF_MONTH)}
  UNION ALL
  SELECT partner_id, quote_id FROM ledger_rows
  WHERE kind = 'quote_accepted' AND NOT ${OF_MONTH}
    AND (partner_id, quote_id) IN (SELECT partner_id, quote_id FROM ledger_rows
                                   WHERE kind = 'quote_accepted' AND ${OF_MONTH})`,
);

/**
 * An acceptance over HTTP has a ledger row with the partner, ids, policy, currency and amounts of the accepted offer.
 * The row was recorded by the client's event.
 */
export const ACCEPTANCES_MATCH_ROWS = `accepted AS (
  SELECT a.partner_id, a.posted_month, a.entry_id, a.client_id, 'quote_accepted' AS kind, a.quote_id,
         NULL AS requote_id,
         q.policy_id, q.currency, q.spot_price, q.partner_cut, q.invoice_amount
  FROM quote_acceptances a JOIN quotes q ON q.quote_id = a.quote_id
  UNION ALL
  SELECT a.partner_id, a.posted_month, a.entry_id, a.client_id, 'requote_accepted', a.quote_id, a.requote_id,
         q.policy_id, q.currency, r.spot_price - r.accepted_spot_price, r.partner_cut - r.accepted_partner_cut,
         r.invoice_amount - r.accepted_invoice_amount
  FROM requote_acceptances a
  JOIN requotes r ON r.requote_id = a.requote_id
  JOIN quotes q ON q.quote_id = a.quote_id
), inspected AS (
  SELECT * FROM accepted WHERE ${inMonth('posted_month')}
), differences AS (
  SELECT format('%s of %s', coalesce(a.requote_id, a.quote_id), a.partner_id) AS subject,
         format('accepted at %s = %s + %s %s; the ledger has %s', a.spot_price, a.partner_cut, a.invoice_amount,
                a.currency,
                coalesce(
                  format('%s = %s + %s %s', e.spot_price, e.partner_cut, e.invoice_amount, e.currency),
                  'no such row')) AS detail
  FROM inspected a
  LEFT JOIN ledger_rows e ON e.partner_id = a.partner_id AND e.posted_month = a.posted_month AND e.entry_id = a.entry_id
  WHERE (e.kind, e.quote_id, e.requote_id, e.policy_id, e.currency, e.spot_price, e.partner_cut, e.invoice_amount)
    IS DISTINCT FROM
        (a.kind, a.quote_id, a.requote_id, a.policy_id, a.currency, a.spot_price, a.partner_cut, a.invoice_amount)
  UNION ALL
  SELECT format('%s of %s', coalesce(a.requote_id, a.quote_id), a.partner_id),
         format('accepted by client %s; the event of its row is %s of %s by client %s', a.client_id,
                coalesce(v.action, '?'), coalesce(v.subject, '?'), coalesce(v.details->>'client_id', '?'))
  FROM inspected a
  JOIN ledger_rows e ON e.partner_id = a.partner_id AND e.posted_month = a.posted_month AND e.entry_id = a.entry_id
  LEFT JOIN audit_events v ON v.event_id = e.event_id
  WHERE (v.action, v.subject, v.details->>'client_id', v.details->>'requote_id') IS DISTINCT FROM
        (CASE WHEN a.requote_id IS NULL THEN 'quote.accept' ELSE 'requote.accept' END, a.quote_id, a.client_id,
         a.requote_id)
)`;

/** Closed months form one chain without gaps. */
export const MONTHS_CONTIGUOUS = `inspected AS (
  SELECT m.*, p.closed_at AS previous_closed_at, p.month AS found_previous, min(m.month) OVER () AS first_month
  FROM closed_months m LEFT JOIN closed_months p ON p.month = m.previous
), differences AS (
  SELECT month AS subject, format('follows %s', coalesce(previous, 'no month')) AS detail
  FROM inspected
  WHERE CASE WHEN month = first_month THEN previous IS NOT NULL
             ELSE found_previous IS NULL OR month <> month_after(found_previous) END
)`;
