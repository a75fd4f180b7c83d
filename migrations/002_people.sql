-- Who did what; and pauses of the whole ledger.

CREATE TABLE audit_events (
  event_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  occurred_at timestamptz NOT NULL,
  -- Noun and verb, as in the command: invoice.void.
  action text NOT NULL CONSTRAINT event_action_form CHECK (action ~ '^[a-z_]+[.][a-z_]+$'),
  -- What it was done to: a document's number, a partner, a month, a file.
  subject text NOT NULL,
  details jsonb NOT NULL,
  -- The value of --by: a claim. The next two come from the machine.
  claimed_by text,
  os_user text NOT NULL,
  host text NOT NULL,
  via text NOT NULL CONSTRAINT event_via_known CHECK (via IN ('command', 'job', 'http'))
);
CREATE INDEX audit_events_of_subject ON audit_events (subject);
CALL make_fact('audit_events', while_paused => true);
-- An acceptance over HTTP takes the number of its event for its row, and then records both in one statement.
CALL grant_to_app('USAGE', 'audit_events_event_id_seq');

-- Pauses: while one is open, nothing closes, is issued, sent or recorded (refuse_while_paused). A restore leaves one: the
-- ledger as it was at `state_of`, and what happened later may have been seen outside.
CREATE TABLE pauses (
  pause_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  cause text NOT NULL CONSTRAINT pause_cause_known CHECK (cause IN ('command', 'restore')),
  reason text NOT NULL CONSTRAINT pause_has_reason CHECK (btrim(reason) <> ''),
  state_of timestamptz,
  paused_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events,
  CONSTRAINT pause_of_a_restore_has_its_state CHECK ((cause = 'restore') = (state_of IS NOT NULL))
);
CALL make_fact('pauses', while_paused => true);

CREATE TABLE resumptions (
  pause_id bigint PRIMARY KEY REFERENCES pauses,
  resumed_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events
);
CALL make_fact('resumptions', while_paused => true);

CREATE VIEW open_pauses AS
SELECT * FROM pauses p WHERE NOT EXISTS (SELECT FROM resumptions r WHERE r.pause_id = p.pause_id);
CALL grant_to_app('SELECT', 'open_pauses');

-- For previews, which are undone. Nothing is written, and no lock taken, where no pause is open.
CREATE FUNCTION end_open_pauses() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF is_paused() THEN
    INSERT INTO resumptions (pause_id, resumed_at, event_id) SELECT pause_id, paused_at, event_id FROM open_pauses;
  END IF;
END
$$;

-- Parsed here, so that a temporary table of the same name changes nothing.
CREATE FUNCTION is_paused() RETURNS boolean STABLE LANGUAGE sql
RETURN EXISTS (SELECT FROM open_pauses);
