-- The events of a partner's quotes and documents, in one order per partner. Partners read these events with GET
-- /api/v1/events, or receive them by webhook.
--
-- Recording a ledger row or fact writes nothing here. partner_events is an index of rows and facts in the order of
-- publishing (src/partner-events/publish.ts).

CREATE FUNCTION row_event_type(kind text) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql
RETURN CASE kind WHEN 'quote_accepted' THEN 'quote.accepted'
                 WHEN 'requote_accepted' THEN 'requote.accepted'
                 ELSE 'reversal.recorded' END;

-- The facts that are published to partners, with their content. Internal matters are excluded: holds, write-offs, bank
-- charges, the reasons for all of these, suggestions, and unapplied cash.
CREATE VIEW partner_event_facts (log_no, partner_id, type, recorded_at, data) AS
SELECT d.log_no, d.partner_id, d.document || '.issued', d.issued_at,
       jsonb_build_object('number', d.number, 'document', d.document, 'purpose', d.purpose, 'month', d.month,
         'currency', d.currency, 'invoiceAmount', d.invoice_amount::text, 'credit_applied', d.credit_applied::text,
         'amount_due', (CASE d.document WHEN 'statement' THEN 0 ELSE d.gross - d.credit_applied END)::text,
         'issued_on', d.issued_on, 'due_on', d.due_on, 'replaces', r.number, 'credits', c.number)
       || CASE WHEN EXISTS (SELECT FROM document_taxes t WHERE t.document_id = d.document_id)
          THEN jsonb_build_object('tax', d.tax::text, 'gross', d.gross::text) ELSE '{}' END
FROM documents d LEFT JOIN documents r ON r.document_id = d.replaces LEFT JOIN documents c ON c.document_id = d.credits
UNION ALL
SELECT a.log_no, d.partner_id, 'document.sent', a.ended_at,
       jsonb_build_object('number', d.number, 'document', d.document, 'month', d.month, 'to', to_jsonb(a.recipients))
FROM email_attempts a JOIN emails e USING (email_id) JOIN documents d ON d.document_id = e.document_id
WHERE a.outcome = 'sent'
UNION ALL
SELECT v.log_no, d.partner_id, 'document.voided', v.recorded_at,
       jsonb_build_object('number', d.number, 'document', d.document, 'month', d.month, 'voided_on', v.voided_on)
FROM voids v JOIN documents d USING (document_id)
UNION ALL
SELECT f.log_no, a.partner_id, f.type, f.recorded_at,
       jsonb_build_object('number', d.number, 'currency', a.currency, 'amount', a.amount::text, 'method', p.method,
         'received_on', p.received_on)
FROM (SELECT log_no, recorded_at, payment_application_id, 'payment.applied' AS type FROM payment_applications
      UNION ALL
      SELECT log_no, recorded_at, payment_application_id, 'payment.unapplied' FROM payment_unapplications) AS f
JOIN payment_applications a USING (payment_application_id) JOIN documents d USING (document_id)
JOIN payments p ON p.payment_id = a.payment_id
UNION ALL
SELECT f.log_no, d.partner_id, f.type, f.recorded_at,
       jsonb_build_object('number', d.number, 'credit_note', n.number, 'currency', d.currency, 'amount', a.amount::text)
FROM (SELECT log_no, recorded_at, credit_application_id, 'credit.applied' AS type FROM credit_applications
      UNION ALL
      SELECT log_no, recorded_at, credit_application_id, 'credit.unapplied' FROM credit_releases) AS f
JOIN credit_applications a USING (credit_application_id) JOIN documents d ON d.document_id = a.invoice_id
JOIN documents n ON n.document_id = a.credit_note_id
UNION ALL
SELECT f.log_no, r.partner_id, f.type, f.recorded_at,
       jsonb_build_object('credit_note', n.number, 'currency', r.currency, 'amount', r.amount::text, 'method', r.method,
         'refunded_on', r.refunded_on)
FROM (SELECT log_no, recorded_at, credit_refund_id, 'credit.refunded' AS type FROM credit_refunds
      UNION ALL
      SELECT log_no, recorded_at, credit_refund_id, 'credit.refund_returned' FROM credit_refund_returns) AS f
