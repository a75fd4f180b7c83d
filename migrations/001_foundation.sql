-- The basis of all later migrations: the role of the program's connections, guards of append-only tables, the numbering
-- of facts, types for months and currencies, the installation, and job runs.

-- The program's connections use the role reckoner_app, which has only the privileges that it needs. A hosted database
-- may not allow creating roles. In that case, only the triggers guard the tables.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'reckoner_app') THEN
    CREATE ROLE reckoner_app NOLOGIN;
  END IF;
  EXECUTE format('GRANT reckoner_app TO %I', current_user);
EXCEPTION
  WHEN insufficient_privilege THEN
    RAISE NOTICE 'no role reckoner_app: this user may not make or take roles, triggers guard alone';
  WHEN duplicate_object OR unique_violation THEN
    -- A migration of another database on this server may have just created the role.
    EXECUTE format('GRANT reckoner_app TO %I', current_user);
END
$$;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'reckoner_app') THEN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO reckoner_app', current_schema());
  END IF;
END
$$;

-- Trigrams find parts of texts by an index. In pg_catalog, their operators have the same name in every schema: the
-- schema of the tables, and those in which migrations run again to compare or to restore.
CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA pg_catalog;
DO $$
BEGIN
  IF (SELECT extnamespace <> 'pg_catalog'::regnamespace FROM pg_extension WHERE extname = 'pg_trgm') THEN
    RAISE EXCEPTION 'the extension pg_trgm is in another schema than pg_catalog; run DROP EXTENSION pg_trgm, and repeat';
  END IF;
END
$$;

CREATE PROCEDURE grant_to_app(privileges text, target regclass) LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'reckoner_app') THEN
    EXECUTE format('GRANT %s ON %s TO reckoner_app', privileges, target);
  END IF;
END
$$;

-- In an append-only table, a correction is a new row. The triggers apply to every role, including the table's owner.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% of % is refused: it is append-only, a correction is a new row', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = TG_TABLE_NAME || '_append_only';
END
$$;

