-- The roles of a ledger on a server of your own. An administrator (a superuser, or a role with CREATEROLE that owns the
-- database) runs this in the ledger's database, before 'reckoner init':
--
--   createdb reckoner && psql -d reckoner -f migrations/roles.sql
--
-- After that, give the logins passwords (\password reckoner_owner, …). This script is safe to repeat.
-- docs/operations.md describes the use of each role.

DO $$
BEGIN
  -- reckoner_app has the privileges of the running program: to read, and to add rows. 'reckoner migrate' grants them.
  IF to_regrole('reckoner_app') IS NULL THEN CREATE ROLE reckoner_app NOLOGIN; END IF;
  -- reckoner_owner owns the tables and changes them. Only 'reckoner init', 'migrate' and 'restore' use this login.
  IF to_regrole('reckoner_owner') IS NULL THEN CREATE ROLE reckoner_owner LOGIN; END IF;
  -- reckoner_runtime owns nothing. All other commands, the jobs, the workers and the server use this login.
  IF to_regrole('reckoner_runtime') IS NULL THEN CREATE ROLE reckoner_runtime LOGIN; END IF;
  -- reckoner_reader only reads. This login is for DATABASE_URL_READ, and for reports by other programs.
  IF to_regrole('reckoner_reader') IS NULL THEN CREATE ROLE reckoner_reader LOGIN; END IF;
END
$$;

GRANT reckoner_app TO reckoner_owner, reckoner_runtime;

DO $$
DECLARE
  target regclass;
  routine record;
BEGIN
  -- An administrator who is not a superuser can give the database only to a role that the administrator is a member of.
  IF NOT pg_has_role(current_user, 'reckoner_owner', 'SET') THEN
    EXECUTE format('GRANT reckoner_owner TO %I', current_user);
  END IF;
  -- The database's owner also owns the schema public.
  EXECUTE format('ALTER DATABASE %I OWNER TO reckoner_owner', current_database());
  EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
  -- Imports and closes sort their rows in temporary tables.
  EXECUTE format('GRANT CONNECT, TEMPORARY ON DATABASE %I TO reckoner_app', current_database());
  -- `verify` runs the rules over temporary tables.
  EXECUTE format('GRANT CONNECT, TEMPORARY ON DATABASE %I TO reckoner_reader', current_database());
  REVOKE CREATE ON SCHEMA public FROM PUBLIC;
  GRANT USAGE ON SCHEMA public TO reckoner_app, reckoner_reader;
  -- The reader may read existing tables, and tables that the owner creates later, because 'init' runs after this
  -- script. Verification also reads the sequences.
  FOR target IN
    SELECT oid::regclass FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'S')
  LOOP
    EXECUTE format('GRANT SELECT ON %s TO reckoner_reader', target);
  END LOOP;
  -- The reader must not take the program's locks. The lock functions belong to a superuser, and a hosted server may not
  -- permit revoking them.
  FOR routine IN
    SELECT oid::regprocedure AS name, pg_has_role(current_user, proowner, 'USAGE') AS is_ours FROM pg_proc
    WHERE pronamespace = 'pg_catalog'::regnamespace AND proname ~ '^pg_(try_)?advisory_'
  LOOP
    IF routine.is_ours THEN
      EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', routine.name);
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO reckoner_app', routine.name);
    ELSE
      RAISE NOTICE '% stays open to everybody: only a superuser may close it', routine.name;
    END IF;
  END LOOP;
  ALTER DEFAULT PRIVILEGES FOR ROLE reckoner_owner IN SCHEMA public GRANT SELECT ON TABLES TO reckoner_reader;
  ALTER DEFAULT PRIVILEGES FOR ROLE reckoner_owner IN SCHEMA public GRANT SELECT ON SEQUENCES TO reckoner_reader;
END
$$;
