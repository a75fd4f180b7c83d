/**
 * Checks of payments, refunds and processor events that need what the log does not have: personal texts, which the log
 * has only as commitments, payloads, and the program's comparison of bank lines.
 */
import { inMonth } from './query.ts';

/** No two payments through a link have the same processor reference. */
export const LINK_PAYMENTS_RECORDED_ONCE = `inspected AS MATERIALIZED (
  SELECT p.payment_id, p.currency, p.entry_on, t.text AS reference
  FROM payments p JOIN personal_texts t ON t.commitment = p.reference WHERE p.method = 'link'
), differences AS (
  SELECT format('payment %s', p.payment_id) AS subject,
         'has the reference of ' || string_agg(format('payment %s', o.payment_id), ', ') AS detail
  FROM inspected p JOIN inspected o USING (reference, currency) JOIN payment_balances b ON b.payment_id = o.payment_id
  WHERE o.payment_id < p.payment_id AND b.status <> 'reversed' AND ${inMonth(`to_char(p.entry_on, 'YYYY-MM')`)}
    -- A balance transaction for several quotes creates one payment for each quote that was billed.
    AND NOT EXISTS (SELECT FROM share_payments s WHERE s.payment_id = p.payment_id)
  GROUP BY p.payment_id
)`;

/**
 * The same debit may occur in two files. Two equal debits count as payments of two refunds only if their references
 * differ, or if a person stated that they are two.
 */
export const EQUAL_DEBITS_PAY_ONCE = `equals AS (
  SELECT DISTINCT n.bank_line_id, o.bank_line_id AS equal_line_id
  FROM equal_bank_lines(ARRAY(SELECT bank_line_id FROM live_refund_matches)) AS e
  JOIN live_refund_matches o ON o.bank_line_id = ANY (e.equal_ids)
  CROSS JOIN LATERAL unnest(e.line_ids) AS n (bank_line_id)
), inspected AS (
  SELECT m.bank_line_id, m.account,
         (SELECT string_agg('line ' || e.equal_line_id, ', ' ORDER BY e.equal_line_id)
          FROM equals e JOIN live_refund_matches o ON o.bank_line_id = e.equal_line_id
          WHERE e.bank_line_id = m.bank_line_id
            AND NOT coalesce(m.evidence->'apart_from' @> to_jsonb(e.equal_line_id), false)
            AND NOT coalesce(o.evidence->'apart_from' @> to_jsonb(m.bank_line_id), false)) AS equal
  FROM live_refund_matches m
), differences AS (
  SELECT format('bank line %s of %s', bank_line_id, account) AS subject,
         format('pays a refund, as does %s, which may be the same line', equal) AS detail
  FROM inspected WHERE equal IS NOT NULL
)`;

/**
 * Processor events belong to this environment. A payload matches the hash taken when it was received. A payload is
 * missing if and only if its erasure is recorded.
 */
export const PROCESSOR_EVENTS_RECORDED = `inspected AS (
  SELECT e.id, e.type, e.livemode, e.livemode <> (i.environment = 'production') AS "foreign",
         CASE WHEN e.payload IS NULL AND x.processor_event_id IS NULL
              THEN 'its data is missing, and no erasure is recorded'
              WHEN e.payload IS NOT NULL AND x.processor_event_id IS NOT NULL THEN 'its data is there, but was erased'
              WHEN payload_hash(e.payload) <> e.payload_sha256 THEN 'its data is not what was received' END AS damage
  FROM processor_events e CROSS JOIN installation i LEFT JOIN processor_event_erasures x USING (processor_event_id)
), differences AS (
  SELECT format('event %s', id) AS subject,
         format('%s, is in %s', type, CASE WHEN livemode THEN 'live mode' ELSE 'test mode' END) AS detail
  FROM inspected WHERE "foreign"
  UNION ALL
  SELECT format('event %s', id), damage FROM inspected WHERE damage IS NOT NULL
)`;