-- Fails as a constraint of this name would. The guard of append-only tables does not call it, because a search path
-- could lead elsewhere.
CREATE FUNCTION refuse(violated text, message text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '%', message USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = violated;
END
$$;

-- A rule that concerns several rows: a trigger function that each new row calls at the commit, if the condition holds.
CREATE PROCEDURE check_at_commit(rule text, target regclass, call text, condition text DEFAULT NULL)
LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE CONSTRAINT TRIGGER %I AFTER INSERT ON %s DEFERRABLE INITIALLY DEFERRED
                  FOR EACH ROW %s EXECUTE FUNCTION %s', rule, target, 'WHEN (' || condition || ')', call);
END
$$;

-- A trigger function that each INSERT calls once, with its rows in the table `added`.
CREATE PROCEDURE run_after_insert(name text, target regclass, function text) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE TRIGGER %I AFTER INSERT ON %s REFERENCING NEW TABLE AS added
                  FOR EACH STATEMENT EXECUTE FUNCTION %s()', name, target, function);
END
$$;

-- A statement is refused even if it would change no row. With `allowed`, an UPDATE or DELETE is allowed for rows that
-- match `condition` on OLD and NEW (`reckoner purge`). The condition calls a function. The body of this function is
-- parsed once, when it is created, so a temporary table cannot replace a table that the function reads.
CREATE PROCEDURE make_append_only(target regclass, allowed text DEFAULT NULL, condition text DEFAULT NULL,
                                  of_app text DEFAULT 'SELECT, INSERT')
LANGUAGE plpgsql AS $$
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
$$;

-- Makes all triggers fire under any session_replication_role, so that no setting of the database or of a role disables
-- them. The program calls this after each migration (src/database/migrate.ts).
CREATE PROCEDURE enable_triggers_always() LANGUAGE plpgsql AS $$
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
$$;

-- Lets the app read all views. The program calls this after each migration.
CREATE PROCEDURE grant_views_to_app() LANGUAGE plpgsql AS $$
DECLARE
  target regclass;
BEGIN
  FOR target IN
    SELECT oid FROM pg_class c
    WHERE relkind = 'v' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
  LOOP
    CALL grant_to_app('SELECT', target);
  END LOOP;
END
$$;

-- Revokes our functions from PUBLIC, because PostgreSQL lets every role call a new function. Views call functions with
-- the caller's rights, so the role for reports (roles.sql) may call functions that only read. The program calls this
-- after each migration.
CREATE PROCEDURE close_functions() LANGUAGE plpgsql AS $$
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
$$;

-- Facts: append-only rows. Each is a line of the log (006_log.sql). Ledger rows are facts too. Every fact has a number,
-- log_no, in the order of recording over all tables. The number comes from the sequence log_numbers, which belongs to
-- the identity of ledger_rows (004_ledger.sql).
--
-- The database numbers every fact, and ignores a number that a statement gives. A number that a caller chose might be
-- below an existing checkpoint. Rolled-back transactions leave gaps. Numbers without gaps would make every writer wait
-- for the previous one to commit.
CREATE FUNCTION number_fact() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.log_no := next_log_number();
  RETURN NEW;
END
$$;

-- The ledger's lock is a lock on this table, which never has a row (src/database/ledger-lock.ts). To lock, a role needs
-- a privilege to write, so a role that only reads cannot stop the program. The triggers refuse all that would be written.
CREATE TABLE ledger_gate (nothing boolean, CONSTRAINT ledger_gate_stays_empty CHECK (false));
CALL make_append_only('ledger_gate', of_app => 'SELECT, UPDATE');

-- Takes the lock as a writer. The default is parsed once, so a temporary table cannot replace the table.
CREATE FUNCTION lock_ledger(gate regclass DEFAULT 'ledger_gate') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('LOCK TABLE %s IN ROW EXCLUSIVE MODE', gate);
END
$$;

-- in_order: a transaction that records a fact takes the ledger's lock as a writer before the fact's number is drawn, and
-- holds the lock until the commit. A close takes the lock alone. A checkpoint waits for the transactions that hold the
-- lock (src/log/fence.ts). So after a close or a checkpoint has read the last number, no fact with a lower number can
-- appear.
-- not_while_paused: while the ledger is paused (002_people.sql), nothing is closed, issued, sent or recorded. `pause`
-- also takes the ledger's lock alone, so a writer that waited for the lock sees the pause.
CREATE FUNCTION begin_recording() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF 'in_order' = ANY (TG_ARGV) THEN
    PERFORM lock_ledger();
    IF NOT log_numbers_ascend() THEN
      PERFORM refuse('log_numbers_ascend', format(
        '%s of %s is refused: the next number of the log is one that a checkpoint covers', TG_OP, TG_TABLE_NAME));
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
$$;

CREATE PROCEDURE refuse_rows_while_paused(target regclass) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE TRIGGER not_while_paused BEFORE INSERT ON %s
                  FOR EACH STATEMENT EXECUTE FUNCTION begin_recording(not_while_paused)', target);
END
$$;

-- Makes the rows of a table facts. With while_paused, rows of the table can also be recorded while the ledger is
-- paused: events, pauses, access, holds, and outcomes of e-mails. A mail server reports an outcome only once, so the
-- outcome must be recorded even during a pause.
CREATE PROCEDURE make_fact(target regclass, while_paused boolean DEFAULT false) LANGUAGE plpgsql AS $$
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
$$;

-- The same for facts that an event of the same time records: most facts.
CREATE PROCEDURE make_fact_of_event(target regclass, while_paused boolean DEFAULT false) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('ALTER TABLE %s ADD COLUMN recorded_at timestamptz NOT NULL,
                  ADD COLUMN event_id bigint NOT NULL REFERENCES audit_events', target);
  CALL make_fact(target, while_paused);
END
$$;

-- A month such as 2026-07. Months sort correctly as text.
CREATE DOMAIN billing_month AS text COLLATE "C"
  CONSTRAINT billing_month_form CHECK (VALUE ~ '^\d{4}-(0[1-9]|1[0-2])$');

CREATE FUNCTION month_after(month text) RETURNS text STABLE STRICT LANGUAGE sql AS $$
  SELECT to_char((month || '-01')::date + interval '1 month', 'YYYY-MM')
$$;

CREATE FUNCTION last_day(month text) RETURNS date STABLE LANGUAGE sql
RETURN (month_after(month) || '-01')::date - 1;

-- The form of all identifiers: no two may look alike, and none may contain hidden characters. A bounded repetition in
-- the pattern took 30 µs for each value. With length() the check takes 0.5 µs.
CREATE FUNCTION is_identifier(value text) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE sql
RETURN value ~ '^[A-Za-z0-9][A-Za-z0-9._:-]*$' AND length(value) <= 128;

-- The number of decimals of a currency's minor unit (ISO 4217), as in minorDigits in src/money.ts. CHECK constraints
-- use it, and PostgreSQL does not check existing rows again when a function changes.
CREATE FUNCTION minor_digits(currency text) RETURNS integer IMMUTABLE PARALLEL SAFE LANGUAGE sql
RETURN CASE
  WHEN currency IN ('BIF', 'CLP', 'DJF', 'GNF', 'ISK', 'JPY', 'KMF', 'KRW', 'PYG', 'RWF', 'UGX', 'UYI', 'VND', 'VUV',
                    'XAF', 'XOF', 'XPF') THEN 0
  WHEN currency IN ('BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND') THEN 3
  WHEN currency IN ('CLF', 'UYW') THEN 4
  ELSE 2 END;

-- The environment that a database permanently belongs to, and an id that is part of its Message-IDs.
CREATE TABLE installation (
  only_one boolean PRIMARY KEY DEFAULT true CONSTRAINT installation_only_one CHECK (only_one),
  environment text NOT NULL CONSTRAINT installation_environment CHECK (environment IN ('sandbox', 'production')),
  installation_id text NOT NULL DEFAULT substr(replace(gen_random_uuid()::text, '-', ''), 1, 12),
  -- The host in the name of the log. This host never changes, even if the server moves.
  log_host text NOT NULL DEFAULT 'reckoner.invalid' CONSTRAINT installation_log_host_form
    CHECK (log_host ~ '^[a-z0-9]([a-z0-9.-]{0,100}[a-z0-9])?$'),
  created_at timestamptz NOT NULL DEFAULT now()
);
CALL make_append_only('installation');

-- The objects that the migrations created on this server. `verify` compares this record with the present schema
-- (src/database/schema.ts). Only the owner adds rows, and an event states the SHA-256 of each row. The rows describe
-- this database only, so no backup contains them.
CREATE TABLE schema_records (
  schema_record_id bigint PRIMARY KEY,
  recorded_at timestamptz NOT NULL DEFAULT now(),
  program text NOT NULL,
  server_version integer NOT NULL,
  objects jsonb NOT NULL
);
CALL make_append_only('schema_records', of_app => 'SELECT');

-- The runs of scheduled jobs. A run may be deleted after 400 days, but never a job's last run or last success.
CREATE TABLE job_runs (
  job_run_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  job text NOT NULL,
  started_at timestamptz NOT NULL,
  finished_at timestamptz NOT NULL,
  exit_status integer NOT NULL,
  -- What the run was about. For a drill: when the backup was made.
  subject text
);
CREATE INDEX job_runs_latest ON job_runs (job, finished_at DESC);
CREATE FUNCTION job_run_may_go(run job_runs) RETURNS boolean STABLE LANGUAGE sql
RETURN run.finished_at < now() - interval '400 days'
  AND EXISTS (SELECT FROM job_runs later WHERE later.job = run.job
                AND (later.finished_at, later.job_run_id) > (run.finished_at, run.job_run_id)
                AND (run.exit_status <> 0 OR later.exit_status = 0));
CALL make_append_only('job_runs', 'DELETE', 'job_run_may_go(OLD)');
CALL grant_to_app('DELETE', 'job_runs');

-- The security log: requests that the server refused, counted per hour by kind, network and client, so that an attack
-- cannot fill the disk. The program only adds rows. The owner of the database may delete rows, because they contain
-- people's network addresses. Changes of clients and payment instructions are audit events instead, which are
-- append-only facts of the log.
CREATE TABLE security_events (
  security_event_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind text NOT NULL CONSTRAINT security_event_kind_known
    CHECK (kind IN ('exchange_refused', 'exchange_locked', 'webhook_refused', 'webhook_locked', 'requests_limited',
                    'sign_in_refused', 'sign_in_locked')),
  -- An IPv4 address or an IPv6 /64 network. 'others' counts requests of further networks.
  network text NOT NULL CONSTRAINT security_event_network_short CHECK (length(network) <= 64),
  -- The client id that the caller stated.
  client_id text CONSTRAINT security_event_client_short CHECK (length(client_id) <= 128),
  tries bigint NOT NULL CONSTRAINT security_event_counted CHECK (tries > 0),
  first_at timestamptz NOT NULL,
  last_at timestamptz NOT NULL,
  host text NOT NULL,
  CONSTRAINT security_event_times_in_order CHECK (first_at <= last_at)
);
CREATE INDEX security_events_latest ON security_events (last_at);
CALL grant_to_app('SELECT, INSERT', 'security_events');

-- For each job: the items that needed attention when the job last ran, the count of each item, and the time of the last
-- report. This is working state: a job exits with 4 if there are new items (src/reports/job-attention.ts).
CREATE TABLE job_attention (
  job text NOT NULL,
  item text NOT NULL,
  count bigint NOT NULL CONSTRAINT job_attention_counted CHECK (count > 0),
  told_at timestamptz NOT NULL,
  PRIMARY KEY (job, item)
);
CALL grant_to_app('SELECT, INSERT, UPDATE, DELETE', 'job_attention');
