-- E-mails: of documents, of reminders and close reports, and of seals.

-- The e-mail of a document. It moves from state to state; what it is of, its Message-ID and that it was sent are facts.
CREATE TABLE sendings (
  sending_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  document_id bigint NOT NULL REFERENCES documents,
  asked_for text NOT NULL CONSTRAINT sending_asked_for_known
    CHECK (asked_for IN ('close', 'rerun', 'credit', 'resend', 'missing_shares')),
  event_id bigint REFERENCES audit_events,
  -- Whom a user named instead of the partner's contacts.
  addressed_to text,
  message_id text NOT NULL CONSTRAINT sending_message_id_once UNIQUE,
  status text NOT NULL CONSTRAINT sending_status_known
    CHECK (status IN ('queued', 'sending', 'sent', 'held', 'failed', 'uncertain', 'withdrawn')),
  -- Why it is held, or the mail server's last reply.
  reason text,
  recipients text[],
  -- The exact bytes while they may be needed for a repetition; afterwards only their hash.
  message bytea,
  -- Where the document's PDF goes into the message, as base64 in lines. NULL: the message is whole.
  drawing_at integer,
  message_sha256 text,
  envelope_from text,
  attempts integer NOT NULL DEFAULT 0,
  -- Attempts whose outcome is unknown: the first is repeated with the same bytes, the second makes it uncertain.
  unclear_attempts integer NOT NULL DEFAULT 0,
  worker bigint,
  queued_at timestamptz NOT NULL,
  attempted_at timestamptz,
  sent_at timestamptz,
  CONSTRAINT sending_person_is_known CHECK (asked_for = 'close' OR event_id IS NOT NULL),
  CONSTRAINT sending_in_flight_has_worker CHECK ((status = 'sending') = (worker IS NOT NULL)),
  CONSTRAINT sending_in_flight_has_message CHECK (status <> 'sending' OR (message IS NOT NULL AND recipients IS NOT NULL)),
  CONSTRAINT sending_sent_has_time CHECK ((status = 'sent') = (sent_at IS NOT NULL)),
  CONSTRAINT sending_held_has_reason CHECK (status <> 'held' OR reason IS NOT NULL),
  CONSTRAINT sending_drawing_within_message CHECK (
    drawing_at IS NULL OR (message IS NOT NULL AND drawing_at BETWEEN 0 AND length(message)))
);
ALTER TABLE sendings ALTER COLUMN message SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX sending_one_of_the_issue ON sendings (document_id) WHERE asked_for <> 'resend';
-- The latest of a document. Without it a month's preview after ten years took 70 s, reading all of them each time.
CREATE INDEX sendings_of_document ON sendings (document_id, sending_id);
CREATE INDEX sendings_unfinished ON sendings (status) WHERE status <> 'sent';
CALL grant_to_app('SELECT, INSERT, UPDATE', 'sendings');

CREATE OR REPLACE FUNCTION refuse_rewritten_sending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (OLD.document_id, OLD.message_id, OLD.asked_for, OLD.queued_at, OLD.event_id, OLD.addressed_to)
     IS DISTINCT FROM (NEW.document_id, NEW.message_id, NEW.asked_for, NEW.queued_at, NEW.event_id, NEW.addressed_to)
     OR OLD.status IN ('sent', 'withdrawn') THEN
    RAISE EXCEPTION 'sending % is a fact: send again by a new one', OLD.sending_id
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'sendings_facts_stay';
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER sendings_facts_stay BEFORE UPDATE ON sendings
  FOR EACH ROW EXECUTE FUNCTION refuse_rewritten_sending();

-- Every worker takes a number and holds an advisory lock with that number while it lives.
CREATE SEQUENCE worker_numbers;
CALL grant_to_app('UPDATE', 'worker_numbers');

