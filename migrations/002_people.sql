-- Audit events, users with their roles and sign-ins, and pauses of the ledger.

-- The user that this transaction acts for. src/people/users.ts sets the parameter.
CREATE FUNCTION acting_user() RETURNS bigint STABLE LANGUAGE sql
RETURN nullif(current_setting('reckoner.user_id', true), '')::bigint;

-- Added to the details of this transaction's events: its approval, or the amounts that needed no approval.
CREATE FUNCTION approval_details() RETURNS jsonb STABLE LANGUAGE sql
RETURN coalesce(nullif(current_setting('reckoner.approval', true), '')::jsonb, '{}');

CREATE TABLE audit_events (
  event_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  occurred_at timestamptz NOT NULL,
  action text NOT NULL CONSTRAINT event_action_form CHECK (action ~ '^[a-z_]+[.][a-z_]+$'),
  -- A document's number, a partner, a month, a file or similar.
  subject text NOT NULL,
  details jsonb NOT NULL,
  -- The value of --by, or the name of a job. os_user and host come from the machine.
  claimed_by text,
  os_user text NOT NULL,
  host text NOT NULL,
  via text NOT NULL CONSTRAINT event_via_known CHECK (via IN ('command', 'job', 'http', 'console')),
  -- Null before an installation has users, and if no user acted, as in a partner's acceptance.
  user_id bigint DEFAULT acting_user(),
  CONSTRAINT event_of_the_console_has_its_user CHECK (via <> 'console' OR user_id IS NOT NULL)
);
CREATE INDEX audit_events_of_subject ON audit_events (subject);
CREATE INDEX audit_events_of_action ON audit_events (action, event_id);
-- Events without a user are searched by the claimed name, or else by the operating-system user.
CREATE INDEX audit_events_of_user ON audit_events (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX audit_events_of_name ON audit_events (lower(coalesce(claimed_by, os_user))) WHERE user_id IS NULL;
-- For the amounts that approval thresholds add up (src/approvals/amounts-before.ts).
CREATE INDEX audit_events_compared ON audit_events (user_id, occurred_at) WHERE jsonb_exists(details, 'compared');
-- Events are recorded nearly in the order of their times, so a block range index is enough.
CREATE INDEX audit_events_by_time ON audit_events USING brin (occurred_at) WITH (autosummarize = on);
CALL make_fact('audit_events', while_paused => true);
-- An acceptance over HTTP first takes the number of its event, which its ledger row refers to. It then records row and
-- event in one statement.
CALL grant_to_app('USAGE', 'audit_events_event_id_seq');

-- Users are facts because they determine who may act. A program is a user such as cron.
CREATE TABLE users (
  user_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind text NOT NULL CONSTRAINT user_kind_known CHECK (kind IN ('person', 'program')),
  login text COLLATE "C" NOT NULL
    CONSTRAINT user_login_form CHECK (login = lower(login) AND (kind = 'person') = (strpos(login, '@') > 0)),
  name text NOT NULL CONSTRAINT user_has_name CHECK (btrim(name) <> ''),
  -- The deactivated user that previously had this login.
  follows bigint,
  recorded_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events,
  CONSTRAINT user_login_once UNIQUE NULLS NOT DISTINCT (login, follows)
);
CALL make_fact('users', while_paused => true);
ALTER TABLE audit_events ADD CONSTRAINT event_of_a_user FOREIGN KEY (user_id) REFERENCES users
  DEFERRABLE INITIALLY DEFERRED;

CREATE TABLE user_ends (
  user_id bigint PRIMARY KEY REFERENCES users,
  reason text,
  recorded_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events
);
CALL make_fact('user_ends', while_paused => true);
ALTER TABLE users ADD CONSTRAINT user_follows_an_ended_one FOREIGN KEY (follows) REFERENCES user_ends
  DEFERRABLE INITIALLY DEFERRED;

CREATE TABLE user_roles (
  user_role_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id bigint NOT NULL REFERENCES users,
  action text NOT NULL CONSTRAINT user_role_action_known CHECK (action IN ('grant', 'revoke')),
  role text NOT NULL CONSTRAINT user_role_known CHECK (role IN ('viewer', 'finance', 'approver', 'administrator')),
  partner_id text COLLATE "C",
  -- Who granted the role: an administrator, or a claim of the identity provider. Each source revokes only its own
  -- grants.
  source text NOT NULL CONSTRAINT user_role_source_known CHECK (source IN ('administrator', 'claim')),
  recorded_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events,
  CONSTRAINT administrator_of_all_partners CHECK (role <> 'administrator' OR partner_id IS NULL)
);
CREATE INDEX user_roles_of_user ON user_roles (user_id, user_role_id);
CALL make_fact('user_roles', while_paused => true);

CREATE VIEW active_users AS
SELECT u.* FROM users u WHERE NOT EXISTS (SELECT FROM user_ends e WHERE e.user_id = u.user_id);
CALL grant_to_app('SELECT', 'active_users');

CREATE VIEW present_roles AS
SELECT user_id, role, partner_id, source FROM (
  SELECT DISTINCT ON (user_id, role, partner_id, source) user_id, role, partner_id, source, action FROM user_roles
  ORDER BY user_id, role, partner_id, source, user_role_id DESC) AS latest
WHERE action = 'grant' AND NOT EXISTS (SELECT FROM user_ends e WHERE e.user_id = latest.user_id);
CALL grant_to_app('SELECT', 'present_roles');

-- A user's identity at an identity provider (OpenID Connect).
CREATE TABLE user_identities (
  user_id bigint NOT NULL REFERENCES users,
  issuer text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  recorded_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events,
  PRIMARY KEY (issuer, subject, user_id)
);
CALL make_fact('user_identities', while_paused => true);

CREATE TABLE passkeys (
  passkey_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id bigint NOT NULL REFERENCES users,
  credential_id text COLLATE "C" NOT NULL CONSTRAINT passkey_once UNIQUE
    CONSTRAINT passkey_credential_form CHECK (credential_id ~ '^[A-Za-z0-9_-]+$' AND length(credential_id) BETWEEN 16 AND 1400),
  public_key bytea NOT NULL,
  name text NOT NULL CONSTRAINT passkey_has_name CHECK (btrim(name) <> ''),
  recorded_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events
);
CREATE INDEX passkeys_of_user ON passkeys (user_id);
CALL make_fact('passkeys', while_paused => true);

CREATE TABLE passkey_ends (
  passkey_id bigint PRIMARY KEY REFERENCES passkeys,
  recorded_at timestamptz NOT NULL,
  event_id bigint NOT NULL REFERENCES audit_events
);
CALL make_fact('passkey_ends', while_paused => true);

-- The assignee of each item of the work queue, by the latest event, or null if unassigned.
CREATE INDEX audit_events_of_work ON audit_events (subject, event_id DESC) WHERE action = 'work.assign';
CREATE VIEW present_work_assignments AS
SELECT DISTINCT ON (subject) subject AS item, (details->>'user_id')::bigint AS user_id, event_id
FROM audit_events WHERE action = 'work.assign' ORDER BY subject, event_id DESC;
CALL grant_to_app('SELECT', 'present_work_assignments');

-- The tables below, up to `pauses`, are working state: rows expire, and no seal covers them.

-- How often a passkey has signed, by its own counter. A count that decreases reveals a copy.
CREATE TABLE passkey_uses (
  passkey_id bigint PRIMARY KEY REFERENCES passkeys,
  counter bigint NOT NULL,
  used_at timestamptz NOT NULL
);
CALL grant_to_app('SELECT, INSERT, UPDATE', 'passkey_uses');

CREATE TABLE sign_in_links (
  sha256 text COLLATE "C" PRIMARY KEY CONSTRAINT sign_in_link_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  user_id bigint NOT NULL REFERENCES users,
  expires_at timestamptz NOT NULL,
  used_at timestamptz,
  event_id bigint NOT NULL REFERENCES audit_events
);
CREATE INDEX sign_in_links_of_user ON sign_in_links (user_id);
CALL grant_to_app('SELECT, INSERT, UPDATE, DELETE', 'sign_in_links');

-- The challenge of a sign-in in progress, identified by the hash of the browser's cookie.
CREATE TABLE sign_in_challenges (
  sha256 text COLLATE "C" PRIMARY KEY,
  kind text NOT NULL CONSTRAINT sign_in_challenge_known CHECK (kind IN ('passkey', 'new_passkey', 'provider')),
  content jsonb NOT NULL,
  expires_at timestamptz NOT NULL
);
CREATE INDEX sign_in_challenges_ended ON sign_in_challenges (expires_at);
CALL grant_to_app('SELECT, INSERT, UPDATE, DELETE', 'sign_in_challenges');

CREATE TABLE sessions (
  session_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- The hash of the cookie's secret.
  sha256 text COLLATE "C" NOT NULL CONSTRAINT session_once UNIQUE
    CONSTRAINT session_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  user_id bigint NOT NULL REFERENCES users,
  method text NOT NULL CONSTRAINT session_method_known CHECK (method IN ('link', 'passkey', 'provider')),
  -- The network and browser at the sign-in.
  network text NOT NULL,
  browser text NOT NULL,
  created_at timestamptz NOT NULL,
  last_seen_at timestamptz NOT NULL,
  ends_at timestamptz NOT NULL,
  ended_at timestamptz,
  event_id bigint NOT NULL REFERENCES audit_events
);
CREATE INDEX sessions_of_user ON sessions (user_id);
CALL grant_to_app('SELECT, INSERT, UPDATE, DELETE', 'sessions');

-- While a pause is open, nothing is closed, issued, sent or recorded (begin_recording). A restore opens a pause,
-- because documents may have been issued after the restored state, whose time is `state_of`.
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

-- Lets previews, which are rolled back, work during a pause. If no pause is open, the function writes nothing and takes
-- no lock.
CREATE FUNCTION end_open_pauses() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF is_paused() THEN
    INSERT INTO resumptions (pause_id, resumed_at, event_id) SELECT pause_id, paused_at, event_id FROM open_pauses;
  END IF;
END
$$;

-- The body is parsed here, so that a temporary table of the same name changes nothing.
CREATE FUNCTION is_paused() RETURNS boolean STABLE LANGUAGE sql
RETURN EXISTS (SELECT FROM open_pauses);