JOIN credit_refunds r USING (credit_refund_id) JOIN documents n USING (document_id)
UNION ALL
SELECT r.log_no, h.partner_id, 'reversal.rejected', r.recorded_at,
       jsonb_build_object('reversal_id', h.reversal_id, 'request_id', h.held_row_id, 'quote_id', h.quote_id,
         'requote_id', h.requote_id, 'currency', h.currency, 'spotPrice', h.spot_price::text,
         'partnerCut', h.partner_cut::text, 'invoiceAmount', h.invoice_amount::text, 'reason', r.reason)
FROM held_row_decisions r JOIN held_rows h USING (held_row_id)
WHERE r.decision = 'discarded' AND h.kind = 'reversal' AND h.sign <> 'held_sale'
UNION ALL
SELECT f.log_no, d.partner_id, f.type, f.recorded_at,
       jsonb_build_object('number', d.number, 'currency', d.currency, 'amount', t.amount::text)
FROM (SELECT log_no, recorded_at, invoice_dispute_id, 'dispute.opened' AS type FROM invoice_disputes
      UNION ALL
      SELECT log_no, recorded_at, invoice_dispute_id, 'dispute.closed' FROM invoice_dispute_closings) AS f
JOIN invoice_disputes t USING (invoice_dispute_id) JOIN documents d USING (document_id);

-- Positions begin with 1 for each partner, so that no partner learns the volume of other partners.
CREATE TABLE partner_events (
  partner_id text COLLATE "C" NOT NULL,
  position bigint NOT NULL CONSTRAINT partner_event_position_positive CHECK (position > 0),
  type text COLLATE "C" NOT NULL,
  -- An event has either the posted_month and entry_id of its ledger row, or the log_no of its fact.
  posted_month text COLLATE "C",
  entry_id bigint CONSTRAINT partner_event_of_row_once UNIQUE,
  -- The number of the fact, if the event has a fact.
  log_no bigint CONSTRAINT partner_event_of_fact_once UNIQUE,
  PRIMARY KEY (partner_id, position),
  CONSTRAINT partner_event_of_one_thing CHECK (
    num_nonnulls(entry_id, log_no) = 1 AND (entry_id IS NULL) = (posted_month IS NULL))
);
CALL make_append_only('partner_events');

-- The number up to which everything is published. The table has one row after the first publication.
CREATE TABLE published_marks (
  only_one boolean PRIMARY KEY DEFAULT true CONSTRAINT published_marks_only_one CHECK (only_one),
  log_no bigint NOT NULL
);
CALL grant_to_app('SELECT, INSERT, UPDATE', 'published_marks');

-- The webhook of each partner and the position up to which events were delivered. Rows are updated in place. Each
-- change by a user, and each pause, has an audit event. Secrets are not stored, but derived from a key in the
-- environment.
CREATE TABLE webhooks (
  partner_id text COLLATE "C" PRIMARY KEY REFERENCES partners,
  -- NULL: removed. The row of a removed webhook stays, so that no secret is issued twice.
  url text,
  secret_version integer NOT NULL CONSTRAINT webhook_secret_version_positive CHECK (secret_version > 0),
  -- Identifies the key that the secrets are derived from, without revealing the key.
  key_check text NOT NULL,
  -- Until this time, deliveries are also signed with the previous secret.
  previous_until timestamptz,
  -- The position of the last event that the partner answered with 2xx.
  acknowledged bigint NOT NULL CONSTRAINT webhook_acknowledged_not_negative CHECK (acknowledged >= 0),
  attempted_at timestamptz,
  -- The number of failures since the last answer with 2xx.
  failures integer NOT NULL DEFAULT 0,
  failing_since timestamptz,
  last_failure text,
  next_attempt_at timestamptz,
  paused_at timestamptz,
  CONSTRAINT webhook_failing_says_why CHECK (
    (failures > 0) = (failing_since IS NOT NULL) AND (failures > 0) = (last_failure IS NOT NULL)),
  CONSTRAINT webhook_paused_after_failures CHECK (paused_at IS NULL OR failures > 0)
);
CALL grant_to_app('SELECT, INSERT, UPDATE', 'webhooks');
CALL change_with_event('webhooks');
