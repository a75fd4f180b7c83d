/** The check of acceptances: their rows are what was offered. */
import { inMonth } from './query.ts';

/** An offer is not in the log. The row of an acceptance over HTTP has the policy, currency, amounts, order and cover of its offer. */
export const ROWS_AT_OFFERED_PRICES = `inspected AS (
  SELECT a.partner_id, a.posted_month, a.entry_id, a.quote_id AS own_id, q.policy_id, q.currency, q.spot_price,
         q.partner_cut, q.invoice_amount, q.order_reference, q.cover_from, q.cover_to
  FROM quote_acceptances a JOIN quotes q ON q.quote_id = a.quote_id WHERE ${inMonth('a.posted_month')}
  UNION ALL
  SELECT a.partner_id, a.posted_month, a.entry_id, a.requote_id, q.policy_id, q.currency,
         r.spot_price - r.accepted_spot_price, r.partner_cut - r.accepted_partner_cut,
         r.invoice_amount - r.accepted_invoice_amount, r.order_reference, r.cover_from, r.cover_to
  FROM requote_acceptances a JOIN requotes r ON r.requote_id = a.requote_id JOIN quotes q ON q.quote_id = a.quote_id
  WHERE ${inMonth('a.posted_month')}
), differences AS (
  SELECT format('%s of %s', a.own_id, a.partner_id) AS subject,
         format('accepted at %s = %s + %s %s; its row has %s = %s + %s %s, or another policy, order or cover',
                a.spot_price, a.partner_cut, a.invoice_amount, a.currency, e.spot_price, e.partner_cut,
                e.invoice_amount, e.currency) AS detail
  FROM inspected a
  JOIN ledger_rows e ON e.partner_id = a.partner_id AND e.posted_month = a.posted_month AND e.entry_id = a.entry_id
  WHERE (e.policy_id, e.currency, e.spot_price, e.partner_cut, e.invoice_amount)
    <> (a.policy_id, a.currency, a.spot_price, a.partner_cut, a.invoice_amount)
    OR (e.order_reference, e.cover_from, e.cover_to) IS DISTINCT FROM (a.order_reference, a.cover_from, a.cover_to)
)`;
