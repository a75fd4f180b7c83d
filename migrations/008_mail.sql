-- The outbox contains every e-mail of any kind. An e-mail is queued before it is sent. An e-mail moves from state to
-- state, and each attempt is logged.

CREATE TABLE emails (
  email_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind text NOT NULL CONSTRAINT email_kind_known
    CHECK (kind IN ('invoice', 'credit_note', 'statement', 'reminder', 'account_statement', 'close_report', 'feed_doubts',
                    'checkpoint', 'status', 'payment_receipt', 'refund_notice', 'void_notice',
                    'instructions_changed', 'approval_request', 'approval_decision', 'security_notice')),
  document_id bigint REFERENCES documents,
  partner_id text COLLATE "C" REFERENCES partners,
  month text COLLATE "C" REFERENCES closed_months,
  day date,
  payment_id bigint,
  credit_refund_id bigint,
  void_document_id bigint REFERENCES documents
    CONSTRAINT email_void_named CHECK ((kind = 'void_notice') = (void_document_id IS NOT NULL)),
  -- The key is deferrable, because a restore fills the table of checkpoints after all facts.
  checkpoint_size bigint REFERENCES log_checkpoints DEFERRABLE,
  approval_request_id bigint,
  -- The sign-in, passkey or sign-in link that a security notice reports.
  user_event_id bigint CONSTRAINT email_user_event_named CHECK ((kind = 'security_notice') = (user_event_id IS NOT NULL)),
  -- True for an account statement of a month whose books are still open. In that case, the partner gets another
  -- statement when the books close.
  preliminary boolean NOT NULL DEFAULT false CONSTRAINT email_preliminary_statement
    CHECK (NOT preliminary OR kind = 'account_statement'),
  -- Why the e-mail was requested, or NULL for the usual e-mail of its kind, except for a document's. addressed_to is an
  -- address that a user named instead of the usual one.
  asked_for text CONSTRAINT email_asked_for_known
    CHECK (asked_for IN ('close', 'rerun', 'credit', 'resend', 'missing_shares', 'new_address')),
  addressed_to text,
  event_id bigint REFERENCES audit_events,
  message_id text NOT NULL CONSTRAINT email_message_id_once UNIQUE,
  status text NOT NULL CONSTRAINT email_status_known
    CHECK (status IN ('queued', 'sending', 'sent', 'held', 'failed', 'uncertain', 'bounced', 'withdrawn')),
  -- Why the e-mail is held, or the mail server's last reply.
  reason text,
  recipients text[],
  -- The exact bytes of the message, as long as the message may have to be sent again unchanged. Afterward only the hash
  -- is kept.
  message bytea,
  message_sha256 text,
  envelope_from text,
  attempts integer NOT NULL DEFAULT 0,
  -- The number of attempts with an unknown outcome. After the first unclear attempt, the same bytes are sent again. The
  -- second unclear attempt makes the e-mail uncertain.
  unclear_attempts integer NOT NULL DEFAULT 0,
  -- The time when a worker next checks an e-mail that is queued, held or being sent. 'infinity' means that only a run
  -- that checks all e-mails checks it.
  due_at timestamptz NOT NULL DEFAULT now(),
  queued_at timestamptz NOT NULL,
  attempted_at timestamptz,
  sent_at timestamptz,
  dismissal_reason text,
  CONSTRAINT email_of_partner UNIQUE (email_id, partner_id),
  CONSTRAINT email_document_named CHECK (
    (kind IN ('invoice', 'credit_note', 'statement')) = (document_id IS NOT NULL)),
  CONSTRAINT email_asked_for_named CHECK (
    CASE WHEN document_id IS NULL THEN asked_for IS NULL OR asked_for IN ('resend', 'new_address')
         ELSE asked_for IS NOT NULL AND asked_for <> 'new_address' END),
  CONSTRAINT email_partner_and_day_named CHECK (
    (kind IN ('reminder', 'account_statement', 'payment_receipt', 'refund_notice', 'void_notice'))
      = (partner_id IS NOT NULL)
    AND (kind IN ('reminder', 'account_statement', 'feed_doubts', 'instructions_changed')) = (day IS NOT NULL)),
  CONSTRAINT email_money_named CHECK (
    (kind = 'payment_receipt') = (payment_id IS NOT NULL) AND (kind = 'refund_notice') = (credit_refund_id IS NOT NULL)),
  CONSTRAINT email_month_named CHECK ((kind = 'close_report') = (month IS NOT NULL)),
  CONSTRAINT email_checkpoint_named CHECK ((kind = 'checkpoint') = (checkpoint_size IS NOT NULL)),
  CONSTRAINT email_approval_named CHECK (
    (kind IN ('approval_request', 'approval_decision')) = (approval_request_id IS NOT NULL)),
  CONSTRAINT email_address_for_a_resend CHECK (
    addressed_to IS NULL OR asked_for IS NOT DISTINCT FROM 'resend'),
  CONSTRAINT email_event_named CHECK (
    event_id IS NOT NULL OR kind IN ('feed_doubts', 'checkpoint', 'status')
    OR asked_for IS NOT DISTINCT FROM 'close'),
  CONSTRAINT email_in_flight_has_message CHECK (
    status <> 'sending' OR (message IS NOT NULL AND message_sha256 IS NOT NULL AND recipients IS NOT NULL)),
  CONSTRAINT email_sent_has_time CHECK (
    CASE status WHEN 'bounced' THEN true ELSE (status = 'sent') = (sent_at IS NOT NULL) END),
  CONSTRAINT email_held_has_reason CHECK (status <> 'held' OR reason IS NOT NULL),
  CONSTRAINT email_dismissed_unsent CHECK (
    dismissal_reason IS NULL OR document_id IS NULL AND status IN ('failed', 'uncertain', 'bounced', 'withdrawn'))
);
ALTER TABLE emails ALTER COLUMN message SET STORAGE EXTERNAL;

