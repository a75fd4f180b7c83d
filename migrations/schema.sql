-- Facts: SHA-256 791631223ca789e5bdf5f83e1ebcb72b55c970791670006e386ce443f41d35aa, without the role reckoner_app 18021c8d0f217e277d0838346bc8cddb6ed6ba044842998b2f745546b66b6e92
-- The schema that the migrations make. Generated for reading: change a migration, then run npm run db:schema.
-- The reasons stand in the migrations.

-- 001_foundation ------------------------------------------------------------------------------------------------------

CREATE PROCEDURE grant_to_app(IN privileges text, IN target regclass)
 LANGUAGE plpgsql
AS $procedure$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'reckoner_app') THEN
    EXECUTE format('GRANT %s ON %s TO reckoner_app', privileges, target);
  END IF;
END
$procedure$;

CREATE FUNCTION refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  RAISE EXCEPTION '% of % is refused: it is append-only, a correction is a new row', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = TG_TABLE_NAME || '_append_only';
END
$function$;

CREATE PROCEDURE make_append_only(IN target regclass, IN allowed text DEFAULT NULL::text, IN condition text DEFAULT NULL::text, IN of_app text DEFAULT 'SELECT, INSERT')
 LANGUAGE plpgsql
AS $procedure$
BEGIN
  EXECUTE format('CREATE TRIGGER append_only BEFORE %s OR TRUNCATE ON %s
                  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()',
                 CASE allowed WHEN 'DELETE' THEN 'UPDATE' WHEN 'UPDATE' THEN 'DELETE' ELSE 'UPDATE OR DELETE' END, target);
  CALL grant_to_app(of_app, target);
  IF allowed IS NOT NULL THEN
    EXECUTE format('CREATE TRIGGER kept_rows BEFORE %s ON %s FOR EACH ROW WHEN ((%s) IS NOT TRUE)
                    EXECUTE FUNCTION refuse_change()', allowed, target, condition);
  END IF;
END
$procedure$;

CREATE PROCEDURE enable_triggers_always()
 LANGUAGE plpgsql
AS $procedure$
DECLARE
  guard record;
BEGIN
  FOR guard IN
    SELECT t.tgrelid::regclass AS target, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
      AND NOT t.tgisinternal AND t.tgenabled <> 'A'
  LOOP
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', guard.target, guard.tgname);
  END LOOP;
END
$procedure$;

CREATE PROCEDURE close_functions()
 LANGUAGE plpgsql
AS $procedure$
DECLARE
  routine record;
BEGIN
  FOR routine IN
    SELECT p.oid::regprocedure AS name, p.prokind = 'f' AND p.prorettype <> 'trigger'::regtype AS is_called,
           p.provolatile <> 'v' AND NOT p.prosecdef AS reads
    FROM pg_proc p WHERE p.pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
      AND NOT EXISTS (SELECT FROM pg_depend d
                      WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
  LOOP
    EXECUTE format('REVOKE EXECUTE ON ROUTINE %s FROM PUBLIC', routine.name);
    IF routine.is_called AND to_regrole('reckoner_app') IS NOT NULL THEN
      EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO reckoner_app', routine.name);
    END IF;
    IF routine.is_called AND routine.reads AND to_regrole('reckoner_reader') IS NOT NULL THEN
      EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO reckoner_reader', routine.name);
    END IF;
  END LOOP;
END
$procedure$;

CREATE FUNCTION number_fact()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  NEW.log_no := next_log_number();
  RETURN NEW;
END
$function$;

CREATE FUNCTION begin_recording()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 'in_order' = ANY (TG_ARGV) THEN
    PERFORM pg_advisory_xact_lock_shared(7310, 2);
    IF NOT log_numbers_ascend() THEN
      RAISE EXCEPTION '% of % is refused: the next number of the log is one that a checkpoint covers', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'log_numbers_ascend';
    END IF;
  END IF;
  IF 'not_while_paused' = ANY (TG_ARGV) AND is_paused() THEN
    RAISE EXCEPTION '% of % is refused: the ledger is paused', TG_OP, TG_TABLE_NAME
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'not_while_paused',
            DETAIL = (SELECT json_build_object('since', paused_at, 'reason', reason)
                      FROM open_pauses ORDER BY pause_id DESC LIMIT 1);
  END IF;
  RETURN NEW;
END
$function$;

CREATE PROCEDURE refuse_rows_while_paused(IN target regclass)
 LANGUAGE plpgsql
AS $procedure$
BEGIN
  EXECUTE format('CREATE TRIGGER not_while_paused BEFORE INSERT ON %s
                  FOR EACH STATEMENT EXECUTE FUNCTION begin_recording(not_while_paused)', target);
END
$procedure$;

CREATE PROCEDURE make_fact(IN target regclass, IN while_paused boolean DEFAULT false)
 LANGUAGE plpgsql
AS $procedure$
BEGIN
  EXECUTE format('ALTER TABLE %s ADD COLUMN log_no bigint NOT NULL CONSTRAINT %I CHECK (log_no > 0)', target,
                 target || '_fact_positive');
  EXECUTE format('CREATE UNIQUE INDEX %I ON %s (log_no)', target || '_fact', target);
  EXECUTE format('CREATE TRIGGER facts_in_order BEFORE INSERT ON %s
                  FOR EACH STATEMENT EXECUTE FUNCTION begin_recording(%s)', target,
                 CASE WHEN while_paused THEN 'in_order' ELSE 'in_order, not_while_paused' END);
  EXECUTE format('CREATE TRIGGER fact_number BEFORE INSERT ON %s
                  FOR EACH ROW EXECUTE FUNCTION number_fact()', target);
  CALL make_append_only(target);
END
$procedure$;

CREATE DOMAIN billing_month AS text COLLATE "C"
  CONSTRAINT billing_month_form CHECK (VALUE ~ '^\d{4}-(0[1-9]|1[0-2])$');

CREATE FUNCTION month_after(month text)
 RETURNS text
 LANGUAGE sql
 STABLE STRICT
AS $function$
  SELECT to_char((month || '-01')::date + interval '1 month', 'YYYY-MM')
$function$;
GRANT EXECUTE ON FUNCTION month_after TO reckoner_app;

CREATE FUNCTION is_identifier(value text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN ((value ~ '^[A-Za-z0-9][A-Za-z0-9._:-]*$') AND (length(value) <= 128));
GRANT EXECUTE ON FUNCTION is_identifier TO reckoner_app;

CREATE FUNCTION minor_digits(currency text)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN (currency = ANY (ARRAY['BIF', 'CLP', 'DJF', 'GNF', 'ISK', 'JPY', 'KMF', 'KRW', 'PYG', 'RWF', 'UGX', 'UYI', 'VND', 'VUV', 'XAF', 'XOF', 'XPF'])) THEN 0 WHEN (currency = ANY (ARRAY['BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND'])) THEN 3 WHEN (currency = ANY (ARRAY['CLF', 'UYW'])) THEN 4 ELSE 2 END;
GRANT EXECUTE ON FUNCTION minor_digits TO reckoner_app;

CREATE TABLE installation (
  only_one boolean NOT NULL DEFAULT true,
  environment text NOT NULL,
  installation_id text NOT NULL DEFAULT substr(replace((gen_random_uuid())::text, '-', ''), 1, 12),
  log_host text NOT NULL DEFAULT 'reckoner.invalid',
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT installation_pkey PRIMARY KEY (only_one),
  CONSTRAINT installation_only_one CHECK (only_one),
  CONSTRAINT installation_environment CHECK (environment = ANY (ARRAY['sandbox', 'production'])),
  CONSTRAINT installation_log_host_form CHECK (log_host ~ '^[a-z0-9]([a-z0-9.-]{0,100}[a-z0-9])?$')
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON installation FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT INSERT, SELECT ON installation TO reckoner_app;

CREATE TABLE schema_records (
  schema_record_id bigint NOT NULL,
  recorded_at timestamp with time zone NOT NULL DEFAULT now(),
  program text NOT NULL,
  server_version integer NOT NULL,
  objects jsonb NOT NULL,
  CONSTRAINT schema_records_pkey PRIMARY KEY (schema_record_id)
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON schema_records FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT SELECT ON schema_records TO reckoner_app;

CREATE TABLE job_runs (
  job_run_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  job text NOT NULL,
  started_at timestamp with time zone NOT NULL,
  finished_at timestamp with time zone NOT NULL,
  exit_status integer NOT NULL,
  CONSTRAINT job_runs_pkey PRIMARY KEY (job_run_id)
);
CREATE INDEX job_runs_latest ON job_runs USING btree (job, finished_at DESC);
CREATE TRIGGER append_only BEFORE UPDATE OR TRUNCATE ON job_runs FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER kept_rows BEFORE DELETE ON job_runs FOR EACH ROW WHEN (job_run_may_go(old.*) IS NOT TRUE) EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT DELETE, INSERT, SELECT ON job_runs TO reckoner_app;
GRANT SELECT ON SEQUENCE job_runs_job_run_id_seq TO reckoner_app;

CREATE FUNCTION job_run_may_go(run job_runs)
 RETURNS boolean
 LANGUAGE sql
 STABLE
RETURN (((run).finished_at < (now() - '400 days'::interval)) AND (EXISTS (SELECT FROM job_runs later WHERE ((later.job = (job_run_may_go.run).job) AND (ROW(later.finished_at, later.job_run_id) > ROW((job_run_may_go.run).finished_at, (job_run_may_go.run).job_run_id)) AND (((job_run_may_go.run).exit_status <> 0) OR (later.exit_status = 0))))));
GRANT EXECUTE ON FUNCTION job_run_may_go TO reckoner_app;

CREATE TABLE security_events (
  security_event_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  kind text NOT NULL,
  network text NOT NULL,
  client_id text,
  tries bigint NOT NULL,
  first_at timestamp with time zone NOT NULL,
  last_at timestamp with time zone NOT NULL,
  host text NOT NULL,
  CONSTRAINT security_events_pkey PRIMARY KEY (security_event_id),
  CONSTRAINT security_event_kind_known CHECK (kind = ANY (ARRAY['exchange_refused', 'exchange_locked', 'webhook_refused', 'webhook_locked', 'requests_limited', 'sign_in_refused', 'sign_in_locked'])),
  CONSTRAINT security_event_network_short CHECK (length(network) <= 64),
  CONSTRAINT security_event_client_short CHECK (length(client_id) <= 128),
  CONSTRAINT security_event_counted CHECK (tries > 0),
  CONSTRAINT security_event_times_in_order CHECK (first_at <= last_at)
);
CREATE INDEX security_events_latest ON security_events USING btree (last_at);
GRANT INSERT, SELECT ON security_events TO reckoner_app;
GRANT SELECT ON SEQUENCE security_events_security_event_id_seq TO reckoner_app;

CREATE TABLE job_attention (
  job text NOT NULL,
  item text NOT NULL,
  count bigint NOT NULL,
  told_at timestamp with time zone NOT NULL,
  CONSTRAINT job_attention_pkey PRIMARY KEY (job, item),
  CONSTRAINT job_attention_counted CHECK (count > 0)
);
GRANT DELETE, INSERT, SELECT, UPDATE ON job_attention TO reckoner_app;

-- 002_people ----------------------------------------------------------------------------------------------------------

CREATE FUNCTION commitment_of(salt bytea, value text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN ('#' || encode(sha256((salt || convert_to(value, 'UTF8'::name))), 'base64'));
GRANT EXECUTE ON FUNCTION commitment_of TO reckoner_app;

CREATE FUNCTION is_commitment(value text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (value ~ '^#[A-Za-z0-9+/]{43}=$');
GRANT EXECUTE ON FUNCTION is_commitment TO reckoner_app;

CREATE TABLE personal_texts (
  commitment text COLLATE "C" NOT NULL,
  salt bytea NOT NULL,
  text text NOT NULL,
  CONSTRAINT personal_texts_pkey PRIMARY KEY (commitment),
  CONSTRAINT personal_text_salt_length CHECK (length(salt) = 16),
  CONSTRAINT personal_text_matches CHECK (commitment = commitment_of(salt, text))
);
CREATE INDEX personal_texts_by_text ON personal_texts USING hash (lower(text));
CREATE TRIGGER append_only BEFORE UPDATE OR TRUNCATE ON personal_texts FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER kept_rows BEFORE DELETE ON personal_texts FOR EACH ROW WHEN (is_erased(old.commitment) IS NOT TRUE) EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT INSERT, SELECT ON personal_texts TO reckoner_app;

CREATE FUNCTION keep_text(value text)
 RETURNS text
 LANGUAGE plpgsql
AS $function$
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
$function$;
GRANT EXECUTE ON FUNCTION keep_text TO reckoner_app;

CREATE FUNCTION keep_texts_in(value jsonb, keys text, is_personal boolean DEFAULT false)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
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
$function$;
GRANT EXECUTE ON FUNCTION keep_texts_in TO reckoner_app;

CREATE FUNCTION personal(value text)
 RETURNS text
 LANGUAGE plpgsql
 STABLE PARALLEL SAFE
AS $function$
DECLARE
  found text;
BEGIN
  IF value IS NULL OR NOT is_commitment(value) THEN RETURN value; END IF;
  SELECT t.text INTO found FROM personal_texts t WHERE t.commitment = value;
  RETURN coalesce(found, '(erased)');
END
$function$;
GRANT EXECUTE ON FUNCTION personal TO reckoner_app;

CREATE FUNCTION personal(texts text[])
 RETURNS text[]
 LANGUAGE plpgsql
 STABLE PARALLEL SAFE
AS $function$
BEGIN
  FOR position IN 1 .. coalesce(cardinality(texts), 0) LOOP
    texts[position] := personal(texts[position]);
  END LOOP;
  RETURN texts;
END
$function$;
GRANT EXECUTE ON FUNCTION personal TO reckoner_app;

CREATE FUNCTION commitments_to(texts text[])
 RETURNS text[]
 LANGUAGE sql
 STABLE
RETURN ARRAY(SELECT t.commitment FROM (unnest(commitments_to.texts) given(text) JOIN personal_texts t ON (((lower(t.text) = lower(given.text)) AND (t.text = given.text)))));
GRANT EXECUTE ON FUNCTION commitments_to TO reckoner_app;

CREATE FUNCTION personal_json(value jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE PARALLEL SAFE
AS $function$
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
$function$;
GRANT EXECUTE ON FUNCTION personal_json TO reckoner_app;

CREATE FUNCTION keep_texts()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
  given jsonb := to_jsonb(NEW);
BEGIN
  RETURN jsonb_populate_record(NEW, (
    SELECT jsonb_object_agg(split_part(each, ':', 1), keep_texts_in(given->split_part(each, ':', 1),
                              format('"(%s)"', split_part(each, ':', 2)), strpos(each, ':') = 0))
    FROM unnest(TG_ARGV) AS arguments (each)));
END
$function$;

CREATE PROCEDURE keep_personal(IN target regclass, VARIADIC columns text[])
 LANGUAGE plpgsql
AS $procedure$
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
$procedure$;

CREATE FUNCTION acting_user()
 RETURNS bigint
 LANGUAGE sql
 STABLE
RETURN (NULLIF(current_setting('reckoner.user_id', true), ''))::bigint;
GRANT EXECUTE ON FUNCTION acting_user TO reckoner_app;

CREATE FUNCTION approval_details()
 RETURNS jsonb
 LANGUAGE sql
 STABLE
RETURN COALESCE((NULLIF(current_setting('reckoner.approval', true), ''))::jsonb, '{}'::jsonb);
GRANT EXECUTE ON FUNCTION approval_details TO reckoner_app;

CREATE TABLE audit_events (
  event_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  occurred_at timestamp with time zone NOT NULL,
  action text NOT NULL,
  subject text NOT NULL,
  details jsonb NOT NULL,
  claimed_by text,
  os_user text NOT NULL,
  host text NOT NULL,
  via text NOT NULL,
  user_id bigint DEFAULT acting_user(),
  log_no bigint NOT NULL,
  CONSTRAINT audit_events_pkey PRIMARY KEY (event_id),
  CONSTRAINT event_action_form CHECK (action ~ '^[a-z_]+[.][a-z_]+$'),
  CONSTRAINT event_via_known CHECK (via = ANY (ARRAY['command', 'job', 'http', 'console'])),
  CONSTRAINT event_of_the_console_has_its_user CHECK (via <> 'console' OR user_id IS NOT NULL),
  CONSTRAINT audit_events_fact_positive CHECK (log_no > 0),
  CONSTRAINT audit_events_claimed_by_kept CHECK (claimed_by = '' OR is_commitment(claimed_by)),
  CONSTRAINT event_of_a_user FOREIGN KEY (user_id) REFERENCES users(user_id) DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX audit_events_of_subject ON audit_events USING btree (subject);
CREATE INDEX audit_events_of_action ON audit_events USING btree (action, event_id);
CREATE INDEX audit_events_of_user ON audit_events USING btree (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX audit_events_of_name ON audit_events USING btree (COALESCE(claimed_by, lower(os_user))) WHERE user_id IS NULL;
CREATE INDEX audit_events_compared ON audit_events USING btree (occurred_at) WHERE jsonb_exists(details, 'compared');
CREATE INDEX audit_events_by_time ON audit_events USING brin (occurred_at) WITH (autosummarize='on');
CREATE UNIQUE INDEX audit_events_fact ON audit_events USING btree (log_no);
CREATE INDEX audit_events_of_work ON audit_events USING btree (subject, event_id DESC) WHERE action = 'work.assign';
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON audit_events FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON audit_events FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON audit_events FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order'); -- enabled: A
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON audit_events FOR EACH ROW WHEN (new.claimed_by IS NOT NULL OR (new.action <> ALL (ARRAY['quote.accept', 'requote.accept', 'quote.reverse']))) EXECUTE FUNCTION keep_texts_of_event(); -- enabled: A
GRANT INSERT, SELECT ON audit_events TO reckoner_app;
GRANT SELECT, USAGE ON SEQUENCE audit_events_event_id_seq TO reckoner_app;

CREATE FUNCTION personal_keys(action text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (('"(' || CASE WHEN (action ~~ 'user.%') THEN 'name|reason|subject|network|browser' WHEN (action ~~ 'partner.%') THEN 'invoicing_contact[.](name|email|cc)|contact_email|network' WHEN (action = ANY (ARRAY['payment.record', 'credit.refund'])) THEN 'reference' WHEN (action = ANY (ARRAY['invoice.resend', 'email.resend', 'work.assign'])) THEN 'to' WHEN (action = 'dispute.open') THEN 'owner' ELSE 'payer_name|payer_account' END) || '|approved_by|requested_by)"');
GRANT EXECUTE ON FUNCTION personal_keys TO reckoner_app;

CREATE FUNCTION acts_on_person(action text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN ((action ~~ 'user.%') OR (action = 'payment.forget_account'));
GRANT EXECUTE ON FUNCTION acts_on_person TO reckoner_app;

CREATE FUNCTION keep_texts_of_event()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  NEW.claimed_by := keep_text(NEW.claimed_by);
  IF acts_on_person(NEW.action) OR (NEW.action LIKE 'approval.%' AND acts_on_person(NEW.details->>'action')) THEN
    NEW.subject := keep_text(NEW.subject);
  END IF;
  NEW.details := keep_texts_in(NEW.details, personal_keys(NEW.action));
  RETURN NEW;
END
$function$;

CREATE TABLE erasures (
  commitment text COLLATE "C" NOT NULL,
  reason text NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT erasures_pkey PRIMARY KEY (commitment),
  CONSTRAINT erasure_commitment_form CHECK (is_commitment(commitment)),
  CONSTRAINT erasure_has_reason CHECK (btrim(reason) <> ''),
  CONSTRAINT erasures_fact_positive CHECK (log_no > 0),
  CONSTRAINT erasures_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE INDEX erasures_of_event ON erasures USING btree (event_id);
CREATE UNIQUE INDEX erasures_fact ON erasures USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON erasures FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON erasures FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON erasures FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order'); -- enabled: A
CREATE TRIGGER texts_are_erased AFTER INSERT ON erasures REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION erase_recorded_texts(); -- enabled: A
GRANT INSERT, SELECT ON erasures TO reckoner_app;

CREATE FUNCTION is_erased(commitment text)
 RETURNS boolean
 LANGUAGE sql
 STABLE
RETURN (EXISTS (SELECT FROM erasures e WHERE (e.commitment = is_erased.commitment)));
GRANT EXECUTE ON FUNCTION is_erased TO reckoner_app;

CREATE FUNCTION erase_texts(commitments text[])
 RETURNS void
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
BEGIN ATOMIC
 DELETE FROM personal_texts t
   WHERE (t.commitment = ANY (erase_texts.commitments));
END;
GRANT EXECUTE ON FUNCTION erase_texts TO reckoner_app;

CREATE FUNCTION erase_recorded_texts()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  PERFORM erase_texts((SELECT array_agg(commitment) FROM added));
  RETURN NULL;
END
$function$;

CREATE TABLE users (
  user_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  kind text NOT NULL,
  login text COLLATE "C" NOT NULL,
  name text NOT NULL,
  follows bigint,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT users_pkey PRIMARY KEY (user_id),
  CONSTRAINT user_followed_once UNIQUE (follows),
  CONSTRAINT user_kind_known CHECK (kind = ANY (ARRAY['person', 'program'])),
  CONSTRAINT user_has_name CHECK (btrim(name) <> ''),
  CONSTRAINT users_fact_positive CHECK (log_no > 0),
  CONSTRAINT users_login_kept CHECK (login = '' OR is_commitment(login)),
  CONSTRAINT users_name_kept CHECK (name = '' OR is_commitment(name)),
  CONSTRAINT users_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT user_follows_an_ended_one FOREIGN KEY (follows) REFERENCES user_ends(user_id) DEFERRABLE INITIALLY DEFERRED
);
CREATE UNIQUE INDEX users_fact ON users USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON users FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON users FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order'); -- enabled: A
CREATE TRIGGER login_once BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION refuse_wrong_login(); -- enabled: A
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION keep_texts('login', 'name'); -- enabled: A
GRANT INSERT, SELECT ON users TO reckoner_app;
GRANT SELECT ON SEQUENCE users_user_id_seq TO reckoner_app;

CREATE TABLE user_ends (
  user_id bigint NOT NULL,
  reason text,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT user_ends_pkey PRIMARY KEY (user_id),
  CONSTRAINT user_ends_fact_positive CHECK (log_no > 0),
  CONSTRAINT user_ends_reason_kept CHECK (reason = '' OR is_commitment(reason)),
  CONSTRAINT user_ends_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(user_id),
  CONSTRAINT user_ends_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX user_ends_fact ON user_ends USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON user_ends FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON user_ends FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON user_ends FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order'); -- enabled: A
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON user_ends FOR EACH ROW EXECUTE FUNCTION keep_texts('reason'); -- enabled: A
GRANT INSERT, SELECT ON user_ends TO reckoner_app;

CREATE FUNCTION refuse_wrong_login()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
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
  RAISE EXCEPTION 'the login of the new user violates %', violated
    USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = violated;
END
$function$;

CREATE TABLE user_roles (
  user_role_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  user_id bigint NOT NULL,
  action text NOT NULL,
  role text NOT NULL,
  partner_id text COLLATE "C",
  source text NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT user_roles_pkey PRIMARY KEY (user_role_id),
  CONSTRAINT user_role_action_known CHECK (action = ANY (ARRAY['grant', 'revoke'])),
  CONSTRAINT user_role_known CHECK (role = ANY (ARRAY['viewer', 'finance', 'approver', 'administrator'])),
  CONSTRAINT user_role_source_known CHECK (source = ANY (ARRAY['administrator', 'claim'])),
  CONSTRAINT administrator_of_all_partners CHECK (role <> 'administrator' OR partner_id IS NULL),
  CONSTRAINT user_roles_fact_positive CHECK (log_no > 0),
  CONSTRAINT user_roles_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(user_id),
  CONSTRAINT user_roles_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT user_role_of_a_partner FOREIGN KEY (partner_id) REFERENCES partners(partner_id)
);
CREATE INDEX user_roles_of_user ON user_roles USING btree (user_id, user_role_id);
CREATE UNIQUE INDEX user_roles_fact ON user_roles USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON user_roles FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON user_roles FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON user_roles FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order'); -- enabled: A
GRANT INSERT, SELECT ON user_roles TO reckoner_app;
GRANT SELECT ON SEQUENCE user_roles_user_role_id_seq TO reckoner_app;

CREATE VIEW active_users AS
 SELECT user_id, kind, personal(login) COLLATE "C" AS login, personal(name) AS name, follows, recorded_at, event_id
   FROM users u
  WHERE NOT (EXISTS ( SELECT
           FROM user_ends e
          WHERE e.user_id = u.user_id));
GRANT SELECT ON active_users TO reckoner_app;

CREATE VIEW present_roles AS
 SELECT user_id, role, partner_id, source
   FROM ( SELECT DISTINCT ON (user_roles.user_id, user_roles.role, user_roles.partner_id, user_roles.source) user_roles.user_id,
            user_roles.role, user_roles.partner_id, user_roles.source, user_roles.action
           FROM user_roles
          ORDER BY user_roles.user_id, user_roles.role, user_roles.partner_id, user_roles.source, user_roles.user_role_id DESC) latest
  WHERE action = 'grant' AND NOT (EXISTS ( SELECT
           FROM user_ends e
          WHERE e.user_id = latest.user_id));
GRANT SELECT ON present_roles TO reckoner_app;

CREATE TABLE user_identities (
  user_id bigint NOT NULL,
  issuer text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT user_identities_pkey PRIMARY KEY (issuer, subject, user_id),
  CONSTRAINT user_identities_fact_positive CHECK (log_no > 0),
  CONSTRAINT user_identities_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(user_id),
  CONSTRAINT user_identities_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX user_identities_fact ON user_identities USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON user_identities FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON user_identities FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON user_identities FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order'); -- enabled: A
GRANT INSERT, SELECT ON user_identities TO reckoner_app;

CREATE TABLE passkeys (
  passkey_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  user_id bigint NOT NULL,
  credential_id text COLLATE "C" NOT NULL,
  public_key bytea NOT NULL,
  name text NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT passkeys_pkey PRIMARY KEY (passkey_id),
  CONSTRAINT passkey_once UNIQUE (credential_id),
  CONSTRAINT passkey_credential_form CHECK (credential_id ~ '^[A-Za-z0-9_-]+$' AND length(credential_id) >= 16 AND length(credential_id) <= 1400),
  CONSTRAINT passkey_has_name CHECK (btrim(name) <> ''),
  CONSTRAINT passkeys_fact_positive CHECK (log_no > 0),
  CONSTRAINT passkeys_name_kept CHECK (name = '' OR is_commitment(name)),
  CONSTRAINT passkeys_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(user_id),
  CONSTRAINT passkeys_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE INDEX passkeys_of_user ON passkeys USING btree (user_id);
CREATE UNIQUE INDEX passkeys_fact ON passkeys USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON passkeys FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON passkeys FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON passkeys FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order'); -- enabled: A
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON passkeys FOR EACH ROW EXECUTE FUNCTION keep_texts('name'); -- enabled: A
GRANT INSERT, SELECT ON passkeys TO reckoner_app;
GRANT SELECT ON SEQUENCE passkeys_passkey_id_seq TO reckoner_app;

CREATE TABLE passkey_ends (
  passkey_id bigint NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT passkey_ends_pkey PRIMARY KEY (passkey_id),
  CONSTRAINT passkey_ends_fact_positive CHECK (log_no > 0),
  CONSTRAINT passkey_ends_passkey_id_fkey FOREIGN KEY (passkey_id) REFERENCES passkeys(passkey_id),
  CONSTRAINT passkey_ends_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX passkey_ends_fact ON passkey_ends USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON passkey_ends FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON passkey_ends FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON passkey_ends FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order'); -- enabled: A
GRANT INSERT, SELECT ON passkey_ends TO reckoner_app;

CREATE VIEW present_work_assignments AS
 SELECT DISTINCT ON (subject) subject AS item, (details ->> 'user_id')::bigint AS user_id, event_id
   FROM audit_events
  WHERE action = 'work.assign'
  ORDER BY subject, event_id DESC;
GRANT SELECT ON present_work_assignments TO reckoner_app;

CREATE TABLE passkey_uses (
  passkey_id bigint NOT NULL,
  counter bigint NOT NULL,
  used_at timestamp with time zone NOT NULL,
  CONSTRAINT passkey_uses_pkey PRIMARY KEY (passkey_id),
  CONSTRAINT passkey_uses_passkey_id_fkey FOREIGN KEY (passkey_id) REFERENCES passkeys(passkey_id)
);
GRANT INSERT, SELECT, UPDATE ON passkey_uses TO reckoner_app;

CREATE TABLE sign_in_links (
  sha256 text COLLATE "C" NOT NULL,
  user_id bigint NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  used_at timestamp with time zone,
  event_id bigint NOT NULL,
  CONSTRAINT sign_in_links_pkey PRIMARY KEY (sha256),
  CONSTRAINT sign_in_link_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  CONSTRAINT sign_in_links_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(user_id),
  CONSTRAINT sign_in_links_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE INDEX sign_in_links_of_user ON sign_in_links USING btree (user_id);
GRANT DELETE, INSERT, SELECT, UPDATE ON sign_in_links TO reckoner_app;

CREATE TABLE sign_in_challenges (
  sha256 text COLLATE "C" NOT NULL,
  kind text NOT NULL,
  content jsonb NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT sign_in_challenges_pkey PRIMARY KEY (sha256),
  CONSTRAINT sign_in_challenge_known CHECK (kind = ANY (ARRAY['passkey', 'new_passkey', 'provider']))
);
CREATE INDEX sign_in_challenges_ended ON sign_in_challenges USING btree (expires_at);
GRANT DELETE, INSERT, SELECT, UPDATE ON sign_in_challenges TO reckoner_app;

CREATE TABLE sessions (
  session_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  sha256 text COLLATE "C" NOT NULL,
  user_id bigint NOT NULL,
  method text NOT NULL,
  network text NOT NULL,
  browser text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  last_seen_at timestamp with time zone NOT NULL,
  ends_at timestamp with time zone NOT NULL,
  ended_at timestamp with time zone,
  event_id bigint NOT NULL,
  CONSTRAINT sessions_pkey PRIMARY KEY (session_id),
  CONSTRAINT session_once UNIQUE (sha256),
  CONSTRAINT session_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  CONSTRAINT session_method_known CHECK (method = ANY (ARRAY['link', 'passkey', 'provider'])),
  CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(user_id),
  CONSTRAINT sessions_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE INDEX sessions_of_user ON sessions USING btree (user_id);
GRANT DELETE, INSERT, SELECT, UPDATE ON sessions TO reckoner_app;
GRANT SELECT ON SEQUENCE sessions_session_id_seq TO reckoner_app;

CREATE TABLE pauses (
  pause_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  cause text NOT NULL,
  reason text NOT NULL,
  state_of timestamp with time zone,
  paused_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT pauses_pkey PRIMARY KEY (pause_id),
  CONSTRAINT pause_cause_known CHECK (cause = ANY (ARRAY['command', 'restore'])),
  CONSTRAINT pause_has_reason CHECK (btrim(reason) <> ''),
  CONSTRAINT pause_of_a_restore_has_its_state CHECK ((cause = 'restore') = (state_of IS NOT NULL)),
  CONSTRAINT pauses_fact_positive CHECK (log_no > 0),
  CONSTRAINT pauses_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX pauses_fact ON pauses USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON pauses FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON pauses FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON pauses FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order'); -- enabled: A
GRANT INSERT, SELECT ON pauses TO reckoner_app;
GRANT SELECT ON SEQUENCE pauses_pause_id_seq TO reckoner_app;

CREATE TABLE resumptions (
  pause_id bigint NOT NULL,
  resumed_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT resumptions_pkey PRIMARY KEY (pause_id),
  CONSTRAINT resumptions_fact_positive CHECK (log_no > 0),
  CONSTRAINT resumptions_pause_id_fkey FOREIGN KEY (pause_id) REFERENCES pauses(pause_id),
  CONSTRAINT resumptions_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX resumptions_fact ON resumptions USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON resumptions FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON resumptions FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON resumptions FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order'); -- enabled: A
GRANT INSERT, SELECT ON resumptions TO reckoner_app;

CREATE VIEW open_pauses AS
 SELECT pause_id, cause, reason, state_of, paused_at, event_id, log_no
   FROM pauses p
  WHERE NOT (EXISTS ( SELECT
           FROM resumptions r
          WHERE r.pause_id = p.pause_id));
GRANT SELECT ON open_pauses TO reckoner_app;

CREATE FUNCTION end_open_pauses()
 RETURNS void
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF is_paused() THEN
    INSERT INTO resumptions (pause_id, resumed_at, event_id) SELECT pause_id, paused_at, event_id FROM open_pauses;
  END IF;
END
$function$;
GRANT EXECUTE ON FUNCTION end_open_pauses TO reckoner_app;

CREATE FUNCTION is_paused()
 RETURNS boolean
 LANGUAGE sql
 STABLE
RETURN (EXISTS (SELECT FROM open_pauses));
GRANT EXECUTE ON FUNCTION is_paused TO reckoner_app;

-- 003_partners --------------------------------------------------------------------------------------------------------

CREATE TABLE partners (
  partner_id text COLLATE "C" NOT NULL,
  name text NOT NULL,
  address_line1 text NOT NULL,
  address_line2 text NOT NULL,
  address_city text NOT NULL,
  address_region text NOT NULL,
  address_postal_code text NOT NULL,
  address_country text NOT NULL,
  contact_name text NOT NULL,
  contact_email text NOT NULL,
  contact_cc text[] NOT NULL,
  currency text NOT NULL,
  time_zone text NOT NULL,
  payment_terms_days integer,
  tax_id text NOT NULL,
  purchase_order text NOT NULL,
  legal_note text NOT NULL,
  parent text COLLATE "C",
  account_statement text NOT NULL DEFAULT 'none',
  e_invoice text NOT NULL DEFAULT 'none',
  buyer_reference text NOT NULL DEFAULT '',
  electronic_address text NOT NULL DEFAULT '',
  feed text,
  inactive_since timestamp with time zone,
  imported_at timestamp with time zone NOT NULL,
  CONSTRAINT partners_pkey PRIMARY KEY (partner_id),
  CONSTRAINT partner_id_form CHECK (is_identifier(partner_id)),
  CONSTRAINT partner_has_name CHECK (name <> ''),
  CONSTRAINT partner_currency_form CHECK (currency ~ '^[A-Z]{3}$'),
  CONSTRAINT partner_terms_range CHECK (payment_terms_days >= 0 AND payment_terms_days <= 365),
  CONSTRAINT partner_parent_is_another CHECK (parent <> partner_id),
  CONSTRAINT partner_account_statement_known CHECK (account_statement = ANY (ARRAY['none', 'monthly'])),
  CONSTRAINT partner_e_invoice_known CHECK (e_invoice = ANY (ARRAY['none', 'facturx', 'ubl', 'xrechnung'])),
  CONSTRAINT partner_feed_known CHECK (feed = 'strict'),
  CONSTRAINT partner_parent_known FOREIGN KEY (parent) REFERENCES partners(partner_id)
);
CREATE INDEX partners_of_parent ON partners USING btree (parent) WHERE parent IS NOT NULL;
CREATE CONSTRAINT TRIGGER partner_parent_not_cyclic AFTER INSERT OR UPDATE OF parent ON partners DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (new.parent IS NOT NULL) EXECUTE FUNCTION refuse_cyclic_parent(); -- enabled: A
GRANT INSERT, SELECT, UPDATE ON partners TO reckoner_app;

CREATE FUNCTION refuse_cyclic_parent()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF EXISTS (
    WITH RECURSIVE above AS (
      SELECT NEW.parent AS partner_id
      UNION
      SELECT p.parent FROM above JOIN partners p USING (partner_id) WHERE p.parent IS NOT NULL
    )
    SELECT FROM above WHERE partner_id = NEW.partner_id
  ) THEN
    RAISE EXCEPTION 'partner % would be a parent of itself', NEW.partner_id
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'partner_parent_not_cyclic';
  END IF;
  RETURN NULL;
END
$function$;

CREATE VIEW partner_payers AS
 WITH RECURSIVE above AS (
         SELECT partners.partner_id, partners.parent AS payer_id, 1 AS distance
           FROM partners
          WHERE partners.parent IS NOT NULL
        UNION ALL
         SELECT a.partner_id, p.parent, a.distance + 1
           FROM above a
             JOIN partners p ON p.partner_id = a.payer_id
          WHERE p.parent IS NOT NULL
        )
 SELECT partner_id, payer_id, distance
   FROM above;
GRANT SELECT ON partner_payers TO reckoner_app;

CREATE TABLE partner_arrangements (
  partner_id text COLLATE "C" NOT NULL,
  from_month billing_month NOT NULL,
  arrangement text NOT NULL,
  connected_account_id text,
  merchant_of_record text,
  split text,
  settlement_currencies text[],
  connected_account_type text,
  connected_account_state text,
  balance_transactions_from text,
  CONSTRAINT partner_arrangements_pkey PRIMARY KEY (partner_id, from_month),
  CONSTRAINT arrangement_known CHECK (arrangement = ANY (ARRAY['invoicing', 'connected_account'])),
  CONSTRAINT merchant_known CHECK (merchant_of_record = ANY (ARRAY['platform', 'third_party'])),
  CONSTRAINT split_known CHECK (split = ANY (ARRAY['real_time', 'sequential'])),
  CONSTRAINT connected_account_type_known CHECK (connected_account_type = ANY (ARRAY['standard', 'express', 'custom'])),
  CONSTRAINT connected_account_state_known CHECK (connected_account_state = ANY (ARRAY['invited', 'onboarding', 'active', 'restricted', 'disconnected'])),
  CONSTRAINT balance_transactions_from_known CHECK (balance_transactions_from = ANY (ARRAY['processor', 'settlement_file'])),
  CONSTRAINT connected_account_complete CHECK ((arrangement = 'connected_account') = (connected_account_id IS NOT NULL) AND (arrangement = 'connected_account') = (merchant_of_record IS NOT NULL) AND (arrangement = 'connected_account') = (split IS NOT NULL)),
  CONSTRAINT real_time_needs_platform_merchant CHECK (NOT (split = 'real_time' AND merchant_of_record = 'third_party')),
  CONSTRAINT onboarding_is_of_a_connected_account CHECK (arrangement = 'connected_account' OR num_nonnulls(settlement_currencies, connected_account_type, connected_account_state, balance_transactions_from) = 0),
  CONSTRAINT partner_arrangements_partner_id_fkey FOREIGN KEY (partner_id) REFERENCES partners(partner_id)
);
CREATE INDEX partner_arrangements_of_account ON partner_arrangements USING btree (connected_account_id) WHERE connected_account_id IS NOT NULL;
GRANT INSERT, SELECT, UPDATE ON partner_arrangements TO reckoner_app;

CREATE FUNCTION are_dated_rates(rates jsonb)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN ((jsonb_typeof(rates) = 'array') AND (NOT (EXISTS (SELECT FROM (SELECT (e.each ->> 'from') AS day, ((e.each ->> 'rate'))::numeric AS rate, lag((e.each ->> 'from')) OVER (ORDER BY e.nth) AS before FROM jsonb_array_elements(CASE jsonb_typeof(are_dated_rates.rates) WHEN 'array' THEN are_dated_rates.rates ELSE NULL::jsonb END) WITH ORDINALITY e(each, nth)) r WHERE ((((r.day ~ '^\d{4}-\d\d-\d\d$') AND ((r.rate >= (0)::numeric) AND (r.rate <= (1)::numeric))) IS NOT TRUE) OR ((r.before COLLATE "C") >= r.day))))));
GRANT EXECUTE ON FUNCTION are_dated_rates TO reckoner_app;

CREATE TABLE policies (
  partner_id text COLLATE "C" NOT NULL,
  policy_id text COLLATE "C" NOT NULL,
  name text NOT NULL,
  kind text NOT NULL,
  partner_cut_rate numeric NOT NULL,
  dated_cut_rates jsonb NOT NULL DEFAULT '[]'::jsonb,
  price_rate numeric,
  price_minimum numeric,
  largest_price numeric,
  inactive_since timestamp with time zone,
  CONSTRAINT policies_pkey PRIMARY KEY (partner_id, policy_id),
  CONSTRAINT policy_id_form CHECK (is_identifier(policy_id)),
  CONSTRAINT policy_has_name CHECK (name <> ''),
  CONSTRAINT policy_kind_known CHECK (kind = ANY (ARRAY['insurance', 'non_insurance'])),
  CONSTRAINT partner_cut_rate_range CHECK (partner_cut_rate >= 0::numeric AND partner_cut_rate <= 1::numeric),
  CONSTRAINT dated_cut_rates_form CHECK (are_dated_rates(dated_cut_rates)),
  CONSTRAINT price_rate_range CHECK (price_rate >= 0::numeric),
  CONSTRAINT price_minimum_range CHECK (price_minimum >= 0::numeric),
  CONSTRAINT largest_price_positive CHECK (largest_price > 0::numeric),
  CONSTRAINT price_complete CHECK ((price_rate IS NULL) = (price_minimum IS NULL)),
  CONSTRAINT policies_partner_id_fkey FOREIGN KEY (partner_id) REFERENCES partners(partner_id)
);
CREATE TRIGGER policies_keep_their_names BEFORE UPDATE OF partner_id, policy_id ON policies FOR EACH ROW WHEN (old.partner_id IS DISTINCT FROM new.partner_id OR old.policy_id IS DISTINCT FROM new.policy_id) EXECUTE FUNCTION refuse_lost_policy(); -- enabled: A
CREATE TRIGGER policies_stay BEFORE DELETE ON policies FOR EACH ROW EXECUTE FUNCTION refuse_lost_policy(); -- enabled: A
CREATE TRIGGER policies_stay_whole BEFORE TRUNCATE ON policies FOR EACH STATEMENT EXECUTE FUNCTION refuse_lost_policy(); -- enabled: A
GRANT INSERT, SELECT, UPDATE ON policies TO reckoner_app;

CREATE FUNCTION cut_rate_on(policy policies, day date)
 RETURNS numeric
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN COALESCE((SELECT ((e.each ->> 'rate'))::numeric AS "numeric" FROM jsonb_array_elements((cut_rate_on.policy).dated_cut_rates) WITH ORDINALITY e(each, nth) WHERE ((e.each ->> ('from' COLLATE "C")) <= to_char((cut_rate_on.day)::timestamp with time zone, 'YYYY-MM-DD')) ORDER BY e.nth DESC LIMIT 1), (policy).partner_cut_rate);
GRANT EXECUTE ON FUNCTION cut_rate_on TO reckoner_app;

CREATE TABLE cancellation_terms (
  cancellation_terms_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  partner_id text COLLATE "C" NOT NULL,
  policy_id text COLLATE "C" NOT NULL,
  from_day date,
  window_days integer,
  after_window text,
  cut text,
  before_cover_only boolean,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT cancellation_terms_pkey PRIMARY KEY (cancellation_terms_id),
  CONSTRAINT cancellation_terms_once_for_a_day UNIQUE NULLS NOT DISTINCT (partner_id, policy_id, event_id, from_day),
  CONSTRAINT cancellation_window_range CHECK (window_days >= 0 AND window_days <= 3660),
  CONSTRAINT cancellation_after_window_known CHECK (after_window = ANY (ARRAY['none', 'pro_rata', 'full'])),
  CONSTRAINT cancellation_cut_known CHECK (cut = ANY (ARRAY['in_proportion', 'kept_by_partner'])),
  CONSTRAINT cancellation_terms_complete CHECK (num_nonnulls(window_days, after_window, cut, before_cover_only) = ANY (ARRAY[0, 4])),
  CONSTRAINT cancellation_terms_fact_positive CHECK (log_no > 0),
  CONSTRAINT cancellation_terms_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT cancellation_terms_partner_id_policy_id_fkey FOREIGN KEY (partner_id, policy_id) REFERENCES policies(partner_id, policy_id)
);
CREATE UNIQUE INDEX cancellation_terms_fact ON cancellation_terms USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON cancellation_terms FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON cancellation_terms FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON cancellation_terms FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON cancellation_terms TO reckoner_app;
GRANT SELECT ON SEQUENCE cancellation_terms_cancellation_terms_id_seq TO reckoner_app;

CREATE VIEW present_cancellation_terms AS
 SELECT cancellation_terms_id, partner_id, policy_id, from_day, window_days, after_window, cut, before_cover_only,
    recorded_at, event_id, log_no
   FROM cancellation_terms t
  WHERE event_id = (( SELECT max(l.event_id) AS max
           FROM cancellation_terms l
          WHERE l.partner_id = t.partner_id AND l.policy_id = t.policy_id));
GRANT SELECT ON present_cancellation_terms TO reckoner_app;

CREATE FUNCTION refuse_lost_policy()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  RAISE EXCEPTION '% of policies is refused: rows name them for good, a policy is made inactive instead', TG_OP
    USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'policies_stay';
END
$function$;

CREATE TABLE api_clients (
  client_id text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  created_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT api_clients_pkey PRIMARY KEY (client_id),
  CONSTRAINT client_of_partner UNIQUE (client_id, partner_id),
  CONSTRAINT client_id_form CHECK (is_identifier(client_id)),
  CONSTRAINT api_clients_fact_positive CHECK (log_no > 0),
  CONSTRAINT api_clients_partner_id_fkey FOREIGN KEY (partner_id) REFERENCES partners(partner_id),
  CONSTRAINT api_clients_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE INDEX api_clients_of_partner ON api_clients USING btree (partner_id);
CREATE UNIQUE INDEX api_clients_fact ON api_clients USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON api_clients FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON api_clients FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON api_clients FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order'); -- enabled: A
GRANT INSERT, SELECT ON api_clients TO reckoner_app;

CREATE TABLE client_secrets (
  client_id text COLLATE "C" NOT NULL,
  sequence integer NOT NULL,
  secret_sha256 text NOT NULL,
  issued_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone,
  previous_sequence integer GENERATED ALWAYS AS (NULLIF((sequence - 1), 0)) STORED,
  previous_ends_at timestamp with time zone,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT client_secrets_pkey PRIMARY KEY (client_id, sequence),
  CONSTRAINT client_secret_sequence_positive CHECK (sequence > 0),
  CONSTRAINT client_secret_is_a_hash CHECK (secret_sha256 ~ '^[0-9a-f]{64}$'),
  CONSTRAINT client_secret_expires_after_issue CHECK (expires_at > issued_at),
  CONSTRAINT client_secret_ends_the_one_before CHECK ((sequence = 1) = (previous_ends_at IS NULL)),
  CONSTRAINT client_secrets_fact_positive CHECK (log_no > 0),
  CONSTRAINT client_secrets_client_id_fkey FOREIGN KEY (client_id) REFERENCES api_clients(client_id),
  CONSTRAINT client_secrets_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT client_secret_follows FOREIGN KEY (client_id, previous_sequence) REFERENCES client_secrets(client_id, sequence)
);
CREATE UNIQUE INDEX client_secrets_fact ON client_secrets USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON client_secrets FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON client_secrets FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON client_secrets FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order'); -- enabled: A
GRANT INSERT, SELECT ON client_secrets TO reckoner_app;

CREATE TABLE client_revocations (
  client_id text COLLATE "C" NOT NULL,
  revoked_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT client_revocations_pkey PRIMARY KEY (client_id),
  CONSTRAINT client_revocations_fact_positive CHECK (log_no > 0),
  CONSTRAINT client_revocations_client_id_fkey FOREIGN KEY (client_id) REFERENCES api_clients(client_id),
  CONSTRAINT client_revocations_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX client_revocations_fact ON client_revocations USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON client_revocations FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON client_revocations FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON client_revocations FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order'); -- enabled: A
GRANT INSERT, SELECT ON client_revocations TO reckoner_app;

CREATE TABLE client_uses (
  client_id text COLLATE "C" NOT NULL,
  used_at timestamp with time zone NOT NULL,
  CONSTRAINT client_uses_pkey PRIMARY KEY (client_id),
  CONSTRAINT client_uses_client_id_fkey FOREIGN KEY (client_id) REFERENCES api_clients(client_id)
);
GRANT INSERT, SELECT, UPDATE ON client_uses TO reckoner_app;

CREATE TABLE signing_keys (
  kid text COLLATE "C" NOT NULL,
  public_jwk jsonb NOT NULL,
  published_at timestamp with time zone NOT NULL,
  signs_until timestamp with time zone NOT NULL,
  published_until timestamp with time zone NOT NULL,
  CONSTRAINT signing_keys_pkey PRIMARY KEY (kid),
  CONSTRAINT signing_key_is_public CHECK (NOT jsonb_exists(public_jwk, 'd')),
  CONSTRAINT signing_key_outlives_its_tokens CHECK (published_at < signs_until AND signs_until < published_until)
);
CREATE INDEX signing_keys_in_use ON signing_keys USING btree (published_until);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON signing_keys FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT INSERT, SELECT ON signing_keys TO reckoner_app;

CREATE TABLE failed_exchanges (
  key text NOT NULL,
  failures integer NOT NULL,
  ends_at timestamp with time zone NOT NULL,
  CONSTRAINT failed_exchanges_pkey PRIMARY KEY (key),
  CONSTRAINT failed_exchange_key_length CHECK (length(key) <= 200)
);
CREATE INDEX failed_exchanges_ended ON failed_exchanges USING btree (ends_at);
GRANT DELETE, INSERT, SELECT, UPDATE ON failed_exchanges TO reckoner_app;

CREATE UNLOGGED TABLE request_counts (
  key text COLLATE "C" NOT NULL,
  requests integer NOT NULL,
  ends_at timestamp with time zone NOT NULL,
  CONSTRAINT request_counts_pkey PRIMARY KEY (key),
  CONSTRAINT request_count_key_length CHECK (length(key) <= 200)
);
CREATE INDEX request_counts_ended ON request_counts USING btree (ends_at);
GRANT DELETE, INSERT, SELECT, UPDATE ON request_counts TO reckoner_app;

CREATE TABLE partner_sign_in_links (
  sha256 text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  contact_name text NOT NULL,
  contact_email text NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  used_at timestamp with time zone,
  CONSTRAINT partner_sign_in_links_pkey PRIMARY KEY (sha256),
  CONSTRAINT partner_sign_in_link_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  CONSTRAINT partner_sign_in_link_has_address CHECK (contact_email <> ''),
  CONSTRAINT partner_sign_in_links_partner_id_fkey FOREIGN KEY (partner_id) REFERENCES partners(partner_id)
);
CREATE INDEX partner_sign_in_links_ended ON partner_sign_in_links USING btree (expires_at);
GRANT DELETE, INSERT, SELECT, UPDATE ON partner_sign_in_links TO reckoner_app;

CREATE TABLE partner_sessions (
  sha256 text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  contact_name text NOT NULL,
  contact_email text NOT NULL,
  last_seen_at timestamp with time zone NOT NULL,
  ends_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  CONSTRAINT partner_sessions_pkey PRIMARY KEY (sha256),
  CONSTRAINT partner_session_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  CONSTRAINT partner_sessions_partner_id_fkey FOREIGN KEY (partner_id) REFERENCES partners(partner_id),
  CONSTRAINT partner_sessions_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE INDEX partner_sessions_ended ON partner_sessions USING btree (ends_at);
GRANT DELETE, INSERT, SELECT, UPDATE ON partner_sessions TO reckoner_app;

CREATE TABLE presentation (
  only_one boolean NOT NULL DEFAULT true,
  we_are text NOT NULL,
  CONSTRAINT presentation_pkey PRIMARY KEY (only_one),
  CONSTRAINT presentation_only_one CHECK (only_one),
  CONSTRAINT presentation_known CHECK (we_are = ANY (ARRAY['supplier_to_partner', 'principal']))
);
CREATE TRIGGER append_only BEFORE DELETE OR TRUNCATE ON presentation FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER kept_rows BEFORE UPDATE ON presentation FOR EACH ROW WHEN (has_no_rows() IS NOT TRUE) EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT INSERT, SELECT, UPDATE ON presentation TO reckoner_app;

-- 004_ledger ----------------------------------------------------------------------------------------------------------

CREATE TABLE closed_months (
  month billing_month NOT NULL,
  previous billing_month,
  issued_on date NOT NULL,
  closed_at timestamp with time zone NOT NULL,
  entries bigint NOT NULL,
  late_entries bigint NOT NULL,
  partners_with_documents bigint NOT NULL,
  partners_without_activity bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT closed_months_pkey PRIMARY KEY (month),
  CONSTRAINT closed_months_chain UNIQUE NULLS NOT DISTINCT (previous),
  CONSTRAINT closed_months_follow CHECK (month::text = month_after(previous::text)),
  CONSTRAINT closed_months_late_are_entries CHECK (late_entries >= 0 AND late_entries <= entries),
  CONSTRAINT closed_months_fact_positive CHECK (log_no > 0),
  CONSTRAINT closed_months_previous_fkey FOREIGN KEY (previous) REFERENCES closed_months(month)
);
CREATE UNIQUE INDEX closed_months_fact ON closed_months USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON closed_months FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON closed_months FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON closed_months FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE CONSTRAINT TRIGGER month_has_ended AFTER INSERT ON closed_months DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_running_month(); -- enabled: A
GRANT INSERT, SELECT ON closed_months TO reckoner_app;

CREATE FUNCTION first_instant(month text, zone text)
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
  midnight timestamp := (month || '-01')::timestamp;
  instant timestamptz;
BEGIN
  instant := midnight AT TIME ZONE zone;
  RETURN CASE WHEN (instant - interval '1 hour') AT TIME ZONE zone >= midnight THEN instant - interval '1 hour'
         ELSE instant END;
EXCEPTION WHEN invalid_parameter_value THEN
  RETURN midnight AT TIME ZONE 'Etc/GMT-14';
END
$function$;
GRANT EXECUTE ON FUNCTION first_instant TO reckoner_app;

CREATE FUNCTION refuse_running_month()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
  ended_at timestamptz;
BEGIN
  IF current_setting('reckoner.clock_is_set', true) = 'on'
     AND EXISTS (SELECT FROM installation WHERE environment = 'sandbox') THEN
    RETURN NULL;
  END IF;
  SELECT max(first_instant(month_after(NEW.month), time_zone)) INTO ended_at FROM partners
  WHERE inactive_since IS NULL OR NOT EXISTS (SELECT FROM partners WHERE inactive_since IS NULL);
  IF coalesce(ended_at, first_instant(month_after(NEW.month), 'Etc/GMT-14')) > clock_timestamp() THEN
    RAISE EXCEPTION '% has not ended: by the clock of the database it is %', NEW.month, clock_timestamp()
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'closed_months_have_ended';
  END IF;
  RETURN NULL;
END
$function$;

CREATE TABLE book_closes (
  month billing_month NOT NULL,
  previous billing_month,
  facts_to bigint NOT NULL,
  closed_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT book_closes_pkey PRIMARY KEY (month),
  CONSTRAINT book_closes_chain UNIQUE NULLS NOT DISTINCT (previous),
  CONSTRAINT book_closes_follow CHECK (month::text = month_after(previous::text)),
  CONSTRAINT book_closes_fact_positive CHECK (log_no > 0),
  CONSTRAINT book_close_after_billing FOREIGN KEY (month) REFERENCES closed_months(month),
  CONSTRAINT book_closes_previous_fkey FOREIGN KEY (previous) REFERENCES book_closes(month),
  CONSTRAINT book_closes_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX book_closes_fact ON book_closes USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON book_closes FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON book_closes FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON book_closes FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON book_closes TO reckoner_app;

CREATE TABLE book_balances (
  month billing_month NOT NULL,
  control text COLLATE "C" NOT NULL,
  account text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT book_balances_pkey PRIMARY KEY (month, account, currency),
  CONSTRAINT book_balance_not_zero CHECK (amount <> 0::numeric),
  CONSTRAINT book_balances_fact_positive CHECK (log_no > 0),
  CONSTRAINT book_balance_of_closed_books FOREIGN KEY (month) REFERENCES book_closes(month) DEFERRABLE INITIALLY DEFERRED
);
CREATE UNIQUE INDEX book_balances_fact ON book_balances USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON book_balances FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON book_balances FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON book_balances FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON book_balances TO reckoner_app;

CREATE FUNCTION earliest_postable_date()
 RETURNS date
 LANGUAGE sql
 STABLE
AS $function$
  SELECT (month_after(max(month)) || '-01')::date FROM book_closes
$function$;
GRANT EXECUTE ON FUNCTION earliest_postable_date TO reckoner_app;

CREATE FUNCTION refuse_entry_in_closed_books()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
  last_closed text;
  earliest date := (SELECT min(entry_on) FROM added);
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7310, 2);
  SELECT max(month) INTO last_closed FROM book_closes;
  IF to_char(earliest, 'YYYY-MM') COLLATE "C" <= last_closed THEN
    RAISE EXCEPTION 'an entry of % cannot be dated %: the books are closed to %', TG_TABLE_NAME, earliest, last_closed
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = TG_TABLE_NAME || '_books_open';
  END IF;
  RETURN NULL;
END
$function$;

CREATE PROCEDURE require_open_books(IN target regclass)
 LANGUAGE plpgsql
AS $procedure$
BEGIN
  EXECUTE format('CREATE TRIGGER entry_books_open AFTER INSERT ON %s REFERENCING NEW TABLE AS added
                  FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_books()', target);
END
$procedure$;

CREATE FUNCTION is_order_reference(value text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (((length(value) >= 1) AND (length(value) <= 128)) AND (btrim(value) = value) AND (value !~ '[--­​-‏ -‮⁠-⁯﻿�]'));
GRANT EXECUTE ON FUNCTION is_order_reference TO reckoner_app;

CREATE FUNCTION is_cover(from_day date, to_day date)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (COALESCE(((from_day >= '1970-01-01'::date) AND (from_day <= '9999-12-31'::date)), (to_day IS NULL)) AND COALESCE(((to_day >= from_day) AND (to_day <= '9999-12-31'::date)), (to_day IS NULL)));
GRANT EXECUTE ON FUNCTION is_cover TO reckoner_app;

CREATE TABLE ledger_rows (
  partner_id text COLLATE "C" NOT NULL,
  posted_month text COLLATE "C" NOT NULL,
  entry_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  kind text COLLATE "C" NOT NULL,
  quote_id text COLLATE "C" NOT NULL,
  requote_id text COLLATE "C",
  reversal_id text COLLATE "C",
  enrollment_id text COLLATE "C",
  policy_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  accepted_at timestamp with time zone NOT NULL,
  spot_price numeric NOT NULL,
  partner_cut numeric NOT NULL,
  invoice_amount numeric NOT NULL,
  order_reference text COLLATE "C",
  cover_from date,
  cover_to date,
  time_zone text NOT NULL,
  month text COLLATE "C" NOT NULL,
  arrangement text NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  CONSTRAINT ledger_rows_pkey PRIMARY KEY (partner_id, posted_month, entry_id),
  CONSTRAINT ledger_rows_id_positive CHECK (entry_id > 0),
  CONSTRAINT ledger_rows_balance CHECK (spot_price = (partner_cut + invoice_amount)),
  CONSTRAINT ledger_rows_sign CHECK (
CASE kind
    WHEN 'reversal' THEN spot_price <= 0::numeric AND partner_cut <= 0::numeric AND invoice_amount <= 0::numeric
    ELSE spot_price >= 0::numeric AND partner_cut >= 0::numeric AND invoice_amount >= 0::numeric
END),
  CONSTRAINT ledger_rows_minor_digits CHECK (GREATEST(scale(spot_price), scale(partner_cut), scale(invoice_amount)) <= minor_digits(currency)),
  CONSTRAINT ledger_rows_amount_limit CHECK (abs(spot_price) < '1000000000000000'::numeric),
  CONSTRAINT ledger_rows_kind_has_ids CHECK (
CASE kind
    WHEN 'quote_accepted' THEN requote_id IS NULL AND reversal_id IS NULL
    WHEN 'requote_accepted' THEN requote_id IS NOT NULL AND reversal_id IS NULL
    WHEN 'reversal' THEN reversal_id IS NOT NULL
    ELSE false
END),
  CONSTRAINT ledger_rows_ids_form CHECK (is_identifier(quote_id) AND is_identifier(requote_id) IS NOT FALSE AND is_identifier(reversal_id) IS NOT FALSE AND is_identifier(enrollment_id) IS NOT FALSE),
  CONSTRAINT ledger_rows_order_reference_form CHECK (order_reference IS NULL OR is_order_reference(order_reference)),
  CONSTRAINT ledger_rows_cover CHECK (cover_from IS NULL AND cover_to IS NULL OR is_cover(cover_from, cover_to)),
  CONSTRAINT ledger_rows_months_form CHECK (month ~~ '____-__' AND posted_month ~~ '____-__'),
  CONSTRAINT ledger_rows_arrangement_known CHECK (arrangement = ANY (ARRAY['invoicing', 'connected_account'])),
  CONSTRAINT ledger_rows_posted_in_own_month_or_later CHECK (posted_month >= month)
);
CREATE UNIQUE INDEX ledger_rows_known_once ON ledger_rows USING btree (partner_id, kind, COALESCE(reversal_id, requote_id, quote_id));
CREATE INDEX ledger_rows_of_quote ON ledger_rows USING btree (partner_id, quote_id) WHERE kind <> 'quote_accepted';
CREATE INDEX ledger_rows_reversals ON ledger_rows USING btree (partner_id, posted_month) WHERE kind = 'reversal';
CREATE INDEX ledger_rows_of_order ON ledger_rows USING btree (partner_id, order_reference) WHERE order_reference IS NOT NULL;
CREATE INDEX ledger_rows_of_enrollment ON ledger_rows USING btree (partner_id, enrollment_id) WHERE kind = 'quote_accepted' AND arrangement = 'connected_account' AND enrollment_id IS NOT NULL;
CREATE INDEX ledger_rows_of_accounts_by_time ON ledger_rows USING btree (partner_id, accepted_at) WHERE arrangement = 'connected_account';
CREATE INDEX ledger_rows_of_accounts_by_month ON ledger_rows USING btree (posted_month, partner_id, quote_id) WHERE arrangement = 'connected_account';
CREATE INDEX ledger_rows_by_posted_month ON ledger_rows USING brin (posted_month, accepted_at, partner_id) WITH (autosummarize='on');
CREATE INDEX ledger_rows_by_entry ON ledger_rows USING brin (entry_id) WITH (autosummarize='on');
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON ledger_rows FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER ledger_rows_event_known AFTER INSERT ON ledger_rows REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_unknown_event(); -- enabled: A
CREATE TRIGGER ledger_rows_in_order BEFORE INSERT ON ledger_rows FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE TRIGGER ledger_rows_month_open AFTER INSERT ON ledger_rows REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_closed_month(); -- enabled: A
CREATE TRIGGER ledger_rows_policy_known AFTER INSERT ON ledger_rows REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_unknown_policy(); -- enabled: A
CREATE TRIGGER ledger_rows_reversal_has_ground AFTER INSERT ON ledger_rows REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_reversal_without_ground(); -- enabled: A
GRANT INSERT, SELECT ON ledger_rows TO reckoner_app;
GRANT SELECT, USAGE ON SEQUENCE log_numbers TO reckoner_app;

CREATE FUNCTION next_log_number()
 RETURNS bigint
 LANGUAGE sql
RETURN nextval('log_numbers'::regclass);
GRANT EXECUTE ON FUNCTION next_log_number TO reckoner_app;

CREATE DOMAIN identifier AS text COLLATE "C";

CREATE FUNCTION own_id(e ledger_rows)
 RETURNS identifier
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  SELECT coalesce(e.reversal_id, e.requote_id, e.quote_id)
$function$;
GRANT EXECUTE ON FUNCTION own_id TO reckoner_app;

CREATE FUNCTION refuse_closed_month()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
  last_closed text;
  earliest text;
  first_number bigint;
BEGIN
  -- The ledger's lock (src/database/ledger-lock.ts): waits for a close in progress and sees its result.
  PERFORM pg_advisory_xact_lock_shared(7310, 2);
  SELECT min(posted_month), min(entry_id) INTO earliest, first_number FROM added;
  IF first_number <= (SELECT max(last_no) FROM log_checkpoints) THEN
    RAISE EXCEPTION 'row % cannot be recorded: a checkpoint covers this number', first_number
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'ledger_rows_above_checkpoints';
  END IF;
  SELECT max(month) INTO last_closed FROM closed_months;
  IF earliest <= last_closed THEN
    RAISE EXCEPTION 'rows cannot post to %: months to % are closed', earliest, last_closed
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'ledger_rows_month_open';
  END IF;
  RETURN NULL;
END
$function$;

CREATE FUNCTION refuse_unknown_policy()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
  stranger record;
BEGIN
  SELECT a.partner_id, a.policy_id INTO stranger
  FROM (SELECT DISTINCT partner_id, policy_id FROM added) AS a
  WHERE NOT EXISTS (SELECT FROM policies p WHERE p.partner_id = a.partner_id AND p.policy_id = a.policy_id)
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION '% is not a policy of %', stranger.policy_id, stranger.partner_id
      USING ERRCODE = 'foreign_key_violation', TABLE = 'ledger_rows', CONSTRAINT = 'ledger_rows_policy_known';
  END IF;
  RETURN NULL;
END
$function$;

CREATE FUNCTION refuse_unknown_event()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
  missing bigint;
BEGIN
  SELECT a.event_id INTO missing FROM (SELECT DISTINCT event_id FROM added) AS a
  WHERE NOT EXISTS (SELECT FROM audit_events e WHERE e.event_id = a.event_id) LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'rows cannot be of event %, which is not recorded', missing
      USING ERRCODE = 'foreign_key_violation', TABLE = 'ledger_rows', CONSTRAINT = 'ledger_rows_event_known';
  END IF;
  RETURN NULL;
END
$function$;

CREATE TABLE ledger_receipts (
  event_id bigint NOT NULL,
  posted_month billing_month NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  entries bigint NOT NULL,
  spot_price numeric NOT NULL,
  partner_cut numeric NOT NULL,
  invoice_amount numeric NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT ledger_receipts_pkey PRIMARY KEY (posted_month, event_id, partner_id, currency),
  CONSTRAINT ledger_receipt_of_rows CHECK (entries > 0),
  CONSTRAINT ledger_receipts_balance CHECK (spot_price = (partner_cut + invoice_amount)),
  CONSTRAINT ledger_receipts_fact_positive CHECK (log_no > 0),
  CONSTRAINT ledger_receipts_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT ledger_receipts_partner_id_fkey FOREIGN KEY (partner_id) REFERENCES partners(partner_id)
);
CREATE UNIQUE INDEX ledger_receipts_fact ON ledger_receipts USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON ledger_receipts FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON ledger_receipts FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON ledger_receipts FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON ledger_receipts TO reckoner_app;

CREATE TABLE feed_decisions (
  feed_decision_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  month billing_month NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  kind text NOT NULL,
  evidence text NOT NULL,
  reason text,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT feed_decisions_pkey PRIMARY KEY (feed_decision_id),
  CONSTRAINT feed_decision_once UNIQUE (month, partner_id, kind, evidence),
  CONSTRAINT feed_decision_kind_known CHECK (kind = ANY (ARRAY['missing', 'incomplete', 'totals', 'repeated', 'few', 'early'])),
  CONSTRAINT feed_decision_has_reason CHECK (btrim(reason) <> ''),
  CONSTRAINT feed_decisions_fact_positive CHECK (log_no > 0),
  CONSTRAINT feed_decisions_partner_id_fkey FOREIGN KEY (partner_id) REFERENCES partners(partner_id),
  CONSTRAINT feed_decisions_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX feed_decisions_fact ON feed_decisions USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON feed_decisions FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON feed_decisions FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON feed_decisions FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE TRIGGER feed_decisions_month_open AFTER INSERT ON feed_decisions REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_decision_on_closed_month(); -- enabled: A
GRANT INSERT, SELECT ON feed_decisions TO reckoner_app;
GRANT SELECT ON SEQUENCE feed_decisions_feed_decision_id_seq TO reckoner_app;

CREATE FUNCTION refuse_decision_on_closed_month()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7310, 2);
  IF EXISTS (SELECT FROM added JOIN closed_months USING (month)) THEN
    RAISE EXCEPTION 'a doubt about a closed month cannot be accepted'
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'feed_decisions_month_open';
  END IF;
  RETURN NULL;
END
$function$;

CREATE TABLE feed_statements (
  feed_statement_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  partner_id text COLLATE "C" NOT NULL,
  month billing_month NOT NULL,
  entries bigint NOT NULL,
  complete boolean NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT feed_statements_pkey PRIMARY KEY (feed_statement_id),
  CONSTRAINT feed_statement_entries_not_negative CHECK (entries >= 0),
  CONSTRAINT feed_statements_fact_positive CHECK (log_no > 0),
  CONSTRAINT feed_statements_partner_id_fkey FOREIGN KEY (partner_id) REFERENCES partners(partner_id),
  CONSTRAINT feed_statements_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE INDEX feed_statements_of_month ON feed_statements USING btree (month, partner_id, feed_statement_id);
CREATE UNIQUE INDEX feed_statements_fact ON feed_statements USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON feed_statements FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON feed_statements FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON feed_statements FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON feed_statements TO reckoner_app;
GRANT SELECT ON SEQUENCE feed_statements_feed_statement_id_seq TO reckoner_app;

CREATE TABLE feed_statement_totals (
  feed_statement_id bigint NOT NULL,
  currency text COLLATE "C" NOT NULL,
  invoice_amount numeric NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT feed_statement_totals_pkey PRIMARY KEY (feed_statement_id, currency),
  CONSTRAINT feed_statement_total_digits CHECK (scale(invoice_amount) <= minor_digits(currency)),
  CONSTRAINT feed_statement_total_limit CHECK (abs(invoice_amount) < '1000000000000000'::numeric),
  CONSTRAINT feed_statement_totals_fact_positive CHECK (log_no > 0),
  CONSTRAINT feed_statement_totals_feed_statement_id_fkey FOREIGN KEY (feed_statement_id) REFERENCES feed_statements(feed_statement_id)
);
CREATE UNIQUE INDEX feed_statement_totals_fact ON feed_statement_totals USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON feed_statement_totals FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON feed_statement_totals FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON feed_statement_totals FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON feed_statement_totals TO reckoner_app;

CREATE TABLE running_lines (
  posted_month text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  arrangement text COLLATE "C" NOT NULL,
  policy_id text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  month text COLLATE "C" NOT NULL,
  sold_month text COLLATE "C" NOT NULL,
  sold_posted text COLLATE "C" NOT NULL,
  sold_kind text COLLATE "C" NOT NULL,
  by_receipt boolean NOT NULL,
  count bigint NOT NULL,
  spot_price numeric NOT NULL,
  partner_cut numeric NOT NULL,
  invoice_amount numeric NOT NULL,
  last_accepted_at timestamp with time zone NOT NULL,
  CONSTRAINT running_lines_pkey PRIMARY KEY (posted_month, partner_id, currency, arrangement, policy_id, kind, month, sold_month, sold_posted, sold_kind, by_receipt)
);
GRANT DELETE, INSERT, SELECT, UPDATE ON running_lines TO reckoner_app;

CREATE FUNCTION bare_id(own_id text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN lower(CASE WHEN (own_id < ('1' COLLATE "C")) THEN ltrim(own_id, '0') ELSE own_id END);
GRANT EXECUTE ON FUNCTION bare_id TO reckoner_app;

CREATE TABLE held_rows (
  held_row_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  kind text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  quote_id text COLLATE "C" NOT NULL,
  requote_id text COLLATE "C",
  reversal_id text COLLATE "C",
  enrollment_id text COLLATE "C",
  policy_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  accepted_at timestamp with time zone NOT NULL,
  spot_price numeric NOT NULL,
  partner_cut numeric NOT NULL,
  invoice_amount numeric NOT NULL,
  order_reference text COLLATE "C",
  cover_from date,
  cover_to date,
  sign text NOT NULL,
  repeats text COLLATE "C",
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT held_rows_pkey PRIMARY KEY (held_row_id),
  CONSTRAINT held_row_sign_known CHECK (sign = ANY (ARRAY['same_enrollment', 'same_order', 'same_quote', 'same_id', 'held_sale', 'held_reversal', 'too_late', 'more_than_left', 'other_split', 'cover_began', 'cover_unknown', 'ceiling'])),
  CONSTRAINT held_row_balance CHECK (spot_price = (partner_cut + invoice_amount)),
  CONSTRAINT held_row_repeats_a_row CHECK ((repeats IS NOT NULL) = (sign ~~ 'same%')),
  CONSTRAINT held_rows_fact_positive CHECK (log_no > 0),
  CONSTRAINT held_rows_partner_id_fkey FOREIGN KEY (partner_id) REFERENCES partners(partner_id),
  CONSTRAINT held_rows_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT held_rows_partner_id_policy_id_fkey FOREIGN KEY (partner_id, policy_id) REFERENCES policies(partner_id, policy_id)
);
CREATE UNIQUE INDEX held_rows_known_once ON held_rows USING btree (partner_id, kind, COALESCE(reversal_id, requote_id, quote_id));
CREATE UNIQUE INDEX held_rows_fact ON held_rows USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON held_rows FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON held_rows FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON held_rows FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON held_rows TO reckoner_app;
GRANT SELECT ON SEQUENCE held_rows_held_row_id_seq TO reckoner_app;

CREATE FUNCTION own_id(h held_rows)
 RETURNS identifier
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  SELECT coalesce(h.reversal_id, h.requote_id, h.quote_id)
$function$;
GRANT EXECUTE ON FUNCTION own_id TO reckoner_app;

CREATE TABLE held_row_decisions (
  held_row_id bigint NOT NULL,
  decision text NOT NULL,
  reason text NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT held_row_decisions_pkey PRIMARY KEY (held_row_id),
  CONSTRAINT held_row_decision_known CHECK (decision = ANY (ARRAY['recorded', 'discarded'])),
  CONSTRAINT held_row_decision_has_reason CHECK (reason <> ''),
  CONSTRAINT held_row_decisions_fact_positive CHECK (log_no > 0),
  CONSTRAINT held_row_decisions_held_row_id_fkey FOREIGN KEY (held_row_id) REFERENCES held_rows(held_row_id),
  CONSTRAINT held_row_decisions_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX held_row_decisions_fact ON held_row_decisions USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON held_row_decisions FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON held_row_decisions FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON held_row_decisions FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON held_row_decisions TO reckoner_app;

CREATE TABLE reversal_grounds (
  partner_id text COLLATE "C" NOT NULL,
  reversal_id text COLLATE "C" NOT NULL,
  quote_id text COLLATE "C" NOT NULL,
  ground text NOT NULL,
  cancellation_terms_id bigint,
  held_row_id bigint,
  sold_on date,
  judged_on date,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT reversal_grounds_pkey PRIMARY KEY (partner_id, reversal_id),
  CONSTRAINT reversal_ground_known CHECK (ground = ANY (ARRAY['window', 'pro_rata', 'full', 'proportion', 'remainder', 'person', 'processor'])),
  CONSTRAINT reversal_ground_of_terms CHECK ((cancellation_terms_id IS NOT NULL) = (ground = ANY (ARRAY['window', 'pro_rata', 'full']))),
  CONSTRAINT reversal_ground_of_person CHECK (ground <> 'person' OR held_row_id IS NOT NULL),
  CONSTRAINT reversal_ground_has_days CHECK (num_nonnulls(sold_on, judged_on) =
CASE
    WHEN ground = ANY (ARRAY['person', 'processor']) THEN 0
    ELSE 2
END),
  CONSTRAINT reversal_grounds_fact_positive CHECK (log_no > 0),
  CONSTRAINT reversal_grounds_partner_id_fkey FOREIGN KEY (partner_id) REFERENCES partners(partner_id),
  CONSTRAINT reversal_grounds_cancellation_terms_id_fkey FOREIGN KEY (cancellation_terms_id) REFERENCES cancellation_terms(cancellation_terms_id),
  CONSTRAINT reversal_grounds_held_row_id_fkey FOREIGN KEY (held_row_id) REFERENCES held_rows(held_row_id),
  CONSTRAINT reversal_grounds_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX reversal_grounds_fact ON reversal_grounds USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON reversal_grounds FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON reversal_grounds FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON reversal_grounds FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON reversal_grounds TO reckoner_app;

CREATE FUNCTION refuse_reversal_without_ground()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
  stranger text;
BEGIN
  SELECT a.reversal_id INTO stranger FROM added a
  WHERE a.kind = 'reversal' AND NOT EXISTS (
    SELECT FROM reversal_grounds g WHERE g.partner_id = a.partner_id AND g.reversal_id = a.reversal_id AND g.quote_id = a.quote_id)
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'no rule and no person allowed the reversal %', stranger
      USING ERRCODE = 'foreign_key_violation', TABLE = 'ledger_rows', CONSTRAINT = 'ledger_rows_reversal_has_ground';
  END IF;
  RETURN NULL;
END
$function$;

CREATE VIEW undecided_rows AS
 SELECT held_row_id, kind, partner_id, quote_id, requote_id, reversal_id, enrollment_id, policy_id, currency,
    accepted_at, spot_price, partner_cut, invoice_amount, order_reference, cover_from, cover_to, sign, repeats,
    recorded_at, event_id, log_no
   FROM held_rows h
  WHERE NOT (EXISTS ( SELECT
           FROM held_row_decisions d
          WHERE d.held_row_id = h.held_row_id));
GRANT SELECT ON undecided_rows TO reckoner_app;

CREATE TABLE doubled_rows (
  posted_month text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  entry_id bigint NOT NULL,
  repeats text COLLATE "C" NOT NULL,
  CONSTRAINT doubled_rows_pkey PRIMARY KEY (partner_id, posted_month, entry_id),
  CONSTRAINT doubled_rows_partner_id_posted_month_entry_id_fkey FOREIGN KEY (partner_id, posted_month, entry_id) REFERENCES ledger_rows(partner_id, posted_month, entry_id)
);
GRANT DELETE, INSERT, SELECT ON doubled_rows TO reckoner_app;

CREATE FUNCTION has_no_rows()
 RETURNS boolean
 LANGUAGE sql
 STABLE
RETURN (NOT (EXISTS (SELECT FROM ledger_rows)));
GRANT EXECUTE ON FUNCTION has_no_rows TO reckoner_app;

-- 005_quotes ----------------------------------------------------------------------------------------------------------

CREATE TABLE quotes (
  quote_id text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  client_id text COLLATE "C" NOT NULL,
  policy_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  insured_amount numeric NOT NULL,
  price_rate numeric NOT NULL,
  price_minimum numeric NOT NULL,
  partner_cut_rate numeric NOT NULL,
  spot_price numeric NOT NULL,
  partner_cut numeric NOT NULL,
  invoice_amount numeric NOT NULL,
  quoted_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone,
  order_reference text COLLATE "C",
  cover_from date,
  cover_to date,
  CONSTRAINT quotes_pkey PRIMARY KEY (quote_id),
  CONSTRAINT quote_of_partner UNIQUE (quote_id, partner_id),
  CONSTRAINT quote_id_form CHECK (is_identifier(quote_id)),
  CONSTRAINT quote_insures_something CHECK (insured_amount >= 0::numeric),
  CONSTRAINT quote_cut_rate_range CHECK (partner_cut_rate >= 0::numeric AND partner_cut_rate <= 1::numeric),
  CONSTRAINT quote_expires_later CHECK (expires_at > quoted_at),
  CONSTRAINT quote_order_reference_form CHECK (order_reference IS NULL OR is_order_reference(order_reference)),
  CONSTRAINT quote_cover CHECK (is_cover(cover_from, cover_to)),
  CONSTRAINT quote_balance CHECK (spot_price = (partner_cut + invoice_amount)),
  CONSTRAINT quote_amount_limit CHECK (spot_price < '1000000000000000'::numeric),
  CONSTRAINT quote_price_follows_terms CHECK (spot_price = round(GREATEST(insured_amount * price_rate, price_minimum), minor_digits(currency))),
  CONSTRAINT quote_cut_follows_terms CHECK (partner_cut = round(spot_price * partner_cut_rate, minor_digits(currency))),
  CONSTRAINT quote_policy_known FOREIGN KEY (partner_id, policy_id) REFERENCES policies(partner_id, policy_id),
  CONSTRAINT quote_client_is_the_partners FOREIGN KEY (client_id, partner_id) REFERENCES api_clients(client_id, partner_id)
);
CREATE INDEX quotes_of_partner ON quotes USING btree (partner_id, quoted_at);
CREATE INDEX quotes_expired ON quotes USING btree (expires_at, quote_id);
CREATE TRIGGER append_only BEFORE UPDATE OR TRUNCATE ON quotes FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER kept_rows BEFORE DELETE ON quotes FOR EACH ROW WHEN (quote_may_go(old.*) IS NOT TRUE) EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT DELETE, INSERT, SELECT ON quotes TO reckoner_app;

CREATE FUNCTION quote_may_go(quote quotes)
 RETURNS boolean
 LANGUAGE sql
 STABLE
RETURN (((quote).expires_at < (now() - '30 days'::interval)) AND (NOT (EXISTS (SELECT FROM ledger_rows e WHERE ((e.partner_id = (quote_may_go.quote).partner_id) AND (e.kind = 'quote_accepted') AND ((own_id(e.*))::text = (quote_may_go.quote).quote_id))))));
GRANT EXECUTE ON FUNCTION quote_may_go TO reckoner_app;

CREATE TABLE quote_acceptances (
  quote_id text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  client_id text COLLATE "C" NOT NULL,
  posted_month text COLLATE "C" NOT NULL,
  entry_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT quote_acceptances_pkey PRIMARY KEY (quote_id),
  CONSTRAINT acceptance_entry_once UNIQUE (partner_id, posted_month, entry_id),
  CONSTRAINT quote_acceptances_fact_positive CHECK (log_no > 0),
  CONSTRAINT acceptance_is_of_a_quote FOREIGN KEY (quote_id, partner_id) REFERENCES quotes(quote_id, partner_id),
  CONSTRAINT acceptance_client_is_the_partners FOREIGN KEY (client_id, partner_id) REFERENCES api_clients(client_id, partner_id),
  CONSTRAINT acceptance_is_in_the_ledger FOREIGN KEY (partner_id, posted_month, entry_id) REFERENCES ledger_rows(partner_id, posted_month, entry_id)
);
CREATE UNIQUE INDEX quote_acceptances_fact ON quote_acceptances USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON quote_acceptances FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON quote_acceptances FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON quote_acceptances FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON quote_acceptances TO reckoner_app;

CREATE TABLE requotes (
  requote_id text COLLATE "C" NOT NULL,
  quote_id text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  client_id text COLLATE "C" NOT NULL,
  step integer NOT NULL,
  currency text COLLATE "C" NOT NULL,
  insured_amount numeric NOT NULL,
  accepted_spot_price numeric NOT NULL,
  accepted_partner_cut numeric NOT NULL,
  accepted_invoice_amount numeric NOT NULL,
  spot_price numeric NOT NULL,
  partner_cut numeric NOT NULL,
  invoice_amount numeric NOT NULL,
  requoted_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone,
  order_reference text COLLATE "C",
  cover_from date,
  cover_to date,
  CONSTRAINT requotes_pkey PRIMARY KEY (requote_id),
  CONSTRAINT requote_step UNIQUE (requote_id, quote_id, partner_id, step),
  CONSTRAINT requote_id_form CHECK (is_identifier(requote_id)),
  CONSTRAINT requote_step_positive CHECK (step > 0),
  CONSTRAINT requote_insures_something CHECK (insured_amount >= 0::numeric),
  CONSTRAINT requote_expires_later CHECK (expires_at > requoted_at),
  CONSTRAINT requote_order_reference_form CHECK (order_reference IS NULL OR is_order_reference(order_reference)),
  CONSTRAINT requote_cover CHECK (is_cover(cover_from, cover_to)),
  CONSTRAINT requote_balance CHECK (spot_price = (partner_cut + invoice_amount)),
  CONSTRAINT requote_accepted_balance CHECK (accepted_spot_price = (accepted_partner_cut + accepted_invoice_amount)),
  CONSTRAINT requote_amount_limit CHECK (spot_price < '1000000000000000'::numeric),
  CONSTRAINT requote_minor_digits CHECK (GREATEST(scale(trim_scale(spot_price)), scale(trim_scale(partner_cut))) <= minor_digits(currency)),
  CONSTRAINT requote_never_lower CHECK (spot_price >= accepted_spot_price AND partner_cut >= accepted_partner_cut AND invoice_amount >= accepted_invoice_amount),
  CONSTRAINT requote_is_of_an_accepted_quote FOREIGN KEY (quote_id) REFERENCES quote_acceptances(quote_id),
  CONSTRAINT requote_quote_is_the_partners FOREIGN KEY (quote_id, partner_id) REFERENCES quotes(quote_id, partner_id),
  CONSTRAINT requote_client_is_the_partners FOREIGN KEY (client_id, partner_id) REFERENCES api_clients(client_id, partner_id)
);
CREATE INDEX requotes_of_quote ON requotes USING btree (quote_id);
CREATE INDEX requotes_expired ON requotes USING btree (expires_at, requote_id);
CREATE TRIGGER append_only BEFORE UPDATE OR TRUNCATE ON requotes FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER kept_rows BEFORE DELETE ON requotes FOR EACH ROW WHEN (requote_may_go(old.*) IS NOT TRUE) EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT DELETE, INSERT, SELECT ON requotes TO reckoner_app;

CREATE FUNCTION requote_may_go(requote requotes)
 RETURNS boolean
 LANGUAGE sql
 STABLE
RETURN (((requote).expires_at < (now() - '30 days'::interval)) AND (NOT (EXISTS (SELECT FROM ledger_rows e WHERE ((e.partner_id = (requote_may_go.requote).partner_id) AND (e.kind = 'requote_accepted') AND ((own_id(e.*))::text = (requote_may_go.requote).requote_id))))));
GRANT EXECUTE ON FUNCTION requote_may_go TO reckoner_app;

CREATE TABLE requote_acceptances (
  quote_id text COLLATE "C" NOT NULL,
  step integer NOT NULL,
  previous_step integer GENERATED ALWAYS AS (NULLIF((step - 1), 0)) STORED,
  requote_id text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  client_id text COLLATE "C" NOT NULL,
  posted_month text COLLATE "C" NOT NULL,
  entry_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT requote_one_accepted_per_step PRIMARY KEY (quote_id, step),
  CONSTRAINT requote_accepted_once UNIQUE (requote_id),
  CONSTRAINT requote_acceptance_entry_once UNIQUE (partner_id, posted_month, entry_id),
  CONSTRAINT requote_acceptances_fact_positive CHECK (log_no > 0),
  CONSTRAINT requote_acceptance_is_of_a_requote FOREIGN KEY (requote_id, quote_id, partner_id, step) REFERENCES requotes(requote_id, quote_id, partner_id, step),
  CONSTRAINT requote_acceptance_follows FOREIGN KEY (quote_id, previous_step) REFERENCES requote_acceptances(quote_id, step),
  CONSTRAINT requote_acceptance_client_is_the_partners FOREIGN KEY (client_id, partner_id) REFERENCES api_clients(client_id, partner_id),
  CONSTRAINT requote_acceptance_is_in_the_ledger FOREIGN KEY (partner_id, posted_month, entry_id) REFERENCES ledger_rows(partner_id, posted_month, entry_id)
);
CREATE UNIQUE INDEX requote_acceptances_fact ON requote_acceptances USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON requote_acceptances FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON requote_acceptances FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON requote_acceptances FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON requote_acceptances TO reckoner_app;

CREATE TABLE idempotency_keys (
  partner_id text COLLATE "C" NOT NULL,
  idempotency_key text COLLATE "C" NOT NULL,
  request_sha256 text NOT NULL,
  status integer NOT NULL,
  answer text NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  CONSTRAINT idempotency_key_once PRIMARY KEY (partner_id, idempotency_key),
  CONSTRAINT idempotency_key_length CHECK (length(idempotency_key) >= 1 AND length(idempotency_key) <= 255),
  CONSTRAINT idempotency_request_is_a_hash CHECK (request_sha256 ~ '^[0-9a-f]{64}$'),
  CONSTRAINT idempotency_keys_partner_id_fkey FOREIGN KEY (partner_id) REFERENCES partners(partner_id)
);
CREATE INDEX idempotency_keys_recorded ON idempotency_keys USING btree (recorded_at);
CREATE TRIGGER append_only BEFORE UPDATE OR TRUNCATE ON idempotency_keys FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER kept_rows BEFORE DELETE ON idempotency_keys FOR EACH ROW WHEN (idempotency_key_may_go(old.*) IS NOT TRUE) EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT DELETE, INSERT, SELECT ON idempotency_keys TO reckoner_app;

CREATE FUNCTION idempotency_key_may_go(kept idempotency_keys)
 RETURNS boolean
 LANGUAGE sql
 STABLE
RETURN ((kept).recorded_at < (now() - '30 days'::interval));
GRANT EXECUTE ON FUNCTION idempotency_key_may_go TO reckoner_app;

-- 006_log -------------------------------------------------------------------------------------------------------------

CREATE FUNCTION log_map_parts(value jsonb)
 RETURNS TABLE(path text, value jsonb)
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
  WITH RECURSIVE parts (path, value) AS (
    SELECT '', log_map_parts.value
    UNION ALL
    SELECT CASE p.path WHEN '' THEN '' ELSE p.path || '.' END
             || replace(replace(replace(replace(replace(c.key, '%', '%25'), '&', '%26'), '=', '%3D'), ':', '%3A'), '.', '%2E'),
           c.value
    FROM parts p CROSS JOIN LATERAL (
      SELECT key, each.value FROM jsonb_each(CASE jsonb_typeof(p.value) WHEN 'object' THEN p.value ELSE '{}' END) AS each
      UNION ALL
      SELECT (position - 1)::text, item FROM jsonb_array_elements(CASE jsonb_typeof(p.value) WHEN 'array' THEN p.value
        ELSE '[]' END) WITH ORDINALITY AS items (item, position)) AS c
  )
  SELECT parts.path, parts.value FROM parts
  WHERE parts.value IN ('{}', '[]') OR jsonb_typeof(parts.value) NOT IN ('object', 'array')
$function$;
GRANT EXECUTE ON FUNCTION log_map_parts TO reckoner_app;

CREATE FUNCTION log_map(value jsonb)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
  SELECT string_agg(p.path || CASE jsonb_typeof(p.value)
           WHEN 'string' THEN '=' || replace(replace(p.value #>> '{}', '%', '%25'), '&', '%26')
           ELSE ':' || p.value::text END, '&' ORDER BY p.path COLLATE "C")
  FROM log_map_parts(log_map.value) AS p
$function$;
GRANT EXECUTE ON FUNCTION log_map TO reckoner_app;

CREATE FUNCTION log_map_values(value jsonb)
 RETURNS TABLE(path text, value text)
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
  SELECT p.path COLLATE "C", (p.value #>> '{}') COLLATE "C" FROM log_map_parts(log_map_values.value) AS p
$function$;
GRANT EXECUTE ON FUNCTION log_map_values TO reckoner_app;

CREATE FUNCTION log_units(currency text)
 RETURNS numeric
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE minor_digits(currency) WHEN 2 THEN 100 WHEN 0 THEN 1 WHEN 3 THEN 1000 ELSE 10000 END;
GRANT EXECUTE ON FUNCTION log_units TO reckoner_app;

CREATE TABLE month_totals (
  month billing_month NOT NULL,
  currency text COLLATE "C" NOT NULL,
  entries bigint NOT NULL,
  spot_price numeric NOT NULL,
  partner_cut numeric NOT NULL,
  invoice_amount numeric NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT month_totals_pkey PRIMARY KEY (month, currency),
  CONSTRAINT month_totals_balance CHECK (spot_price = (partner_cut + invoice_amount)),
  CONSTRAINT month_totals_fact_positive CHECK (log_no > 0),
  CONSTRAINT month_totals_month_fkey FOREIGN KEY (month) REFERENCES closed_months(month) DEFERRABLE INITIALLY DEFERRED
);
CREATE UNIQUE INDEX month_totals_fact ON month_totals USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON month_totals FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON month_totals FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON month_totals FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON month_totals TO reckoner_app;

CREATE TABLE month_partners (
  month billing_month NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  arrangement text COLLATE "C" NOT NULL,
  entries bigint NOT NULL,
  spot_price numeric NOT NULL,
  partner_cut numeric NOT NULL,
  invoice_amount numeric NOT NULL,
  last_accepted_at timestamp with time zone NOT NULL,
  root text NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT month_partners_pkey PRIMARY KEY (month, partner_id, currency, arrangement),
  CONSTRAINT month_partner_has_entries CHECK (entries > 0),
  CONSTRAINT month_partner_root_form CHECK (root ~ '^[A-Za-z0-9+/]{43}=$'),
  CONSTRAINT month_partners_fact_positive CHECK (log_no > 0),
  CONSTRAINT month_partners_month_fkey FOREIGN KEY (month) REFERENCES closed_months(month) DEFERRABLE INITIALLY DEFERRED
);
CREATE UNIQUE INDEX month_partners_fact ON month_partners USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON month_partners FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON month_partners FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON month_partners FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON month_partners TO reckoner_app;

CREATE TABLE month_zones (
  time_zone text COLLATE "C" NOT NULL,
  month billing_month NOT NULL,
  begins_at timestamp with time zone NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT month_zones_pkey PRIMARY KEY (time_zone, month),
  CONSTRAINT month_zones_fact_positive CHECK (log_no > 0)
);
CREATE UNIQUE INDEX month_zones_fact ON month_zones USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON month_zones FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON month_zones FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON month_zones FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order'); -- enabled: A
GRANT INSERT, SELECT ON month_zones TO reckoner_app;

CREATE TABLE log_keys (
  key_name text NOT NULL,
  public_key text NOT NULL,
  previous text,
  signature text,
  reason text NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT log_keys_pkey PRIMARY KEY (public_key),
  CONSTRAINT log_keys_chain UNIQUE NULLS NOT DISTINCT (previous),
  CONSTRAINT log_key_name_form CHECK (key_name ~ '^[!-*,-~]{1,200}$'),
  CONSTRAINT log_key_public_key_form CHECK (public_key ~ '^[A-Za-z0-9+/]{43}=$'),
  CONSTRAINT log_key_signature_form CHECK (signature ~ '^[A-Za-z0-9+/]{86}==$'),
  CONSTRAINT log_key_follows CHECK (signature IS NULL OR previous IS NOT NULL),
  CONSTRAINT log_key_loss_explained CHECK (previous IS NULL OR signature IS NOT NULL OR reason <> ''),
  CONSTRAINT log_keys_fact_positive CHECK (log_no > 0),
  CONSTRAINT log_keys_previous_fkey FOREIGN KEY (previous) REFERENCES log_keys(public_key),
  CONSTRAINT log_keys_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX log_keys_fact ON log_keys USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON log_keys FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON log_keys FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON log_keys FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order'); -- enabled: A
GRANT INSERT, SELECT ON log_keys TO reckoner_app;

CREATE TABLE log_continues (
  origin text COLLATE "C" NOT NULL,
  follows text COLLATE "C" NOT NULL,
  lost_size bigint NOT NULL,
  lost_root text NOT NULL,
  kept_size bigint NOT NULL,
  reason text NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT log_continues_pkey PRIMARY KEY (origin),
  CONSTRAINT log_continues_once UNIQUE (follows),
  CONSTRAINT log_continues_origin_form CHECK (origin ~ '^[a-z0-9.-]+/[0-9a-f]{12}/[1-9][0-9]*$'),
  CONSTRAINT log_continues_root_form CHECK (lost_root ~ '^[A-Za-z0-9+/]{43}=$'),
  CONSTRAINT log_continues_kept_not_negative CHECK (kept_size >= 0),
  CONSTRAINT log_continues_fact_positive CHECK (log_no > 0),
  CONSTRAINT log_continues_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX log_continues_fact ON log_continues USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON log_continues FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON log_continues FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON log_continues FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order'); -- enabled: A
GRANT INSERT, SELECT ON log_continues TO reckoner_app;

CREATE TABLE log_checkpoints (
  size bigint NOT NULL,
  origin text COLLATE "C" NOT NULL,
  last_no bigint NOT NULL,
  root bytea NOT NULL,
  edge bytea NOT NULL,
  span bytea NOT NULL,
  taken_at timestamp with time zone NOT NULL,
  closes text COLLATE "C",
  facts_root bytea NOT NULL,
  CONSTRAINT log_checkpoints_pkey PRIMARY KEY (size),
  CONSTRAINT log_checkpoint_last_no_once UNIQUE (last_no),
  CONSTRAINT log_checkpoint_closes_once UNIQUE (closes),
  CONSTRAINT log_checkpoint_size_positive CHECK (size > 0),
  CONSTRAINT log_checkpoint_root_length CHECK (length(root) = 32),
  CONSTRAINT log_checkpoint_closes_form CHECK (closes ~ '^(month|books) \d{4}-(0[1-9]|1[0-2])$')
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON log_checkpoints FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT INSERT, SELECT ON log_checkpoints TO reckoner_app;

CREATE TABLE log_signatures (
  size bigint NOT NULL,
  key_name text COLLATE "C" NOT NULL,
  line text NOT NULL,
  made_at timestamp with time zone NOT NULL,
  CONSTRAINT log_signatures_pkey PRIMARY KEY (size, key_name, line),
  CONSTRAINT log_signature_line_form CHECK (line ~ '^— [!-*,-~]+ [A-Za-z0-9+/]+={0,2}$'),
  CONSTRAINT log_signatures_size_fkey FOREIGN KEY (size) REFERENCES log_checkpoints(size)
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON log_signatures FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT INSERT, SELECT ON log_signatures TO reckoner_app;

CREATE TABLE log_stamps (
  size bigint NOT NULL,
  authority text NOT NULL,
  response bytea NOT NULL,
  stamped_at timestamp with time zone NOT NULL,
  CONSTRAINT log_stamps_pkey PRIMARY KEY (size),
  CONSTRAINT log_stamps_size_fkey FOREIGN KEY (size) REFERENCES log_checkpoints(size)
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON log_stamps FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT INSERT, SELECT ON log_stamps TO reckoner_app;

CREATE TABLE partner_edges (
  posted_month text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  arrangement text COLLATE "C" NOT NULL,
  entries bigint NOT NULL,
  edge bytea NOT NULL,
  CONSTRAINT partner_edges_pkey PRIMARY KEY (posted_month, partner_id, currency, arrangement)
);
GRANT DELETE, INSERT, SELECT, UPDATE ON partner_edges TO reckoner_app;

CREATE FUNCTION log_numbers_ascend()
 RETURNS boolean
 LANGUAGE sql
RETURN ((SELECT (log_numbers.last_value - ((NOT log_numbers.is_called))::integer) FROM log_numbers) >= COALESCE((SELECT max(log_checkpoints.last_no) AS max FROM log_checkpoints), (0)::bigint));
GRANT EXECUTE ON FUNCTION log_numbers_ascend TO reckoner_app;

-- 007_documents -------------------------------------------------------------------------------------------------------

CREATE TABLE logos (
  sha256 text NOT NULL,
  media_type text NOT NULL,
  width integer NOT NULL,
  height integer NOT NULL,
  content bytea STORAGE EXTERNAL NOT NULL,
  first_used_at timestamp with time zone NOT NULL,
  CONSTRAINT logo_once PRIMARY KEY (sha256),
  CONSTRAINT logo_media_type_known CHECK (media_type = ANY (ARRAY['image/png', 'image/jpeg'])),
  CONSTRAINT logo_width_positive CHECK (width > 0),
  CONSTRAINT logo_height_positive CHECK (height > 0),
  CONSTRAINT logo_is_its_hash CHECK (sha256 = encode(sha256(content), 'hex'))
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON logos FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT INSERT, SELECT ON logos TO reckoner_app;

CREATE TABLE issuer_versions (
  issuer_version_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  content jsonb NOT NULL,
  first_used_at timestamp with time zone NOT NULL,
  logo_sha256 text GENERATED ALWAYS AS ((content #>> '{logo,sha256}'[])) STORED,
  log_no bigint NOT NULL,
  CONSTRAINT issuer_versions_pkey PRIMARY KEY (issuer_version_id),
  CONSTRAINT issuer_version_once UNIQUE (content),
  CONSTRAINT issuer_versions_fact_positive CHECK (log_no > 0),
  CONSTRAINT issuer_logo_kept FOREIGN KEY (logo_sha256) REFERENCES logos(sha256)
);
CREATE UNIQUE INDEX issuer_versions_fact ON issuer_versions USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON issuer_versions FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON issuer_versions FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON issuer_versions FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON issuer_versions TO reckoner_app;
GRANT SELECT ON SEQUENCE issuer_versions_issuer_version_id_seq TO reckoner_app;

CREATE FUNCTION document_sign(document text)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE document WHEN 'credit_note' THEN '-1'::integer ELSE 1 END;
GRANT EXECUTE ON FUNCTION document_sign TO reckoner_app;

CREATE FUNCTION document_series(document text, issued_on date)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (CASE document WHEN 'invoice' THEN 'INV-' WHEN 'credit_note' THEN 'CN-' ELSE 'ST-' END || (EXTRACT(year FROM issued_on))::text);
GRANT EXECUTE ON FUNCTION document_series TO reckoner_app;

CREATE TABLE openings (
  opening_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  cut_over_on date NOT NULL,
  sha256 text NOT NULL,
  name text NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT openings_pkey PRIMARY KEY (opening_id),
  CONSTRAINT opening_on_its_day UNIQUE (opening_id, cut_over_on),
  CONSTRAINT opening_sha256_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  CONSTRAINT opening_has_name CHECK (name <> ''),
  CONSTRAINT openings_fact_positive CHECK (log_no > 0),
  CONSTRAINT openings_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX openings_fact ON openings USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON openings FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON openings FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON openings FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE CONSTRAINT TRIGGER opening_adds_up AFTER INSERT ON openings DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_opening_that_does_not_add_up(); -- enabled: A
CREATE TRIGGER opening_before_closed_months BEFORE INSERT ON openings FOR EACH ROW EXECUTE FUNCTION refuse_opening_of_closed_month(); -- enabled: A
GRANT INSERT, SELECT ON openings TO reckoner_app;
GRANT SELECT ON SEQUENCE openings_opening_id_seq TO reckoner_app;

CREATE TABLE opening_totals (
  opening_id bigint NOT NULL,
  currency text COLLATE "C" NOT NULL,
  items integer NOT NULL,
  invoices numeric NOT NULL,
  credits numeric NOT NULL,
  cash numeric NOT NULL,
  control numeric NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT opening_totals_pkey PRIMARY KEY (opening_id, currency),
  CONSTRAINT opening_total_of_items CHECK (items > 0),
  CONSTRAINT opening_invoices_not_negative CHECK (invoices >= 0::numeric),
  CONSTRAINT opening_credits_not_negative CHECK (credits >= 0::numeric),
  CONSTRAINT opening_cash_not_negative CHECK (cash >= 0::numeric),
  CONSTRAINT opening_meets_its_control CHECK (control = (invoices - credits - cash)),
  CONSTRAINT opening_totals_fact_positive CHECK (log_no > 0),
  CONSTRAINT opening_totals_opening_id_fkey FOREIGN KEY (opening_id) REFERENCES openings(opening_id)
);
CREATE UNIQUE INDEX opening_totals_fact ON opening_totals USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON opening_totals FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON opening_totals FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON opening_totals FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON opening_totals TO reckoner_app;

CREATE FUNCTION refuse_opening_of_closed_month()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF EXISTS (SELECT FROM closed_months WHERE month > to_char(NEW.cut_over_on, 'YYYY-MM') COLLATE "C") THEN
    RAISE EXCEPTION 'a month after the cut-over of % is closed', NEW.cut_over_on
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'opening_before_closed_months';
  END IF;
  RETURN NEW;
END
$function$;

CREATE TABLE documents (
  document_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  series text COLLATE "C" NOT NULL,
  sequence integer NOT NULL,
  number text COLLATE "C" NOT NULL GENERATED ALWAYS AS (
CASE
    WHEN (opening_number IS NULL) THEN ((series || '-') || lpad((sequence)::text, GREATEST(6, length((sequence)::text)), '0'))
    WHEN (opening_revision = 1) THEN opening_number
    ELSE ((opening_number || '~') || (opening_revision)::text)
END) STORED,
  document text NOT NULL,
  purpose text NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  month billing_month NOT NULL,
  currency text COLLATE "C" NOT NULL,
  arrangement text NOT NULL,
  issued_on date NOT NULL,
  due_on date,
  terms_days integer,
  enrollments bigint NOT NULL,
  entries bigint NOT NULL,
  spot_price numeric NOT NULL,
  partner_cut numeric NOT NULL,
  invoice_amount numeric NOT NULL,
  tax numeric NOT NULL DEFAULT 0,
  gross numeric NOT NULL GENERATED ALWAYS AS ((invoice_amount + tax)) STORED,
  credit_applied numeric NOT NULL,
  partner_name text NOT NULL,
  contact_name text NOT NULL,
  address_line1 text NOT NULL,
  address_line2 text NOT NULL,
  address_city text NOT NULL,
  address_region text NOT NULL,
  address_postal_code text NOT NULL,
  address_country text NOT NULL,
  tax_id text NOT NULL,
  purchase_order text NOT NULL,
  legal_note text NOT NULL,
  e_invoice text NOT NULL DEFAULT 'none',
  buyer_reference text NOT NULL DEFAULT '',
  electronic_address text NOT NULL DEFAULT '',
  issuer_version_id bigint NOT NULL,
  sandbox boolean NOT NULL,
  issued_at timestamp with time zone NOT NULL,
  replaces bigint,
  credits bigint,
  invoice_lowered_by numeric,
  invoice_left numeric,
  reason text NOT NULL DEFAULT '',
  reopened_on date DEFAULT earliest_postable_date(),
  entry_on date NOT NULL GENERATED ALWAYS AS (GREATEST(issued_on, reopened_on)) STORED,
  opening_id bigint,
  opening_number text COLLATE "C",
  opening_revision integer,
  opening_follows bigint,
  original_amount numeric,
  log_no bigint NOT NULL,
  CONSTRAINT documents_pkey PRIMARY KEY (document_id),
  CONSTRAINT document_number_once UNIQUE (number),
  CONSTRAINT document_replaced_once UNIQUE (replaces),
  CONSTRAINT opening_followed_once UNIQUE (opening_follows),
  CONSTRAINT document_sequence_once UNIQUE (series, sequence),
  CONSTRAINT document_of_opening_number UNIQUE (document_id, opening_number),
  CONSTRAINT document_stands_for UNIQUE (document_id, partner_id, month, currency, arrangement),
  CONSTRAINT document_of_partner_and_currency UNIQUE (document_id, partner_id, currency),
  CONSTRAINT document_sequence_positive CHECK (sequence > 0),
  CONSTRAINT document_known CHECK (document = ANY (ARRAY['invoice', 'credit_note', 'statement'])),
  CONSTRAINT document_purpose_known CHECK (purpose = ANY (ARRAY['month', 'adjustment', 'missing_shares', 'opening'])),
  CONSTRAINT document_arrangement_known CHECK (arrangement = ANY (ARRAY['invoicing', 'connected_account'])),
  CONSTRAINT document_e_invoice_known CHECK (e_invoice = ANY (ARRAY['none', 'facturx', 'ubl', 'xrechnung'])),
  CONSTRAINT opening_number_form CHECK (opening_number ~ '^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$'),
  CONSTRAINT opening_revision_positive CHECK (opening_revision > 0),
  CONSTRAINT document_series_of_kind_and_year CHECK (series =
CASE purpose
    WHEN 'opening' THEN 'OPENING'
    ELSE document_series(document, issued_on)
END),
  CONSTRAINT document_statement_has_no_e_invoice CHECK (document <> 'statement' OR e_invoice = 'none'),
  CONSTRAINT document_balance CHECK (spot_price = (partner_cut + invoice_amount)),
  CONSTRAINT document_arrangement_gives_kind CHECK (purpose <> 'month' OR (document = 'statement') = (arrangement = 'connected_account')),
  CONSTRAINT document_amount_not_negative CHECK (document = 'statement' OR gross >= 0::numeric),
  CONSTRAINT document_tax_on_invoicing CHECK (tax = 0::numeric OR arrangement = 'invoicing'),
  CONSTRAINT document_credit_within_amount CHECK (credit_applied = 0::numeric OR document = 'invoice' AND credit_applied >= 0::numeric AND credit_applied <= gross),
  CONSTRAINT document_due_on_invoices CHECK ((document = 'invoice') = (due_on IS NOT NULL) AND (due_on IS NULL) = (terms_days IS NULL)),
  CONSTRAINT document_due_after_terms CHECK (due_on = (issued_on + terms_days) OR replaces IS NOT NULL),
  CONSTRAINT document_missing_shares_are_invoiced CHECK (purpose <> 'missing_shares' OR document = 'invoice' AND arrangement = 'connected_account' AND invoice_amount > 0::numeric),
  CONSTRAINT document_adjustment_credits_an_invoice CHECK ((purpose = 'adjustment') = (credits IS NOT NULL) AND (purpose <> 'adjustment' OR document = 'credit_note' AND invoice_amount > 0::numeric AND btrim(reason) <> '')),
  CONSTRAINT document_adjustment_states_what_is_left CHECK (
CASE purpose
    WHEN 'adjustment' THEN COALESCE(invoice_lowered_by >= 0::numeric AND invoice_lowered_by <= gross AND invoice_left >= 0::numeric, false)
    ELSE num_nonnulls(invoice_lowered_by, invoice_left) = 0
END),
  CONSTRAINT document_opening_has_its_facts CHECK (
CASE purpose
    WHEN 'opening' THEN num_nonnulls(opening_id, opening_number, opening_revision, original_amount) = 4
    ELSE num_nonnulls(opening_id, opening_number, opening_revision, opening_follows, original_amount) = 0
END),
  CONSTRAINT document_opening_bills_nothing CHECK (purpose <> 'opening' OR COALESCE(document <> 'statement' AND arrangement = 'invoicing' AND enrollments = 0 AND entries = 0 AND partner_cut = 0::numeric AND tax = 0::numeric AND invoice_amount > 0::numeric AND credit_applied = 0::numeric AND replaces IS NULL AND original_amount >= invoice_amount AND reopened_on >= issued_on, false)),
  CONSTRAINT opening_number_not_ours CHECK (
CASE
    WHEN opening_number ~* '^(INV|CN|ST)-\d{4}-\d{6,}$' THEN split_part(opening_number, '-', 2)::integer::numeric < EXTRACT(year FROM reopened_on)
    ELSE true
END),
  CONSTRAINT opening_revision_follows CHECK ((opening_revision = 1) = (opening_follows IS NULL)),
  CONSTRAINT documents_fact_positive CHECK (log_no > 0),
  CONSTRAINT documents_contact_name_kept CHECK (contact_name = '' OR is_commitment(contact_name)),
  CONSTRAINT documents_partner_id_fkey FOREIGN KEY (partner_id) REFERENCES partners(partner_id),
  CONSTRAINT documents_issuer_version_id_fkey FOREIGN KEY (issuer_version_id) REFERENCES issuer_versions(issuer_version_id),
  CONSTRAINT opening_follows_its_number FOREIGN KEY (opening_follows, opening_number) REFERENCES documents(document_id, opening_number),
  CONSTRAINT document_entered_at_the_cut_over FOREIGN KEY (opening_id, reopened_on) REFERENCES openings(opening_id, cut_over_on),
  CONSTRAINT document_credits_its_partners_invoice FOREIGN KEY (credits, partner_id, month, currency, arrangement) REFERENCES documents(document_id, partner_id, month, currency, arrangement),
  CONSTRAINT document_replaces_a_void_one FOREIGN KEY (replaces, partner_id, month, currency, arrangement) REFERENCES voids(document_id, partner_id, month, currency, arrangement) DEFERRABLE,
  CONSTRAINT opening_follows_a_void_one FOREIGN KEY (opening_follows) REFERENCES voids(document_id) DEFERRABLE
);
CREATE UNIQUE INDEX document_one_live_per_month ON documents USING btree (partner_id, month, currency, arrangement) WHERE purpose = 'month' AND replaces IS NULL;
CREATE UNIQUE INDEX opening_number_once ON documents USING btree (lower(opening_number)) WHERE opening_number IS NOT NULL AND opening_follows IS NULL;
CREATE INDEX documents_of_opening ON documents USING btree (opening_id) WHERE opening_id IS NOT NULL;
CREATE INDEX documents_by_month ON documents USING btree (month);
CREATE INDEX documents_by_entry ON documents USING brin (entry_on) WITH (pages_per_range='16', autosummarize='on');
CREATE INDEX credit_notes_of_partner ON documents USING btree (partner_id, currency) WHERE document = 'credit_note';
CREATE INDEX adjustments_of_invoice ON documents USING btree (credits) WHERE credits IS NOT NULL;
CREATE UNIQUE INDEX documents_fact ON documents USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON documents FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE CONSTRAINT TRIGGER document_tax_ties AFTER INSERT ON documents DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (new.tax <> 0::numeric) EXECUTE FUNCTION refuse_untied_tax(); -- enabled: A
CREATE TRIGGER entry_books_open AFTER INSERT ON documents REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_books(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON documents FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON documents FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE TRIGGER number_given_or_skipped AFTER INSERT ON documents FOR EACH STATEMENT EXECUTE FUNCTION refuse_skipped_number(); -- enabled: A
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON documents FOR EACH ROW EXECUTE FUNCTION keep_contact(); -- enabled: A
GRANT INSERT, SELECT ON documents TO reckoner_app;
GRANT SELECT ON SEQUENCE documents_document_id_seq TO reckoner_app;

CREATE FUNCTION keep_contact()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  NEW.contact_name := keep_text(NEW.contact_name);
  RETURN NEW;
END
$function$;

CREATE TABLE skipped_numbers (
  series text COLLATE "C" NOT NULL,
  first_sequence integer NOT NULL,
  last_sequence integer NOT NULL,
  pause_id bigint NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT skipped_numbers_pkey PRIMARY KEY (series, first_sequence),
  CONSTRAINT skipped_series_form CHECK (series ~ '^(INV|CN|ST)-\d{4}$'),
  CONSTRAINT skipped_sequence_positive CHECK (first_sequence > 0),
  CONSTRAINT skipped_range CHECK (last_sequence >= first_sequence),
  CONSTRAINT skipped_numbers_fact_positive CHECK (log_no > 0),
  CONSTRAINT skipped_numbers_pause_id_fkey FOREIGN KEY (pause_id) REFERENCES resumptions(pause_id),
  CONSTRAINT skipped_numbers_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX skipped_numbers_fact ON skipped_numbers USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON skipped_numbers FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON skipped_numbers FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON skipped_numbers FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order'); -- enabled: A
CREATE TRIGGER number_given_or_skipped AFTER INSERT ON skipped_numbers FOR EACH STATEMENT EXECUTE FUNCTION refuse_skipped_number(); -- enabled: A
GRANT INSERT, SELECT ON skipped_numbers TO reckoner_app;

CREATE FUNCTION refuse_skipped_number()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF EXISTS (SELECT FROM skipped_numbers s JOIN documents d ON d.series = s.series
             AND d.sequence BETWEEN s.first_sequence AND s.last_sequence)
     OR EXISTS (SELECT FROM skipped_numbers s JOIN skipped_numbers other ON other.series = s.series
                AND other.first_sequence > s.first_sequence AND other.first_sequence <= s.last_sequence) THEN
    RAISE EXCEPTION 'a number was given and skipped, or skipped twice'
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'number_given_or_skipped';
  END IF;
  RETURN NULL;
END
$function$;

CREATE FUNCTION tax_of(taxable numeric, rate numeric, currency text)
 RETURNS numeric
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN round(((taxable * rate) / (100)::numeric), minor_digits(currency));
GRANT EXECUTE ON FUNCTION tax_of TO reckoner_app;

CREATE TABLE document_taxes (
  document_id bigint NOT NULL,
  "position" integer NOT NULL,
  currency text COLLATE "C" NOT NULL,
  country text COLLATE "C" NOT NULL,
  registration text NOT NULL,
  name text NOT NULL,
  category text NOT NULL,
  rate numeric NOT NULL,
  reduced boolean NOT NULL,
  reason text NOT NULL,
  reason_code text NOT NULL,
  taxable numeric NOT NULL,
  tax numeric NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT document_taxes_pkey PRIMARY KEY (document_id, "position"),
  CONSTRAINT document_tax_once UNIQUE (document_id, country, category, rate, reduced),
  CONSTRAINT document_tax_position_positive CHECK ("position" > 0),
  CONSTRAINT document_tax_named CHECK (name <> ''),
  CONSTRAINT document_tax_category_known CHECK (category = ANY (ARRAY['standard', 'zero', 'exempt', 'reverse_charge', 'outside_scope'])),
  CONSTRAINT document_tax_rate_of_category CHECK (
CASE category
    WHEN 'standard' THEN rate > 0::numeric AND rate <= 100::numeric
    ELSE rate = 0::numeric AND NOT reduced
END),
  CONSTRAINT document_tax_reason_of_category CHECK (
CASE
    WHEN category = ANY (ARRAY['standard', 'zero']) THEN reason = '' AND reason_code = ''
    ELSE reason <> ''
END),
  CONSTRAINT document_tax_none_without_rate CHECK (rate > 0::numeric OR tax = 0::numeric),
  CONSTRAINT document_tax_digits CHECK (GREATEST(scale(taxable), scale(tax)) <= minor_digits(currency)),
  CONSTRAINT document_taxes_fact_positive CHECK (log_no > 0),
  CONSTRAINT document_taxes_document_id_fkey FOREIGN KEY (document_id) REFERENCES documents(document_id)
);
CREATE UNIQUE INDEX document_taxes_fact ON document_taxes USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON document_taxes FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE CONSTRAINT TRIGGER document_tax_ties AFTER INSERT ON document_taxes DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_untied_tax(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON document_taxes FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON document_taxes FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON document_taxes TO reckoner_app;

CREATE TABLE document_lines (
  document_id bigint NOT NULL,
  "position" integer NOT NULL,
  policy_id text COLLATE "C" NOT NULL,
  policy_name text NOT NULL,
  kind text COLLATE "C" NOT NULL,
  month billing_month NOT NULL,
  count bigint NOT NULL,
  spot_price numeric NOT NULL,
  partner_cut numeric NOT NULL,
  invoice_amount numeric NOT NULL,
  tax integer,
  log_no bigint NOT NULL,
  CONSTRAINT document_lines_pkey PRIMARY KEY (document_id, "position"),
  CONSTRAINT line_once UNIQUE NULLS NOT DISTINCT (document_id, policy_id, kind, month, tax),
  CONSTRAINT line_kind_known CHECK (kind = ANY (ARRAY['quote_accepted', 'requote_accepted', 'reversal'])),
  CONSTRAINT line_has_rows CHECK (count > 0),
  CONSTRAINT line_balance CHECK (spot_price = (partner_cut + invoice_amount)),
  CONSTRAINT document_lines_fact_positive CHECK (log_no > 0),
  CONSTRAINT document_lines_document_id_fkey FOREIGN KEY (document_id) REFERENCES documents(document_id),
  CONSTRAINT line_tax_of_its_document FOREIGN KEY (document_id, tax) REFERENCES document_taxes(document_id, "position")
);
CREATE UNIQUE INDEX document_lines_fact ON document_lines USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON document_lines FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON document_lines FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON document_lines FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON document_lines TO reckoner_app;

CREATE FUNCTION lines_of_tax(document_id bigint, tax integer)
 RETURNS text
 LANGUAGE sql
 STABLE
RETURN (SELECT COALESCE(string_agg((l."position")::text, ' ' ORDER BY l."position"), '') AS "coalesce" FROM document_lines l WHERE ((l.document_id = lines_of_tax.document_id) AND (l.tax = lines_of_tax.tax)));
GRANT EXECUTE ON FUNCTION lines_of_tax TO reckoner_app;

CREATE FUNCTION refuse_untied_tax()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
  of_document documents;
  taxable_sum numeric;
  tax_sum numeric;
  untied text;
BEGIN
  SELECT * INTO of_document FROM documents d WHERE d.document_id = NEW.document_id;
  SELECT sum(t.taxable), sum(t.tax),
         string_agg(t.position::text, ', ') FILTER (WHERE of_document.purpose = 'month' AND (
           t.tax <> tax_of(t.taxable, t.rate, t.currency)
           OR t.taxable IS DISTINCT FROM (SELECT sum(l.invoice_amount) FROM document_lines l
                                          WHERE l.document_id = t.document_id AND l.tax = t.position)))
  INTO taxable_sum, tax_sum, untied FROM document_taxes t WHERE t.document_id = NEW.document_id;
  IF (coalesce(tax_sum, 0), coalesce(taxable_sum, of_document.invoice_amount))
     IS DISTINCT FROM (of_document.tax, of_document.invoice_amount) OR untied IS NOT NULL
     OR EXISTS (SELECT FROM document_lines l
                WHERE l.document_id = NEW.document_id AND (l.tax IS NULL) = (tax_sum IS NOT NULL)) THEN
    RAISE EXCEPTION 'document % states tax of % on %, its totals % on %, untied: %', of_document.number, of_document.tax,
      of_document.invoice_amount, tax_sum, taxable_sum, coalesce(untied, 'none')
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'document_tax_ties';
  END IF;
  RETURN NULL;
END
$function$;

CREATE TABLE voids (
  document_id bigint NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  month billing_month NOT NULL,
  currency text COLLATE "C" NOT NULL,
  arrangement text NOT NULL,
  reason text NOT NULL,
  voided_on date NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  reopened_on date DEFAULT earliest_postable_date(),
  entry_on date NOT NULL GENERATED ALWAYS AS (GREATEST(voided_on, reopened_on)) STORED,
  log_no bigint NOT NULL,
  CONSTRAINT voids_pkey PRIMARY KEY (document_id),
  CONSTRAINT void_stands_for UNIQUE (document_id, partner_id, month, currency, arrangement),
  CONSTRAINT void_has_reason CHECK (btrim(reason) <> ''),
  CONSTRAINT voids_fact_positive CHECK (log_no > 0),
  CONSTRAINT voids_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT void_is_of_a_document FOREIGN KEY (document_id, partner_id, month, currency, arrangement) REFERENCES documents(document_id, partner_id, month, currency, arrangement)
);
CREATE UNIQUE INDEX voids_fact ON voids USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON voids FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE CONSTRAINT TRIGGER document_not_overpaid AFTER INSERT ON voids DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_overpaid_document('document_id'); -- enabled: A
CREATE TRIGGER entry_books_open AFTER INSERT ON voids REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_books(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON voids FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON voids FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON voids TO reckoner_app;

CREATE VIEW live_documents AS
 SELECT document_id, series, sequence, number, document, purpose, partner_id, month, currency, arrangement, issued_on,
    due_on, terms_days, enrollments, entries, spot_price, partner_cut, invoice_amount, tax, gross, credit_applied,
    partner_name, contact_name, address_line1, address_line2, address_city, address_region, address_postal_code,
    address_country, tax_id, purchase_order, legal_note, e_invoice, buyer_reference, electronic_address,
    issuer_version_id, sandbox, issued_at, replaces, credits, invoice_lowered_by, invoice_left, reason, reopened_on,
    entry_on, opening_id, opening_number, opening_revision, opening_follows, original_amount, log_no
   FROM documents d
  WHERE NOT (EXISTS ( SELECT
           FROM voids v
          WHERE v.document_id = d.document_id));
GRANT SELECT ON live_documents TO reckoner_app;

CREATE TABLE credit_applications (
  credit_application_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  credit_note_id bigint NOT NULL,
  invoice_id bigint NOT NULL,
  amount numeric NOT NULL,
  applied_on date NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  at_issue boolean NOT NULL DEFAULT true,
  event_id bigint NOT NULL,
  reopened_on date DEFAULT earliest_postable_date(),
  entry_on date NOT NULL GENERATED ALWAYS AS (GREATEST(applied_on, reopened_on)) STORED,
  log_no bigint NOT NULL,
  CONSTRAINT credit_applications_pkey PRIMARY KEY (credit_application_id),
  CONSTRAINT credit_application_of_invoice UNIQUE (credit_application_id, invoice_id),
  CONSTRAINT credit_application_positive CHECK (amount > 0::numeric),
  CONSTRAINT credit_applications_fact_positive CHECK (log_no > 0),
  CONSTRAINT credit_applications_credit_note_id_fkey FOREIGN KEY (credit_note_id) REFERENCES documents(document_id),
  CONSTRAINT credit_applications_invoice_id_fkey FOREIGN KEY (invoice_id) REFERENCES documents(document_id),
  CONSTRAINT credit_applications_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE INDEX credit_applications_of_note ON credit_applications USING btree (credit_note_id);
CREATE INDEX credit_applications_of_invoice ON credit_applications USING btree (invoice_id);
CREATE UNIQUE INDEX credit_applications_fact ON credit_applications USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON credit_applications FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE CONSTRAINT TRIGGER credit_note_not_overdrawn AFTER INSERT ON credit_applications DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NOT new.at_issue) EXECUTE FUNCTION refuse_overpaid_document('credit_note_id', 'credit_note'); -- enabled: A
CREATE CONSTRAINT TRIGGER document_not_overpaid AFTER INSERT ON credit_applications DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NOT new.at_issue) EXECUTE FUNCTION refuse_overpaid_document('invoice_id', 'invoice'); -- enabled: A
CREATE TRIGGER entry_books_open AFTER INSERT ON credit_applications REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_books(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON credit_applications FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON credit_applications FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON credit_applications TO reckoner_app;
GRANT SELECT ON SEQUENCE credit_applications_credit_application_id_seq TO reckoner_app;

CREATE TABLE credit_releases (
  credit_application_id bigint NOT NULL,
  document_id bigint,
  released_on date NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  reopened_on date DEFAULT earliest_postable_date(),
  entry_on date NOT NULL GENERATED ALWAYS AS (GREATEST(released_on, reopened_on)) STORED,
  log_no bigint NOT NULL,
  CONSTRAINT credit_releases_pkey PRIMARY KEY (credit_application_id),
  CONSTRAINT credit_releases_fact_positive CHECK (log_no > 0),
  CONSTRAINT credit_releases_credit_application_id_fkey FOREIGN KEY (credit_application_id) REFERENCES credit_applications(credit_application_id),
  CONSTRAINT credit_releases_document_id_fkey FOREIGN KEY (document_id) REFERENCES voids(document_id),
  CONSTRAINT credit_releases_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT credit_release_by_its_invoices_void FOREIGN KEY (credit_application_id, document_id) REFERENCES credit_applications(credit_application_id, invoice_id)
);
CREATE UNIQUE INDEX credit_releases_fact ON credit_releases USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON credit_releases FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER credit_release_leaves_nothing_due BEFORE INSERT ON credit_releases FOR EACH ROW WHEN (new.document_id IS NULL) EXECUTE FUNCTION refuse_release_of_covering_credit(); -- enabled: A
CREATE TRIGGER entry_books_open AFTER INSERT ON credit_releases REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_books(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON credit_releases FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON credit_releases FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON credit_releases TO reckoner_app;

CREATE FUNCTION refuse_release_of_covering_credit()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF EXISTS (SELECT FROM credit_applications a JOIN documents d ON d.document_id = a.invoice_id
             WHERE a.credit_application_id = NEW.credit_application_id AND d.credit_applied = d.gross) THEN
    RAISE EXCEPTION 'credit application % covers an invoice that was issued with nothing due', NEW.credit_application_id
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'credit_release_leaves_nothing_due';
  END IF;
  RETURN NEW;
END
$function$;

CREATE VIEW live_credit_applications AS
 SELECT credit_application_id, credit_note_id, invoice_id, amount, applied_on, recorded_at, at_issue, event_id,
    reopened_on, entry_on, log_no
   FROM credit_applications a
  WHERE NOT (EXISTS ( SELECT
           FROM credit_releases r
          WHERE r.credit_application_id = a.credit_application_id));
GRANT SELECT ON live_credit_applications TO reckoner_app;

CREATE TABLE write_offs (
  write_off_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  document_id bigint NOT NULL,
  amount numeric NOT NULL,
  reason text NOT NULL,
  written_off_on date NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  reopened_on date DEFAULT earliest_postable_date(),
  entry_on date NOT NULL GENERATED ALWAYS AS (GREATEST(written_off_on, reopened_on)) STORED,
  log_no bigint NOT NULL,
  CONSTRAINT write_offs_pkey PRIMARY KEY (write_off_id),
  CONSTRAINT write_off_positive CHECK (amount > 0::numeric),
  CONSTRAINT write_off_has_reason CHECK (btrim(reason) <> ''),
  CONSTRAINT write_offs_fact_positive CHECK (log_no > 0),
  CONSTRAINT write_offs_document_id_fkey FOREIGN KEY (document_id) REFERENCES documents(document_id),
  CONSTRAINT write_offs_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE INDEX write_offs_of_document ON write_offs USING btree (document_id);
CREATE UNIQUE INDEX write_offs_fact ON write_offs USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON write_offs FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE CONSTRAINT TRIGGER document_not_overpaid AFTER INSERT ON write_offs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_overpaid_document('document_id', 'invoice'); -- enabled: A
CREATE TRIGGER entry_books_open AFTER INSERT ON write_offs REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_books(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON write_offs FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON write_offs FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON write_offs TO reckoner_app;
GRANT SELECT ON SEQUENCE write_offs_write_off_id_seq TO reckoner_app;

CREATE TABLE write_off_reversals (
  write_off_id bigint NOT NULL,
  reason text NOT NULL,
  reversed_on date NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  reopened_on date DEFAULT earliest_postable_date(),
  entry_on date NOT NULL GENERATED ALWAYS AS (GREATEST(reversed_on, reopened_on)) STORED,
  log_no bigint NOT NULL,
  CONSTRAINT write_off_reversals_pkey PRIMARY KEY (write_off_id),
  CONSTRAINT write_off_reversal_has_reason CHECK (btrim(reason) <> ''),
  CONSTRAINT write_off_reversals_fact_positive CHECK (log_no > 0),
  CONSTRAINT write_off_reversals_write_off_id_fkey FOREIGN KEY (write_off_id) REFERENCES write_offs(write_off_id),
  CONSTRAINT write_off_reversals_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX write_off_reversals_fact ON write_off_reversals USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON write_off_reversals FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER entry_books_open AFTER INSERT ON write_off_reversals REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_books(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON write_off_reversals FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON write_off_reversals FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON write_off_reversals TO reckoner_app;

CREATE VIEW live_write_offs AS
 SELECT write_off_id, document_id, amount, reason, written_off_on, recorded_at, event_id, reopened_on, entry_on,
    log_no
   FROM write_offs w
  WHERE NOT (EXISTS ( SELECT
           FROM write_off_reversals r
          WHERE r.write_off_id = w.write_off_id));
GRANT SELECT ON live_write_offs TO reckoner_app;

CREATE TABLE holds (
  hold_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  document_id bigint NOT NULL,
  follows bigint,
  reason text NOT NULL,
  held_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT holds_pkey PRIMARY KEY (hold_id),
  CONSTRAINT hold_of_document UNIQUE (hold_id, document_id),
  CONSTRAINT hold_one_at_a_time UNIQUE NULLS NOT DISTINCT (document_id, follows),
  CONSTRAINT holds_fact_positive CHECK (log_no > 0),
  CONSTRAINT holds_document_id_fkey FOREIGN KEY (document_id) REFERENCES documents(document_id),
  CONSTRAINT holds_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT hold_follows_a_release FOREIGN KEY (follows, document_id) REFERENCES hold_releases(hold_id, document_id) DEFERRABLE
);
CREATE UNIQUE INDEX holds_fact ON holds USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON holds FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON holds FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON holds FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order'); -- enabled: A
GRANT INSERT, SELECT ON holds TO reckoner_app;
GRANT SELECT ON SEQUENCE holds_hold_id_seq TO reckoner_app;

CREATE TABLE hold_releases (
  hold_id bigint NOT NULL,
  document_id bigint NOT NULL,
  released_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT hold_releases_pkey PRIMARY KEY (hold_id),
  CONSTRAINT hold_release_stands_for UNIQUE (hold_id, document_id),
  CONSTRAINT hold_releases_fact_positive CHECK (log_no > 0),
  CONSTRAINT hold_releases_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT hold_release_is_of_a_hold FOREIGN KEY (hold_id, document_id) REFERENCES holds(hold_id, document_id)
);
CREATE UNIQUE INDEX hold_releases_fact ON hold_releases USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON hold_releases FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON hold_releases FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON hold_releases FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order'); -- enabled: A
GRANT INSERT, SELECT ON hold_releases TO reckoner_app;

CREATE VIEW current_holds AS
 SELECT hold_id, document_id, follows, reason, held_at, event_id, log_no
   FROM holds h
  WHERE NOT (EXISTS ( SELECT
           FROM hold_releases r
          WHERE r.hold_id = h.hold_id));
GRANT SELECT ON current_holds TO reckoner_app;

CREATE TABLE invoice_disputes (
  invoice_dispute_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  document_id bigint NOT NULL,
  follows bigint,
  amount numeric NOT NULL,
  reason text NOT NULL,
  owner text NOT NULL,
  promised_on date,
  disputed_on date NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT invoice_disputes_pkey PRIMARY KEY (invoice_dispute_id),
  CONSTRAINT invoice_dispute_of_document UNIQUE (invoice_dispute_id, document_id),
  CONSTRAINT invoice_dispute_one_at_a_time UNIQUE NULLS NOT DISTINCT (document_id, follows),
  CONSTRAINT invoice_dispute_positive CHECK (amount > 0::numeric),
  CONSTRAINT invoice_dispute_has_reason CHECK (btrim(reason) <> ''),
  CONSTRAINT invoice_dispute_promise_ahead CHECK (promised_on >= disputed_on),
  CONSTRAINT invoice_disputes_fact_positive CHECK (log_no > 0),
  CONSTRAINT invoice_disputes_owner_kept CHECK (owner = '' OR is_commitment(owner)),
  CONSTRAINT invoice_disputes_document_id_fkey FOREIGN KEY (document_id) REFERENCES documents(document_id),
  CONSTRAINT invoice_disputes_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT invoice_dispute_follows_a_closing FOREIGN KEY (follows, document_id) REFERENCES invoice_dispute_closings(invoice_dispute_id, document_id) DEFERRABLE
);
CREATE UNIQUE INDEX invoice_disputes_fact ON invoice_disputes USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON invoice_disputes FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON invoice_disputes FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON invoice_disputes FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON invoice_disputes FOR EACH ROW EXECUTE FUNCTION keep_texts('owner'); -- enabled: A
GRANT INSERT, SELECT ON invoice_disputes TO reckoner_app;
GRANT SELECT ON SEQUENCE invoice_disputes_invoice_dispute_id_seq TO reckoner_app;

CREATE TABLE invoice_dispute_closings (
  invoice_dispute_id bigint NOT NULL,
  document_id bigint NOT NULL,
  reason text NOT NULL,
  closed_on date NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT invoice_dispute_closings_pkey PRIMARY KEY (invoice_dispute_id),
  CONSTRAINT invoice_dispute_closing_stands_for UNIQUE (invoice_dispute_id, document_id),
  CONSTRAINT invoice_dispute_closing_has_reason CHECK (btrim(reason) <> ''),
  CONSTRAINT invoice_dispute_closings_fact_positive CHECK (log_no > 0),
  CONSTRAINT invoice_dispute_closings_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT invoice_dispute_closing_is_of_a_dispute FOREIGN KEY (invoice_dispute_id, document_id) REFERENCES invoice_disputes(invoice_dispute_id, document_id)
);
CREATE UNIQUE INDEX invoice_dispute_closings_fact ON invoice_dispute_closings USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON invoice_dispute_closings FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON invoice_dispute_closings FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON invoice_dispute_closings FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON invoice_dispute_closings TO reckoner_app;

CREATE VIEW open_invoice_disputes AS
 SELECT invoice_dispute_id, document_id, follows, amount, reason, owner, promised_on, disputed_on, recorded_at,
    event_id, log_no
   FROM invoice_disputes t
  WHERE NOT (EXISTS ( SELECT
           FROM invoice_dispute_closings c
          WHERE c.invoice_dispute_id = t.invoice_dispute_id)) AND NOT (EXISTS ( SELECT
           FROM voids v
          WHERE v.document_id = t.document_id));
GRANT SELECT ON open_invoice_disputes TO reckoner_app;

CREATE TABLE instruction_versions (
  instruction_version_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  currency text COLLATE "C" NOT NULL,
  content jsonb NOT NULL,
  first_used_at timestamp with time zone NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT instruction_versions_pkey PRIMARY KEY (instruction_version_id),
  CONSTRAINT instruction_version_once UNIQUE (currency, content),
  CONSTRAINT instruction_versions_fact_positive CHECK (log_no > 0)
);
CREATE UNIQUE INDEX instruction_versions_fact ON instruction_versions USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON instruction_versions FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON instruction_versions FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON instruction_versions FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON instruction_versions TO reckoner_app;
GRANT SELECT ON SEQUENCE instruction_versions_instruction_version_id_seq TO reckoner_app;

CREATE VIEW instructions_in_force AS
 SELECT event_id, details -> 'instructions' AS instructions
   FROM audit_events
  WHERE action = 'instructions.adopt'
  ORDER BY event_id DESC
 LIMIT 1;
GRANT SELECT ON instructions_in_force TO reckoner_app;

CREATE FUNCTION instructions_for(instructions jsonb, currency text)
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
RETURN (SELECT NULLIF(jsonb_strip_nulls(jsonb_build_object('ach', CASE WHEN (instructions_for.currency = 'USD') THEN NULLIF((i.found -> 'ach'), '{}'::jsonb) ELSE NULL::jsonb END, 'wire', NULLIF((i.found -> 'wire'), '{}'::jsonb))), '{}'::jsonb) AS "nullif" FROM unnest(ARRAY[(instructions_for.instructions -> instructions_for.currency), (instructions_for.instructions -> '*')]) WITH ORDINALITY i(found, place) WHERE ((NULLIF((i.found -> 'ach'), '{}'::jsonb) IS NOT NULL) OR (NULLIF((i.found -> 'wire'), '{}'::jsonb) IS NOT NULL)) ORDER BY i.place LIMIT 1);
GRANT EXECUTE ON FUNCTION instructions_for TO reckoner_app;

CREATE TABLE document_pdfs (
  document_id bigint NOT NULL,
  renderer_version integer NOT NULL,
  libraries jsonb NOT NULL,
  instruction_version_id bigint,
  instructions_changed boolean NOT NULL,
  sha256 text NOT NULL,
  pdf bytea STORAGE EXTERNAL NOT NULL,
  rendered_at timestamp with time zone NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT document_pdfs_pkey PRIMARY KEY (document_id),
  CONSTRAINT document_pdf_sha256_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  CONSTRAINT document_pdf_is_its_hash CHECK (sha256 = encode(sha256(pdf), 'hex')),
  CONSTRAINT document_pdfs_fact_positive CHECK (log_no > 0),
  CONSTRAINT document_pdfs_document_id_fkey FOREIGN KEY (document_id) REFERENCES documents(document_id),
  CONSTRAINT document_pdfs_instruction_version_id_fkey FOREIGN KEY (instruction_version_id) REFERENCES instruction_versions(instruction_version_id)
);
CREATE UNIQUE INDEX document_pdfs_fact ON document_pdfs USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON document_pdfs FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON document_pdfs FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON document_pdfs FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE TRIGGER instructions_in_force BEFORE INSERT ON document_pdfs FOR EACH ROW WHEN (new.instruction_version_id IS NOT NULL) EXECUTE FUNCTION refuse_other_instructions(); -- enabled: A
GRANT INSERT, SELECT ON document_pdfs TO reckoner_app;

CREATE FUNCTION refuse_other_instructions()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NOT EXISTS (
    SELECT FROM instruction_versions v CROSS JOIN LATERAL (
      SELECT details->'instructions' AS instructions FROM audit_events
      WHERE action = 'instructions.adopt' AND log_no < NEW.log_no ORDER BY event_id DESC LIMIT 1) AS f
    WHERE v.instruction_version_id = NEW.instruction_version_id
      AND v.content = instructions_for(f.instructions, v.currency)) THEN
    RAISE EXCEPTION 'the payment instructions of document % are not in force', NEW.document_id
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'document_pdf_instructions_in_force';
  END IF;
  RETURN NEW;
END
$function$;

CREATE TABLE document_e_invoices (
  document_id bigint NOT NULL,
  writer_version integer NOT NULL,
  parties jsonb NOT NULL,
  sha256 text NOT NULL,
  xml bytea NOT NULL,
  written_at timestamp with time zone NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT document_e_invoices_pkey PRIMARY KEY (document_id),
  CONSTRAINT document_e_invoice_sha256_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  CONSTRAINT document_e_invoice_is_its_hash CHECK (sha256 = encode(sha256(xml), 'hex')),
  CONSTRAINT document_e_invoices_fact_positive CHECK (log_no > 0),
  CONSTRAINT document_e_invoices_document_id_fkey FOREIGN KEY (document_id) REFERENCES document_pdfs(document_id)
);
CREATE UNIQUE INDEX document_e_invoices_fact ON document_e_invoices USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON document_e_invoices FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON document_e_invoices FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON document_e_invoices FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON document_e_invoices TO reckoner_app;

-- 008_mail ------------------------------------------------------------------------------------------------------------

CREATE TABLE emails (
  email_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  kind text NOT NULL,
  document_id bigint,
  partner_id text COLLATE "C",
  month text COLLATE "C",
  day date,
  payment_id bigint,
  credit_refund_id bigint,
  checkpoint_size bigint,
  approval_request_id bigint,
  preliminary boolean NOT NULL DEFAULT false,
  asked_for text,
  addressed_to text,
  event_id bigint,
  message_id text NOT NULL,
  status text NOT NULL,
  reason text,
  recipients text[],
  message bytea STORAGE EXTERNAL,
  message_sha256 text,
  envelope_from text,
  attempts integer NOT NULL DEFAULT 0,
  unclear_attempts integer NOT NULL DEFAULT 0,
  due_at timestamp with time zone NOT NULL DEFAULT now(),
  queued_at timestamp with time zone NOT NULL,
  attempted_at timestamp with time zone,
  sent_at timestamp with time zone,
  dismissal_reason text,
  CONSTRAINT emails_pkey PRIMARY KEY (email_id),
  CONSTRAINT email_message_id_once UNIQUE (message_id),
  CONSTRAINT email_of_partner UNIQUE (email_id, partner_id),
  CONSTRAINT email_kind_known CHECK (kind = ANY (ARRAY['invoice', 'credit_note', 'statement', 'reminder', 'account_statement', 'close_report', 'feed_doubts', 'checkpoint', 'status', 'payment_receipt', 'refund_notice', 'instructions_changed', 'approval_request', 'approval_decision'])),
  CONSTRAINT email_preliminary_statement CHECK (NOT preliminary OR kind = 'account_statement'),
  CONSTRAINT email_asked_for_known CHECK (asked_for = ANY (ARRAY['close', 'rerun', 'credit', 'resend', 'missing_shares', 'new_address'])),
  CONSTRAINT email_status_known CHECK (status = ANY (ARRAY['queued', 'sending', 'sent', 'held', 'failed', 'uncertain', 'bounced', 'withdrawn'])),
  CONSTRAINT email_document_named CHECK ((kind = ANY (ARRAY['invoice', 'credit_note', 'statement'])) = (document_id IS NOT NULL)),
  CONSTRAINT email_asked_for_named CHECK (
CASE
    WHEN document_id IS NULL THEN asked_for IS NULL OR (asked_for = ANY (ARRAY['resend', 'new_address']))
    ELSE asked_for IS NOT NULL AND asked_for <> 'new_address'
END),
  CONSTRAINT email_partner_and_day_named CHECK ((kind = ANY (ARRAY['reminder', 'account_statement', 'payment_receipt', 'refund_notice'])) = (partner_id IS NOT NULL) AND (kind = ANY (ARRAY['reminder', 'account_statement', 'feed_doubts', 'instructions_changed'])) = (day IS NOT NULL)),
  CONSTRAINT email_money_named CHECK ((kind = 'payment_receipt') = (payment_id IS NOT NULL) AND (kind = 'refund_notice') = (credit_refund_id IS NOT NULL)),
  CONSTRAINT email_month_named CHECK ((kind = 'close_report') = (month IS NOT NULL)),
  CONSTRAINT email_checkpoint_named CHECK ((kind = 'checkpoint') = (checkpoint_size IS NOT NULL)),
  CONSTRAINT email_approval_named CHECK ((kind = ANY (ARRAY['approval_request', 'approval_decision'])) = (approval_request_id IS NOT NULL)),
  CONSTRAINT email_address_for_a_resend CHECK (addressed_to IS NULL OR NOT asked_for IS DISTINCT FROM 'resend'),
  CONSTRAINT email_event_named CHECK (event_id IS NOT NULL OR (kind = ANY (ARRAY['feed_doubts', 'checkpoint', 'status'])) OR NOT asked_for IS DISTINCT FROM 'close'),
  CONSTRAINT email_in_flight_has_message CHECK (status <> 'sending' OR message IS NOT NULL AND message_sha256 IS NOT NULL AND recipients IS NOT NULL),
  CONSTRAINT email_sent_has_time CHECK (
CASE status
    WHEN 'bounced' THEN true
    ELSE (status = 'sent') = (sent_at IS NOT NULL)
END),
  CONSTRAINT email_held_has_reason CHECK (status <> 'held' OR reason IS NOT NULL),
  CONSTRAINT email_dismissed_unsent CHECK (dismissal_reason IS NULL OR document_id IS NULL AND (status = ANY (ARRAY['failed', 'uncertain', 'bounced', 'withdrawn']))),
  CONSTRAINT emails_document_id_fkey FOREIGN KEY (document_id) REFERENCES documents(document_id),
  CONSTRAINT emails_partner_id_fkey FOREIGN KEY (partner_id) REFERENCES partners(partner_id),
  CONSTRAINT emails_month_fkey FOREIGN KEY (month) REFERENCES closed_months(month),
  CONSTRAINT emails_checkpoint_size_fkey FOREIGN KEY (checkpoint_size) REFERENCES log_checkpoints(size) DEFERRABLE,
  CONSTRAINT emails_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT email_of_a_payment FOREIGN KEY (payment_id) REFERENCES payments(payment_id),
  CONSTRAINT email_of_a_refund FOREIGN KEY (credit_refund_id) REFERENCES credit_refunds(credit_refund_id),
  CONSTRAINT email_of_an_approval FOREIGN KEY (approval_request_id) REFERENCES approval_requests(request_id)
);
CREATE UNIQUE INDEX email_of_an_issue_once ON emails USING btree (document_id) WHERE asked_for <> 'resend';
CREATE UNIQUE INDEX reminder_once ON emails USING btree (partner_id, day) WHERE kind = 'reminder' AND asked_for IS NULL;
CREATE UNIQUE INDEX account_statement_once ON emails USING btree (partner_id, day, preliminary) WHERE kind = 'account_statement' AND asked_for IS NULL;
CREATE UNIQUE INDEX payment_receipt_once ON emails USING btree (payment_id, partner_id) WHERE kind = 'payment_receipt' AND asked_for IS NULL AND status <> 'withdrawn';
CREATE UNIQUE INDEX refund_notice_once ON emails USING btree (credit_refund_id) WHERE kind = 'refund_notice' AND asked_for IS NULL;
CREATE UNIQUE INDEX close_report_once ON emails USING btree (month) WHERE kind = 'close_report' AND asked_for IS NULL;
CREATE UNIQUE INDEX feed_doubts_wait_once ON emails USING btree (day) WHERE kind = 'feed_doubts' AND asked_for IS NULL AND (status = ANY (ARRAY['queued', 'sending', 'held']));
CREATE UNIQUE INDEX instructions_changed_once ON emails USING btree (event_id) WHERE kind = 'instructions_changed' AND asked_for IS NULL;
CREATE UNIQUE INDEX approval_email_once ON emails USING btree (kind, approval_request_id) WHERE approval_request_id IS NOT NULL AND asked_for IS NULL;
CREATE UNIQUE INDEX checkpoint_email_once ON emails USING btree (checkpoint_size) WHERE kind = 'checkpoint' AND asked_for IS NULL;
CREATE UNIQUE INDEX status_email_waits_once ON emails USING btree (kind) WHERE kind = 'status' AND (status = ANY (ARRAY['queued', 'sending', 'held']));
CREATE INDEX emails_of_document ON emails USING btree (document_id, email_id) WHERE document_id IS NOT NULL;
CREATE INDEX emails_unfinished ON emails USING btree (status) WHERE status <> 'sent';
CREATE INDEX emails_due ON emails USING btree (due_at, email_id) WHERE status = ANY (ARRAY['queued', 'sending', 'held']);
CREATE TRIGGER emails_facts_stay BEFORE UPDATE ON emails FOR EACH ROW EXECUTE FUNCTION refuse_rewritten_email(); -- enabled: A
CREATE TRIGGER not_begun_while_paused BEFORE UPDATE OF status ON emails FOR EACH ROW WHEN (new.status = 'sending' AND old.status <> 'sending') EXECUTE FUNCTION begin_recording('not_while_paused'); -- enabled: A
CREATE TRIGGER not_while_paused BEFORE INSERT ON emails FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('not_while_paused'); -- enabled: A
GRANT INSERT, SELECT, UPDATE ON emails TO reckoner_app;
GRANT SELECT ON SEQUENCE emails_email_id_seq TO reckoner_app;

CREATE FUNCTION is_erased_email(before emails, after emails)
 RETURNS boolean
 LANGUAGE sql
 STABLE
RETURN (((to_jsonb(after) - '{addressed_to,reason,recipients}'[]) = (to_jsonb(before) - '{addressed_to,reason,recipients}'[])) AND (NOT ((after).addressed_to IS DISTINCT FROM CASE (after).addressed_to WHEN '(erased)' THEN '(erased)' ELSE (before).addressed_to END)) AND (NOT ((after).reason IS DISTINCT FROM CASE (after).reason WHEN '(erased)' THEN '(erased)' ELSE (before).reason END)) AND (NOT (EXISTS (SELECT FROM UNNEST((is_erased_email.before).recipients, (is_erased_email.after).recipients) r(before, after) WHERE ((r.after IS DISTINCT FROM r.before) AND ((r.before IS NULL) OR (r.after IS DISTINCT FROM '(erased)')))))));
GRANT EXECUTE ON FUNCTION is_erased_email TO reckoner_app;

CREATE FUNCTION refuse_rewritten_email()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF ((OLD.kind, OLD.document_id, OLD.partner_id, OLD.month, OLD.day, OLD.payment_id, OLD.credit_refund_id,
      OLD.checkpoint_size, OLD.approval_request_id, OLD.preliminary, OLD.asked_for, OLD.addressed_to, OLD.event_id,
      OLD.message_id, OLD.queued_at)
     IS DISTINCT FROM
     (NEW.kind, NEW.document_id, NEW.partner_id, NEW.month, NEW.day, NEW.payment_id, NEW.credit_refund_id,
      NEW.checkpoint_size, NEW.approval_request_id, NEW.preliminary, NEW.asked_for, NEW.addressed_to, NEW.event_id,
      NEW.message_id, NEW.queued_at)
     OR OLD.status = 'withdrawn' OR OLD.dismissal_reason IS NOT NULL
     OR (OLD.status IN ('sent', 'bounced')
         AND (NEW.status <> 'bounced' OR (OLD.recipients, OLD.message_sha256, OLD.sent_at, OLD.attempts)
                                         IS DISTINCT FROM (NEW.recipients, NEW.message_sha256, NEW.sent_at, NEW.attempts))))
     AND NOT is_erased_email(OLD, NEW)
  THEN
    RAISE EXCEPTION 'e-mail % is a fact: send again with a new one', OLD.email_id
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'emails_facts_stay';
  END IF;
  RETURN NEW;
END
$function$;

CREATE TABLE email_attempts (
  email_id bigint NOT NULL,
  attempt integer NOT NULL,
  started_at timestamp with time zone NOT NULL,
  ended_at timestamp with time zone NOT NULL,
  outcome text NOT NULL,
  reply text NOT NULL,
  kind text NOT NULL,
  message_id text NOT NULL,
  recipients text[] NOT NULL,
  message_sha256 text NOT NULL,
  pdf_sha256 text,
  log_no bigint NOT NULL,
  CONSTRAINT email_attempts_pkey PRIMARY KEY (email_id, attempt),
  CONSTRAINT email_attempt_outcome_known CHECK (outcome = ANY (ARRAY['sent', 'refused', 'deferred', 'unclear'])),
  CONSTRAINT email_attempts_fact_positive CHECK (log_no > 0),
  CONSTRAINT email_attempts_reply_kept CHECK (reply = '' OR is_commitment(reply)),
  CONSTRAINT email_attempts_email_id_fkey FOREIGN KEY (email_id) REFERENCES emails(email_id)
);
CREATE INDEX email_attempts_by_end ON email_attempts USING btree (ended_at);
CREATE UNIQUE INDEX email_attempts_fact ON email_attempts USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON email_attempts FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON email_attempts FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON email_attempts FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order'); -- enabled: A
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON email_attempts FOR EACH ROW EXECUTE FUNCTION keep_texts('reply', 'recipients'); -- enabled: A
GRANT INSERT, SELECT ON email_attempts TO reckoner_app;

CREATE TABLE email_bounces (
  email_bounce_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  email_id bigint NOT NULL,
  recipient text NOT NULL,
  status text NOT NULL,
  diagnostic text NOT NULL,
  reporting_server text NOT NULL,
  report_sha256 text NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT email_bounces_pkey PRIMARY KEY (email_bounce_id),
  CONSTRAINT email_bounce_once UNIQUE (email_id, recipient),
  CONSTRAINT email_bounce_status_form CHECK (status ~ '^[45]\.\d{1,3}\.\d{1,3}$'),
  CONSTRAINT email_bounce_report_hash CHECK (report_sha256 ~ '^[0-9a-f]{64}$'),
  CONSTRAINT email_bounces_fact_positive CHECK (log_no > 0),
  CONSTRAINT email_bounces_diagnostic_kept CHECK (diagnostic = '' OR is_commitment(diagnostic)),
  CONSTRAINT email_bounces_recipient_kept CHECK (recipient = '' OR is_commitment(recipient)),
  CONSTRAINT email_bounces_email_id_fkey FOREIGN KEY (email_id) REFERENCES emails(email_id),
  CONSTRAINT email_bounces_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX email_bounces_fact ON email_bounces USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON email_bounces FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON email_bounces FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON email_bounces FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order'); -- enabled: A
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON email_bounces FOR EACH ROW EXECUTE FUNCTION keep_texts('recipient', 'diagnostic'); -- enabled: A
GRANT INSERT, SELECT ON email_bounces TO reckoner_app;
GRANT SELECT ON SEQUENCE email_bounces_email_bounce_id_seq TO reckoner_app;

CREATE VIEW document_emails AS
 SELECT email_id, document_id, asked_for, addressed_to, event_id, message_id, status, reason, recipients,
    message_sha256, attempts, unclear_attempts, queued_at, attempted_at, sent_at
   FROM emails
  WHERE document_id IS NOT NULL;
GRANT SELECT ON document_emails TO reckoner_app;

CREATE VIEW latest_emails AS
 SELECT DISTINCT ON (document_id) email_id, document_id, asked_for, addressed_to, event_id, message_id, status, reason,
    recipients, message_sha256, attempts, unclear_attempts, queued_at, attempted_at, sent_at
   FROM document_emails
  ORDER BY document_id, email_id DESC;
GRANT SELECT ON latest_emails TO reckoner_app;

CREATE VIEW latest_other_emails AS
 SELECT DISTINCT ON (kind, partner_id, month, day, payment_id, credit_refund_id, checkpoint_size, approval_request_id) email_id,
    kind, partner_id, month, day, payment_id, credit_refund_id, checkpoint_size, approval_request_id, addressed_to,
    status, reason, recipients, queued_at, dismissal_reason
   FROM emails
  WHERE document_id IS NULL
  ORDER BY kind, partner_id, month, day, payment_id, credit_refund_id, checkpoint_size, approval_request_id, email_id DESC;
GRANT SELECT ON latest_other_emails TO reckoner_app;

CREATE VIEW unfinished_emails AS
 SELECT email_id, document_id
   FROM emails e
  WHERE (status <> ALL (ARRAY['sent', 'withdrawn'])) AND dismissal_reason IS NULL AND
        CASE
            WHEN document_id IS NULL THEN NOT (EXISTS ( SELECT
               FROM emails later
              WHERE later.email_id > e.email_id AND later.document_id IS NULL AND later.kind = e.kind AND NOT (later.partner_id IS DISTINCT FROM e.partner_id OR later.month IS DISTINCT FROM e.month OR later.day IS DISTINCT FROM e.day OR later.payment_id IS DISTINCT FROM e.payment_id OR later.credit_refund_id IS DISTINCT FROM e.credit_refund_id OR later.checkpoint_size IS DISTINCT FROM e.checkpoint_size OR later.approval_request_id IS DISTINCT FROM e.approval_request_id)))
            ELSE NOT (EXISTS ( SELECT
               FROM voids v
              WHERE v.document_id = e.document_id)) AND NOT (EXISTS ( SELECT
               FROM emails later
              WHERE later.document_id = e.document_id AND later.email_id > e.email_id))
        END;
GRANT SELECT ON unfinished_emails TO reckoner_app;

CREATE VIEW document_email_history AS
 SELECT document_emails.document_id, 6 AS rank, document_emails.queued_at AS at, 'sending_asked' AS action,
    jsonb_build_object('asked_for', document_emails.asked_for, 'to', document_emails.addressed_to, 'message_id', document_emails.message_id) AS facts,
    document_emails.event_id
   FROM document_emails
UNION ALL
 SELECT e.document_id, 6.5 AS rank, a.ended_at AS at, 'attempted' AS action,
    jsonb_build_object('attempt', a.attempt::text, 'outcome', a.outcome, 'reply', personal(a.reply)) AS facts,
    NULL::bigint AS event_id
   FROM email_attempts a
     JOIN document_emails e USING (email_id)
  WHERE a.attempt < e.attempts
UNION ALL
 SELECT e.document_id, 7 AS rank, COALESCE(e.sent_at, e.attempted_at, e.queued_at) AS at, 'sending' AS action,
    jsonb_build_object('status',
        CASE e.status
            WHEN 'bounced' THEN
            CASE a.outcome
                WHEN 'sent' THEN 'sent'
                ELSE 'uncertain'
            END
            ELSE e.status
        END, 'to', array_to_string(e.recipients, ', '), 'attempts', e.attempts::text, 'reply',
        CASE e.status
            WHEN 'bounced' THEN personal(a.reply)
            ELSE e.reason
        END, 'sha256', e.message_sha256) AS facts,
    NULL::bigint AS event_id
   FROM document_emails e
     LEFT JOIN email_attempts a ON a.email_id = e.email_id AND a.attempt = e.attempts
  WHERE e.status <> 'queued' OR e.attempts > 0
UNION ALL
 SELECT e.document_id, 7.5 AS rank, b.recorded_at AS at, 'bounced' AS action,
    jsonb_build_object('to', personal(b.recipient), 'status', b.status, 'reply', personal(b.diagnostic), 'server', b.reporting_server) AS facts,
    b.event_id
   FROM email_bounces b
     JOIN document_emails e USING (email_id);
GRANT SELECT ON document_email_history TO reckoner_app;

CREATE FUNCTION queue_document_emails(document_ids bigint[], asked_for text, addressed_to text, event_id bigint, mail_domain text, now timestamp with time zone)
 RETURNS void
 LANGUAGE sql
AS $function$
  INSERT INTO emails (kind, document_id, asked_for, addressed_to, event_id, message_id, status, queued_at)
  SELECT d.document, d.document_id, $2, $3, $4,
         format('<%s.%s.%s@%s>', d.number,
                (SELECT count(*) + 1 FROM emails e WHERE e.document_id = d.document_id), i.installation_id, $5),
         'queued', $6
  FROM documents d CROSS JOIN installation i
  WHERE d.document_id = ANY ($1)
  ORDER BY d.document_id
$function$;
GRANT EXECUTE ON FUNCTION queue_document_emails TO reckoner_app;

CREATE FUNCTION withdraw_document_emails(document_ids bigint[])
 RETURNS TABLE(status text, reason text)
 LANGUAGE sql
AS $function$
  UPDATE emails e
  SET message = NULL,
      status = CASE WHEN e.unclear_attempts > 0 THEN 'uncertain' ELSE 'withdrawn' END,
      reason = CASE WHEN e.unclear_attempts > 0 THEN 'it may have arrived; the document was voided before it was sent again'
                    ELSE 'the document was voided before it was sent' END
  WHERE e.document_id = ANY (document_ids) AND e.status IN ('queued', 'held')
  RETURNING e.status, e.reason
$function$;
GRANT EXECUTE ON FUNCTION withdraw_document_emails TO reckoner_app;

CREATE FUNCTION hold_document_emails(document_ids bigint[], reason text)
 RETURNS void
 LANGUAGE sql
AS $function$
  UPDATE emails e SET status = 'held', reason = $2, due_at = 'infinity'
  WHERE e.document_id = ANY (document_ids) AND e.status IN ('queued', 'held')
$function$;
GRANT EXECUTE ON FUNCTION hold_document_emails TO reckoner_app;

CREATE FUNCTION release_document_emails(document_ids bigint[])
 RETURNS void
 LANGUAGE sql
AS $function$
  UPDATE emails e SET status = 'queued', reason = NULL, due_at = now()
  WHERE e.document_id = ANY ($1) AND e.status = 'held'
$function$;
GRANT EXECUTE ON FUNCTION release_document_emails TO reckoner_app;

-- 009_delivery --------------------------------------------------------------------------------------------------------

CREATE TABLE payment_links (
  document_id bigint NOT NULL,
  provider text NOT NULL,
  token text NOT NULL,
  url text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT payment_links_pkey PRIMARY KEY (document_id),
  CONSTRAINT payment_link_token_once UNIQUE (token),
  CONSTRAINT payment_link_token_unguessable CHECK (length(token) >= 32),
  CONSTRAINT payment_links_document_id_fkey FOREIGN KEY (document_id) REFERENCES documents(document_id)
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payment_links FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT INSERT, SELECT ON payment_links TO reckoner_app;

CREATE TABLE payment_link_changes (
  payment_link_change_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  document_id bigint NOT NULL,
  follows bigint,
  token text,
  reason text NOT NULL,
  changed_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  CONSTRAINT payment_link_changes_pkey PRIMARY KEY (payment_link_change_id),
  CONSTRAINT payment_link_change_token_once UNIQUE (token),
  CONSTRAINT payment_link_change_one_at_a_time UNIQUE NULLS NOT DISTINCT (document_id, follows),
  CONSTRAINT payment_link_change_token_unguessable CHECK (length(token) >= 32),
  CONSTRAINT payment_link_change_has_reason CHECK (reason <> ''),
  CONSTRAINT payment_link_changes_document_id_fkey FOREIGN KEY (document_id) REFERENCES payment_links(document_id),
  CONSTRAINT payment_link_changes_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payment_link_changes FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT INSERT, SELECT ON payment_link_changes TO reckoner_app;
GRANT SELECT ON SEQUENCE payment_link_changes_payment_link_change_id_seq TO reckoner_app;

CREATE VIEW current_links AS
 SELECT k.document_id, k.provider,
        CASE
            WHEN c.document_id IS NULL THEN k.token
            ELSE c.token
        END AS token,
        CASE
            WHEN c.document_id IS NULL THEN k.url
            ELSE replace(k.url, k.token, c.token)
        END AS url
   FROM payment_links k
     LEFT JOIN LATERAL ( SELECT c_1.document_id, c_1.token
           FROM payment_link_changes c_1
          WHERE c_1.document_id = k.document_id
          ORDER BY c_1.payment_link_change_id DESC
         LIMIT 1) c ON true;
GRANT SELECT ON current_links TO reckoner_app;

CREATE TABLE payment_link_intents (
  document_id bigint NOT NULL,
  version integer NOT NULL,
  provider text NOT NULL,
  amount numeric NOT NULL,
  currency text COLLATE "C" NOT NULL,
  request jsonb NOT NULL,
  intended_at timestamp with time zone NOT NULL,
  follows integer GENERATED ALWAYS AS (NULLIF((version - 1), 0)) STORED,
  CONSTRAINT payment_link_intents_pkey PRIMARY KEY (document_id, version),
  CONSTRAINT payment_link_version_positive CHECK (version > 0),
  CONSTRAINT payment_link_amount_positive CHECK (amount > 0::numeric),
  CONSTRAINT payment_link_intents_document_id_fkey FOREIGN KEY (document_id) REFERENCES documents(document_id),
  CONSTRAINT payment_link_follows_a_closed_one FOREIGN KEY (document_id, follows) REFERENCES payment_link_closings(document_id, version) DEFERRABLE
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payment_link_intents FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT INSERT, SELECT ON payment_link_intents TO reckoner_app;

CREATE TABLE payment_link_attempts (
  document_id bigint NOT NULL,
  version integer NOT NULL,
  attempt integer NOT NULL,
  idempotency_key text NOT NULL,
  attempted_at timestamp with time zone NOT NULL,
  CONSTRAINT payment_link_attempts_pkey PRIMARY KEY (document_id, version, attempt),
  CONSTRAINT payment_link_key_once UNIQUE (idempotency_key),
  CONSTRAINT payment_link_attempt_positive CHECK (attempt > 0),
  CONSTRAINT payment_link_key_short CHECK (length(idempotency_key) <= 255),
  CONSTRAINT payment_link_attempt_of_intent FOREIGN KEY (document_id, version) REFERENCES payment_link_intents(document_id, version)
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payment_link_attempts FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER not_while_paused BEFORE INSERT ON payment_link_attempts FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON payment_link_attempts TO reckoner_app;

CREATE TABLE payment_link_objects (
  document_id bigint NOT NULL,
  version integer NOT NULL,
  provider_id text NOT NULL,
  url text NOT NULL,
  found boolean NOT NULL,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT payment_link_objects_pkey PRIMARY KEY (document_id, version),
  CONSTRAINT payment_link_object_once UNIQUE (provider_id),
  CONSTRAINT payment_link_object_of_intent FOREIGN KEY (document_id, version) REFERENCES payment_link_intents(document_id, version)
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payment_link_objects FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT INSERT, SELECT ON payment_link_objects TO reckoner_app;

CREATE TABLE payment_link_closings (
  document_id bigint NOT NULL,
  version integer NOT NULL,
  why text NOT NULL,
  detail text,
  sessions_expired integer NOT NULL DEFAULT 0,
  closed_at timestamp with time zone NOT NULL,
  CONSTRAINT payment_link_closings_pkey PRIMARY KEY (document_id, version),
  CONSTRAINT payment_link_closing_known CHECK (why = ANY (ARRAY['void', 'paid', 'amount_changed', 'used_up', 'ordered', 'refused', 'not_made'])),
  CONSTRAINT payment_link_closing_of_intent FOREIGN KEY (document_id, version) REFERENCES payment_link_intents(document_id, version)
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payment_link_closings FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT INSERT, SELECT ON payment_link_closings TO reckoner_app;

CREATE TABLE payment_link_orders (
  document_id bigint NOT NULL,
  version integer NOT NULL,
  ordered_on date NOT NULL,
  event_id bigint NOT NULL,
  CONSTRAINT payment_link_orders_pkey PRIMARY KEY (document_id, version),
  CONSTRAINT payment_link_orders_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT payment_link_order_of_object FOREIGN KEY (document_id, version) REFERENCES payment_link_objects(document_id, version)
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payment_link_orders FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT INSERT, SELECT ON payment_link_orders TO reckoner_app;

CREATE TABLE payment_link_outcomes (
  document_id bigint NOT NULL,
  version integer NOT NULL,
  outcome text NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  CONSTRAINT payment_link_outcomes_pkey PRIMARY KEY (document_id, version),
  CONSTRAINT payment_link_outcome_known CHECK (outcome = ANY (ARRAY['paid', 'failed'])),
  CONSTRAINT payment_link_outcome_of_object FOREIGN KEY (document_id, version) REFERENCES payment_link_objects(document_id, version)
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payment_link_outcomes FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT INSERT, SELECT ON payment_link_outcomes TO reckoner_app;

CREATE TABLE payment_link_waits (
  document_id bigint NOT NULL,
  kind text NOT NULL,
  reason text NOT NULL,
  wanted text NOT NULL,
  since timestamp with time zone NOT NULL DEFAULT now(),
  noted_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT payment_link_waits_pkey PRIMARY KEY (document_id),
  CONSTRAINT payment_link_wait_known CHECK (kind = ANY (ARRAY['limit', 'refused', 'unavailable'])),
  CONSTRAINT payment_link_waits_document_id_fkey FOREIGN KEY (document_id) REFERENCES documents(document_id)
);
GRANT DELETE, INSERT, SELECT, UPDATE ON payment_link_waits TO reckoner_app;

CREATE TABLE checkouts (
  checkout_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  reference text NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  provider text NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  request jsonb NOT NULL,
  idempotency_key text NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  CONSTRAINT checkouts_pkey PRIMARY KEY (checkout_id),
  CONSTRAINT checkout_reference_once UNIQUE (reference),
  CONSTRAINT checkout_key_once UNIQUE (idempotency_key),
  CONSTRAINT checkout_of_partner UNIQUE (checkout_id, partner_id, currency),
  CONSTRAINT checkout_reference_unguessable CHECK (length(reference) >= 32),
  CONSTRAINT checkout_amount_positive CHECK (amount > 0::numeric),
  CONSTRAINT checkout_key_short CHECK (length(idempotency_key) <= 255),
  CONSTRAINT checkouts_partner_id_fkey FOREIGN KEY (partner_id) REFERENCES partners(partner_id),
  CONSTRAINT checkouts_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE INDEX checkouts_of_partner ON checkouts USING btree (partner_id);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON checkouts FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE CONSTRAINT TRIGGER checkout_is_whole AFTER INSERT ON checkouts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_other_checkout(); -- enabled: A
CREATE TRIGGER not_while_paused BEFORE INSERT ON checkouts FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON checkouts TO reckoner_app;
GRANT SELECT ON SEQUENCE checkouts_checkout_id_seq TO reckoner_app;

CREATE TABLE checkout_invoices (
  checkout_id bigint NOT NULL,
  "position" integer NOT NULL,
  document_id bigint NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  CONSTRAINT checkout_invoices_pkey PRIMARY KEY (checkout_id, "position"),
  CONSTRAINT checkout_invoice_once UNIQUE (checkout_id, document_id),
  CONSTRAINT checkout_position_positive CHECK ("position" > 0),
  CONSTRAINT checkout_invoice_amount_positive CHECK (amount > 0::numeric),
  CONSTRAINT checkout_invoice_of_its_checkout FOREIGN KEY (checkout_id, partner_id, currency) REFERENCES checkouts(checkout_id, partner_id, currency),
  CONSTRAINT checkout_invoice_of_its_partner FOREIGN KEY (document_id, partner_id, currency) REFERENCES documents(document_id, partner_id, currency)
);
CREATE INDEX checkout_invoices_of_document ON checkout_invoices USING btree (document_id);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON checkout_invoices FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE CONSTRAINT TRIGGER checkout_stays_whole AFTER INSERT ON checkout_invoices DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_other_checkout(); -- enabled: A
GRANT INSERT, SELECT ON checkout_invoices TO reckoner_app;

CREATE TABLE checkout_sessions (
  checkout_id bigint NOT NULL,
  provider_id text NOT NULL,
  url text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT checkout_sessions_pkey PRIMARY KEY (checkout_id),
  CONSTRAINT checkout_session_once UNIQUE (provider_id),
  CONSTRAINT checkout_sessions_checkout_id_fkey FOREIGN KEY (checkout_id) REFERENCES checkouts(checkout_id)
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON checkout_sessions FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT INSERT, SELECT ON checkout_sessions TO reckoner_app;

CREATE TABLE checkout_orders (
  checkout_id bigint NOT NULL,
  ordered_on date NOT NULL,
  event_id bigint NOT NULL,
  CONSTRAINT checkout_orders_pkey PRIMARY KEY (checkout_id),
  CONSTRAINT checkout_orders_checkout_id_fkey FOREIGN KEY (checkout_id) REFERENCES checkouts(checkout_id),
  CONSTRAINT checkout_orders_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON checkout_orders FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT INSERT, SELECT ON checkout_orders TO reckoner_app;

CREATE TABLE checkout_endings (
  checkout_id bigint NOT NULL,
  why text NOT NULL,
  detail text,
  ended_at timestamp with time zone NOT NULL,
  CONSTRAINT checkout_endings_pkey PRIMARY KEY (checkout_id),
  CONSTRAINT checkout_ending_known CHECK (why = ANY (ARRAY['paid', 'replaced', 'canceled', 'changed', 'expired', 'failed', 'refused', 'not_made'])),
  CONSTRAINT checkout_endings_checkout_id_fkey FOREIGN KEY (checkout_id) REFERENCES checkouts(checkout_id)
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON checkout_endings FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT INSERT, SELECT ON checkout_endings TO reckoner_app;

CREATE VIEW ordered_payments AS
 SELECT i.document_id, i.amount, o.ordered_on, c.reference
   FROM checkout_orders o
     JOIN checkouts c USING (checkout_id)
     JOIN checkout_invoices i USING (checkout_id)
  WHERE NOT (EXISTS ( SELECT
           FROM checkout_endings e
          WHERE e.checkout_id = o.checkout_id))
UNION ALL
 SELECT o.document_id, i.amount, o.ordered_on, NULL::text AS reference
   FROM payment_link_orders o
     JOIN payment_link_intents i USING (document_id, version)
  WHERE NOT (EXISTS ( SELECT
           FROM payment_link_outcomes x
          WHERE x.document_id = o.document_id AND x.version = o.version));
GRANT SELECT ON ordered_payments TO reckoner_app;

CREATE FUNCTION refuse_other_checkout()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  PERFORM pg_advisory_xact_lock(7310, 52);
  IF (SELECT amount FROM checkouts WHERE checkout_id = NEW.checkout_id)
     IS DISTINCT FROM (SELECT sum(amount) FROM checkout_invoices WHERE checkout_id = NEW.checkout_id) THEN
    RAISE EXCEPTION 'the invoices of checkout % do not add up to it', NEW.checkout_id
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'checkout_adds_up';
  END IF;
  IF NOT EXISTS (SELECT FROM checkout_endings WHERE checkout_id = NEW.checkout_id) AND EXISTS (
       SELECT FROM checkout_invoices mine JOIN checkout_invoices other USING (document_id)
       WHERE mine.checkout_id = NEW.checkout_id AND other.checkout_id <> NEW.checkout_id
         AND NOT EXISTS (SELECT FROM checkout_endings e WHERE e.checkout_id = other.checkout_id)) THEN
    RAISE EXCEPTION 'an invoice of checkout % is in another one that has not ended', NEW.checkout_id
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'checkout_of_invoice_once';
  END IF;
  RETURN NULL;
END
$function$;

CREATE TABLE link_checks (
  document_id bigint NOT NULL,
  asked integer NOT NULL DEFAULT 1,
  CONSTRAINT link_checks_pkey PRIMARY KEY (document_id),
  CONSTRAINT link_checks_document_id_fkey FOREIGN KEY (document_id) REFERENCES documents(document_id)
);
GRANT DELETE, INSERT, SELECT, UPDATE ON link_checks TO reckoner_app;

CREATE FUNCTION request_link_checks(document_ids bigint[])
 RETURNS void
 LANGUAGE sql
AS $function$
  INSERT INTO link_checks AS c (document_id) SELECT DISTINCT id FROM unnest(document_ids) AS id ORDER BY id
  ON CONFLICT (document_id) DO UPDATE SET asked = c.asked + 1
$function$;
GRANT EXECUTE ON FUNCTION request_link_checks TO reckoner_app;

CREATE VIEW payment_link_history AS
 SELECT payment_links.document_id, 4 AS rank, payment_links.created_at AS at, 'linked' AS action,
    '{}'::jsonb AS facts
   FROM payment_links
UNION ALL
 SELECT payment_link_changes.document_id, 11.9 AS rank, payment_link_changes.changed_at AS at,
        CASE
            WHEN payment_link_changes.token IS NULL THEN 'link_revoked'
            ELSE 'link_rotated'
        END AS action,
    jsonb_build_object('reason', payment_link_changes.reason) AS facts
   FROM payment_link_changes
UNION ALL
 SELECT o.document_id, 12::numeric + i.version::numeric * 0.002 AS rank, o.created_at AS at,
    'link_made' AS action,
    jsonb_build_object('version', i.version::text, 'amount', i.amount::text, 'provider', initcap(i.provider), 'found', o.found::text) AS facts
   FROM payment_link_objects o
     JOIN payment_link_intents i USING (document_id, version)
UNION ALL
 SELECT c.document_id, 12.001 + i.version::numeric * 0.002 AS rank, c.closed_at AS at, 'link_closed' AS action,
    jsonb_build_object('version', i.version::text, 'amount', i.amount::text, 'why', c.why, 'detail', c.detail, 'sessions', c.sessions_expired::text) AS facts
   FROM payment_link_closings c
     JOIN payment_link_intents i USING (document_id, version)
UNION ALL
 SELECT i.document_id, 12.9 AS rank, s.created_at AS at, 'checkout_made' AS action,
    jsonb_build_object('amount', i.amount::text, 'total', c.amount::text, 'provider', initcap(c.provider)) AS facts
   FROM checkout_invoices i
     JOIN checkouts c USING (checkout_id)
     JOIN checkout_sessions s USING (checkout_id)
UNION ALL
 SELECT i.document_id, 12.91 AS rank, e.ended_at AS at, 'checkout_ended' AS action,
    jsonb_build_object('amount', i.amount::text, 'why', e.why, 'detail', e.detail) AS facts
   FROM checkout_endings e
     JOIN checkout_invoices i USING (checkout_id)
     JOIN checkout_sessions s USING (checkout_id)
  WHERE e.why <> 'paid'
UNION ALL
 SELECT i.document_id, 12.905 AS rank, v.occurred_at AS at, 'payment_ordered' AS action,
    jsonb_build_object('amount', i.amount::text) AS facts
   FROM checkout_orders o
     JOIN checkout_invoices i USING (checkout_id)
     JOIN audit_events v USING (event_id)
UNION ALL
 SELECT payment_link_orders.document_id, 12.002 + i.version::numeric * 0.002 AS rank, v.occurred_at AS at,
    'payment_ordered' AS action, jsonb_build_object('amount', i.amount::text) AS facts
   FROM payment_link_orders
     JOIN payment_link_intents i USING (document_id, version)
     JOIN audit_events v USING (event_id)
UNION ALL
 SELECT x.document_id, 12.003 + i.version::numeric * 0.002 AS rank, x.recorded_at AS at,
    'payment_failed' AS action, jsonb_build_object('amount', i.amount::text) AS facts
   FROM payment_link_outcomes x
     JOIN payment_link_intents i USING (document_id, version)
  WHERE x.outcome = 'failed'
UNION ALL
 SELECT payment_link_waits.document_id, 99 AS rank, payment_link_waits.noted_at AS at, 'link_waits' AS action,
    jsonb_build_object('reason', payment_link_waits.reason) AS facts
   FROM payment_link_waits;
GRANT SELECT ON payment_link_history TO reckoner_app;

CREATE VIEW printed_links AS
 SELECT document_id, url
   FROM payment_links;
GRANT SELECT ON printed_links TO reckoner_app;

-- 010_payments --------------------------------------------------------------------------------------------------------

CREATE TABLE bank_files (
  bank_file_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  sha256 text NOT NULL,
  name text NOT NULL,
  format text NOT NULL,
  bytes bigint NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT bank_files_pkey PRIMARY KEY (bank_file_id),
  CONSTRAINT bank_file_once UNIQUE (sha256),
  CONSTRAINT bank_file_sha256_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  CONSTRAINT bank_file_has_format CHECK (format <> ''),
  CONSTRAINT bank_files_fact_positive CHECK (log_no > 0),
  CONSTRAINT bank_files_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX bank_files_fact ON bank_files USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON bank_files FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON bank_files FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON bank_files FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON bank_files TO reckoner_app;
GRANT SELECT ON SEQUENCE bank_files_bank_file_id_seq TO reckoner_app;

CREATE TABLE bank_statements (
  bank_statement_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  bank_file_id bigint NOT NULL,
  "position" integer NOT NULL,
  account text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  reference text NOT NULL,
  opening numeric,
  closing numeric,
  closed_on date,
  credits numeric NOT NULL,
  debits numeric NOT NULL,
  lines integer NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT bank_statements_pkey PRIMARY KEY (bank_statement_id),
  CONSTRAINT bank_statement_place_once UNIQUE (bank_file_id, "position"),
  CONSTRAINT bank_statement_of_account UNIQUE (bank_statement_id, account, currency),
  CONSTRAINT bank_statement_has_account CHECK (account <> ''),
  CONSTRAINT bank_statement_adds_up CHECK ((opening + credits - debits) = closing),
  CONSTRAINT bank_statements_fact_positive CHECK (log_no > 0),
  CONSTRAINT bank_statements_bank_file_id_fkey FOREIGN KEY (bank_file_id) REFERENCES bank_files(bank_file_id)
);
CREATE UNIQUE INDEX bank_statements_fact ON bank_statements USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON bank_statements FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON bank_statements FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON bank_statements FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON bank_statements TO reckoner_app;
GRANT SELECT ON SEQUENCE bank_statements_bank_statement_id_seq TO reckoner_app;

CREATE TABLE bank_lines (
  bank_line_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  account text COLLATE "C" NOT NULL,
  identity text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  direction text NOT NULL,
  amount numeric NOT NULL,
  bank_booked_on date NOT NULL,
  value_on date,
  bank_reference text,
  "references" jsonb NOT NULL,
  text text NOT NULL,
  payer_name text,
  payer_account text,
  type text NOT NULL,
  is_reversal boolean NOT NULL,
  return_code text,
  raw text NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT bank_lines_pkey PRIMARY KEY (bank_line_id),
  CONSTRAINT bank_line_once UNIQUE (identity, account),
  CONSTRAINT bank_line_of_account UNIQUE (bank_line_id, account, currency),
  CONSTRAINT bank_line_money UNIQUE (bank_line_id, currency, amount, direction),
  CONSTRAINT bank_line_direction_known CHECK (direction = ANY (ARRAY['credit', 'debit'])),
  CONSTRAINT bank_line_amount_positive CHECK (amount > 0::numeric),
  CONSTRAINT bank_line_minor_digits CHECK (scale(amount) <= minor_digits(currency)),
  CONSTRAINT bank_lines_fact_positive CHECK (log_no > 0),
  CONSTRAINT bank_lines_text_kept CHECK (text = '' OR is_commitment(text)),
  CONSTRAINT bank_lines_payer_name_kept CHECK (payer_name = '' OR is_commitment(payer_name)),
  CONSTRAINT bank_lines_payer_account_kept CHECK (payer_account = '' OR is_commitment(payer_account)),
  CONSTRAINT bank_lines_raw_kept CHECK (raw = '' OR is_commitment(raw))
);
CREATE INDEX bank_lines_by_amount ON bank_lines USING btree (currency, amount, bank_booked_on);
CREATE UNIQUE INDEX bank_lines_fact ON bank_lines USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON bank_lines FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON bank_lines FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON bank_lines FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON bank_lines FOR EACH ROW EXECUTE FUNCTION keep_texts('references:text', 'text', 'payer_name', 'payer_account', 'raw'); -- enabled: A
GRANT INSERT, SELECT ON bank_lines TO reckoner_app;
GRANT SELECT ON SEQUENCE bank_lines_bank_line_id_seq TO reckoner_app;

CREATE TABLE bank_statement_lines (
  bank_statement_id bigint NOT NULL,
  "position" integer NOT NULL,
  bank_line_id bigint NOT NULL,
  account text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT bank_statement_lines_pkey PRIMARY KEY (bank_statement_id, "position"),
  CONSTRAINT bank_statement_line_once UNIQUE (bank_statement_id, bank_line_id),
  CONSTRAINT bank_statement_lines_fact_positive CHECK (log_no > 0),
  CONSTRAINT bank_statement_line_of_its_account FOREIGN KEY (bank_line_id, account, currency) REFERENCES bank_lines(bank_line_id, account, currency),
  CONSTRAINT bank_statement_line_of_a_statement FOREIGN KEY (bank_statement_id, account, currency) REFERENCES bank_statements(bank_statement_id, account, currency)
);
CREATE INDEX bank_statement_lines_of_line ON bank_statement_lines USING btree (bank_line_id);
CREATE UNIQUE INDEX bank_statement_lines_fact ON bank_statement_lines USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON bank_statement_lines FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON bank_statement_lines FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON bank_statement_lines FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON bank_statement_lines TO reckoner_app;

CREATE FUNCTION equal_bank_lines(line_ids bigint[])
 RETURNS TABLE(bank_line_id bigint, equal_line_id bigint)
 LANGUAGE plpgsql
 STABLE
 SET enable_nestloop TO 'on'
AS $function$
#variable_conflict use_column
BEGIN
  PERFORM set_config('enable_nestloop', (cardinality(line_ids) < 500)::text, true);
  RETURN QUERY
  WITH lines AS MATERIALIZED (
    SELECT l.bank_line_id, l.account, l.identity, l.currency, l.amount, l.bank_booked_on, l.direction
    FROM unnest(line_ids) AS i (bank_line_id) JOIN bank_lines l USING (bank_line_id)
  ), in_files AS (
    SELECT t.bank_line_id, t.account, t.currency, t.amount, t.bank_booked_on, t.direction,
           coalesce(array_agg(s.bank_file_id ORDER BY s.bank_file_id) FILTER (WHERE s.bank_file_id IS NOT NULL), '{}')
             AS files
    FROM (SELECT DISTINCT account, currency, amount, bank_booked_on, direction FROM lines) AS k
    JOIN bank_lines t USING (account, currency, amount, bank_booked_on, direction)
    LEFT JOIN bank_statement_lines x ON x.bank_line_id = t.bank_line_id
    LEFT JOIN bank_statements s USING (bank_statement_id)
    GROUP BY t.bank_line_id
  ), sets AS (
    SELECT account, currency, amount, bank_booked_on, direction, files, array_agg(bank_line_id) AS ids
    FROM in_files GROUP BY 1, 2, 3, 4, 5, 6
  ), alike AS (
    SELECT array_agg(files::text) AS files, array_agg(ids::text) AS ids
    FROM sets GROUP BY account, currency, amount, bank_booked_on, direction HAVING count(*) > 1
  )
  SELECT l.bank_line_id, t.bank_line_id
  FROM lines l JOIN bank_lines t USING (identity, currency, amount, bank_booked_on, direction)
  WHERE t.account <> l.account
  UNION ALL
  SELECT one.id, other.id
  FROM alike a
  CROSS JOIN LATERAL unnest(a.files, a.ids) AS o (files, ids)
  CROSS JOIN LATERAL unnest(a.files, a.ids) AS t (files, ids)
  CROSS JOIN LATERAL unnest(o.ids::bigint[]) AS one (id)
  CROSS JOIN LATERAL unnest(t.ids::bigint[]) AS other (id)
  WHERE NOT o.files::bigint[] && t.files::bigint[] AND one.id IN (SELECT lines.bank_line_id FROM lines);
END
$function$;
GRANT EXECUTE ON FUNCTION equal_bank_lines TO reckoner_app;

CREATE VIEW bank_feeds AS
 SELECT account, max(day) AS reported_to, bool_and(balances_stated) AS balances_stated
   FROM ( SELECT bank_statements.account, bank_statements.closed_on AS day,
            bank_statements.opening IS NOT NULL AND bank_statements.closing IS NOT NULL AS balances_stated
           FROM bank_statements
        UNION ALL
         SELECT bank_lines.account, bank_lines.bank_booked_on, NULL::boolean
           FROM bank_lines) reported
  GROUP BY account
 HAVING max(day) IS NOT NULL;
GRANT SELECT ON bank_feeds TO reckoner_app;

CREATE TABLE payments (
  payment_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  identity text COLLATE "C" NOT NULL,
  source text NOT NULL,
  partner_id text COLLATE "C",
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  method text NOT NULL,
  account text NOT NULL,
  received_on date NOT NULL,
  entry_on date NOT NULL,
  reference text NOT NULL,
  payer_name text,
  payer_account text,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  opening_id bigint,
  opening_number text COLLATE "C",
  log_no bigint NOT NULL,
  CONSTRAINT payments_pkey PRIMARY KEY (payment_id),
  CONSTRAINT payment_once UNIQUE (identity),
  CONSTRAINT payment_currency_stays UNIQUE (payment_id, currency),
  CONSTRAINT payment_money UNIQUE (payment_id, currency, amount),
  CONSTRAINT payment_source_known CHECK (source = ANY (ARRAY['hand', 'bank', 'processor', 'opening'])),
  CONSTRAINT payment_currency_form CHECK (currency ~ '^[A-Z]{3}$'),
  CONSTRAINT payment_amount_positive CHECK (amount > 0::numeric),
  CONSTRAINT payment_method_known CHECK (method = ANY (ARRAY['ach', 'wire', 'link', 'other'])),
  CONSTRAINT payment_has_reference CHECK (btrim(reference) <> ''),
  CONSTRAINT payment_opening_number_form CHECK (opening_number ~ '^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$'),
  CONSTRAINT payment_of_an_opening CHECK (num_nonnulls(opening_id, opening_number) =
CASE source
    WHEN 'opening' THEN 2
    ELSE 0
END AND (source <> 'opening' OR method <> 'link')),
  CONSTRAINT payment_entry_not_before_receipt CHECK (entry_on >= received_on),
  CONSTRAINT payment_minor_digits CHECK (scale(amount) <= minor_digits(currency)),
  CONSTRAINT payment_amount_limit CHECK (amount < '1000000000000000'::numeric),
  CONSTRAINT payments_fact_positive CHECK (log_no > 0),
  CONSTRAINT payments_reference_kept CHECK (reference = '' OR is_commitment(reference)),
  CONSTRAINT payments_payer_name_kept CHECK (payer_name = '' OR is_commitment(payer_name)),
  CONSTRAINT payments_payer_account_kept CHECK (payer_account = '' OR is_commitment(payer_account)),
  CONSTRAINT payments_partner_id_fkey FOREIGN KEY (partner_id) REFERENCES partners(partner_id),
  CONSTRAINT payments_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT payment_entered_at_the_cut_over FOREIGN KEY (opening_id, entry_on) REFERENCES openings(opening_id, cut_over_on)
);
CREATE INDEX payments_of_opening ON payments USING btree (opening_id) WHERE opening_id IS NOT NULL;
CREATE INDEX payments_by_amount ON payments USING btree (currency, amount);
CREATE INDEX payments_by_entry ON payments USING brin (entry_on) WITH (pages_per_range='16', autosummarize='on');
CREATE INDEX payments_of_partner ON payments USING btree (partner_id) WHERE partner_id IS NOT NULL;
CREATE INDEX payments_of_payer ON payments USING btree (payer_account) WHERE payer_account IS NOT NULL;
CREATE UNIQUE INDEX payments_fact ON payments USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payments FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER entry_books_open AFTER INSERT ON payments REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_books(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON payments FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON payments FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON payments FOR EACH ROW EXECUTE FUNCTION keep_texts('reference', 'payer_name', 'payer_account'); -- enabled: A
GRANT INSERT, SELECT ON payments TO reckoner_app;
GRANT SELECT ON SEQUENCE payments_payment_id_seq TO reckoner_app;

CREATE TABLE payment_sources (
  identity text COLLATE "C" NOT NULL,
  payment_id bigint NOT NULL,
  source text NOT NULL,
  reference text NOT NULL,
  bank_line_id bigint,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT payment_sources_pkey PRIMARY KEY (identity),
  CONSTRAINT payment_source_of_a_line_once UNIQUE (bank_line_id),
  CONSTRAINT payment_source_kind_known CHECK (source = ANY (ARRAY['hand', 'bank', 'processor', 'opening'])),
  CONSTRAINT payment_source_bank_has_line CHECK ((source = 'bank') = (bank_line_id IS NOT NULL)),
  CONSTRAINT payment_sources_fact_positive CHECK (log_no > 0),
  CONSTRAINT payment_sources_reference_kept CHECK (reference = '' OR is_commitment(reference)),
  CONSTRAINT payment_sources_payment_id_fkey FOREIGN KEY (payment_id) REFERENCES payments(payment_id),
  CONSTRAINT payment_sources_bank_line_id_fkey FOREIGN KEY (bank_line_id) REFERENCES bank_lines(bank_line_id),
  CONSTRAINT payment_sources_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE INDEX payment_sources_of_payment ON payment_sources USING btree (payment_id);
CREATE INDEX payment_sources_by_reference ON payment_sources USING btree (reference);
CREATE UNIQUE INDEX payment_sources_fact ON payment_sources USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payment_sources FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON payment_sources FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON payment_sources FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON payment_sources FOR EACH ROW EXECUTE FUNCTION keep_texts('reference'); -- enabled: A
GRANT INSERT, SELECT ON payment_sources TO reckoner_app;

CREATE TABLE payment_assignments (
  payment_assignment_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  payment_id bigint NOT NULL,
  from_partner_id text COLLATE "C",
  partner_id text COLLATE "C" NOT NULL,
  kind text NOT NULL,
  amount numeric NOT NULL,
  assigned_on date NOT NULL,
  entry_on date NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT payment_assignments_pkey PRIMARY KEY (payment_assignment_id),
  CONSTRAINT assignment_kind_known CHECK (kind = ANY (ARRAY['named', 'assumed', 'part'])),
  CONSTRAINT assignment_changes CHECK (partner_id IS DISTINCT FROM from_partner_id),
  CONSTRAINT assignment_amount_positive CHECK (amount > 0::numeric OR amount = 0::numeric AND kind = 'named'),
  CONSTRAINT payment_assignments_fact_positive CHECK (log_no > 0),
  CONSTRAINT payment_assignments_payment_id_fkey FOREIGN KEY (payment_id) REFERENCES payments(payment_id),
  CONSTRAINT payment_assignments_from_partner_id_fkey FOREIGN KEY (from_partner_id) REFERENCES partners(partner_id),
  CONSTRAINT payment_assignments_partner_id_fkey FOREIGN KEY (partner_id) REFERENCES partners(partner_id),
  CONSTRAINT payment_assignments_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE INDEX payment_assignments_of_payment ON payment_assignments USING btree (payment_id);
CREATE INDEX payment_assignments_of_partner ON payment_assignments USING btree (partner_id);
CREATE UNIQUE INDEX payment_assignments_fact ON payment_assignments USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payment_assignments FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER entry_books_open AFTER INSERT ON payment_assignments REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_books(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON payment_assignments FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON payment_assignments FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE CONSTRAINT TRIGGER payment_cash_of_its_payer AFTER INSERT ON payment_assignments DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_cash_of_another_partner(); -- enabled: A
GRANT INSERT, SELECT ON payment_assignments TO reckoner_app;
GRANT SELECT ON SEQUENCE payment_assignments_payment_assignment_id_seq TO reckoner_app;

CREATE TABLE forgotten_payer_accounts (
  forgotten_payer_account_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  payer_account text COLLATE "C" NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT forgotten_payer_accounts_pkey PRIMARY KEY (forgotten_payer_account_id),
  CONSTRAINT forgotten_account_not_empty CHECK (payer_account <> ''),
  CONSTRAINT forgotten_payer_accounts_fact_positive CHECK (log_no > 0),
  CONSTRAINT forgotten_payer_accounts_payer_account_kept CHECK (payer_account = '' OR is_commitment(payer_account)),
  CONSTRAINT forgotten_payer_accounts_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX forgotten_payer_accounts_fact ON forgotten_payer_accounts USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON forgotten_payer_accounts FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON forgotten_payer_accounts FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON forgotten_payer_accounts FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON forgotten_payer_accounts FOR EACH ROW EXECUTE FUNCTION keep_texts('payer_account'); -- enabled: A
GRANT INSERT, SELECT ON forgotten_payer_accounts TO reckoner_app;
GRANT SELECT ON SEQUENCE forgotten_payer_accounts_forgotten_payer_account_id_seq TO reckoner_app;

CREATE TABLE payment_applications (
  payment_application_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  payment_id bigint NOT NULL,
  document_id bigint NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  applied_on date NOT NULL,
  entry_on date NOT NULL,
  confidence numeric NOT NULL,
  evidence jsonb NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT payment_applications_pkey PRIMARY KEY (payment_application_id),
  CONSTRAINT payment_application_document UNIQUE (payment_application_id, document_id, currency),
  CONSTRAINT payment_application_positive CHECK (amount > 0::numeric),
  CONSTRAINT payment_application_confidence_range CHECK (confidence >= 0::numeric AND confidence <= 1::numeric),
  CONSTRAINT payment_application_says_why CHECK ((evidence ->> 'rule') IS NOT NULL AND (evidence ->> 'why') IS NOT NULL),
  CONSTRAINT payment_applications_fact_positive CHECK (log_no > 0),
  CONSTRAINT payment_applications_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT payment_application_in_its_currency FOREIGN KEY (payment_id, currency) REFERENCES payments(payment_id, currency),
  CONSTRAINT payment_application_to_its_partner FOREIGN KEY (document_id, partner_id, currency) REFERENCES documents(document_id, partner_id, currency)
);
CREATE INDEX payment_applications_of_payment ON payment_applications USING btree (payment_id);
CREATE INDEX payment_applications_of_document ON payment_applications USING btree (document_id);
CREATE INDEX payment_applications_by_entry ON payment_applications USING brin (entry_on) WITH (pages_per_range='16', autosummarize='on');
CREATE INDEX payment_applications_with_swapped_digits ON payment_applications USING btree (payment_id) WHERE jsonb_exists(evidence, 'digits_swapped');
CREATE UNIQUE INDEX payment_applications_fact ON payment_applications USING btree (log_no);
CREATE INDEX payment_applications_recorded ON payment_applications USING btree (recorded_at);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payment_applications FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE CONSTRAINT TRIGGER document_not_overpaid AFTER INSERT ON payment_applications DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_overpaid_document('document_id', 'invoice'); -- enabled: A
CREATE TRIGGER entry_books_open AFTER INSERT ON payment_applications REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_books(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON payment_applications FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON payment_applications FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE CONSTRAINT TRIGGER payment_cash_of_its_payer AFTER INSERT ON payment_applications DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_cash_of_another_partner(); -- enabled: A
CREATE CONSTRAINT TRIGGER payment_within_amount AFTER INSERT ON payment_applications DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_overdrawn_payment(); -- enabled: A
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON payment_applications FOR EACH ROW EXECUTE FUNCTION keep_texts_of_evidence(); -- enabled: A
GRANT INSERT, SELECT ON payment_applications TO reckoner_app;
GRANT SELECT ON SEQUENCE payment_applications_payment_application_id_seq TO reckoner_app;

CREATE FUNCTION keep_texts_of_evidence()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  NEW.evidence := keep_texts_in(NEW.evidence,
    CASE NEW.evidence->>'rule' WHEN 'processor' THEN '"why"' ELSE '"(why|found)"' END);
  RETURN NEW;
END
$function$;

CREATE TABLE small_differences (
  payment_application_id bigint NOT NULL,
  document_id bigint NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  entry_on date NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT small_differences_pkey PRIMARY KEY (payment_application_id),
  CONSTRAINT small_difference_positive CHECK (amount > 0::numeric),
  CONSTRAINT small_differences_fact_positive CHECK (log_no > 0),
  CONSTRAINT small_differences_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT small_difference_of_its_application FOREIGN KEY (payment_application_id, document_id, currency) REFERENCES payment_applications(payment_application_id, document_id, currency)
);
CREATE INDEX small_differences_of_document ON small_differences USING btree (document_id);
CREATE INDEX small_differences_of_event ON small_differences USING btree (event_id);
CREATE UNIQUE INDEX small_differences_fact ON small_differences USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON small_differences FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE CONSTRAINT TRIGGER document_not_overpaid AFTER INSERT ON small_differences DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_overpaid_document('document_id', 'invoice'); -- enabled: A
CREATE TRIGGER entry_books_open AFTER INSERT ON small_differences REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_books(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON small_differences FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON small_differences FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON small_differences TO reckoner_app;

CREATE TABLE payment_suggestions (
  payment_suggestion_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  payment_id bigint NOT NULL,
  document_id bigint,
  same_as bigint,
  amount numeric NOT NULL,
  confidence numeric NOT NULL,
  evidence jsonb NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT payment_suggestions_pkey PRIMARY KEY (payment_suggestion_id),
  CONSTRAINT payment_suggestion_once UNIQUE NULLS NOT DISTINCT (payment_id, document_id, same_as),
  CONSTRAINT payment_suggestion_positive CHECK (amount > 0::numeric),
  CONSTRAINT payment_suggestion_confidence_range CHECK (confidence >= 0::numeric AND confidence <= 1::numeric),
  CONSTRAINT payment_suggestion_says_why CHECK ((evidence ->> 'why') IS NOT NULL),
  CONSTRAINT payment_suggestion_of_one_thing CHECK (num_nonnulls(document_id, same_as) = 1),
  CONSTRAINT payment_suggestion_not_itself CHECK (same_as <> payment_id),
  CONSTRAINT payment_suggestions_fact_positive CHECK (log_no > 0),
  CONSTRAINT payment_suggestions_payment_id_fkey FOREIGN KEY (payment_id) REFERENCES payments(payment_id),
  CONSTRAINT payment_suggestions_document_id_fkey FOREIGN KEY (document_id) REFERENCES documents(document_id),
  CONSTRAINT payment_suggestions_same_as_fkey FOREIGN KEY (same_as) REFERENCES payments(payment_id),
  CONSTRAINT payment_suggestions_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX payment_suggestions_fact ON payment_suggestions USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payment_suggestions FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON payment_suggestions FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON payment_suggestions FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON payment_suggestions FOR EACH ROW EXECUTE FUNCTION keep_texts_of_evidence(); -- enabled: A
GRANT INSERT, SELECT ON payment_suggestions TO reckoner_app;
GRANT SELECT ON SEQUENCE payment_suggestions_payment_suggestion_id_seq TO reckoner_app;

CREATE TABLE payment_reversals (
  payment_reversal_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  identity text COLLATE "C" NOT NULL,
  payment_id bigint NOT NULL,
  partner_id text COLLATE "C",
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  kind text NOT NULL,
  code text,
  reason text NOT NULL,
  bank_line_id bigint,
  duplicate_of bigint,
  booked_to text COLLATE "C",
  reversed_on date NOT NULL,
  entry_on date NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT payment_reversals_pkey PRIMARY KEY (payment_reversal_id),
  CONSTRAINT payment_reversal_once UNIQUE (identity),
  CONSTRAINT payment_reversal_of_a_line_once UNIQUE (bank_line_id),
  CONSTRAINT payment_reversal_money UNIQUE (payment_reversal_id, currency, amount),
  CONSTRAINT payment_reversal_positive CHECK (amount > 0::numeric),
  CONSTRAINT payment_reversal_kind_known CHECK (kind = ANY (ARRAY['returned', 'refunded', 'disputed', 'mistake', 'duplicate', 'other'])),
  CONSTRAINT payment_reversal_has_reason CHECK (btrim(reason) <> ''),
  CONSTRAINT payment_reversal_account_form CHECK (booked_to ~ '^(assets|liabilities|equity|income|expenses)(:[a-z0-9][a-z0-9-]*)+$'),
  CONSTRAINT payment_reversal_account_not_ours CHECK (booked_to !~ '^(assets:(receivable|bank|processor)|liabilities:(partner-credit|unapplied)|equity:opening-balances|income:(sales|adjustments)|expenses:(partner-cut|bad-debts|bank-charges|processor-fees))(:|$)'),
  CONSTRAINT payment_reversal_names_the_other CHECK ((kind = 'duplicate') = (duplicate_of IS NOT NULL)),
  CONSTRAINT payment_reversal_names_the_account CHECK ((kind = 'other') = (booked_to IS NOT NULL)),
  CONSTRAINT payment_reversal_not_of_itself CHECK (duplicate_of <> payment_id),
  CONSTRAINT payment_reversals_fact_positive CHECK (log_no > 0),
  CONSTRAINT payment_reversals_partner_id_fkey FOREIGN KEY (partner_id) REFERENCES partners(partner_id),
  CONSTRAINT payment_reversals_bank_line_id_fkey FOREIGN KEY (bank_line_id) REFERENCES bank_lines(bank_line_id),
  CONSTRAINT payment_reversals_duplicate_of_fkey FOREIGN KEY (duplicate_of) REFERENCES payments(payment_id),
  CONSTRAINT payment_reversals_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT payment_reversal_in_its_currency FOREIGN KEY (payment_id, currency) REFERENCES payments(payment_id, currency)
);
CREATE INDEX payment_reversals_of_payment ON payment_reversals USING btree (payment_id);
CREATE UNIQUE INDEX payment_reversals_fact ON payment_reversals USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payment_reversals FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER entry_books_open AFTER INSERT ON payment_reversals REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_books(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON payment_reversals FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON payment_reversals FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE CONSTRAINT TRIGGER payment_within_amount AFTER INSERT ON payment_reversals DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_overdrawn_payment(); -- enabled: A
GRANT INSERT, SELECT ON payment_reversals TO reckoner_app;
GRANT SELECT ON SEQUENCE payment_reversals_payment_reversal_id_seq TO reckoner_app;

CREATE TABLE payment_reinstatements (
  payment_reversal_id bigint NOT NULL,
  partner_id text COLLATE "C",
  reinstated_on date NOT NULL,
  entry_on date NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT payment_reinstatements_pkey PRIMARY KEY (payment_reversal_id),
  CONSTRAINT payment_reinstatements_fact_positive CHECK (log_no > 0),
  CONSTRAINT payment_reinstatements_payment_reversal_id_fkey FOREIGN KEY (payment_reversal_id) REFERENCES payment_reversals(payment_reversal_id),
  CONSTRAINT payment_reinstatements_partner_id_fkey FOREIGN KEY (partner_id) REFERENCES partners(partner_id),
  CONSTRAINT payment_reinstatements_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX payment_reinstatements_fact ON payment_reinstatements USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payment_reinstatements FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER entry_books_open AFTER INSERT ON payment_reinstatements REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_books(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON payment_reinstatements FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON payment_reinstatements FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON payment_reinstatements TO reckoner_app;

CREATE TABLE payment_unapplications (
  payment_application_id bigint NOT NULL,
  payment_reversal_id bigint,
  unapplied_on date NOT NULL,
  entry_on date NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT payment_unapplications_pkey PRIMARY KEY (payment_application_id),
  CONSTRAINT payment_unapplications_fact_positive CHECK (log_no > 0),
  CONSTRAINT payment_unapplications_payment_application_id_fkey FOREIGN KEY (payment_application_id) REFERENCES payment_applications(payment_application_id),
  CONSTRAINT payment_unapplications_payment_reversal_id_fkey FOREIGN KEY (payment_reversal_id) REFERENCES payment_reversals(payment_reversal_id),
  CONSTRAINT payment_unapplications_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE INDEX payment_unapplications_of_reversal ON payment_unapplications USING btree (payment_reversal_id) WHERE payment_reversal_id IS NOT NULL;
CREATE UNIQUE INDEX payment_unapplications_fact ON payment_unapplications USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payment_unapplications FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER entry_books_open AFTER INSERT ON payment_unapplications REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_books(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON payment_unapplications FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON payment_unapplications FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE CONSTRAINT TRIGGER payment_cash_of_its_payer AFTER INSERT ON payment_unapplications DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_cash_of_another_partner(); -- enabled: A
GRANT INSERT, SELECT ON payment_unapplications TO reckoner_app;

CREATE TABLE payouts (
  payout_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  bank_line_id bigint NOT NULL,
  account text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  direction text NOT NULL,
  received_on date NOT NULL,
  entry_on date NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT payouts_pkey PRIMARY KEY (payout_id),
  CONSTRAINT payout_of_a_line_once UNIQUE (bank_line_id),
  CONSTRAINT payout_comes_in CHECK (direction = 'credit'),
  CONSTRAINT payouts_fact_positive CHECK (log_no > 0),
  CONSTRAINT payouts_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT payout_is_its_line FOREIGN KEY (bank_line_id, currency, amount, direction) REFERENCES bank_lines(bank_line_id, currency, amount, direction)
);
CREATE UNIQUE INDEX payouts_fact ON payouts USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payouts FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER entry_books_open AFTER INSERT ON payouts REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_books(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON payouts FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON payouts FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON payouts TO reckoner_app;
GRANT SELECT ON SEQUENCE payouts_payout_id_seq TO reckoner_app;

CREATE TABLE payout_settlements (
  payout_id bigint NOT NULL,
  gross numeric NOT NULL,
  fees numeric NOT NULL,
  entry_on date NOT NULL,
  evidence jsonb NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT payout_settlements_pkey PRIMARY KEY (payout_id),
  CONSTRAINT payout_fees_not_negative CHECK (fees >= 0::numeric),
  CONSTRAINT payout_settlement_says_why CHECK ((evidence ->> 'why') IS NOT NULL),
  CONSTRAINT payout_settlements_fact_positive CHECK (log_no > 0),
  CONSTRAINT payout_settlements_payout_id_fkey FOREIGN KEY (payout_id) REFERENCES payouts(payout_id),
  CONSTRAINT payout_settlements_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX payout_settlements_fact ON payout_settlements USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payout_settlements FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER entry_books_open AFTER INSERT ON payout_settlements REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_books(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON payout_settlements FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON payout_settlements FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON payout_settlements TO reckoner_app;

CREATE TABLE payout_payments (
  payment_id bigint NOT NULL,
  payout_id bigint NOT NULL,
  amount numeric NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT payout_payments_pkey PRIMARY KEY (payment_id),
  CONSTRAINT payout_payment_positive CHECK (amount > 0::numeric),
  CONSTRAINT payout_payments_fact_positive CHECK (log_no > 0),
  CONSTRAINT payout_payments_payment_id_fkey FOREIGN KEY (payment_id) REFERENCES payments(payment_id),
  CONSTRAINT payout_payments_payout_id_fkey FOREIGN KEY (payout_id) REFERENCES payout_settlements(payout_id)
);
CREATE INDEX payout_payments_of_payout ON payout_payments USING btree (payout_id);
CREATE UNIQUE INDEX payout_payments_fact ON payout_payments USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payout_payments FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON payout_payments FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON payout_payments FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON payout_payments TO reckoner_app;

CREATE TABLE bank_line_outcomes (
  bank_line_id bigint NOT NULL,
  outcome text NOT NULL,
  payment_id bigint,
  payout_id bigint,
  payment_reversal_id bigint,
  needs_review boolean NOT NULL,
  reason text NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT bank_line_outcomes_pkey PRIMARY KEY (bank_line_id),
  CONSTRAINT bank_line_outcome_known CHECK (outcome = ANY (ARRAY['payment', 'payout', 'return', 'refund', 'ignored'])),
  CONSTRAINT bank_line_outcome_has_reason CHECK (reason <> ''),
  CONSTRAINT bank_line_outcome_names_its_fact CHECK ((outcome = 'payment') = (payment_id IS NOT NULL) AND (outcome = 'payout') = (payout_id IS NOT NULL) AND (outcome = 'return') = (payment_reversal_id IS NOT NULL)),
  CONSTRAINT bank_line_outcomes_fact_positive CHECK (log_no > 0),
  CONSTRAINT bank_line_outcomes_reason_kept CHECK (reason = '' OR is_commitment(reason)),
  CONSTRAINT bank_line_outcomes_bank_line_id_fkey FOREIGN KEY (bank_line_id) REFERENCES bank_lines(bank_line_id),
  CONSTRAINT bank_line_outcomes_payment_id_fkey FOREIGN KEY (payment_id) REFERENCES payments(payment_id),
  CONSTRAINT bank_line_outcomes_payout_id_fkey FOREIGN KEY (payout_id) REFERENCES payouts(payout_id),
  CONSTRAINT bank_line_outcomes_payment_reversal_id_fkey FOREIGN KEY (payment_reversal_id) REFERENCES payment_reversals(payment_reversal_id),
  CONSTRAINT bank_line_outcomes_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE INDEX bank_line_outcomes_of_payment ON bank_line_outcomes USING btree (payment_id) WHERE payment_id IS NOT NULL;
CREATE INDEX bank_line_outcomes_to_review ON bank_line_outcomes USING btree (bank_line_id) WHERE needs_review;
CREATE UNIQUE INDEX bank_line_outcomes_fact ON bank_line_outcomes USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON bank_line_outcomes FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON bank_line_outcomes FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON bank_line_outcomes FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON bank_line_outcomes FOR EACH ROW EXECUTE FUNCTION keep_texts('reason'); -- enabled: A
GRANT INSERT, SELECT ON bank_line_outcomes TO reckoner_app;

CREATE TABLE credit_refunds (
  credit_refund_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  document_id bigint NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  method text NOT NULL,
  account text NOT NULL,
  reference text NOT NULL,
  refunded_on date NOT NULL,
  entry_on date NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT credit_refunds_pkey PRIMARY KEY (credit_refund_id),
  CONSTRAINT credit_refund_money UNIQUE (credit_refund_id, currency, amount),
  CONSTRAINT credit_refund_positive CHECK (amount > 0::numeric),
  CONSTRAINT credit_refund_method_known CHECK (method = ANY (ARRAY['ach', 'wire', 'other'])),
  CONSTRAINT credit_refunds_fact_positive CHECK (log_no > 0),
  CONSTRAINT credit_refunds_reference_kept CHECK (reference = '' OR is_commitment(reference)),
  CONSTRAINT credit_refunds_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT credit_refund_of_a_document FOREIGN KEY (document_id, partner_id, currency) REFERENCES documents(document_id, partner_id, currency)
);
CREATE INDEX credit_refunds_of_document ON credit_refunds USING btree (document_id);
CREATE UNIQUE INDEX credit_refunds_fact ON credit_refunds USING btree (log_no);
CREATE INDEX credit_refunds_recorded ON credit_refunds USING btree (recorded_at);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON credit_refunds FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE CONSTRAINT TRIGGER document_not_overpaid AFTER INSERT ON credit_refunds DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_overpaid_document('document_id', 'credit_note'); -- enabled: A
CREATE TRIGGER entry_books_open AFTER INSERT ON credit_refunds REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_books(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON credit_refunds FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON credit_refunds FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON credit_refunds FOR EACH ROW EXECUTE FUNCTION keep_texts('reference'); -- enabled: A
GRANT INSERT, SELECT ON credit_refunds TO reckoner_app;
GRANT SELECT ON SEQUENCE credit_refunds_credit_refund_id_seq TO reckoner_app;

CREATE TABLE credit_refund_returns (
  credit_refund_id bigint NOT NULL,
  reason text NOT NULL,
  returned_on date NOT NULL,
  entry_on date NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT credit_refund_returns_pkey PRIMARY KEY (credit_refund_id),
  CONSTRAINT credit_refund_return_has_reason CHECK (btrim(reason) <> ''),
  CONSTRAINT credit_refund_returns_fact_positive CHECK (log_no > 0),
  CONSTRAINT credit_refund_returns_credit_refund_id_fkey FOREIGN KEY (credit_refund_id) REFERENCES credit_refunds(credit_refund_id),
  CONSTRAINT credit_refund_returns_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX credit_refund_returns_fact ON credit_refund_returns USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON credit_refund_returns FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER entry_books_open AFTER INSERT ON credit_refund_returns REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_books(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON credit_refund_returns FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON credit_refund_returns FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON credit_refund_returns TO reckoner_app;

CREATE TABLE refund_matches (
  refund_match_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  bank_line_id bigint NOT NULL,
  account text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  direction text NOT NULL,
  credit_refund_id bigint,
  payment_reversal_id bigint,
  paid_on date NOT NULL,
  entry_on date NOT NULL,
  evidence jsonb NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT refund_matches_pkey PRIMARY KEY (refund_match_id),
  CONSTRAINT refund_match_of_credit_once UNIQUE (credit_refund_id),
  CONSTRAINT refund_match_of_payment_once UNIQUE (payment_reversal_id),
  CONSTRAINT refund_match_goes_out CHECK (direction = 'debit'),
  CONSTRAINT refund_match_says_why CHECK ((evidence ->> 'why') IS NOT NULL),
  CONSTRAINT refund_match_of_one_refund CHECK (num_nonnulls(credit_refund_id, payment_reversal_id) = 1),
  CONSTRAINT refund_matches_fact_positive CHECK (log_no > 0),
  CONSTRAINT refund_matches_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT refund_match_is_its_line FOREIGN KEY (bank_line_id, currency, amount, direction) REFERENCES bank_lines(bank_line_id, currency, amount, direction),
  CONSTRAINT refund_match_of_its_account FOREIGN KEY (bank_line_id, account, currency) REFERENCES bank_lines(bank_line_id, account, currency),
  CONSTRAINT refund_match_is_its_credit FOREIGN KEY (credit_refund_id, currency, amount) REFERENCES credit_refunds(credit_refund_id, currency, amount),
  CONSTRAINT refund_match_is_its_reversal FOREIGN KEY (payment_reversal_id, currency, amount) REFERENCES payment_reversals(payment_reversal_id, currency, amount)
);
CREATE INDEX refund_matches_of_line ON refund_matches USING btree (bank_line_id);
CREATE UNIQUE INDEX refund_matches_fact ON refund_matches USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON refund_matches FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER entry_books_open AFTER INSERT ON refund_matches REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_books(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON refund_matches FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON refund_matches FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON refund_matches FOR EACH ROW EXECUTE FUNCTION keep_texts_of_evidence(); -- enabled: A
CREATE CONSTRAINT TRIGGER refund_match_of_line_once AFTER INSERT ON refund_matches DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_line_of_two_refunds(); -- enabled: A
GRANT INSERT, SELECT ON refund_matches TO reckoner_app;
GRANT SELECT ON SEQUENCE refund_matches_refund_match_id_seq TO reckoner_app;

CREATE FUNCTION payload_hash(payload jsonb)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE STRICT
RETURN encode(sha256(convert_to((payload)::text, 'UTF8'::name)), 'hex');
GRANT EXECUTE ON FUNCTION payload_hash TO reckoner_app;

CREATE TABLE processor_events (
  processor_event_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  account text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  type text NOT NULL,
  livemode boolean NOT NULL,
  created timestamp with time zone NOT NULL,
  payload jsonb,
  payload_sha256 text NOT NULL,
  received_at timestamp with time zone NOT NULL,
  CONSTRAINT processor_events_pkey PRIMARY KEY (processor_event_id),
  CONSTRAINT processor_event_once UNIQUE (account, id),
  CONSTRAINT processor_event_payload_is_hashed CHECK (payload_sha256 = payload_hash(payload) OR payload IS NULL)
);
CREATE TRIGGER append_only BEFORE DELETE OR TRUNCATE ON processor_events FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER kept_rows BEFORE UPDATE ON processor_events FOR EACH ROW WHEN (is_erasure(old.*, new.*) IS NOT TRUE) EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT INSERT, SELECT ON processor_events TO reckoner_app;
GRANT SELECT ON SEQUENCE processor_events_processor_event_id_seq TO reckoner_app;

CREATE FUNCTION processor_event_sha256(processor_event_id bigint)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
  SELECT encode(sha256(convert_to(concat_ws(' ', e.account, e.id, e.type, e.livemode, e.created,
           coalesce(payload_hash(e.payload), e.payload_sha256)), 'UTF8')), 'hex')
  FROM processor_events e WHERE e.processor_event_id = $1
$function$;
GRANT EXECUTE ON FUNCTION processor_event_sha256 TO reckoner_app;

CREATE TABLE processor_event_outcomes (
  processor_event_id bigint NOT NULL,
  outcome text NOT NULL,
  payment_id bigint,
  reason text NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT processor_event_outcomes_pkey PRIMARY KEY (processor_event_id),
  CONSTRAINT processor_event_outcome_known CHECK (outcome = ANY (ARRAY['effect', 'nothing', 'manual_review'])),
  CONSTRAINT processor_event_outcome_has_reason CHECK (reason <> ''),
  CONSTRAINT processor_event_outcomes_fact_positive CHECK (log_no > 0),
  CONSTRAINT processor_event_outcomes_reason_kept CHECK (reason = '' OR is_commitment(reason)),
  CONSTRAINT processor_event_outcomes_processor_event_id_fkey FOREIGN KEY (processor_event_id) REFERENCES processor_events(processor_event_id),
  CONSTRAINT processor_event_outcomes_payment_id_fkey FOREIGN KEY (payment_id) REFERENCES payments(payment_id),
  CONSTRAINT processor_event_outcomes_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX processor_event_outcomes_fact ON processor_event_outcomes USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON processor_event_outcomes FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON processor_event_outcomes FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON processor_event_outcomes FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE TRIGGER personal_texts_kept BEFORE INSERT ON processor_event_outcomes FOR EACH ROW EXECUTE FUNCTION keep_texts('reason'); -- enabled: A
GRANT INSERT, SELECT ON processor_event_outcomes TO reckoner_app;

CREATE TABLE disputes (
  dispute_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  identity text COLLATE "C" NOT NULL,
  payment_id bigint NOT NULL,
  amount numeric NOT NULL,
  reason text NOT NULL,
  opened_on date NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT disputes_pkey PRIMARY KEY (dispute_id),
  CONSTRAINT dispute_once UNIQUE (identity),
  CONSTRAINT dispute_amount_positive CHECK (amount > 0::numeric),
  CONSTRAINT disputes_fact_positive CHECK (log_no > 0),
  CONSTRAINT disputes_payment_id_fkey FOREIGN KEY (payment_id) REFERENCES payments(payment_id),
  CONSTRAINT disputes_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE INDEX disputes_of_payment ON disputes USING btree (payment_id);
CREATE UNIQUE INDEX disputes_fact ON disputes USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON disputes FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON disputes FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON disputes FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON disputes TO reckoner_app;
GRANT SELECT ON SEQUENCE disputes_dispute_id_seq TO reckoner_app;

CREATE TABLE dispute_outcomes (
  dispute_id bigint NOT NULL,
  outcome text NOT NULL,
  decided_on date NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT dispute_outcomes_pkey PRIMARY KEY (dispute_id, outcome),
  CONSTRAINT dispute_outcome_known CHECK (outcome = ANY (ARRAY['won', 'lost', 'closed'])),
  CONSTRAINT dispute_outcomes_fact_positive CHECK (log_no > 0),
  CONSTRAINT dispute_outcomes_dispute_id_fkey FOREIGN KEY (dispute_id) REFERENCES disputes(dispute_id),
  CONSTRAINT dispute_outcomes_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX dispute_outcomes_fact ON dispute_outcomes USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON dispute_outcomes FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON dispute_outcomes FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON dispute_outcomes FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON dispute_outcomes TO reckoner_app;

CREATE VIEW last_dispute_outcomes AS
 SELECT DISTINCT ON (dispute_id) dispute_id, outcome, decided_on
   FROM dispute_outcomes
  ORDER BY dispute_id, log_no DESC;
GRANT SELECT ON last_dispute_outcomes TO reckoner_app;

CREATE TABLE payment_exception_closings (
  payment_exception_closing_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  processor_event_id bigint,
  bank_line_id bigint,
  bank_statement_id bigint,
  payment_id bigint,
  reason text NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT payment_exception_closings_pkey PRIMARY KEY (payment_exception_closing_id),
  CONSTRAINT payment_exception_event_closed_once UNIQUE (processor_event_id),
  CONSTRAINT payment_exception_line_closed_once UNIQUE (bank_line_id),
  CONSTRAINT payment_exception_statement_closed_once UNIQUE (bank_statement_id),
  CONSTRAINT payment_exception_payment_closed_once UNIQUE (payment_id),
  CONSTRAINT payment_exception_closing_has_reason CHECK (reason <> ''),
  CONSTRAINT payment_exception_closing_of_one_thing CHECK (num_nonnulls(processor_event_id, bank_line_id, bank_statement_id, payment_id) = 1),
  CONSTRAINT payment_exception_closings_fact_positive CHECK (log_no > 0),
  CONSTRAINT payment_exception_closings_processor_event_id_fkey FOREIGN KEY (processor_event_id) REFERENCES processor_event_outcomes(processor_event_id),
  CONSTRAINT payment_exception_closings_bank_line_id_fkey FOREIGN KEY (bank_line_id) REFERENCES bank_line_outcomes(bank_line_id),
  CONSTRAINT payment_exception_closings_bank_statement_id_fkey FOREIGN KEY (bank_statement_id) REFERENCES bank_statements(bank_statement_id),
  CONSTRAINT payment_exception_closings_payment_id_fkey FOREIGN KEY (payment_id) REFERENCES payments(payment_id),
  CONSTRAINT payment_exception_closings_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX payment_exception_closings_fact ON payment_exception_closings USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payment_exception_closings FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON payment_exception_closings FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON payment_exception_closings FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON payment_exception_closings TO reckoner_app;
GRANT SELECT ON SEQUENCE payment_exception_closings_payment_exception_closing_id_seq TO reckoner_app;

CREATE TABLE processor_event_erasures (
  processor_event_id bigint NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT processor_event_erasures_pkey PRIMARY KEY (processor_event_id),
  CONSTRAINT processor_event_erasures_fact_positive CHECK (log_no > 0),
  CONSTRAINT processor_event_erasures_processor_event_id_fkey FOREIGN KEY (processor_event_id) REFERENCES processor_event_outcomes(processor_event_id),
  CONSTRAINT processor_event_erasures_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX processor_event_erasures_fact ON processor_event_erasures USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON processor_event_erasures FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER erased_payload_is_not_needed BEFORE INSERT ON processor_event_erasures FOR EACH ROW WHEN (payload_may_go(new.processor_event_id) IS NOT TRUE) EXECUTE FUNCTION refuse_erasure(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON processor_event_erasures FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON processor_event_erasures FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE TRIGGER payloads_are_erased AFTER INSERT ON processor_event_erasures REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION erase_recorded_payloads(); -- enabled: A
GRANT INSERT, SELECT ON processor_event_erasures TO reckoner_app;

CREATE FUNCTION is_erasure(before processor_events, after processor_events)
 RETURNS boolean
 LANGUAGE sql
 STABLE
RETURN (((after).payload IS NULL) AND ((to_jsonb(after) - 'payload') = (to_jsonb(before) - 'payload')) AND (EXISTS (SELECT FROM processor_event_erasures x WHERE (x.processor_event_id = (is_erasure.before).processor_event_id))));
GRANT EXECUTE ON FUNCTION is_erasure TO reckoner_app;

CREATE FUNCTION erase_payloads(processor_event_ids bigint[])
 RETURNS void
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
BEGIN ATOMIC
 UPDATE processor_events e SET payload = NULL::jsonb
   WHERE ((e.processor_event_id = ANY (erase_payloads.processor_event_ids)) AND (e.payload IS NOT NULL));
END;
GRANT EXECUTE ON FUNCTION erase_payloads TO reckoner_app;

CREATE FUNCTION erase_recorded_payloads()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  PERFORM erase_payloads((SELECT array_agg(processor_event_id) FROM added));
  RETURN NULL;
END
$function$;

CREATE VIEW live_payment_applications AS
 SELECT payment_application_id, payment_id, document_id, partner_id, currency, amount, applied_on, entry_on,
    confidence, evidence, recorded_at, event_id, log_no
   FROM payment_applications a
  WHERE NOT (EXISTS ( SELECT
           FROM payment_unapplications u
          WHERE u.payment_application_id = a.payment_application_id));
GRANT SELECT ON live_payment_applications TO reckoner_app;

CREATE VIEW live_small_differences AS
 SELECT payment_application_id, document_id, currency, amount, entry_on, recorded_at, event_id, log_no
   FROM small_differences s
  WHERE NOT (EXISTS ( SELECT
           FROM payment_unapplications u
          WHERE u.payment_application_id = s.payment_application_id));
GRANT SELECT ON live_small_differences TO reckoner_app;

CREATE VIEW document_bank_charges AS
 SELECT document_id, sum(amount) AS bank_charges
   FROM live_small_differences
  GROUP BY document_id;
GRANT SELECT ON document_bank_charges TO reckoner_app;

CREATE VIEW live_payment_reversals AS
 SELECT payment_reversal_id, identity, payment_id, partner_id, currency, amount, kind, code, reason, bank_line_id,
    duplicate_of, booked_to, reversed_on, entry_on, recorded_at, event_id, log_no
   FROM payment_reversals r
  WHERE NOT (EXISTS ( SELECT
           FROM payment_reinstatements i
          WHERE i.payment_reversal_id = r.payment_reversal_id));
GRANT SELECT ON live_payment_reversals TO reckoner_app;

CREATE VIEW live_credit_refunds AS
 SELECT credit_refund_id, document_id, partner_id, currency, amount, method, account, reference, refunded_on, entry_on,
    recorded_at, event_id, log_no
   FROM credit_refunds f
  WHERE NOT (EXISTS ( SELECT
           FROM credit_refund_returns b
          WHERE b.credit_refund_id = f.credit_refund_id));
GRANT SELECT ON live_credit_refunds TO reckoner_app;

CREATE VIEW live_refund_matches AS
 SELECT refund_match_id, bank_line_id, account, currency, amount, direction, credit_refund_id, payment_reversal_id,
    paid_on, entry_on, evidence, recorded_at, event_id, log_no
   FROM refund_matches m
  WHERE NOT (EXISTS ( SELECT
           FROM credit_refund_returns b
          WHERE b.credit_refund_id = m.credit_refund_id)) AND NOT (EXISTS ( SELECT
           FROM payment_reinstatements i
          WHERE i.payment_reversal_id = m.payment_reversal_id));
GRANT SELECT ON live_refund_matches TO reckoner_app;

CREATE FUNCTION refuse_line_of_two_refunds()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  PERFORM pg_advisory_xact_lock(7310, 51);
  IF (SELECT count(*) FROM live_refund_matches WHERE bank_line_id = NEW.bank_line_id) > 1 THEN
    RAISE EXCEPTION 'bank line % pays two refunds', NEW.bank_line_id
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'refund_match_of_line_once';
  END IF;
  RETURN NULL;
END
$function$;

CREATE VIEW payment_balances AS
 SELECT payment_id, partner_id, currency, amount, applied, reversed, amount - applied - reversed AS unapplied,
        CASE
            WHEN reversed = amount THEN 'reversed'
            WHEN applied = (amount - reversed) THEN 'applied'
            WHEN applied = 0::numeric THEN 'unapplied'
            ELSE 'partly_applied'
        END AS status,
    (reversed - booked_to_other) < amount AS stays
   FROM ( SELECT p.payment_id, p.currency, p.amount,
            COALESCE(( SELECT a.partner_id
                   FROM payment_assignments a
                  WHERE a.payment_id = p.payment_id AND a.kind <> 'part'
                  ORDER BY a.payment_assignment_id DESC
                 LIMIT 1), p.partner_id) AS partner_id,
            ( SELECT COALESCE(sum(a.amount), 0::numeric) AS "coalesce"
                   FROM live_payment_applications a
                  WHERE a.payment_id = p.payment_id) AS applied,
            ( SELECT COALESCE(sum(r.amount), 0::numeric) AS "coalesce"
                   FROM live_payment_reversals r
                  WHERE r.payment_id = p.payment_id) AS reversed,
            ( SELECT COALESCE(sum(r.amount), 0::numeric) AS "coalesce"
                   FROM live_payment_reversals r
                  WHERE r.payment_id = p.payment_id AND r.kind = 'other') AS booked_to_other
           FROM payments p) sums;
GRANT SELECT ON payment_balances TO reckoner_app;

CREATE TABLE book_open_documents (
  month billing_month NOT NULL,
  document_id bigint NOT NULL,
  balance numeric NOT NULL,
  CONSTRAINT book_open_documents_pkey PRIMARY KEY (month, document_id),
  CONSTRAINT book_open_document_not_zero CHECK (balance <> 0::numeric),
  CONSTRAINT book_open_document_of_closed_books FOREIGN KEY (month) REFERENCES book_closes(month) DEFERRABLE INITIALLY DEFERRED,
  CONSTRAINT book_open_documents_document_id_fkey FOREIGN KEY (document_id) REFERENCES documents(document_id)
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON book_open_documents FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER entry_books_open AFTER INSERT ON book_open_documents REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_open_item_of_closed_books(); -- enabled: A
GRANT INSERT, SELECT ON book_open_documents TO reckoner_app;

CREATE TABLE book_unapplied_cash (
  month billing_month NOT NULL,
  payment_id bigint NOT NULL,
  partner_id text COLLATE "C",
  amount numeric NOT NULL,
  CONSTRAINT book_unapplied_cash_once UNIQUE NULLS NOT DISTINCT (month, payment_id, partner_id),
  CONSTRAINT book_unapplied_cash_not_zero CHECK (amount <> 0::numeric),
  CONSTRAINT book_unapplied_cash_of_closed_books FOREIGN KEY (month) REFERENCES book_closes(month) DEFERRABLE INITIALLY DEFERRED,
  CONSTRAINT book_unapplied_cash_payment_id_fkey FOREIGN KEY (payment_id) REFERENCES payments(payment_id),
  CONSTRAINT book_unapplied_cash_partner_id_fkey FOREIGN KEY (partner_id) REFERENCES partners(partner_id)
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON book_unapplied_cash FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER entry_books_open AFTER INSERT ON book_unapplied_cash REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_open_item_of_closed_books(); -- enabled: A
GRANT INSERT, SELECT ON book_unapplied_cash TO reckoner_app;

CREATE FUNCTION refuse_open_item_of_closed_books()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
  closed text;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7310, 2);
  SELECT min(month) INTO closed FROM added JOIN book_closes USING (month);
  IF closed IS NOT NULL THEN
    RAISE EXCEPTION 'what was open at the end of % was stored when its books were closed', closed
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = TG_TABLE_NAME || '_books_open';
  END IF;
  RETURN NULL;
END
$function$;

CREATE FUNCTION books_by(as_of date)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
  SELECT max(month) FROM book_closes WHERE (month_after(month) || '-01')::date <= as_of + 1
$function$;
GRANT EXECUTE ON FUNCTION books_by TO reckoner_app;

CREATE FUNCTION unapplied_cash(as_of date)
 RETURNS TABLE(payment_id bigint, partner_id text, amount numeric)
 LANGUAGE plpgsql
 STABLE ROWS 200
AS $function$
#variable_conflict use_column
DECLARE
  books text := books_by(as_of);
  since date := coalesce((month_after(books) || '-01')::date, '-infinity');
BEGIN
  RETURN QUERY
  SELECT payment_id, partner_id, sum(amount)
  FROM (
    SELECT payment_id, partner_id, amount FROM book_unapplied_cash WHERE month = books
    UNION ALL
    SELECT payment_id, partner_id, amount FROM payments WHERE entry_on BETWEEN since AND as_of
    UNION ALL
    SELECT g.payment_id, moved.partner_id, moved.amount
    FROM payment_assignments g
    CROSS JOIN LATERAL (VALUES (g.from_partner_id, -g.amount), (g.partner_id, g.amount)) AS moved (partner_id, amount)
    WHERE g.entry_on BETWEEN since AND as_of
    UNION ALL
    SELECT a.payment_id, a.partner_id, -a.amount FROM payment_applications a
    WHERE a.entry_on BETWEEN since AND as_of AND NOT EXISTS (
      SELECT FROM payment_unapplications u
      WHERE u.payment_application_id = a.payment_application_id AND u.entry_on <= as_of)
    UNION ALL
    SELECT a.payment_id, a.partner_id, a.amount
    FROM payment_unapplications u JOIN payment_applications a USING (payment_application_id)
    WHERE u.entry_on BETWEEN since AND as_of AND a.entry_on < since
    UNION ALL
    SELECT payment_id, partner_id, -amount FROM payment_reversals WHERE entry_on BETWEEN since AND as_of
    UNION ALL
    SELECT r.payment_id, i.partner_id, r.amount
    FROM payment_reinstatements i JOIN payment_reversals r USING (payment_reversal_id)
    WHERE i.entry_on BETWEEN since AND as_of
  ) AS moved
  GROUP BY payment_id, partner_id HAVING sum(amount) <> 0;
END
$function$;
GRANT EXECUTE ON FUNCTION unapplied_cash TO reckoner_app;

CREATE VIEW unapplied_payments AS
 SELECT payment_id
   FROM unapplied_cash('infinity'::date) unapplied_cash(payment_id, partner_id, amount)
  GROUP BY payment_id
 HAVING sum(amount) > 0::numeric;
GRANT SELECT ON unapplied_payments TO reckoner_app;

CREATE FUNCTION payload_may_go(processor_event_id bigint)
 RETURNS boolean
 LANGUAGE sql
 STABLE
RETURN (EXISTS (SELECT FROM (processor_events e JOIN processor_event_outcomes o ON ((o.processor_event_id = e.processor_event_id))) WHERE ((e.processor_event_id = payload_may_go.processor_event_id) AND (e.received_at < (now() - '30 days'::interval)) AND ((o.outcome <> 'manual_review') OR (EXISTS (SELECT FROM payment_exception_closings c WHERE (c.processor_event_id = o.processor_event_id)))) AND (NOT (EXISTS (SELECT FROM payment_balances b WHERE ((b.payment_id = o.payment_id) AND (b.unapplied <> (0)::numeric))))) AND (NOT (EXISTS (SELECT FROM disputes d WHERE ((d.payment_id = o.payment_id) AND (NOT (EXISTS (SELECT FROM dispute_outcomes w WHERE (w.dispute_id = d.dispute_id)))))))))));
GRANT EXECUTE ON FUNCTION payload_may_go TO reckoner_app;

CREATE FUNCTION refuse_erasure()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  RAISE EXCEPTION 'the payload of processor event % is still needed', NEW.processor_event_id
    USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'erased_payload_is_not_needed';
END
$function$;

CREATE VIEW payment_cash AS
 SELECT payment_id, partner_id, sum(amount) AS amount
   FROM ( SELECT payments.payment_id, payments.partner_id, payments.amount
           FROM payments
        UNION ALL
         SELECT payment_assignments.payment_id, payment_assignments.from_partner_id, - payment_assignments.amount
           FROM payment_assignments
        UNION ALL
         SELECT payment_assignments.payment_id, payment_assignments.partner_id, payment_assignments.amount
           FROM payment_assignments
        UNION ALL
         SELECT live_payment_applications.payment_id, live_payment_applications.partner_id,
            - live_payment_applications.amount
           FROM live_payment_applications
        UNION ALL
         SELECT payment_reversals.payment_id, payment_reversals.partner_id, - payment_reversals.amount
           FROM payment_reversals
        UNION ALL
         SELECT r.payment_id, i.partner_id, r.amount
           FROM payment_reinstatements i
             JOIN payment_reversals r USING (payment_reversal_id)) moved
  GROUP BY payment_id, partner_id;
GRANT SELECT ON payment_cash TO reckoner_app;

CREATE VIEW payer_accounts AS
 SELECT t.text AS payer_account, b.partner_id, personal(p.payer_name) AS payer_name,
    bool_or(p.source = 'hand' OR (EXISTS ( SELECT
           FROM payment_assignments g
          WHERE g.payment_id = p.payment_id AND g.kind = 'named')) OR (EXISTS ( SELECT
           FROM live_payment_applications a
          WHERE a.payment_id = p.payment_id AND (a.evidence ->> 'rule') = 'by_hand'))) AS by_finance,
    count(*) AS payments, max(p.received_on) AS last_received_on
   FROM payments p
     JOIN personal_texts t ON t.commitment = p.payer_account
     JOIN payment_balances b USING (payment_id)
  WHERE b.partner_id IS NOT NULL AND p.method <> 'link' AND COALESCE(GREATEST(( SELECT max(a.event_id) AS max
           FROM live_payment_applications a
          WHERE a.payment_id = p.payment_id), ( SELECT max(g.event_id) AS max
           FROM payment_assignments g
          WHERE g.payment_id = p.payment_id AND g.kind = 'named')), 0::bigint) > COALESCE(( SELECT max(f.event_id) AS max
           FROM forgotten_payer_accounts f
          WHERE personal(f.payer_account) = t.text), 0::bigint)
  GROUP BY t.text, b.partner_id, (personal(p.payer_name));
GRANT SELECT ON payer_accounts TO reckoner_app;

CREATE VIEW balance_changes AS
 SELECT d.document_id, d.document, 'amount_due' AS changes, 'document_issued' AS fact, d.document_id AS id,
    d.gross AS amount, d.entry_on, d.issued_on AS dated_on, d.log_no AS recorded, v.document_id IS NOT NULL AS undone,
    'document_voided' AS undone_by, v.entry_on AS undone_on, v.voided_on AS undone_dated_on,
    v.log_no AS undone_recorded, v.recorded_at AS undone_at, NULL::text AS debit, NULL::text AS credit,
    NULL::text AS bank_account, NULL::text AS returned_to, NULL::bigint AS payment_id, NULL::bigint AS credit_note_id,
    NULL::text AS reference
   FROM documents d
     LEFT JOIN voids v ON v.document_id = d.document_id
  WHERE d.document <> 'statement'
UNION ALL
 SELECT a.invoice_id AS document_id, 'invoice' AS document, 'credited' AS changes,
    'credit_applied' AS fact, a.credit_application_id AS id, - a.amount AS amount, a.entry_on,
    a.applied_on AS dated_on, a.log_no AS recorded, r.credit_application_id IS NOT NULL AS undone,
    'credit_released' AS undone_by, r.entry_on AS undone_on, r.released_on AS undone_dated_on,
    r.log_no AS undone_recorded, r.recorded_at AS undone_at, 'liabilities:partner-credit' AS debit,
    'assets:receivable:billed' AS credit, NULL::text AS bank_account, NULL::text AS returned_to,
    NULL::bigint AS payment_id, a.credit_note_id, NULL::text AS reference
   FROM credit_applications a
     LEFT JOIN credit_releases r USING (credit_application_id)
UNION ALL
 SELECT a.credit_note_id AS document_id, 'credit_note' AS document, 'credited' AS changes,
    'credit_applied' AS fact, a.credit_application_id AS id, - a.amount AS amount, a.entry_on,
    a.applied_on AS dated_on, a.log_no AS recorded, r.credit_application_id IS NOT NULL AS undone,
    'credit_released' AS undone_by, r.entry_on AS undone_on, r.released_on AS undone_dated_on,
    r.log_no AS undone_recorded, r.recorded_at AS undone_at, NULL::text AS debit, NULL::text AS credit,
    NULL::text AS bank_account, NULL::text AS returned_to, NULL::bigint AS payment_id, NULL::bigint AS credit_note_id,
    NULL::text AS reference
   FROM credit_applications a
     LEFT JOIN credit_releases r USING (credit_application_id)
UNION ALL
 SELECT w.document_id, 'invoice' AS document, 'credited' AS changes, 'written_off' AS fact,
    w.write_off_id AS id, - w.amount AS amount, w.entry_on, w.written_off_on AS dated_on, w.log_no AS recorded,
    r.write_off_id IS NOT NULL AS undone, 'write_off_undone' AS undone_by, r.entry_on AS undone_on,
    r.reversed_on AS undone_dated_on, r.log_no AS undone_recorded, r.recorded_at AS undone_at,
    'expenses:bad-debts' AS debit, 'assets:receivable:billed' AS credit, NULL::text AS bank_account,
    NULL::text AS returned_to, NULL::bigint AS payment_id, NULL::bigint AS credit_note_id, NULL::text AS reference
   FROM write_offs w
     LEFT JOIN write_off_reversals r USING (write_off_id)
UNION ALL
 SELECT a.document_id, 'invoice' AS document, 'amount_paid' AS changes, 'payment_applied' AS fact,
    a.payment_application_id AS id, - a.amount AS amount, a.entry_on, a.applied_on AS dated_on, a.log_no AS recorded,
    u.payment_application_id IS NOT NULL AS undone, 'payment_unapplied' AS undone_by, u.entry_on AS undone_on,
    u.unapplied_on AS undone_dated_on, u.log_no AS undone_recorded, u.recorded_at AS undone_at,
    'liabilities:unapplied' AS debit, 'assets:receivable:billed' AS credit, NULL::text AS bank_account,
    NULL::text AS returned_to, a.payment_id, NULL::bigint AS credit_note_id, NULL::text AS reference
   FROM payment_applications a
     LEFT JOIN payment_unapplications u USING (payment_application_id)
UNION ALL
 SELECT s.document_id, 'invoice' AS document, 'credited' AS changes, 'small_difference' AS fact,
    s.payment_application_id AS id, - s.amount AS amount, s.entry_on, a.applied_on AS dated_on, s.log_no AS recorded,
    u.payment_application_id IS NOT NULL AS undone, 'small_difference_undone' AS undone_by,
    u.entry_on AS undone_on, u.unapplied_on AS undone_dated_on, u.log_no AS undone_recorded,
    u.recorded_at AS undone_at, 'expenses:bank-charges' AS debit, 'assets:receivable:billed' AS credit,
    NULL::text AS bank_account, NULL::text AS returned_to, a.payment_id, NULL::bigint AS credit_note_id,
    NULL::text AS reference
   FROM small_differences s
     LEFT JOIN payment_unapplications u USING (payment_application_id)
     LEFT JOIN payment_applications a USING (payment_application_id)
UNION ALL
 SELECT f.document_id, 'credit_note' AS document, 'amount_paid' AS changes,
    'credit_refunded' AS fact, f.credit_refund_id AS id, - f.amount AS amount, f.entry_on,
    f.refunded_on AS dated_on, f.log_no AS recorded, b.credit_refund_id IS NOT NULL AS undone,
    'credit_refund_returned' AS undone_by, b.entry_on AS undone_on, b.returned_on AS undone_dated_on,
    b.log_no AS undone_recorded, b.recorded_at AS undone_at, 'liabilities:partner-credit' AS debit,
    'assets:bank' AS credit, f.account AS bank_account,
    ( SELECT m.account
           FROM refund_matches m
          WHERE m.credit_refund_id = f.credit_refund_id) AS returned_to,
    NULL::bigint AS payment_id, NULL::bigint AS credit_note_id, f.reference
   FROM credit_refunds f
     LEFT JOIN credit_refund_returns b USING (credit_refund_id);
GRANT SELECT ON balance_changes TO reckoner_app;

CREATE VIEW document_balances AS
 SELECT d.document_id, due.amount_due, settled.credited, settled.amount_paid,
        CASE
            WHEN v.document_id IS NULL THEN due.amount_due - settled.credited - settled.amount_paid
            ELSE 0::numeric
        END AS balance,
        CASE
            WHEN v.document_id IS NOT NULL THEN 'void'
            WHEN (due.amount_due - settled.credited - settled.amount_paid) = 0::numeric THEN 'paid'
            ELSE 'open'
        END AS status
   FROM documents d
     LEFT JOIN voids v ON v.document_id = d.document_id
     CROSS JOIN LATERAL ( SELECT
                CASE
                    WHEN d.document = 'statement' THEN 0::numeric
                    ELSE d.gross - d.credit_applied
                END AS amount_due) due
     CROSS JOIN LATERAL ( SELECT COALESCE(- sum(c.amount) FILTER (WHERE c.changes = 'credited'), 0::numeric) -
                CASE
                    WHEN v.document_id IS NULL THEN d.credit_applied
                    ELSE 0::numeric
                END AS credited,
            COALESCE(- sum(c.amount) FILTER (WHERE c.changes = 'amount_paid'), 0::numeric) AS amount_paid
           FROM balance_changes c
          WHERE c.document_id = d.document_id AND c.document = d.document AND c.changes <> 'amount_due' AND NOT c.undone
         OFFSET 0) settled;
GRANT SELECT ON document_balances TO reckoner_app;

CREATE FUNCTION open_items(as_of date)
 RETURNS TABLE(document_id bigint, balance numeric)
 LANGUAGE plpgsql
 STABLE
AS $function$
#variable_conflict use_column
DECLARE
  books text := books_by(as_of);
  since date := coalesce((month_after(books) || '-01')::date, '-infinity');
BEGIN
  RETURN QUERY
  SELECT moved.document_id, sum(moved.amount)
  FROM (
    SELECT document_id, balance AS amount FROM book_open_documents WHERE month = books
    UNION ALL
    SELECT document_id, amount FROM balance_changes
    WHERE entry_on BETWEEN since AND as_of AND (changes = 'amount_due' OR undone_on IS NULL OR undone_on > as_of)
    UNION ALL
    SELECT document_id, -amount FROM balance_changes
    WHERE undone_on BETWEEN since AND as_of AND entry_on < since AND changes <> 'amount_due'
  ) AS moved
  WHERE NOT EXISTS (
    SELECT FROM voids v WHERE v.document_id = moved.document_id AND v.entry_on <= as_of)
  GROUP BY moved.document_id HAVING sum(moved.amount) <> 0;
END
$function$;
GRANT EXECUTE ON FUNCTION open_items TO reckoner_app;

CREATE VIEW open_documents AS
 SELECT document_id
   FROM open_items('infinity'::date) open_items(document_id, balance);
GRANT SELECT ON open_documents TO reckoner_app;

CREATE VIEW open_credit AS
 SELECT d.document_id, d.number, d.purpose, d.partner_id, d.currency, b.balance
   FROM documents d
     JOIN document_balances b USING (document_id)
  WHERE d.document = 'credit_note' AND b.status = 'open';
GRANT SELECT ON open_credit TO reckoner_app;

CREATE VIEW payment_history AS
 SELECT a.document_id, a.recorded_at AS at, 'paid' AS action,
    jsonb_build_object('amount', a.amount::text, 'reference', personal(p.reference), 'why', personal(a.evidence ->> 'why')) AS facts,
    a.event_id
   FROM payment_applications a
     JOIN payments p USING (payment_id)
UNION ALL
 SELECT s.document_id, s.recorded_at AS at, 'small_difference' AS action,
    jsonb_build_object('amount', s.amount::text) AS facts, s.event_id
   FROM small_differences s
UNION ALL
 SELECT a.document_id, u.recorded_at AS at, 'unpaid' AS action,
    jsonb_build_object('amount', a.amount::text, 'reference', personal(p.reference), 'kind', r.kind, 'code', r.code, 'reason', r.reason, 'charges', s.amount::text) AS facts,
    u.event_id
   FROM payment_unapplications u
     JOIN payment_applications a USING (payment_application_id)
     JOIN payments p USING (payment_id)
     LEFT JOIN payment_reversals r ON r.payment_reversal_id = u.payment_reversal_id
     LEFT JOIN small_differences s ON s.payment_application_id = a.payment_application_id
UNION ALL
 SELECT credit_refunds.document_id, credit_refunds.recorded_at AS at, 'refunded' AS action,
    jsonb_build_object('amount', credit_refunds.amount::text, 'reference', personal(credit_refunds.reference), 'on', credit_refunds.refunded_on::text) AS facts,
    credit_refunds.event_id
   FROM credit_refunds
UNION ALL
 SELECT f.document_id, b.recorded_at AS at, 'refund_returned' AS action,
    jsonb_build_object('amount', f.amount::text, 'reason', b.reason) AS facts, b.event_id
   FROM credit_refund_returns b
     JOIN credit_refunds f USING (credit_refund_id);
GRANT SELECT ON payment_history TO reckoner_app;

CREATE FUNCTION document_reopened_on(bigint)
 RETURNS date
 LANGUAGE sql
 STABLE
AS $function$
  SELECT greatest(
    (SELECT d.entry_on FROM documents d WHERE d.document_id = $1 AND d.opening_id IS NOT NULL),
    -- Not max(), for which PostgreSQL would plan the view twice.
    (SELECT c.undone_on FROM balance_changes c WHERE c.document_id = $1 AND c.undone ORDER BY c.undone_on DESC LIMIT 1))
$function$;
GRANT EXECUTE ON FUNCTION document_reopened_on TO reckoner_app;

CREATE FUNCTION payment_reopened_on(payment bigint)
 RETURNS date
 LANGUAGE sql
 STABLE
AS $function$
  SELECT greatest(
    (SELECT p.entry_on FROM payments p WHERE p.payment_id = payment AND p.opening_id IS NOT NULL),
    (SELECT max(u.entry_on) FROM payment_unapplications u JOIN payment_applications a USING (payment_application_id)
     WHERE a.payment_id = payment),
    (SELECT max(i.entry_on) FROM payment_reinstatements i JOIN payment_reversals r USING (payment_reversal_id)
     WHERE r.payment_id = payment),
    (SELECT max(g.entry_on) FROM payment_assignments g WHERE g.payment_id = payment AND g.kind <> 'part'))
$function$;
GRANT EXECUTE ON FUNCTION payment_reopened_on TO reckoner_app;

CREATE FUNCTION refuse_opening_that_does_not_add_up()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
  off record;
BEGIN
  SELECT * INTO off FROM opening_differences x WHERE x.opening_id = NEW.opening_id LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'opening % does not add up in %', NEW.opening_id, off.currency
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'opening_adds_up';
  END IF;
  RETURN NULL;
END
$function$;

CREATE VIEW opening_sums AS
 SELECT opening_id, currency, count(*)::integer AS items, sum(invoices) AS invoices, sum(credits) AS credits,
    sum(cash) AS cash
   FROM ( SELECT documents.opening_id, documents.currency,
                CASE documents.document
                    WHEN 'invoice' THEN documents.invoice_amount
                    ELSE 0::numeric
                END AS invoices,
                CASE documents.document
                    WHEN 'credit_note' THEN documents.invoice_amount
                    ELSE 0::numeric
                END AS credits,
            0 AS cash
           FROM documents
          WHERE documents.opening_id IS NOT NULL
        UNION ALL
         SELECT payments.opening_id, payments.currency, 0, 0, payments.amount
           FROM payments
          WHERE payments.opening_id IS NOT NULL) items
  GROUP BY opening_id, currency;
GRANT SELECT ON opening_sums TO reckoner_app;

CREATE VIEW opening_differences AS
 SELECT opening_id, currency, t.items, s.items AS items_found, t.invoices, s.invoices AS invoices_found, t.credits,
    s.credits AS credits_found, t.cash, s.cash AS cash_found
   FROM opening_totals t
     FULL JOIN opening_sums s USING (opening_id, currency)
  WHERE t.items IS DISTINCT FROM s.items OR t.invoices IS DISTINCT FROM s.invoices OR t.credits IS DISTINCT FROM s.credits OR t.cash IS DISTINCT FROM s.cash;
GRANT SELECT ON opening_differences TO reckoner_app;

CREATE VIEW bank_statement_breaks AS
 WITH dated AS (
         SELECT s_1.bank_statement_id, s_1.bank_file_id, s_1.account, s_1.currency, s_1.opening, s_1.closing,
            s_1.closed_on, COALESCE(min(l.bank_booked_on), s_1.closed_on) AS first_on,
            GREATEST(s_1.closed_on, max(l.bank_booked_on)) AS last_on
           FROM bank_statements s_1
             LEFT JOIN bank_statement_lines p ON p.bank_statement_id = s_1.bank_statement_id
             LEFT JOIN bank_lines l ON l.bank_line_id = p.bank_line_id
          WHERE s_1.opening IS NOT NULL AND s_1.closing IS NOT NULL
          GROUP BY s_1.bank_statement_id
        ), placed AS (
         SELECT dated.bank_statement_id, dated.bank_file_id, dated.account, dated.currency, dated.opening,
            dated.closing, dated.closed_on, dated.first_on, dated.last_on,
            row_number() OVER (PARTITION BY dated.account, dated.currency ORDER BY dated.first_on, dated.last_on, dated.bank_statement_id) AS place
           FROM dated
        )
 SELECT s.bank_statement_id, s.account, s.currency, s.first_on, s.opening, t.closing AS expected,
    t.last_on AS expected_on, t.last_on - s.first_on AS days_of_overlap,
    LEAST(s.first_on, COALESCE(t.closed_on + 1, t.last_on)) AS gap_from,
    regexp_replace(f.name, '^.*[/\\]', '') AS file,
    regexp_replace(o.name, '^.*[/\\]', '') AS expected_file
   FROM placed s
     JOIN bank_files f ON f.bank_file_id = s.bank_file_id
     JOIN LATERAL ( SELECT t_1.bank_statement_id, t_1.bank_file_id, t_1.account, t_1.currency, t_1.opening,
            t_1.closing, t_1.closed_on, t_1.first_on, t_1.last_on, t_1.place
           FROM placed t_1
          WHERE t_1.account = s.account AND t_1.currency = s.currency AND t_1.place < s.place
          ORDER BY t_1.place DESC
         LIMIT 1) t ON true
     JOIN bank_files o ON o.bank_file_id = t.bank_file_id
  WHERE NOT (EXISTS ( SELECT
           FROM placed e
          WHERE e.account = s.account AND e.currency = s.currency AND e.bank_statement_id <> s.bank_statement_id AND e.closing = s.opening AND e.last_on <= s.first_on AND (e.opening <> e.closing OR e.place < s.place))) AND (t.closing + (( SELECT COALESCE(sum(
                CASE l.direction
                    WHEN 'credit' THEN l.amount
                    ELSE - l.amount
                END), 0::numeric) AS "coalesce"
           FROM bank_lines l
          WHERE l.account = s.account AND l.currency = s.currency AND l.bank_booked_on > t.last_on AND l.bank_booked_on < s.first_on))) <> s.opening AND NOT (EXISTS ( SELECT
           FROM placed e
             CROSS JOIN LATERAL ( SELECT e.opening AS one, e.opening AS other
                UNION ALL
                 SELECT e.opening + sum(m.signed) OVER (ORDER BY m."position"),
                    e.opening + sum(m.signed) OVER (ORDER BY m."position" DESC)
                   FROM ( SELECT p."position",
                                CASE l.direction
                                    WHEN 'credit' THEN l.amount
                                    ELSE - l.amount
                                END AS signed
                           FROM bank_statement_lines p
                             JOIN bank_lines l ON l.bank_line_id = p.bank_line_id
                          WHERE p.bank_statement_id = e.bank_statement_id) m) inside
          WHERE e.account = s.account AND e.currency = s.currency AND e.place < s.place AND e.last_on >= s.first_on AND (s.opening = inside.one OR s.opening = inside.other)));
GRANT SELECT ON bank_statement_breaks TO reckoner_app;

CREATE VIEW suggested_duplicates AS
 SELECT s.payment_id, p.received_on,
    string_agg(format('payment %s: %s', s.same_as, s.evidence ->> 'why'), '; ' ORDER BY s.same_as) AS of
   FROM payment_suggestions s
     JOIN payment_balances same ON same.payment_id = s.same_as
     JOIN payments p ON p.payment_id = s.payment_id
  WHERE same.stays AND NOT (EXISTS ( SELECT
           FROM payment_exception_closings c
          WHERE c.payment_id = s.payment_id))
  GROUP BY s.payment_id, p.received_on;
GRANT SELECT ON suggested_duplicates TO reckoner_app;

CREATE VIEW possible_duplicates AS
 SELECT payment_id, received_on, of
   FROM suggested_duplicates
  WHERE (payment_id IN ( SELECT unapplied_payments.payment_id
           FROM unapplied_payments));
GRANT SELECT ON possible_duplicates TO reckoner_app;

CREATE VIEW payment_exceptions AS
 SELECT
        CASE
            WHEN e.of IS NOT NULL THEN 'possible_duplicate'
            WHEN s.why IS NOT NULL THEN 'suggestion'
            WHEN b.partner_id IS NULL THEN 'unknown_payer'
            ELSE 'unapplied_cash'
        END AS kind,
    'payment-' || b.payment_id AS exception, b.partner_id, p.currency, b.unapplied AS amount,
    p.received_on AS since,
    COALESCE('perhaps the same as ' || e.of, s.why, personal(l.reason),
        CASE
            WHEN b.applied > 0::numeric THEN 'the rest of this payment is applied, this part is not'
            ELSE format('no invoice is known for it: by %s, reference %s', p.method, personal(p.reference))
        END) AS reason
   FROM payment_balances b
     JOIN payments p USING (payment_id)
     CROSS JOIN LATERAL ( SELECT (array_agg(format('perhaps %s: %s', d.number, personal(s_1.evidence ->> 'why')) ORDER BY s_1.confidence DESC, s_1.payment_suggestion_id))[1] AS why
           FROM payment_suggestions s_1
             JOIN documents d USING (document_id)
             JOIN document_balances o USING (document_id)
          WHERE s_1.payment_id = b.payment_id AND o.status = 'open') s
     LEFT JOIN LATERAL ( SELECT e_1.of
           FROM suggested_duplicates e_1
          WHERE e_1.payment_id = b.payment_id) e ON true
     LEFT JOIN LATERAL ( SELECT o.reason
           FROM bank_line_outcomes o
          WHERE o.payment_id = b.payment_id AND b.applied = 0::numeric
          ORDER BY o.bank_line_id
         LIMIT 1) l ON true
  WHERE (b.payment_id IN ( SELECT unapplied_payments.payment_id
           FROM unapplied_payments))
UNION ALL
 SELECT 'digits_swapped' AS kind, 'payment-' || a.payment_id AS exception, d.partner_id, d.currency,
    o.balance AS amount, p.received_on AS since,
    format('%s of %s was paid of %s, and %s is left open: digits may be swapped', round(a.amount, minor_digits(d.currency)), round(a.amount + o.balance, minor_digits(d.currency)), d.number, round(o.balance, minor_digits(d.currency))) AS reason
   FROM ( SELECT live_payment_applications.payment_application_id, live_payment_applications.payment_id,
            live_payment_applications.document_id, live_payment_applications.partner_id,
            live_payment_applications.currency, live_payment_applications.amount, live_payment_applications.applied_on,
            live_payment_applications.entry_on, live_payment_applications.confidence,
            live_payment_applications.evidence, live_payment_applications.recorded_at,
            live_payment_applications.event_id, live_payment_applications.log_no
           FROM live_payment_applications
          WHERE jsonb_exists(live_payment_applications.evidence, 'digits_swapped')
         OFFSET 0) a
     JOIN documents d USING (document_id)
     JOIN payments p USING (payment_id)
     CROSS JOIN LATERAL ( SELECT b.balance
           FROM document_balances b
          WHERE b.document_id = a.document_id AND b.status = 'open'
         OFFSET 0) o
  WHERE NOT (EXISTS ( SELECT
           FROM payment_balances b
          WHERE b.payment_id = a.payment_id AND b.unapplied > 0::numeric)) AND NOT (EXISTS ( SELECT
           FROM payment_exception_closings c
          WHERE c.payment_id = a.payment_id))
UNION ALL
 SELECT 'payout' AS kind, 'payout-' || o.payout_id AS exception, NULL::text AS partner_id, o.currency,
    o.amount, o.received_on AS since,
    'not known of which payments: ' || COALESCE(NULLIF(personal(l.text), ''), l.bank_reference, '') AS reason
   FROM payouts o
     JOIN bank_lines l USING (bank_line_id)
  WHERE NOT (EXISTS ( SELECT
           FROM payout_settlements s
          WHERE s.payout_id = o.payout_id))
UNION ALL
 SELECT 'bank_line' AS kind, 'line-' || o.bank_line_id AS exception, NULL::text AS partner_id, l.currency,
        CASE l.direction
            WHEN 'debit' THEN - l.amount
            ELSE l.amount
        END AS amount,
    l.bank_booked_on AS since, personal(o.reason) AS reason
   FROM bank_line_outcomes o
     JOIN bank_lines l USING (bank_line_id)
  WHERE o.needs_review AND o.outcome = 'ignored' AND NOT (EXISTS ( SELECT
           FROM payment_exception_closings c
          WHERE c.bank_line_id = o.bank_line_id)) AND NOT (EXISTS ( SELECT
           FROM refund_matches m
          WHERE m.bank_line_id = o.bank_line_id))
UNION ALL
 SELECT 'bank_statement' AS kind, 'bank-statement-' || s.bank_statement_id AS exception,
    NULL::text AS partner_id, s.currency, s.opening - s.expected AS amount, s.first_on AS since,
    format('%s of account %s opens with %s, but %s ends with %s on %s: %s', s.file, s.account, round(s.opening, minor_digits(s.currency)), s.expected_file, round(s.expected, minor_digits(s.currency)), s.expected_on,
        CASE
            WHEN s.days_of_overlap > 0 THEN 'they overlap and do not agree'
            WHEN s.days_of_overlap = 0 THEN 'a file between them is missing, or they overlap'
            ELSE 'a file between them is missing'
        END) AS reason
   FROM bank_statement_breaks s
  WHERE NOT (EXISTS ( SELECT
           FROM payment_exception_closings c
          WHERE c.bank_statement_id = s.bank_statement_id))
UNION ALL
 SELECT
        CASE
            WHEN o.processor_event_id IS NULL THEN 'waiting_event'
            ELSE 'event'
        END AS kind,
    e.id AS exception, NULL::text AS partner_id, NULL::text AS currency, NULL::numeric AS amount,
    e.created::date AS since,
    format('%s: %s', e.type, COALESCE(personal(o.reason), 'waits for another event')) AS reason
   FROM processor_events e
     LEFT JOIN processor_event_outcomes o USING (processor_event_id)
  WHERE (o.processor_event_id IS NULL OR o.outcome = 'manual_review') AND NOT (EXISTS ( SELECT
           FROM payment_exception_closings c
          WHERE c.processor_event_id = e.processor_event_id));
GRANT SELECT ON payment_exceptions TO reckoner_app;

CREATE FUNCTION refuse_overdrawn_payment()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
  found payment_balances%ROWTYPE;
BEGIN
  PERFORM pg_advisory_xact_lock(7310, 51);
  SELECT * INTO found FROM payment_balances WHERE payment_id = NEW.payment_id;
  IF found.unapplied < 0 THEN
    RAISE EXCEPTION 'payment % of % has % applied and % taken back', NEW.payment_id, found.amount, found.applied, found.reversed
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'payment_within_amount';
  END IF;
  RETURN NULL;
END
$function$;

CREATE FUNCTION refuse_cash_of_another_partner()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
  payment bigint := CASE TG_TABLE_NAME
    WHEN 'payment_unapplications' THEN (
      SELECT a.payment_id FROM payment_applications a
      WHERE a.payment_application_id = (to_jsonb(NEW)->>'payment_application_id')::bigint)
    ELSE (to_jsonb(NEW)->>'payment_id')::bigint END;
  strange record;
BEGIN
  PERFORM pg_advisory_xact_lock(7310, 51);
  SELECT c.partner_id, c.amount, b.partner_id AS payer INTO strange
  FROM payment_cash c JOIN payment_balances b USING (payment_id)
  WHERE c.payment_id = payment AND c.amount <> 0 AND c.partner_id IS DISTINCT FROM b.partner_id LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'payment % of % has % of %', payment, coalesce(strange.payer, 'an unknown payer'), strange.amount,
      coalesce(strange.partner_id, 'an unknown payer')
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'payment_cash_of_its_payer';
  END IF;
  RETURN NULL;
END
$function$;

CREATE FUNCTION refuse_overpaid_document()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
  settled bigint := (to_jsonb(NEW)->>TG_ARGV[0])::bigint;
  found document_balances%ROWTYPE;
  kind text;
BEGIN
  PERFORM pg_advisory_xact_lock(7310, 51);
  SELECT * INTO found FROM document_balances WHERE document_id = settled;
  IF found.status = 'void' AND found.amount_paid <> 0 THEN
    RAISE EXCEPTION 'document % is void and has % paid', settled, found.amount_paid
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'document_void_is_unpaid';
  END IF;
  IF found.amount_due < found.credited + found.amount_paid THEN
    RAISE EXCEPTION 'document % over % is credited % and paid %', settled, found.amount_due, found.credited, found.amount_paid
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'document_not_overpaid';
  END IF;
  SELECT document INTO kind FROM documents WHERE document_id = settled;
  IF kind <> TG_ARGV[1] THEN
    RAISE EXCEPTION 'document % is a % and takes no %', settled, kind, TG_TABLE_NAME
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'document_kind_takes_it';
  END IF;
  RETURN NULL;
END
$function$;

CREATE TABLE reminders (
  document_id bigint NOT NULL,
  dunning_level integer NOT NULL,
  email_id bigint NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  counted_from date NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT reminders_pkey PRIMARY KEY (document_id, dunning_level, counted_from),
  CONSTRAINT reminders_fact_positive CHECK (log_no > 0),
  CONSTRAINT reminder_to_its_partner FOREIGN KEY (email_id, partner_id) REFERENCES emails(email_id, partner_id),
  CONSTRAINT reminder_of_its_partners_document FOREIGN KEY (document_id, partner_id, currency) REFERENCES documents(document_id, partner_id, currency)
);
CREATE INDEX reminders_of_email ON reminders USING btree (email_id);
CREATE UNIQUE INDEX reminders_fact ON reminders USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON reminders FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON reminders FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON reminders FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON reminders TO reckoner_app;

-- 011_splits ----------------------------------------------------------------------------------------------------------

CREATE TABLE settlement_files (
  settlement_file_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  partner_id text COLLATE "C" NOT NULL,
  sha256 text NOT NULL,
  name text NOT NULL,
  lines bigint NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT settlement_files_pkey PRIMARY KEY (settlement_file_id),
  CONSTRAINT settlement_file_once UNIQUE (partner_id, sha256),
  CONSTRAINT settlement_file_of_partner UNIQUE (settlement_file_id, partner_id),
  CONSTRAINT settlement_file_sha256_form CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  CONSTRAINT settlement_files_fact_positive CHECK (log_no > 0),
  CONSTRAINT settlement_files_partner_id_fkey FOREIGN KEY (partner_id) REFERENCES partners(partner_id),
  CONSTRAINT settlement_files_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX settlement_files_fact ON settlement_files USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON settlement_files FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON settlement_files FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON settlement_files FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON settlement_files TO reckoner_app;
GRANT SELECT ON SEQUENCE settlement_files_settlement_file_id_seq TO reckoner_app;

CREATE TABLE settlement_lines (
  settlement_line_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  settlement_file_id bigint NOT NULL,
  line bigint NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  quote_id text COLLATE "C" NOT NULL,
  requote_id text COLLATE "C",
  reversal_id text COLLATE "C",
  transfer text COLLATE "C",
  payment text COLLATE "C",
  kind text NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  refunded numeric,
  occurred_at timestamp with time zone,
  log_no bigint NOT NULL,
  CONSTRAINT settlement_lines_pkey PRIMARY KEY (settlement_line_id),
  CONSTRAINT settlement_line_once UNIQUE NULLS NOT DISTINCT (partner_id, payment, transfer, quote_id, requote_id),
  CONSTRAINT settlement_line_kind_known CHECK (kind = ANY (ARRAY['share', 'reversal', 'dispute'])),
  CONSTRAINT settlement_line_refund_not_negative CHECK (refunded >= 0::numeric),
  CONSTRAINT settlement_line_names_transfer_or_payment CHECK (num_nonnulls(transfer, payment) > 0),
  CONSTRAINT settlement_line_sign CHECK (
CASE kind
    WHEN 'share' THEN amount > 0::numeric
    WHEN 'reversal' THEN amount < 0::numeric
    ELSE amount <> 0::numeric
END),
  CONSTRAINT settlement_line_minor_digits CHECK (scale(amount) <= minor_digits(currency)),
  CONSTRAINT settlement_lines_fact_positive CHECK (log_no > 0),
  CONSTRAINT settlement_line_of_its_file FOREIGN KEY (settlement_file_id, partner_id) REFERENCES settlement_files(settlement_file_id, partner_id)
);
CREATE INDEX settlement_lines_by_payment ON settlement_lines USING btree (payment, partner_id) WHERE payment IS NOT NULL;
CREATE INDEX settlement_lines_by_transfer ON settlement_lines USING btree (transfer, partner_id) WHERE transfer IS NOT NULL;
CREATE UNIQUE INDEX settlement_lines_fact ON settlement_lines USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON settlement_lines FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON settlement_lines FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON settlement_lines FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON settlement_lines TO reckoner_app;
GRANT SELECT ON SEQUENCE settlement_lines_settlement_line_id_seq TO reckoner_app;

CREATE FUNCTION is_same_settlement(one settlement_lines, other settlement_lines)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
RETURN ((((one).partner_id = (other).partner_id) AND ((one).quote_id = (other).quote_id) AND ((one).kind = (other).kind) AND ((one).currency = (other).currency) AND ((one).amount = (other).amount)) AND (NOT ((one).requote_id IS DISTINCT FROM (other).requote_id)) AND COALESCE(((one).transfer = (other).transfer), true) AND COALESCE(((one).payment = (other).payment), true) AND ((num_nonnulls((one).transfer, (one).payment) + num_nonnulls((other).transfer, (other).payment)) = 3));
GRANT EXECUTE ON FUNCTION is_same_settlement TO reckoner_app;

CREATE FUNCTION settlement_lines_beside(line settlement_lines)
 RETURNS SETOF settlement_lines
 LANGUAGE sql
 STABLE
AS $function$
  SELECT * FROM settlement_lines o WHERE o.transfer = line.transfer AND o.partner_id = line.partner_id
  UNION
  SELECT * FROM settlement_lines o WHERE o.payment = line.payment AND o.partner_id = line.partner_id
$function$;
GRANT EXECUTE ON FUNCTION settlement_lines_beside TO reckoner_app;

CREATE FUNCTION repeated_settlement_line(settlement_line_id bigint)
 RETURNS bigint
 LANGUAGE sql
 STABLE
AS $function$
  SELECT min(e.settlement_line_id)
  FROM settlement_lines l CROSS JOIN LATERAL settlement_lines_beside(l) AS e
  WHERE l.settlement_line_id = repeated_settlement_line.settlement_line_id
    AND e.settlement_line_id < l.settlement_line_id AND is_same_settlement(e, l)
    AND NOT (num_nonnulls(l.transfer, l.payment) = 2 AND EXISTS (
      SELECT FROM settlement_lines_beside(e) AS o
      WHERE o.settlement_line_id < l.settlement_line_id AND is_same_settlement(e, o)))
$function$;
GRANT EXECUTE ON FUNCTION repeated_settlement_line TO reckoner_app;

CREATE TABLE balance_transactions (
  balance_transaction_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  account text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  reported_by text NOT NULL,
  type text NOT NULL,
  kind text NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  fee numeric NOT NULL,
  net numeric NOT NULL,
  source_currency text COLLATE "C",
  source_amount numeric,
  exchange_rate numeric,
  share_currency text COLLATE "C" NOT NULL GENERATED ALWAYS AS (COALESCE(source_currency, currency)) STORED,
  share_amount numeric NOT NULL GENERATED ALWAYS AS (COALESCE(trim_scale(round(((source_amount * net) / amount), minor_digits(source_currency))), trim_scale(net))) STORED,
  occurred_at timestamp with time zone NOT NULL,
  payment text COLLATE "C",
  of_payment text COLLATE "C",
  transfer text COLLATE "C",
  quote_id text COLLATE "C",
  requote_id text COLLATE "C",
  enrollment_id text COLLATE "C",
  payload jsonb NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT balance_transactions_pkey PRIMARY KEY (balance_transaction_id),
  CONSTRAINT balance_transaction_once UNIQUE (account, id),
  CONSTRAINT balance_transaction_in_its_currency UNIQUE (balance_transaction_id, currency),
  CONSTRAINT balance_transaction_of_its_account UNIQUE (balance_transaction_id, account, currency),
  CONSTRAINT balance_transaction_reported_by_known CHECK (reported_by = ANY (ARRAY['processor', 'settlement_file'])),
  CONSTRAINT balance_transaction_kind_known CHECK (kind = ANY (ARRAY['share', 'misrouted', 'reversal', 'dispute', 'other'])),
  CONSTRAINT balance_transaction_adds_up CHECK (net = (amount - fee)),
  CONSTRAINT balance_transaction_conversion_whole CHECK (num_nonnulls(source_currency, source_amount, exchange_rate) = ANY (ARRAY[0, 3])),
  CONSTRAINT balance_transaction_converted_from_another CHECK (source_currency <> currency),
  CONSTRAINT balance_transaction_converted_to_the_same_side CHECK (source_amount <> 0::numeric AND sign(source_amount) = sign(amount) AND exchange_rate > 0::numeric),
  CONSTRAINT balance_transaction_source_minor_digits CHECK (scale(source_amount) <= minor_digits(source_currency)),
  CONSTRAINT balance_transaction_minor_digits CHECK (GREATEST(scale(amount), scale(fee), scale(net)) <= minor_digits(currency)),
  CONSTRAINT balance_transactions_fact_positive CHECK (log_no > 0),
  CONSTRAINT balance_transactions_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE INDEX balance_transactions_by_payment ON balance_transactions USING btree (payment, account);
CREATE INDEX balance_transactions_by_time ON balance_transactions USING btree (account, occurred_at);
CREATE INDEX balance_transactions_of_quote ON balance_transactions USING btree (quote_id);
CREATE INDEX balance_transactions_of_one_payment ON balance_transactions USING btree (account, COALESCE(of_payment, payment, id));
CREATE INDEX payouts_at_the_processor ON balance_transactions USING btree (account, occurred_at) WHERE type = 'payout';
CREATE UNIQUE INDEX balance_transactions_fact ON balance_transactions USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON balance_transactions FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER balance_transactions_kept AFTER INSERT ON balance_transactions REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION keep_balance_transactions(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON balance_transactions FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON balance_transactions FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON balance_transactions TO reckoner_app;
GRANT SELECT ON SEQUENCE balance_transactions_balance_transaction_id_seq TO reckoner_app;

CREATE FUNCTION account_source(account text, month text)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
  SELECT coalesce(min(source), 'processor') FROM (
    SELECT DISTINCT ON (a.partner_id) coalesce(a.balance_transactions_from, 'processor') AS source
    FROM partner_arrangements a WHERE a.connected_account_id = account_source.account
    ORDER BY a.partner_id, a.from_month <= account_source.month COLLATE "C" DESC,
             CASE WHEN a.from_month <= account_source.month COLLATE "C" THEN a.from_month END DESC, a.from_month) AS own
$function$;
GRANT EXECUTE ON FUNCTION account_source TO reckoner_app;

CREATE VIEW account_sources AS
 SELECT account, month, account_source(account, month) AS source
   FROM ( SELECT DISTINCT balance_transactions.account,
            to_char((balance_transactions.occurred_at AT TIME ZONE 'UTC'), 'YYYY-MM') AS month
           FROM balance_transactions) used;
GRANT SELECT ON account_sources TO reckoner_app;

CREATE VIEW account_partners AS
 SELECT DISTINCT connected_account_id AS account, partner_id
   FROM partner_arrangements
  WHERE connected_account_id IS NOT NULL;
GRANT SELECT ON account_partners TO reckoner_app;

CREATE VIEW routed_quotes AS
 SELECT partner_id, posted_month, entry_id, quote_id, currency, own_id(q.*) AS own_id
   FROM ledger_rows q
  WHERE kind = 'quote_accepted' AND (arrangement = 'connected_account' OR (EXISTS ( SELECT
           FROM ledger_rows r
          WHERE r.partner_id = q.partner_id AND r.quote_id = q.quote_id AND r.kind = 'requote_accepted' AND r.arrangement = 'connected_account')));
GRANT SELECT ON routed_quotes TO reckoner_app;

CREATE TABLE processor_readings (
  processor_reading_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  account text COLLATE "C" NOT NULL,
  read_from timestamp with time zone,
  read_to timestamp with time zone NOT NULL,
  file text,
  balance_transactions bigint NOT NULL,
  new_balance_transactions bigint NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT processor_readings_pkey PRIMARY KEY (processor_reading_id),
  CONSTRAINT reading_goes_forward CHECK (read_from < read_to),
  CONSTRAINT reading_new_are_read CHECK (new_balance_transactions >= 0 AND new_balance_transactions <= balance_transactions),
  CONSTRAINT processor_readings_fact_positive CHECK (log_no > 0),
  CONSTRAINT processor_readings_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE INDEX processor_readings_of_account ON processor_readings USING btree (account, read_to);
CREATE UNIQUE INDEX processor_readings_fact ON processor_readings USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON processor_readings FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON processor_readings FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON processor_readings FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON processor_readings TO reckoner_app;
GRANT SELECT ON SEQUENCE processor_readings_processor_reading_id_seq TO reckoner_app;

CREATE TABLE share_allocations (
  share_allocation_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  balance_transaction_id bigint NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  posted_month text COLLATE "C" NOT NULL,
  entry_id bigint NOT NULL,
  quote_id text COLLATE "C" NOT NULL,
  requote_id text COLLATE "C",
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  settled_currency text COLLATE "C" NOT NULL,
  settled_amount numeric NOT NULL,
  other_account boolean NOT NULL DEFAULT false,
  matched_by text NOT NULL,
  settlement_line_id bigint,
  reason text NOT NULL DEFAULT '',
  occurred_on date NOT NULL,
  entry_on date NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT share_allocations_pkey PRIMARY KEY (share_allocation_id),
  CONSTRAINT share_allocation_currency_stays UNIQUE (share_allocation_id, currency),
  CONSTRAINT share_allocation_of_something CHECK (amount <> 0::numeric),
  CONSTRAINT share_allocation_matched_by_known CHECK (matched_by = ANY (ARRAY['metadata', 'payment', 'settlement_file', 'finance'])),
  CONSTRAINT share_allocation_settlement_named CHECK ((matched_by = 'settlement_file') = (settlement_line_id IS NOT NULL)),
  CONSTRAINT share_allocation_by_finance_has_reason CHECK (matched_by <> 'finance' OR btrim(reason) <> ''),
  CONSTRAINT share_allocation_unconverted_is_equal CHECK (currency <> settled_currency OR amount = settled_amount),
  CONSTRAINT share_allocation_settles_to_the_same_side CHECK (settled_amount = 0::numeric OR sign(settled_amount) = sign(amount)),
  CONSTRAINT share_allocation_other_account_by_finance CHECK (NOT other_account OR (matched_by = ANY (ARRAY['finance', 'payment']))),
  CONSTRAINT share_allocation_entry_not_before CHECK (entry_on >= occurred_on),
  CONSTRAINT share_allocation_minor_digits CHECK (scale(amount) <= minor_digits(currency) AND scale(settled_amount) <= minor_digits(settled_currency)),
  CONSTRAINT share_allocations_fact_positive CHECK (log_no > 0),
  CONSTRAINT share_allocations_settlement_line_id_fkey FOREIGN KEY (settlement_line_id) REFERENCES settlement_lines(settlement_line_id),
  CONSTRAINT share_allocations_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT share_allocation_of_a_balance_transaction FOREIGN KEY (balance_transaction_id, settled_currency) REFERENCES balance_transactions(balance_transaction_id, currency),
  CONSTRAINT share_allocation_of_a_quote FOREIGN KEY (partner_id, posted_month, entry_id) REFERENCES ledger_rows(partner_id, posted_month, entry_id)
);
CREATE UNIQUE INDEX share_allocation_once ON share_allocations USING btree (balance_transaction_id, quote_id, requote_id) NULLS NOT DISTINCT WHERE matched_by <> 'finance';
CREATE INDEX share_allocations_of_quote ON share_allocations USING btree (partner_id, quote_id);
CREATE INDEX share_allocations_by_entry ON share_allocations USING brin (entry_on) WITH (pages_per_range='16', autosummarize='on');
CREATE INDEX share_allocations_by_month ON share_allocations USING brin (posted_month) WITH (pages_per_range='16', autosummarize='on');
CREATE INDEX share_allocations_of_balance_transaction ON share_allocations USING btree (balance_transaction_id) INCLUDE (settled_amount);
CREATE INDEX share_allocations_of_event ON share_allocations USING btree (event_id);
CREATE UNIQUE INDEX share_allocations_fact ON share_allocations USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON share_allocations FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER entry_books_open AFTER INSERT ON share_allocations REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_books(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON share_allocations FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON share_allocations FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
CREATE TRIGGER share_allocations_kept AFTER INSERT ON share_allocations REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION keep_unallocated(); -- enabled: A
GRANT INSERT, SELECT ON share_allocations TO reckoner_app;
GRANT SELECT ON SEQUENCE share_allocations_share_allocation_id_seq TO reckoner_app;

CREATE TABLE unallocated_balance_transactions (
  balance_transaction_id bigint NOT NULL,
  closed boolean NOT NULL DEFAULT false,
  CONSTRAINT unallocated_balance_transactions_pkey PRIMARY KEY (balance_transaction_id),
  CONSTRAINT unallocated_balance_transactions_balance_transaction_id_fkey FOREIGN KEY (balance_transaction_id) REFERENCES balance_transactions(balance_transaction_id)
);
GRANT DELETE, INSERT, SELECT, UPDATE ON unallocated_balance_transactions TO reckoner_app;

CREATE TABLE account_months (
  account text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  month billing_month NOT NULL,
  amount numeric NOT NULL,
  CONSTRAINT account_months_pkey PRIMARY KEY (account, currency, month)
);
GRANT INSERT, SELECT, UPDATE ON account_months TO reckoner_app;

CREATE FUNCTION keep_balance_transactions()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO unallocated_balance_transactions (balance_transaction_id)
  SELECT balance_transaction_id FROM added WHERE kind <> 'other' AND net <> 0;
  -- In order, so that two imports cannot wait for each other.
  INSERT INTO account_months AS kept (account, currency, month, amount)
  SELECT account, currency, to_char(occurred_at AT TIME ZONE 'UTC', 'YYYY-MM') AS month, sum(net) FROM added
  WHERE type NOT LIKE 'payout%' GROUP BY account, currency, month ORDER BY account, currency, month
  ON CONFLICT (account, currency, month) DO UPDATE SET amount = kept.amount + excluded.amount;
  RETURN NULL;
END
$function$;

CREATE VIEW unattributed_balance_transactions AS
 SELECT t.balance_transaction_id, t.account, t.id, t.reported_by, t.type, t.kind, t.currency, t.amount, t.fee, t.net,
    t.source_currency, t.source_amount, t.exchange_rate, t.share_currency, t.share_amount, t.occurred_at, t.payment,
    t.of_payment, t.transfer, t.quote_id, t.requote_id, t.enrollment_id, t.payload, t.recorded_at, t.event_id,
    t.log_no, unallocated_balance_transactions.closed
   FROM unallocated_balance_transactions
     JOIN balance_transactions t USING (balance_transaction_id)
  WHERE NOT (EXISTS ( SELECT
           FROM share_allocations s
          WHERE s.balance_transaction_id = t.balance_transaction_id)) AND NOT (t.reported_by = 'processor' AND (EXISTS ( SELECT
           FROM partner_arrangements a
          WHERE a.connected_account_id = t.account AND a.balance_transactions_from = 'settlement_file')) AND account_source(t.account, to_char((t.occurred_at AT TIME ZONE 'UTC'), 'YYYY-MM')) = 'settlement_file') AND NOT (EXISTS ( SELECT
           FROM balance_transactions other
          WHERE other.id = t.id AND other.payment = t.payment AND other.account <> t.account AND (( SELECT sum(s.amount) AS sum
                   FROM share_allocations s
                  WHERE s.balance_transaction_id = other.balance_transaction_id)) <> 0::numeric));
GRANT SELECT ON unattributed_balance_transactions TO reckoner_app;

CREATE TABLE balance_transaction_closings (
  balance_transaction_closing_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  balance_transaction_id bigint NOT NULL,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  reason text NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT balance_transaction_closings_pkey PRIMARY KEY (balance_transaction_closing_id),
  CONSTRAINT balance_transaction_closed_once UNIQUE (balance_transaction_id, amount),
  CONSTRAINT balance_transaction_closing_of_something CHECK (amount <> 0::numeric),
  CONSTRAINT balance_transaction_closing_has_reason CHECK (btrim(reason) <> ''),
  CONSTRAINT balance_transaction_closings_fact_positive CHECK (log_no > 0),
  CONSTRAINT balance_transaction_closings_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT balance_transaction_closing_in_its_currency FOREIGN KEY (balance_transaction_id, currency) REFERENCES balance_transactions(balance_transaction_id, currency)
);
CREATE UNIQUE INDEX balance_transaction_closings_fact ON balance_transaction_closings USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON balance_transaction_closings FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER balance_transaction_closings_kept AFTER INSERT ON balance_transaction_closings REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION keep_unallocated(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON balance_transaction_closings FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON balance_transaction_closings FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON balance_transaction_closings TO reckoner_app;
GRANT SELECT ON SEQUENCE balance_transaction_closings_balance_transaction_closing_id_seq TO reckoner_app;

CREATE FUNCTION keep_unallocated()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  WITH rest AS (
    SELECT t.balance_transaction_id, t.net - coalesce(sum(s.settled_amount), 0) AS unexplained
    FROM balance_transactions t LEFT JOIN share_allocations s USING (balance_transaction_id)
    WHERE t.balance_transaction_id IN (SELECT balance_transaction_id FROM added)
    GROUP BY t.balance_transaction_id
  ), allocated AS (
    DELETE FROM unallocated_balance_transactions u USING rest r
    WHERE r.balance_transaction_id = u.balance_transaction_id AND r.unexplained = 0
  )
  INSERT INTO unallocated_balance_transactions (balance_transaction_id, closed)
  SELECT r.balance_transaction_id, EXISTS (
           SELECT FROM balance_transaction_closings c
           WHERE c.balance_transaction_id = r.balance_transaction_id AND c.amount = r.unexplained)
  FROM rest r WHERE r.unexplained <> 0
  ON CONFLICT (balance_transaction_id) DO UPDATE SET closed = excluded.closed;
  RETURN NULL;
END
$function$;

CREATE VIEW unexplained_balance_transactions AS
 WITH rest AS NOT MATERIALIZED (
         SELECT t.balance_transaction_id, t.account, t.id, t.reported_by, t.type, t.kind, t.currency, t.amount, t.fee,
            t.net, t.source_currency, t.source_amount, t.exchange_rate, t.share_currency, t.share_amount,
            t.occurred_at, t.payment, t.of_payment, t.transfer, t.quote_id, t.requote_id, t.enrollment_id, t.payload,
            t.recorded_at, t.event_id, t.log_no, t.closed, t.net AS unexplained, t.share_currency AS rest_currency,
            t.share_amount AS rest_amount
           FROM unattributed_balance_transactions t
        UNION ALL
         SELECT t.balance_transaction_id, t.account, t.id, t.reported_by, t.type, t.kind, t.currency, t.amount, t.fee,
            t.net, t.source_currency, t.source_amount, t.exchange_rate, t.share_currency, t.share_amount,
            t.occurred_at, t.payment, t.of_payment, t.transfer, t.quote_id, t.requote_id, t.enrollment_id, t.payload,
            t.recorded_at, t.event_id, t.log_no, unallocated_balance_transactions.closed, t.net - s.settled,
            t.currency, t.net - s.settled
           FROM unallocated_balance_transactions
             JOIN balance_transactions t USING (balance_transaction_id)
             CROSS JOIN LATERAL ( SELECT sum(s_1.settled_amount) AS settled
                   FROM share_allocations s_1
                  WHERE s_1.balance_transaction_id = t.balance_transaction_id) s
          WHERE t.net <> s.settled
        )
 SELECT balance_transaction_id, account, id, reported_by, type, kind, currency, amount, fee, net, source_currency,
    source_amount, exchange_rate, share_currency, share_amount, occurred_at, payment, of_payment, transfer, quote_id,
    requote_id, enrollment_id, payload, recorded_at, event_id, log_no, closed, unexplained, rest_currency, rest_amount,
        CASE
            WHEN closed THEN 'closed'
            WHEN ( SELECT sum(own.rest_amount) = 0::numeric AND min(own.rest_currency) = max(own.rest_currency)
               FROM rest own
              WHERE own.account = r.account AND COALESCE(own.of_payment, own.payment, own.id) = COALESCE(r.of_payment, r.payment, r.id)) THEN 'returned'
            ELSE NULL::text
        END AS ended
   FROM rest r;
GRANT SELECT ON unexplained_balance_transactions TO reckoner_app;

CREATE FUNCTION shares_taken_back(of_partner text, of_quote text)
 RETURNS numeric
 LANGUAGE sql
 STABLE
RETURN (SELECT COALESCE(GREATEST((- sum(r.amount)), (0)::numeric), (0)::numeric) AS "coalesce" FROM (share_allocations r JOIN balance_transactions m USING (balance_transaction_id)) WHERE ((r.partner_id = (shares_taken_back.of_partner COLLATE "C")) AND (r.quote_id = (shares_taken_back.of_quote COLLATE "C")) AND (m.kind = ANY (ARRAY['reversal', 'dispute']))));
GRANT EXECUTE ON FUNCTION shares_taken_back TO reckoner_app;

CREATE TABLE reversal_evidence (
  share_allocation_id bigint NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  posted_month text COLLATE "C" NOT NULL,
  entry_id bigint NOT NULL,
  price_from text NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT reversal_evidence_pkey PRIMARY KEY (share_allocation_id),
  CONSTRAINT reversal_evidence_once UNIQUE (partner_id, posted_month, entry_id),
  CONSTRAINT reversal_price_from_known CHECK (price_from = ANY (ARRAY['whole', 'settlement_file', 'finance'])),
  CONSTRAINT reversal_evidence_fact_positive CHECK (log_no > 0),
  CONSTRAINT reversal_evidence_share_allocation_id_fkey FOREIGN KEY (share_allocation_id) REFERENCES share_allocations(share_allocation_id),
  CONSTRAINT reversal_evidence_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT reversal_evidence_of_a_row FOREIGN KEY (partner_id, posted_month, entry_id) REFERENCES ledger_rows(partner_id, posted_month, entry_id)
);
CREATE UNIQUE INDEX reversal_evidence_fact ON reversal_evidence USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON reversal_evidence FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON reversal_evidence FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON reversal_evidence FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON reversal_evidence TO reckoner_app;

CREATE TABLE missing_shares (
  document_id bigint NOT NULL,
  partner_id text COLLATE "C" NOT NULL,
  month billing_month NOT NULL,
  currency text COLLATE "C" NOT NULL,
  arrangement text NOT NULL,
  quote_id text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT missing_shares_pkey PRIMARY KEY (document_id, quote_id),
  CONSTRAINT missing_share_was_to_be_routed CHECK (arrangement = 'connected_account'),
  CONSTRAINT missing_share_positive CHECK (amount > 0::numeric),
  CONSTRAINT missing_shares_fact_positive CHECK (log_no > 0),
  CONSTRAINT missing_share_on_its_partners_invoice FOREIGN KEY (document_id, partner_id, month, currency, arrangement) REFERENCES documents(document_id, partner_id, month, currency, arrangement)
);
CREATE INDEX missing_shares_of_quote ON missing_shares USING btree (partner_id, quote_id);
CREATE UNIQUE INDEX missing_shares_fact ON missing_shares USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON missing_shares FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON missing_shares FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON missing_shares FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON missing_shares TO reckoner_app;

CREATE VIEW live_missing_shares AS
 SELECT document_id, partner_id, month, currency, arrangement, quote_id, amount, log_no
   FROM missing_shares b
  WHERE NOT (EXISTS ( SELECT
           FROM voids v
          WHERE v.document_id = b.document_id));
GRANT SELECT ON live_missing_shares TO reckoner_app;

CREATE TABLE share_payments (
  share_allocation_id bigint NOT NULL,
  payment_id bigint NOT NULL,
  payment_reversal_id bigint,
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT share_payments_pkey PRIMARY KEY (share_allocation_id, payment_id),
  CONSTRAINT share_payment_of_something CHECK (amount <> 0::numeric),
  CONSTRAINT share_payment_below_zero_takes_back CHECK (amount > 0::numeric OR payment_reversal_id IS NOT NULL),
  CONSTRAINT share_payments_fact_positive CHECK (log_no > 0),
  CONSTRAINT share_payments_payment_reversal_id_fkey FOREIGN KEY (payment_reversal_id) REFERENCES payment_reversals(payment_reversal_id),
  CONSTRAINT share_payments_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT share_payment_of_a_share FOREIGN KEY (share_allocation_id, currency) REFERENCES share_allocations(share_allocation_id, currency),
  CONSTRAINT share_payment_in_its_currency FOREIGN KEY (payment_id, currency) REFERENCES payments(payment_id, currency)
);
CREATE INDEX share_payments_of_payment ON share_payments USING btree (payment_id);
CREATE UNIQUE INDEX share_payments_fact ON share_payments USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON share_payments FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON share_payments FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON share_payments FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON share_payments TO reckoner_app;

CREATE TABLE payout_contents (
  balance_transaction_id bigint NOT NULL,
  payout_transaction_id bigint NOT NULL,
  account text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT payout_contents_pkey PRIMARY KEY (balance_transaction_id),
  CONSTRAINT payout_content_not_itself CHECK (balance_transaction_id <> payout_transaction_id),
  CONSTRAINT payout_contents_fact_positive CHECK (log_no > 0),
  CONSTRAINT payout_contents_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT payout_content_of_its_account FOREIGN KEY (balance_transaction_id, account, currency) REFERENCES balance_transactions(balance_transaction_id, account, currency),
  CONSTRAINT payout_content_of_a_payout FOREIGN KEY (payout_transaction_id, account, currency) REFERENCES balance_transactions(balance_transaction_id, account, currency)
);
CREATE INDEX payout_contents_of_payout ON payout_contents USING btree (payout_transaction_id);
CREATE UNIQUE INDEX payout_contents_fact ON payout_contents USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON payout_contents FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON payout_contents FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON payout_contents FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON payout_contents TO reckoner_app;

CREATE TABLE account_payouts (
  payout_id bigint NOT NULL,
  account text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  balance_transaction_id bigint,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT account_payouts_pkey PRIMARY KEY (payout_id),
  CONSTRAINT account_payout_arrives_once UNIQUE (balance_transaction_id),
  CONSTRAINT account_payouts_fact_positive CHECK (log_no > 0),
  CONSTRAINT account_payouts_payout_id_fkey FOREIGN KEY (payout_id) REFERENCES payout_settlements(payout_id),
  CONSTRAINT account_payouts_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT account_payout_of_its_account FOREIGN KEY (balance_transaction_id, account, currency) REFERENCES balance_transactions(balance_transaction_id, account, currency)
);
CREATE UNIQUE INDEX account_payouts_fact ON account_payouts USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON account_payouts FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON account_payouts FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON account_payouts FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON account_payouts TO reckoner_app;

CREATE VIEW expected_account_payouts AS
 SELECT m.balance_transaction_id, m.account, m.payment AS payout, m.currency, - m.net AS amount, m.occurred_at,
    ((m.payload -> 'source') ->> 'automatic') = 'false' AS is_manual, c.fees,
    COALESCE(c.has_unknown, false) AS has_unknown
   FROM balance_transactions m
     LEFT JOIN LATERAL ( SELECT GREATEST(0::numeric, COALESCE(- sum(p.net) FILTER (WHERE p.kind = 'other' AND p.type !~~ 'payout%'), 0::numeric)) AS fees,
            bool_or(p.kind = 'other' AND p.type !~~ 'payout%' AND p.net > 0::numeric) AS has_unknown
           FROM payout_contents c_1
             JOIN balance_transactions p USING (balance_transaction_id)
          WHERE c_1.payout_transaction_id = m.balance_transaction_id
         HAVING count(*) > 0) c ON true
  WHERE m.type = 'payout' AND NOT (EXISTS ( SELECT
           FROM account_payouts a
          WHERE a.balance_transaction_id = m.balance_transaction_id)) AND NOT (EXISTS ( SELECT
           FROM balance_transactions f
          WHERE f.account = m.account AND f.payment = m.payment AND (f.type = ANY (ARRAY['payout_failure', 'payout_cancel']))));
GRANT SELECT ON expected_account_payouts TO reckoner_app;

CREATE VIEW arrived_account_payouts AS
 SELECT a.payout_id, a.account, m.payment AS payout
   FROM account_payouts a
     LEFT JOIN balance_transactions m USING (balance_transaction_id);
GRANT SELECT ON arrived_account_payouts TO reckoner_app;

CREATE FUNCTION record_account_payouts(payouts json, at timestamp with time zone, event bigint)
 RETURNS void
 LANGUAGE sql
AS $function$
  INSERT INTO account_payouts (payout_id, account, currency, balance_transaction_id, recorded_at, event_id)
  SELECT payout_id, account, currency, balance_transaction_id, at, event
  FROM json_populate_recordset(NULL::account_payouts, payouts)
$function$;
GRANT EXECUTE ON FUNCTION record_account_payouts TO reckoner_app;

CREATE VIEW billed_rows AS
 SELECT d.document_id, d.number, d.month AS billed_month, e.kind, e.partner_id, e.quote_id, e.requote_id,
    e.reversal_id, e.enrollment_id, e.policy_id, e.currency, e.accepted_at, e.spot_price, e.partner_cut,
    e.invoice_amount, e.order_reference, e.cover_from, e.cover_to, e.entry_id, e.recorded_at
   FROM documents d
     JOIN closed_months m ON m.month::text = d.month::text
     JOIN ledger_rows e ON e.partner_id = d.partner_id AND e.currency = d.currency AND e.arrangement = d.arrangement AND e.posted_month > COALESCE(m.previous::text, '') AND e.posted_month <= m.month::text
  WHERE d.purpose = 'month'
UNION ALL
 SELECT d.document_id, d.number, e.posted_month AS billed_month, e.kind, e.partner_id, e.quote_id,
    NULL::text AS requote_id, NULL::text AS reversal_id, e.enrollment_id, e.policy_id, e.currency, e.accepted_at,
    NULL::numeric AS spot_price, NULL::numeric AS partner_cut, b.amount AS invoice_amount, e.order_reference,
    e.cover_from, e.cover_to, e.entry_id, e.recorded_at
   FROM documents d
     JOIN missing_shares b ON b.document_id = d.document_id
     JOIN ledger_rows e ON e.partner_id = b.partner_id AND e.kind = 'quote_accepted' AND own_id(e.*)::text = b.quote_id
  WHERE d.purpose = 'missing_shares';
GRANT SELECT ON billed_rows TO reckoner_app;

CREATE FUNCTION csv_cell(value text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
AS $function$
  SELECT CASE WHEN cell ~ '[,"\r\n]' THEN '"' || replace(cell, '"', '""') || '"' ELSE cell END
  FROM (SELECT CASE WHEN value ~ '^([''\t\r\n]|[ \t\r\n]*[=+@＝＋－＠-])' AND value !~ '^-?\d+(\.\d+)?$'
                    THEN '''' || value ELSE value END AS cell) AS guarded
$function$;
GRANT EXECUTE ON FUNCTION csv_cell TO reckoner_app;

-- 012_journal ---------------------------------------------------------------------------------------------------------

CREATE VIEW document_amounts AS
 SELECT d.document_id, d.log_no, d.entry_on, d.issued_on, d.partner_id, d.currency, d.number,
        CASE d.document
            WHEN 'invoice' THEN 'assets:receivable:billed'
            ELSE 'liabilities:partner-credit'
        END AS account,
        CASE d.purpose
            WHEN 'adjustment' THEN 'income:adjustments'
            WHEN 'missing_shares' THEN 'assets:receivable:processor'
            WHEN 'opening' THEN 'equity:opening-balances'
            ELSE 'assets:receivable:unbilled'
        END AS billed,
        CASE
            WHEN d.purpose <> 'opening' THEN d.partner_id
            ELSE NULL::text
        END AS billed_detail,
    document_sign(d.document)::numeric * d.invoice_amount AS amount
   FROM documents d
  WHERE d.document <> 'statement' AND d.invoice_amount <> 0::numeric
UNION ALL
 SELECT d.document_id, d.log_no, d.entry_on, d.issued_on, d.partner_id, d.currency, d.number,
        CASE d.document
            WHEN 'invoice' THEN 'assets:receivable:billed'
            ELSE 'liabilities:partner-credit'
        END AS account,
    'liabilities:tax' AS billed,
    concat_ws(':', NULLIF(t.country, ''), t.category, trim_scale(t.rate)::text) AS billed_detail,
    document_sign(d.document)::numeric * t.tax AS amount
   FROM document_taxes t
     JOIN documents d USING (document_id)
  WHERE t.tax <> 0::numeric;
GRANT SELECT ON document_amounts TO reckoner_app;

CREATE VIEW journal_entries AS
 SELECT 'document_issued' AS fact, d.document_id AS log_no, d.entry_on, d.issued_on AS dated_on,
        CASE
            WHEN d.amount > 0::numeric THEN d.account
            ELSE d.billed
        END AS debit,
        CASE
            WHEN d.amount > 0::numeric THEN d.partner_id
            ELSE d.billed_detail
        END AS debit_detail,
    d.partner_id AS debit_partner,
        CASE
            WHEN d.amount > 0::numeric THEN d.billed
            ELSE d.account
        END AS credit,
        CASE
            WHEN d.amount > 0::numeric THEN d.billed_detail
            ELSE d.partner_id
        END AS credit_detail,
    d.partner_id AS credit_partner, d.currency, abs(d.amount) AS amount, d.number AS document, NULL::text AS reference,
    d.log_no AS recorded
   FROM document_amounts d
UNION ALL
 SELECT 'document_voided' AS fact, d.document_id AS log_no, v.entry_on, v.voided_on AS dated_on,
        CASE
            WHEN d.amount > 0::numeric THEN d.billed
            ELSE d.account
        END AS debit,
        CASE
            WHEN d.amount > 0::numeric THEN d.billed_detail
            ELSE d.partner_id
        END AS debit_detail,
    d.partner_id AS debit_partner,
        CASE
            WHEN d.amount > 0::numeric THEN d.account
            ELSE d.billed
        END AS credit,
        CASE
            WHEN d.amount > 0::numeric THEN d.partner_id
            ELSE d.billed_detail
        END AS credit_detail,
    d.partner_id AS credit_partner, d.currency, abs(d.amount) AS amount, d.number AS document, NULL::text AS reference,
    v.log_no AS recorded
   FROM voids v
     JOIN document_amounts d ON d.document_id = v.document_id
UNION ALL
 SELECT c.fact, c.id AS log_no, c.entry_on, c.dated_on, c.debit,
        CASE
            WHEN c.debit !~~ 'expenses:%' THEN d.partner_id
            ELSE NULL::text
        END AS debit_detail,
    d.partner_id AS debit_partner, c.credit, COALESCE(c.bank_account, d.partner_id) AS credit_detail,
    d.partner_id AS credit_partner, d.currency, - c.amount AS amount, d.number AS document,
    COALESCE(c.reference, p.reference, n.number) AS reference, c.recorded
   FROM balance_changes c
     JOIN documents d ON d.document_id = c.document_id
     LEFT JOIN payments p ON p.payment_id = c.payment_id
     LEFT JOIN documents n ON n.document_id = c.credit_note_id
  WHERE c.debit IS NOT NULL
UNION ALL
 SELECT c.undone_by AS fact, c.id AS log_no, c.undone_on AS entry_on, c.undone_dated_on AS dated_on, c.credit AS debit,
    COALESCE(c.returned_to, c.bank_account, d.partner_id) AS debit_detail, d.partner_id AS debit_partner,
    c.debit AS credit,
        CASE
            WHEN c.debit !~~ 'expenses:%' THEN d.partner_id
            ELSE NULL::text
        END AS credit_detail,
    d.partner_id AS credit_partner, d.currency, - c.amount AS amount, d.number AS document,
    COALESCE(c.reference, p.reference, n.number) AS reference, c.undone_recorded AS recorded
   FROM balance_changes c
     JOIN documents d ON d.document_id = c.document_id
     LEFT JOIN payments p ON p.payment_id = c.payment_id
     LEFT JOIN documents n ON n.document_id = c.credit_note_id
  WHERE c.debit IS NOT NULL AND c.undone
UNION ALL
 SELECT 'payment_received' AS fact, p.payment_id AS log_no, p.entry_on, p.received_on AS dated_on,
        CASE
            WHEN p.source = 'opening' THEN 'equity:opening-balances'
            WHEN p.method = 'link' THEN 'assets:processor'
            ELSE 'assets:bank'
        END AS debit,
        CASE
            WHEN p.source = 'opening' OR p.method = 'link' THEN NULL::text
            ELSE p.account
        END AS debit_detail,
    p.partner_id AS debit_partner, 'liabilities:unapplied' AS credit, p.partner_id AS credit_detail,
    p.partner_id AS credit_partner, p.currency, p.amount, NULL::text AS document, p.reference, p.log_no AS recorded
   FROM payments p
UNION ALL
 SELECT 'payment_assigned' AS fact, g.payment_assignment_id AS log_no, g.entry_on, g.assigned_on AS dated_on,
    'liabilities:unapplied' AS debit, g.from_partner_id AS debit_detail, g.from_partner_id AS debit_partner,
    'liabilities:unapplied' AS credit, g.partner_id AS credit_detail, g.partner_id AS credit_partner, p.currency,
    g.amount, NULL::text AS document, p.reference, g.log_no AS recorded
   FROM payment_assignments g
     JOIN payments p USING (payment_id)
  WHERE g.amount > 0::numeric
UNION ALL
 SELECT 'payment_reversed' AS fact, r.payment_reversal_id AS log_no, r.entry_on, r.reversed_on AS dated_on,
    'liabilities:unapplied' AS debit, r.partner_id AS debit_detail, r.partner_id AS debit_partner,
        CASE
            WHEN r.kind = 'other' THEN r.booked_to
            WHEN p.source = 'opening' AND (r.kind = ANY (ARRAY['mistake', 'duplicate'])) THEN 'equity:opening-balances'
            WHEN p.method = 'link' THEN 'assets:processor'
            ELSE 'assets:bank'
        END AS credit,
        CASE
            WHEN r.kind = 'other' OR p.method = 'link' THEN NULL::text
            WHEN p.source = 'opening' AND (r.kind = ANY (ARRAY['mistake', 'duplicate'])) THEN NULL::text
            ELSE p.account
        END AS credit_detail,
    r.partner_id AS credit_partner, r.currency, r.amount, NULL::text AS document, p.reference, r.log_no AS recorded
   FROM payment_reversals r
     JOIN payments p USING (payment_id)
UNION ALL
 SELECT 'payment_reinstated' AS fact, r.payment_reversal_id AS log_no, i.entry_on, i.reinstated_on AS dated_on,
        CASE p.method
            WHEN 'link' THEN 'assets:processor'
            ELSE 'assets:bank'
        END AS debit,
        CASE p.method
            WHEN 'link' THEN NULL::text
            ELSE COALESCE(m.account, p.account)
        END AS debit_detail,
    i.partner_id AS debit_partner, 'liabilities:unapplied' AS credit, i.partner_id AS credit_detail,
    i.partner_id AS credit_partner, r.currency, r.amount, NULL::text AS document, p.reference, i.log_no AS recorded
   FROM payment_reinstatements i
     JOIN payment_reversals r USING (payment_reversal_id)
     JOIN payments p USING (payment_id)
     LEFT JOIN refund_matches m USING (payment_reversal_id)
UNION ALL
 SELECT 'payout_received' AS fact, o.payout_id AS log_no, o.entry_on, o.received_on AS dated_on,
    'assets:bank' AS debit, o.account AS debit_detail, NULL::text AS debit_partner,
    'assets:processor' AS credit, NULL::text AS credit_detail, NULL::text AS credit_partner, o.currency,
    o.amount, NULL::text AS document, l.bank_reference AS reference, o.log_no AS recorded
   FROM payouts o
     JOIN bank_lines l USING (bank_line_id)
UNION ALL
 SELECT 'payout_settled' AS fact, t.payout_id AS log_no, t.entry_on, t.entry_on AS dated_on,
    'expenses:processor-fees' AS debit, NULL::text AS debit_detail, NULL::text AS debit_partner,
    'assets:processor' AS credit, NULL::text AS credit_detail, NULL::text AS credit_partner, o.currency,
    t.fees AS amount, NULL::text AS document, l.bank_reference AS reference, t.log_no AS recorded
   FROM payout_settlements t
     JOIN payouts o USING (payout_id)
     JOIN bank_lines l USING (bank_line_id)
  WHERE t.fees > 0::numeric
UNION ALL
 SELECT 'refund_matched' AS fact, m.refund_match_id AS log_no, m.entry_on, m.paid_on AS dated_on,
    'assets:bank' AS debit, COALESCE(f.account, p.account) AS debit_detail,
    COALESCE(f.partner_id, r.partner_id) AS debit_partner, 'assets:bank' AS credit, m.account AS credit_detail,
    COALESCE(f.partner_id, r.partner_id) AS credit_partner, m.currency, m.amount, d.number AS document,
    COALESCE(f.reference, p.reference) AS reference, m.log_no AS recorded
   FROM refund_matches m
     LEFT JOIN credit_refunds f ON f.credit_refund_id = m.credit_refund_id
     LEFT JOIN documents d ON d.document_id = f.document_id
     LEFT JOIN payment_reversals r ON r.payment_reversal_id = m.payment_reversal_id
     LEFT JOIN payments p ON p.payment_id = r.payment_id
  WHERE m.account <> COALESCE(f.account, p.account)
UNION ALL
 SELECT 'share_received' AS fact, r.share_allocation_id AS log_no, r.entry_on, r.occurred_on AS dated_on,
    'assets:processor' AS debit, NULL::text AS debit_detail, r.partner_id AS debit_partner,
    'assets:receivable:processor' AS credit, r.partner_id AS credit_detail, r.partner_id AS credit_partner,
    r.currency, r.amount - COALESCE(p.amount, 0::numeric) AS amount, NULL::text AS document, m.id AS reference,
    r.log_no AS recorded
   FROM share_allocations r
     JOIN balance_transactions m USING (balance_transaction_id)
     LEFT JOIN ( SELECT share_payments.share_allocation_id, sum(share_payments.amount) AS amount
           FROM share_payments
          GROUP BY share_payments.share_allocation_id) p USING (share_allocation_id)
  WHERE r.amount > 0::numeric AND r.amount <> COALESCE(p.amount, 0::numeric)
UNION ALL
 SELECT 'share_reversed' AS fact, r.share_allocation_id AS log_no, r.entry_on, r.occurred_on AS dated_on,
    'assets:receivable:processor' AS debit, r.partner_id AS debit_detail, r.partner_id AS debit_partner,
    'assets:processor' AS credit, NULL::text AS credit_detail, r.partner_id AS credit_partner, r.currency,
    COALESCE(p.amount, 0::numeric) - r.amount AS amount, NULL::text AS document, m.id AS reference,
    r.log_no AS recorded
   FROM share_allocations r
     JOIN balance_transactions m USING (balance_transaction_id)
     LEFT JOIN ( SELECT share_payments.share_allocation_id, sum(share_payments.amount) AS amount
           FROM share_payments
          GROUP BY share_payments.share_allocation_id) p USING (share_allocation_id)
  WHERE r.amount < 0::numeric AND r.amount <> COALESCE(p.amount, 0::numeric)
UNION ALL
 SELECT 'share_converted' AS fact, r.share_allocation_id AS log_no, r.entry_on, r.occurred_on AS dated_on,
        CASE
            WHEN r.amount > 0::numeric THEN 'equity:conversion'
            ELSE 'assets:processor'
        END AS debit,
    NULL::text AS debit_detail, r.partner_id AS debit_partner,
        CASE
            WHEN r.amount > 0::numeric THEN 'assets:processor'
            ELSE 'equity:conversion'
        END AS credit,
    NULL::text AS credit_detail, r.partner_id AS credit_partner, r.currency, abs(r.amount) AS amount,
    NULL::text AS document, m.id AS reference, r.log_no AS recorded
   FROM share_allocations r
     JOIN balance_transactions m USING (balance_transaction_id)
  WHERE r.currency <> r.settled_currency
UNION ALL
 SELECT 'share_converted' AS fact, r.share_allocation_id AS log_no, r.entry_on, r.occurred_on AS dated_on,
        CASE
            WHEN r.amount > 0::numeric THEN 'assets:processor'
            ELSE 'equity:conversion'
        END AS debit,
    NULL::text AS debit_detail, r.partner_id AS debit_partner,
        CASE
            WHEN r.amount > 0::numeric THEN 'equity:conversion'
            ELSE 'assets:processor'
        END AS credit,
    NULL::text AS credit_detail, r.partner_id AS credit_partner, r.settled_currency AS currency,
    abs(r.settled_amount) AS amount, NULL::text AS document, m.id AS reference, r.log_no AS recorded
   FROM share_allocations r
     JOIN balance_transactions m USING (balance_transaction_id)
  WHERE r.currency <> r.settled_currency AND r.settled_amount <> 0::numeric;
GRANT SELECT ON journal_entries TO reckoner_app;

CREATE VIEW dated_facts AS
 SELECT balance_changes.fact, balance_changes.id, balance_changes.recorded AS log_no, balance_changes.dated_on,
    balance_changes.entry_on
   FROM balance_changes
  WHERE balance_changes.debit IS NOT NULL
UNION ALL
 SELECT balance_changes.undone_by AS fact, balance_changes.id, balance_changes.undone_recorded AS log_no,
    balance_changes.undone_dated_on AS dated_on, balance_changes.undone_on AS entry_on
   FROM balance_changes
  WHERE balance_changes.debit IS NOT NULL AND balance_changes.undone
UNION ALL
 SELECT 'document_issued' AS fact, documents.document_id AS id, documents.log_no,
    documents.issued_on AS dated_on, documents.entry_on
   FROM documents
UNION ALL
 SELECT 'document_voided' AS fact, voids.document_id AS id, voids.log_no, voids.voided_on AS dated_on,
    voids.entry_on
   FROM voids
UNION ALL
 SELECT 'payment_received' AS fact, payments.payment_id AS id, payments.log_no, payments.received_on AS dated_on,
    payments.entry_on
   FROM payments
UNION ALL
 SELECT 'payment_assigned' AS fact, payment_assignments.payment_assignment_id AS id, payment_assignments.log_no,
    payment_assignments.assigned_on AS dated_on, payment_assignments.entry_on
   FROM payment_assignments
UNION ALL
 SELECT 'payment_reversed' AS fact, payment_reversals.payment_reversal_id AS id, payment_reversals.log_no,
    payment_reversals.reversed_on AS dated_on, payment_reversals.entry_on
   FROM payment_reversals
UNION ALL
 SELECT 'payment_reinstated' AS fact, payment_reinstatements.payment_reversal_id AS id,
    payment_reinstatements.log_no, payment_reinstatements.reinstated_on AS dated_on, payment_reinstatements.entry_on
   FROM payment_reinstatements
UNION ALL
 SELECT 'payout_received' AS fact, payouts.payout_id AS id, payouts.log_no, payouts.received_on AS dated_on,
    payouts.entry_on
   FROM payouts
UNION ALL
 SELECT 'payout_settled' AS fact, payout_settlements.payout_id AS id, payout_settlements.log_no,
    payout_settlements.entry_on AS dated_on, payout_settlements.entry_on
   FROM payout_settlements
UNION ALL
 SELECT 'refund_matched' AS fact, refund_matches.refund_match_id AS id, refund_matches.log_no,
    refund_matches.paid_on AS dated_on, refund_matches.entry_on
   FROM refund_matches
UNION ALL
 SELECT 'share_received' AS fact, share_allocations.share_allocation_id AS id, share_allocations.log_no,
    share_allocations.occurred_on AS dated_on, share_allocations.entry_on
   FROM share_allocations;
GRANT SELECT ON dated_facts TO reckoner_app;

CREATE VIEW journal_of_facts AS
 SELECT to_char(j.entry_on::timestamp with time zone, 'YYYY-MM') COLLATE "C" AS month, j.entry_on, j.dated_on,
    j.fact, j.log_no, p.control, p.control || COALESCE(':' || NULLIF(p.detail, ''), '') AS account,
    p.partner_id, NULL::text AS policy_id, j.currency, p.amount, j.document, j.reference
   FROM journal_entries j
     CROSS JOIN LATERAL ( VALUES (j.debit,j.debit_detail,j.debit_partner,j.amount), (j.credit,j.credit_detail,j.credit_partner,- j.amount)) p(control, detail, partner_id, amount);
GRANT SELECT ON journal_of_facts TO reckoner_app;

CREATE FUNCTION row_postings(text, text, text, numeric, numeric, numeric)
 RETURNS TABLE(control text, detail text, amount numeric)
 LANGUAGE sql
 STABLE
AS $function$
  SELECT p.control, p.detail, p.amount
  FROM (VALUES
    (CASE $1 WHEN 'invoicing' THEN 'assets:receivable:unbilled' ELSE 'assets:receivable:processor' END, $2, $6),
    ('expenses:partner-cut', $2, $5),
    ('income:sales', $3, -CASE WHEN (SELECT we_are FROM presentation) = 'principal' THEN $4 ELSE $6 END)
  ) AS p (control, detail, amount)
  WHERE p.control <> 'expenses:partner-cut' OR (SELECT we_are FROM presentation) = 'principal'
$function$;
GRANT EXECUTE ON FUNCTION row_postings TO reckoner_app;

CREATE VIEW journal_of_rows AS
 SELECT e.posted_month AS month,
        CASE
            WHEN e.posted_month > e.month THEN (e.posted_month || '-01')::date
            ELSE GREATEST(day.dated_on, (e.month || '-01')::date)
        END AS entry_on,
    day.dated_on, e.kind AS fact, e.entry_id AS log_no, p.control,
    p.control || COALESCE(':' || NULLIF(p.detail, ''), '') AS account, e.partner_id, e.policy_id,
    e.currency, p.amount, NULL::text AS document, own_id(e.*) AS reference
   FROM ledger_rows e
     CROSS JOIN LATERAL ( SELECT (e.accepted_at AT TIME ZONE e.time_zone)::date AS dated_on) day
     CROSS JOIN LATERAL row_postings(e.arrangement, e.partner_id, e.policy_id, e.spot_price, e.partner_cut, e.invoice_amount) p(control, detail, amount)
  WHERE p.amount <> 0::numeric;
GRANT SELECT ON journal_of_rows TO reckoner_app;

CREATE VIEW journal AS
 SELECT journal_of_rows.month, journal_of_rows.entry_on, journal_of_rows.dated_on, journal_of_rows.fact,
    journal_of_rows.log_no, journal_of_rows.control, journal_of_rows.account, journal_of_rows.partner_id,
    journal_of_rows.policy_id, journal_of_rows.currency, journal_of_rows.amount, journal_of_rows.document,
    journal_of_rows.reference
   FROM journal_of_rows
UNION ALL
 SELECT journal_of_facts.month, journal_of_facts.entry_on, journal_of_facts.dated_on, journal_of_facts.fact,
    journal_of_facts.log_no, journal_of_facts.control, journal_of_facts.account, journal_of_facts.partner_id,
    journal_of_facts.policy_id, journal_of_facts.currency, journal_of_facts.amount, journal_of_facts.document,
    journal_of_facts.reference
   FROM journal_of_facts;
GRANT SELECT ON journal TO reckoner_app;

CREATE VIEW journal_months AS
 SELECT e.month, p.control, p.control || COALESCE(':' || NULLIF(p.detail, ''), '') AS account,
    e.partner_id, e.currency, sum(p.amount) AS amount
   FROM ( SELECT ledger_rows.posted_month AS month, ledger_rows.arrangement, ledger_rows.partner_id,
            ledger_rows.policy_id, ledger_rows.currency, sum(ledger_rows.spot_price) AS spot_price,
            sum(ledger_rows.partner_cut) AS partner_cut, sum(ledger_rows.invoice_amount) AS invoice_amount
           FROM ledger_rows
          GROUP BY ledger_rows.posted_month, ledger_rows.arrangement, ledger_rows.partner_id, ledger_rows.policy_id, ledger_rows.currency) e
     CROSS JOIN LATERAL row_postings(e.arrangement, e.partner_id, e.policy_id, e.spot_price, e.partner_cut, e.invoice_amount) p(control, detail, amount)
  GROUP BY e.month, p.control, p.detail, e.partner_id, e.currency
UNION ALL
 SELECT journal_of_facts.month, journal_of_facts.control, journal_of_facts.account, journal_of_facts.partner_id,
    journal_of_facts.currency, sum(journal_of_facts.amount) AS amount
   FROM journal_of_facts
  GROUP BY journal_of_facts.month, journal_of_facts.control, journal_of_facts.account, journal_of_facts.partner_id, journal_of_facts.currency;
GRANT SELECT ON journal_months TO reckoner_app;

CREATE VIEW journal_of_row_months AS
 SELECT e.month, p.control, p.control || COALESCE(':' || NULLIF(p.detail, ''), '') AS account,
    e.currency, p.amount
   FROM ( SELECT d.month::text AS month, d.arrangement, d.partner_id, l.policy_id, d.currency,
            sum(s.sign::numeric * l.spot_price) AS spot_price, sum(s.sign::numeric * l.partner_cut) AS partner_cut,
            sum(s.sign::numeric * l.invoice_amount) AS invoice_amount
           FROM documents d
             JOIN document_lines l USING (document_id)
             CROSS JOIN LATERAL ( SELECT document_sign(d.document) AS sign) s
          WHERE d.purpose = 'month' AND d.replaces IS NULL
          GROUP BY (d.month::text), d.arrangement, d.partner_id, l.policy_id, d.currency
        UNION ALL
         SELECT ledger_rows.posted_month, ledger_rows.arrangement, ledger_rows.partner_id, ledger_rows.policy_id,
            ledger_rows.currency, sum(ledger_rows.spot_price) AS sum, sum(ledger_rows.partner_cut) AS sum,
            sum(ledger_rows.invoice_amount) AS sum
           FROM ledger_rows
          WHERE ledger_rows.posted_month > COALESCE(( SELECT max(closed_months.month::text) AS max
                   FROM closed_months), '')
          GROUP BY ledger_rows.posted_month, ledger_rows.arrangement, ledger_rows.partner_id, ledger_rows.policy_id, ledger_rows.currency) e
     CROSS JOIN LATERAL row_postings(e.arrangement, e.partner_id, e.policy_id, e.spot_price, e.partner_cut, e.invoice_amount) p(control, detail, amount)
  WHERE p.amount <> 0::numeric;
GRANT SELECT ON journal_of_row_months TO reckoner_app;

CREATE TABLE audit_tasks (
  task_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  kind text NOT NULL,
  input jsonb NOT NULL,
  asked_by bigint,
  asked_at timestamp with time zone NOT NULL,
  finished_at timestamp with time zone,
  host text NOT NULL,
  seen_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  progress bigint NOT NULL DEFAULT 0,
  result jsonb,
  problem text,
  CONSTRAINT audit_tasks_pkey PRIMARY KEY (task_id),
  CONSTRAINT audit_task_kind_known CHECK (kind = ANY (ARRAY['verify', 'export'])),
  CONSTRAINT audit_tasks_asked_by_fkey FOREIGN KEY (asked_by) REFERENCES users(user_id)
);
CREATE UNIQUE INDEX audit_task_one_at_once ON audit_tasks USING btree (kind) WHERE finished_at IS NULL;
CREATE INDEX audit_tasks_latest ON audit_tasks USING btree (kind, task_id DESC);
GRANT DELETE, INSERT, SELECT, UPDATE ON audit_tasks TO reckoner_app;
GRANT SELECT ON SEQUENCE audit_tasks_task_id_seq TO reckoner_app;

-- 013_partner_events --------------------------------------------------------------------------------------------------

CREATE FUNCTION row_event_type(kind text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE kind WHEN 'quote_accepted' THEN 'quote.accepted' WHEN 'requote_accepted' THEN 'requote.accepted' ELSE 'reversal.recorded' END;
GRANT EXECUTE ON FUNCTION row_event_type TO reckoner_app;

CREATE VIEW partner_event_facts AS
 SELECT d.log_no, d.partner_id, d.document || '.issued' AS type, d.issued_at AS recorded_at,
    jsonb_build_object('number', d.number, 'document', d.document, 'purpose', d.purpose, 'month', d.month, 'currency', d.currency, 'invoiceAmount', d.invoice_amount::text, 'credit_applied', d.credit_applied::text, 'amount_due',
        CASE d.document
            WHEN 'statement' THEN 0::numeric
            ELSE d.gross - d.credit_applied
        END::text, 'issued_on', d.issued_on, 'due_on', d.due_on, 'replaces', r.number, 'credits', c.number) ||
        CASE
            WHEN (EXISTS ( SELECT
               FROM document_taxes t
              WHERE t.document_id = d.document_id)) THEN jsonb_build_object('tax', d.tax::text, 'gross', d.gross::text)
            ELSE '{}'::jsonb
        END AS data
   FROM documents d
     LEFT JOIN documents r ON r.document_id = d.replaces
     LEFT JOIN documents c ON c.document_id = d.credits
UNION ALL
 SELECT a.log_no, d.partner_id, 'document.sent' AS type, a.ended_at AS recorded_at,
    jsonb_build_object('number', d.number, 'document', d.document, 'month', d.month, 'to', to_jsonb(a.recipients)) AS data
   FROM email_attempts a
     JOIN emails e USING (email_id)
     JOIN documents d ON d.document_id = e.document_id
  WHERE a.outcome = 'sent'
UNION ALL
 SELECT v.log_no, d.partner_id, 'document.voided' AS type, v.recorded_at,
    jsonb_build_object('number', d.number, 'document', d.document, 'month', d.month, 'voided_on', v.voided_on) AS data
   FROM voids v
     JOIN documents d USING (document_id)
UNION ALL
 SELECT a.log_no, a.partner_id, 'payment.applied' AS type, a.recorded_at,
    jsonb_build_object('number', d.number, 'currency', a.currency, 'amount', a.amount::text, 'method', p.method, 'received_on', p.received_on) AS data
   FROM payment_applications a
     JOIN documents d USING (document_id)
     JOIN payments p ON p.payment_id = a.payment_id
UNION ALL
 SELECT u.log_no, a.partner_id, 'payment.unapplied' AS type, u.recorded_at,
    jsonb_build_object('number', d.number, 'currency', a.currency, 'amount', a.amount::text, 'method', p.method, 'received_on', p.received_on) AS data
   FROM payment_unapplications u
     JOIN payment_applications a USING (payment_application_id)
     JOIN documents d ON d.document_id = a.document_id
     JOIN payments p ON p.payment_id = a.payment_id
UNION ALL
 SELECT a.log_no, d.partner_id, 'credit.applied' AS type, a.recorded_at,
    jsonb_build_object('number', d.number, 'credit_note', n.number, 'currency', d.currency, 'amount', a.amount::text) AS data
   FROM credit_applications a
     JOIN documents d ON d.document_id = a.invoice_id
     JOIN documents n ON n.document_id = a.credit_note_id
UNION ALL
 SELECT r.log_no, d.partner_id, 'credit.unapplied' AS type, r.recorded_at,
    jsonb_build_object('number', d.number, 'credit_note', n.number, 'currency', d.currency, 'amount', a.amount::text) AS data
   FROM credit_releases r
     JOIN credit_applications a USING (credit_application_id)
     JOIN documents d ON d.document_id = a.invoice_id
     JOIN documents n ON n.document_id = a.credit_note_id
UNION ALL
 SELECT f.log_no, f.partner_id, 'credit.refunded' AS type, f.recorded_at,
    jsonb_build_object('credit_note', n.number, 'currency', f.currency, 'amount', f.amount::text, 'method', f.method, 'refunded_on', f.refunded_on) AS data
   FROM credit_refunds f
     JOIN documents n USING (document_id)
UNION ALL
 SELECT b.log_no, f.partner_id, 'credit.refund_returned' AS type, b.recorded_at,
    jsonb_build_object('credit_note', n.number, 'currency', f.currency, 'amount', f.amount::text, 'method', f.method, 'refunded_on', f.refunded_on) AS data
   FROM credit_refund_returns b
     JOIN credit_refunds f USING (credit_refund_id)
     JOIN documents n ON n.document_id = f.document_id
UNION ALL
 SELECT r.log_no, h.partner_id, 'reversal.rejected' AS type, r.recorded_at,
    jsonb_build_object('reversal_id', h.reversal_id, 'request_id', h.held_row_id, 'quote_id', h.quote_id, 'requote_id', h.requote_id, 'currency', h.currency, 'spotPrice', h.spot_price::text, 'partnerCut', h.partner_cut::text, 'invoiceAmount', h.invoice_amount::text, 'reason', r.reason) AS data
   FROM held_row_decisions r
     JOIN held_rows h USING (held_row_id)
  WHERE r.decision = 'discarded' AND h.kind = 'reversal' AND h.sign !~~ 'same%'
UNION ALL
 SELECT t.log_no, d.partner_id, 'dispute.opened' AS type, t.recorded_at,
    jsonb_build_object('number', d.number, 'currency', d.currency, 'amount', t.amount::text) AS data
   FROM invoice_disputes t
     JOIN documents d USING (document_id)
UNION ALL
 SELECT c.log_no, d.partner_id, 'dispute.closed' AS type, c.recorded_at,
    jsonb_build_object('number', d.number, 'currency', d.currency, 'amount', t.amount::text) AS data
   FROM invoice_dispute_closings c
     JOIN invoice_disputes t USING (invoice_dispute_id)
     JOIN documents d ON d.document_id = c.document_id;
GRANT SELECT ON partner_event_facts TO reckoner_app;

CREATE TABLE partner_events (
  partner_id text COLLATE "C" NOT NULL,
  "position" bigint NOT NULL,
  type text COLLATE "C" NOT NULL,
  posted_month text COLLATE "C",
  entry_id bigint,
  log_no bigint,
  CONSTRAINT partner_events_pkey PRIMARY KEY (partner_id, "position"),
  CONSTRAINT partner_event_of_row_once UNIQUE (entry_id),
  CONSTRAINT partner_event_of_fact_once UNIQUE (log_no),
  CONSTRAINT partner_event_position_positive CHECK ("position" > 0),
  CONSTRAINT partner_event_of_one_thing CHECK (num_nonnulls(entry_id, log_no) = 1 AND (entry_id IS NULL) = (posted_month IS NULL))
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON partner_events FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
GRANT INSERT, SELECT ON partner_events TO reckoner_app;

CREATE TABLE published_marks (
  only_one boolean NOT NULL DEFAULT true,
  log_no bigint NOT NULL,
  CONSTRAINT published_marks_pkey PRIMARY KEY (only_one),
  CONSTRAINT published_marks_only_one CHECK (only_one)
);
GRANT INSERT, SELECT, UPDATE ON published_marks TO reckoner_app;

CREATE TABLE webhooks (
  partner_id text COLLATE "C" NOT NULL,
  url text,
  secret_version integer NOT NULL,
  key_check text NOT NULL,
  previous_until timestamp with time zone,
  acknowledged bigint NOT NULL,
  attempted_at timestamp with time zone,
  failures integer NOT NULL DEFAULT 0,
  failing_since timestamp with time zone,
  last_failure text,
  next_attempt_at timestamp with time zone,
  paused_at timestamp with time zone,
  CONSTRAINT webhooks_pkey PRIMARY KEY (partner_id),
  CONSTRAINT webhook_secret_version_positive CHECK (secret_version > 0),
  CONSTRAINT webhook_acknowledged_not_negative CHECK (acknowledged >= 0),
  CONSTRAINT webhook_failing_says_why CHECK ((failures > 0) = (failing_since IS NOT NULL) AND (failures > 0) = (last_failure IS NOT NULL)),
  CONSTRAINT webhook_paused_after_failures CHECK (paused_at IS NULL OR failures > 0),
  CONSTRAINT webhooks_partner_id_fkey FOREIGN KEY (partner_id) REFERENCES partners(partner_id)
);
GRANT INSERT, SELECT, UPDATE ON webhooks TO reckoner_app;

-- 014_approvals -------------------------------------------------------------------------------------------------------

CREATE FUNCTION approval_digest(action text, input jsonb, subject text, partner_ids text[], preview jsonb, expires_at timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
RETURN encode(sha256(convert_to((jsonb_build_array(action, input, subject, partner_ids, preview, EXTRACT(epoch FROM expires_at)))::text, 'UTF8'::name)), 'hex');
GRANT EXECUTE ON FUNCTION approval_digest TO reckoner_app;

CREATE TABLE approval_requests (
  request_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  action text NOT NULL,
  input jsonb NOT NULL,
  subject text NOT NULL,
  partner_ids text[] COLLATE "C",
  preview jsonb NOT NULL,
  preview_hash text NOT NULL,
  requested_by bigint NOT NULL,
  reason text,
  requested_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT approval_requests_pkey PRIMARY KEY (request_id),
  CONSTRAINT approval_request_of_its_user UNIQUE (request_id, requested_by),
  CONSTRAINT approval_request_action_form CHECK (action ~ '^[a-z_]+[.][a-z_]+$'),
  CONSTRAINT approval_request_names_partners CHECK (cardinality(partner_ids) > 0),
  CONSTRAINT approval_request_hash_form CHECK (preview_hash ~ '^[0-9a-f]{64}$'),
  CONSTRAINT approval_request_expires_later CHECK (expires_at > requested_at),
  CONSTRAINT approval_requests_fact_positive CHECK (log_no > 0),
  CONSTRAINT approval_requests_requested_by_fkey FOREIGN KEY (requested_by) REFERENCES users(user_id),
  CONSTRAINT approval_requests_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id)
);
CREATE UNIQUE INDEX approval_requests_fact ON approval_requests USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON approval_requests FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON approval_requests FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON approval_requests FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON approval_requests TO reckoner_app;
GRANT SELECT ON SEQUENCE approval_requests_request_id_seq TO reckoner_app;

CREATE TABLE approval_decisions (
  request_id bigint NOT NULL,
  requested_by bigint NOT NULL,
  decision text NOT NULL,
  decided_by bigint NOT NULL,
  reason text,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT approval_decisions_pkey PRIMARY KEY (request_id),
  CONSTRAINT approval_decision_known CHECK (decision = ANY (ARRAY['approve', 'reject', 'withdraw'])),
  CONSTRAINT approval_by_a_second_person CHECK ((decision = 'withdraw') = (decided_by = requested_by)),
  CONSTRAINT approval_rejection_has_reason CHECK (decision <> 'reject' OR reason IS NOT NULL),
  CONSTRAINT approval_decisions_fact_positive CHECK (log_no > 0),
  CONSTRAINT approval_decisions_decided_by_fkey FOREIGN KEY (decided_by) REFERENCES users(user_id),
  CONSTRAINT approval_decisions_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT approval_decision_of_its_request FOREIGN KEY (request_id, requested_by) REFERENCES approval_requests(request_id, requested_by)
);
CREATE UNIQUE INDEX approval_decisions_fact ON approval_decisions USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON approval_decisions FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER approval_by_an_approver BEFORE INSERT ON approval_decisions FOR EACH ROW WHEN (new.decision <> 'withdraw') EXECUTE FUNCTION refuse_wrong_approver(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON approval_decisions FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON approval_decisions FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON approval_decisions TO reckoner_app;

CREATE FUNCTION may_approve(approver bigint, partner_ids text[])
 RETURNS boolean
 LANGUAGE sql
 STABLE
RETURN ((EXISTS (SELECT FROM users u WHERE ((u.user_id = may_approve.approver) AND (u.kind = 'person')))) AND (NOT (EXISTS (SELECT FROM unnest(COALESCE(may_approve.partner_ids, ARRAY[NULL::text])) touched(partner_id) WHERE (NOT (EXISTS (SELECT FROM present_roles r WHERE ((r.user_id = may_approve.approver) AND (r.role = 'approver') AND ((r.partner_id IS NULL) OR (r.partner_id = touched.partner_id))))))))));
GRANT EXECUTE ON FUNCTION may_approve TO reckoner_app;

CREATE FUNCTION approvers_before(fact bigint)
 RETURNS TABLE(user_id bigint, partner_id text)
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT DISTINCT r.user_id,
     r.partner_id
    FROM ( SELECT DISTINCT ON (g.user_id, g.partner_id, g.source) g.user_id,
             g.partner_id,
             g.action
            FROM user_roles g
           WHERE ((g.role = 'approver') AND (g.log_no < approvers_before.fact))
           ORDER BY g.user_id, g.partner_id, g.source, g.user_role_id DESC) r
   WHERE ((r.action = 'grant') AND (NOT (EXISTS ( SELECT
            FROM user_ends e
           WHERE ((e.user_id = r.user_id) AND (e.log_no < approvers_before.fact))))));
END;
GRANT EXECUTE ON FUNCTION approvers_before TO reckoner_app;

CREATE FUNCTION refuse_wrong_approver()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
  request approval_requests;
BEGIN
  SELECT * INTO request FROM approval_requests r WHERE r.request_id = NEW.request_id;
  IF NOT may_approve(NEW.decided_by, request.partner_ids) THEN
    RAISE EXCEPTION 'user % is no approver of request %', NEW.decided_by, NEW.request_id
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'approval_by_an_approver';
  END IF;
  IF NEW.decision = 'approve' AND NEW.recorded_at >= request.expires_at THEN
    RAISE EXCEPTION 'request % has expired', NEW.request_id
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'approval_before_it_expires';
  END IF;
  RETURN NEW;
END
$function$;

-- 015_general_ledger --------------------------------------------------------------------------------------------------

CREATE TABLE gl_exports (
  gl_export_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  month billing_month NOT NULL,
  format text COLLATE "C" NOT NULL,
  part integer NOT NULL,
  previous integer,
  kind text NOT NULL,
  checkpoint text NOT NULL,
  books_closed boolean NOT NULL,
  accounts jsonb NOT NULL,
  writer integer NOT NULL,
  recorded_at timestamp with time zone NOT NULL,
  event_id bigint NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT gl_exports_pkey PRIMARY KEY (gl_export_id),
  CONSTRAINT gl_export_parts_differ UNIQUE (month, format, part),
  CONSTRAINT gl_export_format_known CHECK (format = ANY (ARRAY['generic', 'quickbooks', 'xero', 'netsuite'])),
  CONSTRAINT gl_export_part_in_range CHECK (part >= 1 AND part <= 99),
  CONSTRAINT gl_export_kind_known CHECK (kind = ANY (ARRAY['journal', 'difference', 'reclassification'])),
  CONSTRAINT gl_export_checkpoint_form CHECK (checkpoint ~ '^[0-9a-f]{64}$'),
  CONSTRAINT gl_export_follows CHECK (NOT previous IS DISTINCT FROM NULLIF(part - 1, 0)),
  CONSTRAINT gl_export_first_is_the_journal CHECK ((part = 1) = (kind = 'journal')),
  CONSTRAINT gl_exports_fact_positive CHECK (log_no > 0),
  CONSTRAINT gl_export_after_billing FOREIGN KEY (month) REFERENCES closed_months(month),
  CONSTRAINT gl_exports_event_id_fkey FOREIGN KEY (event_id) REFERENCES audit_events(event_id),
  CONSTRAINT gl_export_part_before FOREIGN KEY (month, format, previous) REFERENCES gl_exports(month, format, part)
);
CREATE UNIQUE INDEX gl_exports_fact ON gl_exports USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON gl_exports FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON gl_exports FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON gl_exports FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON gl_exports TO reckoner_app;
GRANT SELECT ON SEQUENCE gl_exports_gl_export_id_seq TO reckoner_app;

CREATE TABLE gl_export_lines (
  gl_export_id bigint NOT NULL,
  line integer NOT NULL,
  control text COLLATE "C" NOT NULL,
  account text COLLATE "C" NOT NULL,
  partner_id text COLLATE "C",
  policy_id text COLLATE "C",
  currency text COLLATE "C" NOT NULL,
  amount numeric NOT NULL,
  to_account text NOT NULL,
  class text NOT NULL,
  location text NOT NULL,
  name text NOT NULL,
  memo text NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT gl_export_lines_pkey PRIMARY KEY (gl_export_id, line),
  CONSTRAINT gl_export_line_positive CHECK (line > 0),
  CONSTRAINT gl_export_line_not_zero CHECK (amount <> 0::numeric),
  CONSTRAINT gl_export_line_names_an_account CHECK (to_account <> ''),
  CONSTRAINT gl_export_lines_fact_positive CHECK (log_no > 0),
  CONSTRAINT gl_export_lines_gl_export_id_fkey FOREIGN KEY (gl_export_id) REFERENCES gl_exports(gl_export_id)
);
CREATE UNIQUE INDEX gl_export_lines_fact ON gl_export_lines USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON gl_export_lines FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON gl_export_lines FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON gl_export_lines FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON gl_export_lines TO reckoner_app;

CREATE TABLE gl_export_files (
  gl_export_id bigint NOT NULL,
  "position" integer NOT NULL,
  name text NOT NULL,
  sha256 text NOT NULL,
  content bytea NOT NULL,
  log_no bigint NOT NULL,
  CONSTRAINT gl_export_files_pkey PRIMARY KEY (gl_export_id, "position"),
  CONSTRAINT gl_export_file_names_differ UNIQUE (gl_export_id, name),
  CONSTRAINT gl_export_file_position CHECK ("position" > 0),
  CONSTRAINT gl_export_file_name_form CHECK (name ~ '^[A-Za-z0-9.-]{1,80}$'),
  CONSTRAINT gl_export_file_is_its_hash CHECK (sha256 = encode(sha256(content), 'hex')),
  CONSTRAINT gl_export_files_fact_positive CHECK (log_no > 0),
  CONSTRAINT gl_export_files_gl_export_id_fkey FOREIGN KEY (gl_export_id) REFERENCES gl_exports(gl_export_id)
);
CREATE UNIQUE INDEX gl_export_files_fact ON gl_export_files USING btree (log_no);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON gl_export_files FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(); -- enabled: A
CREATE TRIGGER fact_number BEFORE INSERT ON gl_export_files FOR EACH ROW EXECUTE FUNCTION number_fact(); -- enabled: A
CREATE TRIGGER facts_in_order BEFORE INSERT ON gl_export_files FOR EACH STATEMENT EXECUTE FUNCTION begin_recording('in_order', 'not_while_paused'); -- enabled: A
GRANT INSERT, SELECT ON gl_export_files TO reckoner_app;

CREATE VIEW gl_export_states AS
 SELECT e.month, e.format,
        CASE
            WHEN b.month IS NULL THEN 'preliminary'
            WHEN (EXISTS ( SELECT
               FROM gl_exports f
              WHERE f.month::text = e.month::text AND f.format = e.format AND f.books_closed)) THEN 'final'
            WHEN (EXISTS ( SELECT
               FROM ( SELECT l.account, l.currency, l.amount
                       FROM gl_exports p
                         JOIN gl_export_lines l USING (gl_export_id)
                      WHERE p.month::text = e.month::text AND p.format = e.format
                    UNION ALL
                     SELECT book_balances.account, book_balances.currency, - book_balances.amount
                       FROM book_balances
                      WHERE book_balances.month::text = b.month::text
                    UNION ALL
                     SELECT book_balances.account, book_balances.currency, book_balances.amount
                       FROM book_balances
                      WHERE book_balances.month::text = b.previous::text) sides
              GROUP BY sides.account, sides.currency
             HAVING sum(sides.amount) <> 0::numeric)) THEN 'outdated'
            ELSE 'final'
        END AS state
   FROM gl_exports e
     LEFT JOIN book_closes b USING (month)
  WHERE e.part = 1;
GRANT SELECT ON gl_export_states TO reckoner_app;

CREATE VIEW gl_unexported_months AS
 SELECT month
   FROM book_closes b
  WHERE NOT (EXISTS ( SELECT
           FROM gl_exports e
          WHERE e.month::text = b.month::text)) AND (EXISTS ( SELECT
           FROM ( SELECT book_balances.account, book_balances.currency, book_balances.amount
                   FROM book_balances
                  WHERE book_balances.month::text = b.month::text
                UNION ALL
                 SELECT book_balances.account, book_balances.currency, - book_balances.amount
                   FROM book_balances
                  WHERE book_balances.month::text = b.previous::text) moved
          GROUP BY moved.account, moved.currency
         HAVING sum(moved.amount) <> 0::numeric));
GRANT SELECT ON gl_unexported_months TO reckoner_app;
