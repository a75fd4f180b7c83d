/**
 * What of the money that came in, or was taken back, waits for a person, and that somebody has looked at it: a bank line
 * that looks like a return of no known payment and an event that nobody could read are settled by nothing else.
 */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE payment_exception_closings (
      payment_exception_closing_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      processor_event_id bigint CONSTRAINT payment_exception_event_closed_once UNIQUE REFERENCES processor_event_outcomes,
      bank_line_id bigint CONSTRAINT payment_exception_line_closed_once UNIQUE REFERENCES bank_line_outcomes,
      reason text NOT NULL CONSTRAINT payment_exception_closing_has_reason CHECK (reason <> ''),
      recorded_at timestamptz NOT NULL,
      event_id bigint NOT NULL REFERENCES audit_events,
      CONSTRAINT payment_exception_closing_of_one_thing CHECK (num_nonnulls(processor_event_id, bank_line_id) = 1)
    )`);
  await knex.raw(`CALL make_append_only('payment_exception_closings')`);
  await knex.raw(`CALL make_fact('payment_exception_closings')`);

  // One row each: what it is, by which key a command names it, and since when it waits.
  await knex.raw(`
    CREATE VIEW payment_exceptions AS
    SELECT 'unknown_payer' AS kind, 'payment-' || b.payment_id AS exception, NULL::text AS partner_id, p.currency,
           b.unapplied AS amount, p.received_on AS since, format('by %s, reference %s', p.method, p.reference) AS reason
    FROM payment_balances b JOIN payments p USING (payment_id)
    WHERE b.partner_id IS NULL AND b.unapplied > 0
    UNION ALL
    SELECT 'suggestion', 'payment-' || b.payment_id, b.partner_id, p.currency, b.unapplied, p.received_on, s.why
    FROM payment_balances b JOIN payments p USING (payment_id)
    CROSS JOIN LATERAL (
      SELECT (array_agg(format('perhaps %s: %s', coalesce(d.number, 'the same as payment ' || s.same_as), s.evidence->>'why')
                        ORDER BY s.confidence DESC, s.payment_suggestion_id))[1] AS why
      FROM payment_suggestions s
      LEFT JOIN documents d USING (document_id)
      LEFT JOIN document_balances o USING (document_id)
      LEFT JOIN payment_balances same ON same.payment_id = s.same_as
      WHERE s.payment_id = b.payment_id
        AND CASE WHEN s.same_as IS NULL THEN o.status = 'open' ELSE same.status <> 'reversed' END) AS s
    WHERE b.partner_id IS NOT NULL AND b.unapplied > 0 AND s.why IS NOT NULL
    UNION ALL
    SELECT 'payout', 'payout-' || o.payout_id, NULL, o.currency, o.amount, o.received_on,
           'not known of which payments: ' || coalesce(nullif(l.text, ''), l.bank_reference, '')
    FROM payouts o JOIN bank_lines l USING (bank_line_id)
    WHERE NOT EXISTS (SELECT FROM payout_settlements s WHERE s.payout_id = o.payout_id)
    UNION ALL
    SELECT 'bank_line', 'line-' || o.bank_line_id, NULL, l.currency,
           CASE l.direction WHEN 'debit' THEN -l.amount ELSE l.amount END, l.bank_booked_on, o.reason
    FROM bank_line_outcomes o JOIN bank_lines l USING (bank_line_id)
    WHERE o.needs_review AND o.outcome = 'ignored'
      AND NOT EXISTS (SELECT FROM payment_exception_closings c WHERE c.bank_line_id = o.bank_line_id)
    UNION ALL
    SELECT CASE WHEN o.processor_event_id IS NULL THEN 'waiting_event' ELSE 'event' END, e.id, NULL, NULL, NULL,
           e.created::date, format('%s: %s', e.type, coalesce(o.reason, 'waits for another event'))
    FROM processor_events e LEFT JOIN processor_event_outcomes o USING (processor_event_id)
    WHERE (o.processor_event_id IS NULL OR o.outcome = 'person')
      AND NOT EXISTS (SELECT FROM payment_exception_closings c WHERE c.processor_event_id = e.processor_event_id)`);
  await knex.raw(`CALL grant_to_app('SELECT', 'payment_exceptions')`);
}