-- Each e-mail below is sent only once, except when it is resent.
CREATE UNIQUE INDEX email_of_an_issue_once ON emails (document_id) WHERE asked_for <> 'resend';
CREATE UNIQUE INDEX reminder_once ON emails (partner_id, day) WHERE kind = 'reminder' AND asked_for IS NULL;
CREATE UNIQUE INDEX account_statement_once ON emails (partner_id, day, preliminary)
  WHERE kind = 'account_statement' AND asked_for IS NULL;
-- A receipt that was withdrawn before it was sent may become due again. If a partner was named as the payer by mistake,
-- it may have received its own receipt.
CREATE UNIQUE INDEX payment_receipt_once ON emails (payment_id, partner_id)
  WHERE kind = 'payment_receipt' AND asked_for IS NULL AND status <> 'withdrawn';
CREATE UNIQUE INDEX refund_notice_once ON emails (credit_refund_id)
  WHERE kind = 'refund_notice' AND asked_for IS NULL;
CREATE UNIQUE INDEX void_notice_once ON emails (void_document_id)
  WHERE kind = 'void_notice' AND asked_for IS NULL AND status <> 'withdrawn';
CREATE UNIQUE INDEX close_report_once ON emails (month) WHERE kind = 'close_report' AND asked_for IS NULL;
-- The month is still open and therefore not in closed_months, so `day` is the first day of the month and `month` is
-- empty.
-- An e-mail is composed when it is sent, so while one waits, a second one would be the same.
CREATE UNIQUE INDEX feed_doubts_wait_once ON emails (day)
  WHERE kind = 'feed_doubts' AND asked_for IS NULL AND status IN ('queued', 'sending', 'held');
CREATE UNIQUE INDEX instructions_changed_once ON emails (event_id)
  WHERE kind = 'instructions_changed' AND asked_for IS NULL;
CREATE UNIQUE INDEX approval_email_once ON emails (kind, approval_request_id)
  WHERE approval_request_id IS NOT NULL AND asked_for IS NULL;
CREATE UNIQUE INDEX security_notice_once ON emails (user_event_id) WHERE user_event_id IS NOT NULL AND asked_for IS NULL;
CREATE UNIQUE INDEX checkpoint_email_once ON emails (checkpoint_size) WHERE kind = 'checkpoint' AND asked_for IS NULL;
-- The status is read when its e-mail is sent, so while one waits, a second one would be the same.
CREATE UNIQUE INDEX status_email_waits_once ON emails (kind) WHERE kind = 'status' AND status IN ('queued', 'sending', 'held');

