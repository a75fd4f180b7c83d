-- Audit events, users with their roles and sign-ins, and pauses of the ledger.

-- Personal texts: names and addresses of people, and texts that contain them. A fact has a salted hash in place of such
-- a text, its commitment. The text is only here, so erasing it changes no fact and no line of the log.
CREATE FUNCTION commitment_of(salt bytea, value text) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql
RETURN '#' || encode(sha256(salt || convert_to(value, 'UTF8')), 'base64');

CREATE FUNCTION is_commitment(value text) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE sql
RETURN value ~ '^#[A-Za-z0-9+/]{43}=$';

CREATE TABLE personal_texts (
  commitment text COLLATE "C" PRIMARY KEY,
  salt bytea NOT NULL CONSTRAINT personal_text_salt_length CHECK (length(salt) = 16),
  text text NOT NULL,
  CONSTRAINT personal_text_matches CHECK (commitment = commitment_of(salt, text))
);
-- Everything that is known of a person is found by the text, in any case.
CREATE INDEX personal_texts_by_text ON personal_texts USING hash (lower(text));
CREATE INDEX personal_texts_by_part ON personal_texts USING gin (lower(text) gin_trgm_ops);

-- Keeps a text and returns its commitment. Equal texts have different commitments, so that the log does not show that
-- two facts name the same person. NULL, the empty text and a commitment stay as they are.
CREATE FUNCTION keep_text(value text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  salt bytea;
  commitment text;
BEGIN
  IF value IS NULL OR value = '' OR is_commitment(value)
     AND EXISTS (SELECT FROM personal_texts t WHERE t.commitment = value) THEN RETURN value; END IF;
  -- A random UUID has 122 random bits; the hash of two has the 128 of the salt.
  salt := substr(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 1, 16);
  commitment := commitment_of(salt, value);
  INSERT INTO personal_texts VALUES (commitment, salt, value);
  RETURN commitment;
END
$$;

-- The same for the texts in a JSON value whose keys match the pattern, which begins and ends with a quotation mark. The
-- old and new values of a field change belong to the key that is its `field`.
CREATE FUNCTION keep_texts_in(value jsonb, keys text, is_personal boolean DEFAULT false) RETURNS jsonb
LANGUAGE plpgsql AS $$
BEGIN
  IF NOT is_personal AND value::text !~ keys THEN RETURN value; END IF;
  RETURN CASE jsonb_typeof(value)
    WHEN 'string' THEN CASE WHEN is_personal THEN to_jsonb(keep_text(value #>> '{}')) ELSE value END
    WHEN 'array' THEN (
      SELECT coalesce(jsonb_agg(keep_texts_in(item, keys, is_personal) ORDER BY position), '[]')
      FROM jsonb_array_elements(value) WITH ORDINALITY AS items (item, position))
    WHEN 'object' THEN (
      SELECT coalesce(jsonb_object_agg(each.key, keep_texts_in(each.value, keys, is_personal
                        OR format('"%s"', each.key) ~ keys
                        OR (each.key IN ('old', 'new') AND format('"%s"', keep_texts_in.value->>'field') ~ keys))), '{}')
      FROM jsonb_each(value) AS each)
    ELSE value END;
END
$$;

-- The text of a commitment, for readers. Any other value is returned as it is.
CREATE FUNCTION personal(value text) RETURNS text STABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
DECLARE
  found text;
BEGIN
  IF value IS NULL OR NOT is_commitment(value) THEN RETURN value; END IF;
  SELECT t.text INTO found FROM personal_texts t WHERE t.commitment = value;
  RETURN coalesce(found, '(erased)');
END
$$;

CREATE FUNCTION personal(texts text[]) RETURNS text[] STABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
  FOR position IN 1 .. coalesce(cardinality(texts), 0) LOOP
    texts[position] := personal(texts[position]);
  END LOOP;
  RETURN texts;
END
$$;

-- The commitments of texts that equal one of these, for conditions on a personal column.
CREATE FUNCTION commitments_to(texts text[]) RETURNS text[] STABLE LANGUAGE sql
RETURN ARRAY(SELECT t.commitment FROM unnest(texts) AS given (text)
             JOIN personal_texts t ON lower(t.text) = lower(given.text) AND t.text = given.text);

-- The same for all texts in a JSON value.
CREATE FUNCTION personal_json(value jsonb) RETURNS jsonb STABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
DECLARE
  result text := value::text;
  each text;
BEGIN
  IF result IS NULL OR strpos(result, '"#') = 0 THEN RETURN value; END IF;
  FOR each IN SELECT DISTINCT (regexp_matches(result, '"(#[A-Za-z0-9+/]{43}=)"', 'g'))[1] LOOP
    result := replace(result, to_json(each)::text, to_json(personal(each))::text);
  END LOOP;
  RETURN result;
END
$$;

-- Replaces the texts of these columns in each row that is inserted. An argument is a column, or a column of JSON, a colon
-- and the keys of its texts.
CREATE FUNCTION keep_texts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  given jsonb := to_jsonb(NEW);
BEGIN
  RETURN jsonb_populate_record(NEW, (
    SELECT jsonb_object_agg(split_part(each, ':', 1), keep_texts_in(given->split_part(each, ':', 1),
                              format('"(%s)"', split_part(each, ':', 2)), strpos(each, ':') = 0))
    FROM unnest(TG_ARGV) AS arguments (each)));
END
$$;

CREATE PROCEDURE keep_personal(target regclass, VARIADIC columns text[]) LANGUAGE plpgsql AS $$
DECLARE
  name text;
BEGIN
  FOR name IN SELECT a.attname FROM pg_attribute a
    WHERE a.attrelid = target AND a.attname = ANY (columns) AND a.atttypid = 'text'::regtype
  LOOP
    EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I CHECK (%I = '''' OR is_commitment(%I))', target,
                   target || '_' || name || '_kept', name, name);
  END LOOP;
  EXECUTE format('CREATE TRIGGER personal_texts_kept BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION keep_texts(%s)',
                 target, (SELECT string_agg(quote_literal(each), ', ') FROM unnest(columns) AS each));
END
$$;

-- The user that this transaction acts for. src/people/users.ts sets the parameter.
CREATE FUNCTION acting_user() RETURNS bigint STABLE LANGUAGE sql
RETURN nullif(current_setting('reckoner.user_id', true), '')::bigint;

-- This value is added to the details of this transaction's events. It states the approval, or the amounts that needed
-- no approval.
CREATE FUNCTION approval_details() RETURNS jsonb STABLE LANGUAGE sql
RETURN coalesce(nullif(current_setting('reckoner.approval', true), '')::jsonb, '{}');

CREATE TABLE audit_events (
  event_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  occurred_at timestamptz NOT NULL,
  action text NOT NULL CONSTRAINT event_action_form CHECK (action ~ '^[a-z_]+[.][a-z_]+$'),
  -- The number of a document, a partner, a month, a file or similar.
  subject text NOT NULL,
  details jsonb NOT NULL,
  -- The value of --by, or the name of a job. os_user and host come from the machine.
  claimed_by text,
  os_user text NOT NULL,
  host text NOT NULL,
  via text NOT NULL CONSTRAINT event_via_known CHECK (via IN ('command', 'job', 'http', 'console')),
  -- Null before an installation has users, and if no user acted, as in an acceptance by a partner.
  user_id bigint DEFAULT acting_user(),
  CONSTRAINT event_of_the_console_has_its_user CHECK (via <> 'console' OR user_id IS NOT NULL)
);
CREATE INDEX audit_events_of_subject ON audit_events (subject);
CREATE INDEX audit_events_of_action ON audit_events (action, event_id);
-- Events without a user are searched by the claimed name, or else by the operating-system user.
CREATE INDEX audit_events_of_user ON audit_events (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX audit_events_of_name ON audit_events (coalesce(claimed_by, lower(os_user))) WHERE user_id IS NULL;
-- For the amounts that approval thresholds add up (src/approvals/amounts-before.ts).
CREATE INDEX audit_events_compared ON audit_events (occurred_at) WHERE jsonb_exists(details, 'compared');
-- Events are recorded nearly in the order of their times, so a block range index is enough.
CREATE INDEX audit_events_by_time ON audit_events USING brin (occurred_at) WITH (autosummarize = on);
-- For the notices to users.
CREATE INDEX audit_events_of_access ON audit_events (occurred_at)
  WHERE action IN ('user.add_passkey', 'user.link', 'user.sign_in');
CALL make_fact('audit_events', while_paused => true);
-- An acceptance over HTTP first takes the number of its event, which its ledger row refers to. The acceptance then
-- records the row and the event in one statement.
CALL grant_to_app('USAGE', 'audit_events_event_id_seq');

-- The sections of the settings that `settings adopt` put in force, each as adopted last. An adoption is recorded only as
-- an event.
CREATE VIEW settings_in_force AS
SELECT DISTINCT ON (subject) subject AS section, details->'value' AS value, details->'file' AS file FROM audit_events
WHERE action = 'settings.adopt' ORDER BY subject, event_id DESC;

-- The keys of an event's details whose values are personal texts, by its action.
CREATE FUNCTION personal_keys(action text) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql
RETURN '"(' || CASE
  WHEN action LIKE 'user.%' THEN 'name|reason|subject|network|browser'
  WHEN action LIKE 'partner.%' THEN
    'invoicing_contact[.](name|email|cc)|(contact|reminder|statement|dispute)_email|network'
  WHEN action IN ('payment.record', 'credit.refund') THEN 'reference'
  WHEN action IN ('invoice.resend', 'email.resend', 'work.assign') THEN 'to'
  WHEN action = 'dispute.open' THEN 'owner'
  ELSE 'payer_name|payer_account' END || '|approved_by|requested_by)"';

-- Whether the subject of an action is a person's address or account.
CREATE FUNCTION acts_on_person(action text) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE sql
RETURN action LIKE 'user.%' OR action = 'payment.forget_account';

CREATE FUNCTION keep_texts_of_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.claimed_by := keep_text(NEW.claimed_by);
  IF acts_on_person(NEW.action) OR (NEW.action LIKE 'approval.%' AND acts_on_person(NEW.details->>'action')) THEN
    NEW.subject := keep_text(NEW.subject);
  END IF;
  NEW.details := keep_texts_in(NEW.details, personal_keys(NEW.action));
  RETURN NEW;
END
$$;
-- An acceptance names no one, and nothing may slow it down.
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON audit_events FOR EACH ROW
  WHEN (NEW.claimed_by IS NOT NULL OR NEW.action NOT IN ('quote.accept', 'requote.accept', 'quote.reverse'))
  EXECUTE FUNCTION keep_texts_of_event();
ALTER TABLE audit_events ADD CONSTRAINT audit_events_claimed_by_kept CHECK (claimed_by = '' OR is_commitment(claimed_by));

-- Erased texts. Recording an erasure erases the text. Nothing else can erase it. It is possible while the ledger is
-- paused, because a restore repeats the erasures that the backup does not know yet.
CREATE TABLE erasures (
  commitment text COLLATE "C" PRIMARY KEY CONSTRAINT erasure_commitment_form CHECK (is_commitment(commitment)),
  -- It must not name the person.
  reason text NOT NULL CONSTRAINT erasure_has_reason CHECK (btrim(reason) <> '')
);
CALL make_fact_of_event('erasures', while_paused => true);
CREATE INDEX erasures_of_event ON erasures (event_id);

CREATE FUNCTION is_erased(commitment text) RETURNS boolean STABLE LANGUAGE sql
RETURN EXISTS (SELECT FROM erasures e WHERE e.commitment = is_erased.commitment);
CALL make_append_only('personal_texts', 'DELETE', 'is_erased(OLD.commitment)');

-- Run as the owner, so that the program needs no right to delete texts.
CREATE FUNCTION erase_texts(commitments text[]) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  DELETE FROM personal_texts t WHERE t.commitment = ANY (commitments);
END;

CREATE FUNCTION erase_recorded_texts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM erase_texts((SELECT array_agg(commitment) FROM added));
  RETURN NULL;
END
$$;
CALL run_after_insert('texts_are_erased', 'erasures', 'erase_recorded_texts');

-- Users are facts because they determine who may act. A program is a user such as cron.
CREATE TABLE users (
  user_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind text NOT NULL CONSTRAINT user_kind_known CHECK (kind IN ('person', 'program')),
  login text COLLATE "C" NOT NULL,
  name text NOT NULL CONSTRAINT user_has_name CHECK (btrim(name) <> ''),
  -- The deactivated user that previously had this login.
  follows bigint CONSTRAINT user_followed_once UNIQUE
);
CALL make_fact_of_event('users', while_paused => true);
CALL keep_personal('users', 'login', 'name');
ALTER TABLE audit_events ADD CONSTRAINT event_of_a_user FOREIGN KEY (user_id) REFERENCES users
  DEFERRABLE INITIALLY DEFERRED;

CREATE TABLE user_ends (
  user_id bigint PRIMARY KEY REFERENCES users,
  reason text
);
CALL make_fact_of_event('user_ends', while_paused => true);
CALL keep_personal('user_ends', 'reason');
ALTER TABLE users ADD CONSTRAINT user_follows_an_ended_one FOREIGN KEY (follows) REFERENCES user_ends
  DEFERRABLE INITIALLY DEFERRED;

-- The form of a login, and that no two active users have the same one. Fires before the login is replaced by its
-- commitment.
CREATE FUNCTION refuse_wrong_login() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  violated text;
BEGIN
  -- Two transactions that add users wait for each other (LOCKS.users).
  PERFORM pg_advisory_xact_lock(7310, 83);
  IF NEW.login <> lower(NEW.login) OR (NEW.kind = 'person') <> (strpos(NEW.login, '@') > 0) THEN
    violated := 'user_login_form';
  ELSIF EXISTS (SELECT FROM users u WHERE personal(u.login) = NEW.login
                  AND NOT EXISTS (SELECT FROM user_ends e WHERE e.user_id = u.user_id)) THEN
    violated := 'user_login_once';
  ELSE
    RETURN NEW;
  END IF;
  PERFORM refuse(violated, format('the login of the new user violates %s', violated));
END
$$;
CREATE TRIGGER login_once BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION refuse_wrong_login();

CREATE TABLE user_roles (
  user_role_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id bigint NOT NULL REFERENCES users,
  action text NOT NULL CONSTRAINT user_role_action_known CHECK (action IN ('grant', 'revoke')),
  role text NOT NULL CONSTRAINT user_role_known CHECK (role IN ('viewer', 'finance', 'approver', 'administrator')),
  partner_id text COLLATE "C",
  -- The grantor of the role: an administrator, or a claim of the identity provider. Each source revokes only its own
  -- grants.
  source text NOT NULL CONSTRAINT user_role_source_known CHECK (source IN ('administrator', 'claim')),
  CONSTRAINT administrator_of_all_partners CHECK (role <> 'administrator' OR partner_id IS NULL)
);
CREATE INDEX user_roles_of_user ON user_roles (user_id, user_role_id);
CALL make_fact_of_event('user_roles', while_paused => true);

CREATE VIEW active_users AS
SELECT u.user_id, u.kind, personal(u.login) COLLATE "C" AS login, personal(u.name) AS name, u.follows, u.recorded_at,
       u.event_id
FROM users u WHERE NOT EXISTS (SELECT FROM user_ends e WHERE e.user_id = u.user_id);

CREATE VIEW present_roles AS
SELECT user_id, role, partner_id, source FROM (
  SELECT DISTINCT ON (user_id, role, partner_id, source) user_id, role, partner_id, source, action FROM user_roles
  ORDER BY user_id, role, partner_id, source, user_role_id DESC) AS latest
WHERE action = 'grant' AND NOT EXISTS (SELECT FROM user_ends e WHERE e.user_id = latest.user_id);

-- What limits a viewer: the months of the books that the user may see, and the last day of the access. The latest row of
-- a user is in force; without values, it ends the limits.
CREATE TABLE user_limits (
  user_limit_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id bigint NOT NULL REFERENCES users,
  from_month billing_month,
  to_month billing_month,
  last_day date,
  CONSTRAINT user_limit_has_both_months CHECK ((from_month IS NULL) = (to_month IS NULL)),
  CONSTRAINT user_limit_months_in_order CHECK (from_month <= to_month)
);
CREATE INDEX user_limits_of_user ON user_limits (user_id, user_limit_id DESC);
CALL make_fact_of_event('user_limits', while_paused => true);

CREATE VIEW present_user_limits AS
SELECT * FROM (SELECT DISTINCT ON (user_id) user_id, from_month, to_month, last_day FROM user_limits
               ORDER BY user_id, user_limit_id DESC) AS latest
WHERE from_month IS NOT NULL OR last_day IS NOT NULL;

-- Any other role acts on the whole ledger. Changes of users wait for each other (LOCKS.users).
CREATE FUNCTION refuse_limited_role() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM present_user_limits l JOIN present_roles r USING (user_id)
             WHERE l.user_id = NEW.user_id AND r.role <> 'viewer') THEN
    PERFORM refuse('limits_of_viewers_only', format('user %s has limits and a role other than viewer', NEW.user_id));
  END IF;
  RETURN NULL;
END
$$;
CALL check_at_commit('limits_of_viewers_only', 'user_limits', 'refuse_limited_role()');
CALL check_at_commit('limits_of_viewers_only', 'user_roles', 'refuse_limited_role()',
                     $$NEW.role <> 'viewer' AND NEW.action = 'grant'$$);

-- A user's identity at an identity provider (OpenID Connect).
CREATE TABLE user_identities (
  user_id bigint NOT NULL REFERENCES users,
  issuer text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  PRIMARY KEY (issuer, subject, user_id)
);
CALL make_fact_of_event('user_identities', while_paused => true);

CREATE TABLE passkeys (
  passkey_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id bigint NOT NULL REFERENCES users,
  credential_id text COLLATE "C" NOT NULL CONSTRAINT passkey_once UNIQUE
    CONSTRAINT passkey_credential_form CHECK (credential_id ~ '^[A-Za-z0-9_-]+$' AND length(credential_id) BETWEEN 16 AND 1400),
  public_key bytea NOT NULL,
  name text NOT NULL CONSTRAINT passkey_has_name CHECK (btrim(name) <> '')
);
CREATE INDEX passkeys_of_user ON passkeys (user_id);
CALL make_fact_of_event('passkeys', while_paused => true);
CALL keep_personal('passkeys', 'name');

CREATE TABLE passkey_ends (
  passkey_id bigint PRIMARY KEY REFERENCES passkeys
);
CALL make_fact_of_event('passkey_ends', while_paused => true);

-- The assignee of each item of the work queue, by the latest event, or null if unassigned.
CREATE INDEX audit_events_of_work ON audit_events (subject, event_id DESC) WHERE action = 'work.assign';
CREATE VIEW present_work_assignments AS
SELECT DISTINCT ON (subject) subject AS item, (details->>'user_id')::bigint AS user_id, event_id
FROM audit_events WHERE action = 'work.assign' ORDER BY subject, event_id DESC;

-- The tables below, up to `pauses`, are working state. Their rows expire, and are not facts of the log.

-- The number of signatures of a passkey, by its own counter. If the counter decreases, the passkey was copied.
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
  kind text NOT NULL CONSTRAINT sign_in_challenge_known CHECK (kind IN ('passkey', 'new_passkey', 'provider', 'link')),
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
  network text NOT NULL,
  browser text NOT NULL,
  created_at timestamptz NOT NULL,
  -- When the user last proved who they are: at the sign-in, or earlier at the identity provider.
  proved_at timestamptz NOT NULL,
  last_seen_at timestamptz NOT NULL,
  ends_at timestamptz NOT NULL,
  ended_at timestamptz,
  event_id bigint NOT NULL REFERENCES audit_events
);
CREATE INDEX sessions_of_user ON sessions (user_id);
CALL grant_to_app('SELECT, INSERT, UPDATE, DELETE', 'sessions');

-- While a pause is open, nothing is closed, issued, sent or recorded (begin_recording). A restore opens a pause,
-- because documents may have been issued after the restored state. `state_of` is the time of that state.
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

-- The PostgreSQL servers that this ledger has been on, each with its timeline: a promotion and a recovery begin another
-- one. A host without a memory of its own compares the server with these (src/documents/last-seen.ts).
CREATE TABLE servers (
  system_identifier text COLLATE "C" NOT NULL,
  timeline text COLLATE "C" NOT NULL CONSTRAINT server_timeline_form CHECK (timeline ~ '^[0-9A-F]{8}$'),
  seen_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (system_identifier, timeline)
);
CALL make_append_only('servers');

-- Lets previews work during a pause, because they are rolled back. If no pause is open, the function writes nothing and
-- takes no lock.
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