-- Recorded before it is sent, and once: a reminder per partner and day, the report of a close per month. The states are
-- those of `sendings`.
CREATE TABLE notices (
  notice_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind text NOT NULL CONSTRAINT notice_kind_known CHECK (kind IN ('reminder', 'close_report')),
  partner_id text COLLATE "C" REFERENCES partners,
  day date,
  month text COLLATE "C" REFERENCES closed_months,
  message_id text NOT NULL CONSTRAINT notice_message_id_once UNIQUE,
  status text NOT NULL CONSTRAINT notice_status_known
    CHECK (status IN ('queued', 'sending', 'sent', 'held', 'failed', 'uncertain', 'withdrawn')),
  reason text,
  recipients text[],
  message bytea,
  message_sha256 text,
  envelope_from text,
  attempts integer NOT NULL DEFAULT 0,
  unclear_attempts integer NOT NULL DEFAULT 0,
  worker bigint,
  queued_at timestamptz NOT NULL,
  attempted_at timestamptz,
  sent_at timestamptz,
  event_id bigint NOT NULL REFERENCES audit_events,
  CONSTRAINT notice_once UNIQUE NULLS NOT DISTINCT (kind, partner_id, day, month),
  CONSTRAINT notice_of_partner UNIQUE (notice_id, partner_id),
  CONSTRAINT notice_says_of_what CHECK (
    (kind = 'reminder') = (partner_id IS NOT NULL) AND (kind = 'reminder') = (day IS NOT NULL)
    AND (kind = 'close_report') = (month IS NOT NULL)),
  CONSTRAINT notice_in_flight_has_worker CHECK ((status = 'sending') = (worker IS NOT NULL)),
  CONSTRAINT notice_in_flight_has_message CHECK (status <> 'sending' OR (message IS NOT NULL AND recipients IS NOT NULL)),
  CONSTRAINT notice_sent_has_time CHECK ((status = 'sent') = (sent_at IS NOT NULL)),
  CONSTRAINT notice_held_has_reason CHECK (status <> 'held' OR reason IS NOT NULL)
);
CREATE INDEX notices_unfinished ON notices (status) WHERE status <> 'sent';
CALL grant_to_app('SELECT, INSERT, UPDATE', 'notices');

CREATE FUNCTION refuse_rewritten_notice() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (OLD.kind, OLD.partner_id, OLD.day, OLD.month, OLD.message_id, OLD.queued_at, OLD.event_id)
     IS DISTINCT FROM (NEW.kind, NEW.partner_id, NEW.day, NEW.month, NEW.message_id, NEW.queued_at, NEW.event_id)
     OR OLD.status IN ('sent', 'withdrawn') THEN
    RAISE EXCEPTION 'notice % is a fact: another is a new one', OLD.notice_id
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'notices_facts_stay';
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER notices_facts_stay BEFORE UPDATE ON notices
  FOR EACH ROW EXECUTE FUNCTION refuse_rewritten_notice();

-- The dunning level that a document has reached, in days after its due date, and the e-mail that says so.
CREATE TABLE reminders (
  document_id bigint NOT NULL,
  step integer NOT NULL,
  notice_id bigint NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  PRIMARY KEY (document_id, step),
  CONSTRAINT reminder_to_its_partner FOREIGN KEY (notice_id, partner_id) REFERENCES notices (notice_id, partner_id),
  CONSTRAINT reminder_of_its_partners_document FOREIGN KEY (document_id, partner_id, currency)
    REFERENCES documents (document_id, partner_id, currency)
);
CREATE INDEX reminders_of_notice ON reminders (notice_id);
CALL make_append_only('reminders');

-- One e-mail per seal, recorded with it and sent later. A repetition has the same Message-ID and the same bytes.
CREATE TABLE seal_letters (
  month billing_month PRIMARY KEY REFERENCES seals,
  message_id text NOT NULL CONSTRAINT seal_letter_message_id_once UNIQUE,
  status text NOT NULL CONSTRAINT seal_letter_status_known CHECK (status IN ('queued', 'sent', 'held')),
  recipient text,
  -- The mail server's last reply, or why it is held.
  reply text,
  -- While somebody tries: nobody else does before that time.
  tried_until timestamptz,
  sent_at timestamptz,
  CONSTRAINT seal_letter_sent_has_time CHECK ((status = 'sent') = (sent_at IS NOT NULL AND recipient IS NOT NULL))
);
CALL grant_to_app('SELECT, INSERT, UPDATE', 'seal_letters');