-- Finds the latest e-mail of a document. Without this index, the preview of a month took 70 s in a ledger of ten years,
-- because each search read all e-mails.
CREATE INDEX emails_of_document ON emails (document_id, email_id) WHERE document_id IS NOT NULL;
CREATE INDEX emails_of_void ON emails (void_document_id) WHERE void_document_id IS NOT NULL;
CREATE INDEX emails_unfinished ON emails (status) WHERE status <> 'sent';
CREATE INDEX emails_due ON emails (due_at, email_id) WHERE status IN ('queued', 'sending', 'held');
CALL grant_to_app('SELECT, INSERT, UPDATE', 'emails');

-- Whether only a person was erased from an e-mail: '(erased)' replaces an address, or the mail server's reply with it.
CREATE FUNCTION is_erased_email(before emails, after emails) RETURNS boolean STABLE LANGUAGE sql
RETURN to_jsonb(after) - '{addressed_to,reason,recipients}'::text[] = to_jsonb(before) - '{addressed_to,reason,recipients}'::text[]
  AND after.addressed_to IS NOT DISTINCT FROM CASE after.addressed_to WHEN '(erased)' THEN '(erased)' ELSE before.addressed_to END
  AND after.reason IS NOT DISTINCT FROM CASE after.reason WHEN '(erased)' THEN '(erased)' ELSE before.reason END
  AND NOT EXISTS (SELECT FROM unnest(before.recipients, after.recipients) AS r (before, after)
                  WHERE r.after IS DISTINCT FROM r.before AND (r.before IS NULL OR r.after IS DISTINCT FROM '(erased)'));

-- What an e-mail is about, its Message-ID and whether it was sent never change.
CREATE FUNCTION refuse_rewritten_email() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF ((OLD.kind, OLD.document_id, OLD.partner_id, OLD.month, OLD.day, OLD.payment_id, OLD.credit_refund_id,
      OLD.void_document_id, OLD.checkpoint_size, OLD.approval_request_id, OLD.user_event_id, OLD.preliminary,
      OLD.asked_for, OLD.addressed_to, OLD.event_id, OLD.message_id, OLD.queued_at)
     IS DISTINCT FROM
     (NEW.kind, NEW.document_id, NEW.partner_id, NEW.month, NEW.day, NEW.payment_id, NEW.credit_refund_id,
      NEW.void_document_id, NEW.checkpoint_size, NEW.approval_request_id, NEW.user_event_id, NEW.preliminary,
      NEW.asked_for, NEW.addressed_to, NEW.event_id, NEW.message_id, NEW.queued_at)
     OR OLD.status = 'withdrawn' OR OLD.dismissal_reason IS NOT NULL
     OR (OLD.status IN ('sent', 'bounced')
         AND (NEW.status <> 'bounced' OR (OLD.recipients, OLD.message_sha256, OLD.sent_at, OLD.attempts)
                                         IS DISTINCT FROM (NEW.recipients, NEW.message_sha256, NEW.sent_at, NEW.attempts))))
     AND NOT is_erased_email(OLD, NEW)
  THEN
    PERFORM refuse('emails_facts_stay', format('e-mail %s is a fact: send again with a new one', OLD.email_id));
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER emails_facts_stay BEFORE UPDATE ON emails
  FOR EACH ROW EXECUTE FUNCTION refuse_rewritten_email();

-- While the ledger is paused, no e-mail is queued or started. An e-mail that is being sent is finished.
CALL refuse_rows_while_paused('emails');
CREATE TRIGGER not_begun_while_paused BEFORE UPDATE OF status ON emails
  FOR EACH ROW WHEN (NEW.status = 'sending' AND OLD.status <> 'sending')
  EXECUTE FUNCTION begin_recording(not_while_paused);

-- How each attempt ended, as facts. The outcome `refused` is final, `deferred` was certainly not accepted, and
-- `unclear` may have arrived.
CREATE TABLE email_attempts (
  email_id bigint NOT NULL REFERENCES emails,
  attempt integer NOT NULL,
  started_at timestamptz NOT NULL,
  ended_at timestamptz NOT NULL,
  outcome text NOT NULL CONSTRAINT email_attempt_outcome_known
    CHECK (outcome IN ('sent', 'refused', 'deferred', 'unclear')),
  reply text NOT NULL,
  kind text NOT NULL,
  message_id text NOT NULL,
  recipients text[] NOT NULL,
  message_sha256 text NOT NULL,
  pdf_sha256 text,
  PRIMARY KEY (email_id, attempt)
);
CREATE INDEX email_attempts_by_end ON email_attempts (ended_at);
CALL make_fact('email_attempts', while_paused => true);
CALL keep_personal('email_attempts', 'reply', 'recipients');

