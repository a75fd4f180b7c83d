-- Who did what.

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
CALL make_fact('audit_events');
-- An acceptance over HTTP takes the number of its event for its row, and then records both in one statement.
CALL grant_to_app('USAGE', 'audit_events_event_id_seq');