-- Bounces are reports by a server that it gave up on a recipient of an e-mail (delivery status notifications, RFC
-- 3464). An e-mail is `bounced` if its first recipient bounced, not if only a copy bounced.
CREATE TABLE email_bounces (
  email_bounce_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  email_id bigint NOT NULL REFERENCES emails,
  recipient text NOT NULL,
  -- A code such as 5.1.1 (RFC 3463). `diagnostic` is the server's message.
  status text NOT NULL CONSTRAINT email_bounce_status_form CHECK (status ~ '^[45]\.\d{1,3}\.\d{1,3}$'),
  diagnostic text NOT NULL,
  reporting_server text NOT NULL,
  report_sha256 text NOT NULL CONSTRAINT email_bounce_report_hash CHECK (report_sha256 ~ '^[0-9a-f]{64}$'),
  CONSTRAINT email_bounce_once UNIQUE (email_id, recipient)
);
CALL make_fact_of_event('email_bounces', while_paused => true);
CALL keep_personal('email_bounces', 'recipient', 'diagnostic');

-- The e-mails of documents, and the latest e-mail of each document, for views and functions of earlier migrations.
-- `delivery` is `portal` for an unsent e-mail that a later delivery through the portal made needless.
CREATE VIEW document_emails AS
SELECT email_id, document_id, asked_for, addressed_to, event_id, message_id, status, reason, recipients, message_sha256,
       attempts, unclear_attempts, queued_at, attempted_at, sent_at,
       CASE WHEN status IN ('withdrawn', 'failed', 'uncertain', 'bounced') AND EXISTS (
              SELECT FROM portal_deliveries p WHERE p.document_id = e.document_id AND p.recorded_at >= e.queued_at)
            THEN 'portal' ELSE status END AS delivery
FROM emails e WHERE document_id IS NOT NULL;

CREATE VIEW latest_emails AS
SELECT DISTINCT ON (document_id) * FROM document_emails ORDER BY document_id, email_id DESC;

-- The latest e-mail without a document for each partner and day, month, payment, refund, void,
-- checkpoint, approval request, or the status.
CREATE VIEW latest_other_emails AS
SELECT DISTINCT ON (kind, partner_id, month, day, payment_id, credit_refund_id, void_document_id, checkpoint_size,
                    approval_request_id, user_event_id)
       email_id, kind, partner_id, month, day, payment_id, credit_refund_id, void_document_id, checkpoint_size,
       approval_request_id, user_event_id, addressed_to, status, reason, recipients, queued_at, dismissal_reason
FROM emails WHERE document_id IS NULL
ORDER BY kind, partner_id, month, day, payment_id, credit_refund_id, void_document_id, checkpoint_size,
         approval_request_id, user_event_id, email_id DESC;

-- E-mails that were neither sent, withdrawn nor dismissed, if no later e-mail has the same subject matter.
CREATE VIEW unfinished_emails AS
SELECT email_id, document_id FROM emails e
WHERE status NOT IN ('sent', 'withdrawn') AND dismissal_reason IS NULL
  AND CASE WHEN document_id IS NULL THEN NOT EXISTS (
             SELECT FROM emails later
             WHERE later.email_id > e.email_id AND later.document_id IS NULL AND later.kind = e.kind
               AND (later.partner_id, later.month, later.day, later.payment_id, later.credit_refund_id,
                    later.void_document_id, later.checkpoint_size, later.approval_request_id, later.user_event_id)
                   IS NOT DISTINCT FROM (e.partner_id, e.month, e.day, e.payment_id, e.credit_refund_id,
                                         e.void_document_id, e.checkpoint_size, e.approval_request_id,
                                         e.user_event_id))
           ELSE NOT EXISTS (SELECT FROM voids v WHERE v.document_id = e.document_id) AND NOT EXISTS (
             SELECT FROM portal_deliveries p WHERE p.document_id = e.document_id AND p.recorded_at >= e.queued_at
               AND e.status IN ('failed', 'uncertain', 'bounced')) AND NOT EXISTS (
             SELECT FROM emails later WHERE later.document_id = e.document_id AND later.email_id > e.email_id) END;

-- The history of a document's e-mails: each request, each e-mail's status, the attempts before its last attempt, and
-- the notices of its void.
CREATE VIEW document_email_history AS
SELECT document_id, 6 AS rank, queued_at AS at, 'sending_asked' AS action,
       jsonb_build_object('asked_for', asked_for, 'to', addressed_to, 'message_id', message_id) AS facts, event_id
FROM document_emails
UNION ALL
SELECT e.document_id, 6.5, a.ended_at, 'attempted',
       jsonb_build_object('attempt', a.attempt::text, 'outcome', a.outcome, 'reply', personal(a.reply)), NULL
FROM email_attempts a JOIN document_emails e USING (email_id) WHERE a.attempt < e.attempts
UNION ALL
SELECT e.document_id, 7, coalesce(e.sent_at, e.attempted_at, e.queued_at), 'sending',
       jsonb_build_object('status', CASE e.status WHEN 'bounced' THEN CASE a.outcome WHEN 'sent' THEN 'sent'
                                                                                     ELSE 'uncertain' END
                                                  ELSE e.status END,
                          'to', array_to_string(e.recipients, ', '), 'attempts', e.attempts::text,
                          'reply', CASE e.status WHEN 'bounced' THEN personal(a.reply) ELSE e.reason END,
                          'sha256', e.message_sha256), NULL
FROM document_emails e LEFT JOIN email_attempts a ON a.email_id = e.email_id AND a.attempt = e.attempts
WHERE e.status <> 'queued' OR e.attempts > 0
UNION ALL
SELECT e.document_id, 7.5, b.recorded_at, 'bounced',
       jsonb_build_object('to', personal(b.recipient), 'status', b.status, 'reply', personal(b.diagnostic),
                          'server', b.reporting_server),
       b.event_id
FROM email_bounces b JOIN document_emails e USING (email_id)
UNION ALL
SELECT void_document_id, 12, coalesce(sent_at, attempted_at, queued_at), 'void_noticed',
       jsonb_build_object('status', status, 'to', array_to_string(recipients, ', '), 'reply', reason), NULL
FROM emails WHERE void_document_id IS NOT NULL
UNION ALL
SELECT document_id, 8, recorded_at, 'portal_delivered',
       jsonb_build_object('on', delivered_on, 'reference', reference), event_id
FROM portal_deliveries;

CREATE FUNCTION queue_document_emails(
  document_ids bigint[], asked_for text, addressed_to text, event_id bigint, mail_domain text, now timestamptz
) RETURNS void LANGUAGE sql AS $$
  INSERT INTO emails (kind, document_id, asked_for, addressed_to, event_id, message_id, status, queued_at)
  SELECT d.document, d.document_id, $2, $3, $4,
         format('<%s.%s.%s@%s>', d.number,
                (SELECT count(*) + 1 FROM emails e WHERE e.document_id = d.document_id), i.installation_id, $5),
         'queued', $6
  FROM documents d CROSS JOIN installation i
  WHERE d.document_id = ANY ($1)
  ORDER BY d.document_id
$$;

-- Withdraws the e-mails of documents that were voided, or delivered otherwise, and returns their statuses. Skips e-mails that a worker is sending. An e-mail
-- that may have arrived is not withdrawn but becomes uncertain.
CREATE FUNCTION withdraw_document_emails(document_ids bigint[], happened text) RETURNS TABLE (status text, reason text)
LANGUAGE sql AS $$
  UPDATE emails e
  SET message = NULL,
      status = CASE WHEN e.unclear_attempts > 0 THEN 'uncertain' ELSE 'withdrawn' END,
      reason = CASE WHEN e.unclear_attempts > 0 THEN format('it may have arrived; the document was %s before it was sent again', happened)
                    ELSE format('the document was %s before it was sent', happened) END
  WHERE e.document_id = ANY (document_ids) AND e.status IN ('queued', 'held')
  RETURNING e.status, e.reason
$$;

-- Holds the e-mails of documents. Skips e-mails that a worker is sending.
CREATE FUNCTION hold_document_emails(document_ids bigint[], reason text) RETURNS void LANGUAGE sql AS $$
  UPDATE emails e SET status = 'held', reason = $2, due_at = 'infinity'
  WHERE e.document_id = ANY (document_ids) AND e.status IN ('queued', 'held')
$$;

CREATE FUNCTION release_document_emails(document_ids bigint[]) RETURNS void LANGUAGE sql AS $$
  UPDATE emails e SET status = 'queued', reason = NULL, due_at = now()
  WHERE e.document_id = ANY ($1) AND e.status = 'held'
$$;
