/**
 * The role that working connections take, and the guard that keeps append-only tables append-only for everybody.
 * A hosted database may forbid making roles: then the triggers guard alone.
 */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
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
        -- Another database of this server made the role a moment ago.
        EXECUTE format('GRANT reckoner_app TO %I', current_user);
    END
    $$`);

  await knex.raw(`
    CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      RAISE EXCEPTION '% of % is refused: it is append-only, a correction is a new row', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = TG_TABLE_NAME || '_append_only';
    END
    $$`);
  await knex.raw(`
    CREATE PROCEDURE make_append_only(target regclass) LANGUAGE plpgsql AS $$
    BEGIN
      EXECUTE format('CREATE TRIGGER append_only_rows BEFORE UPDATE OR DELETE ON %s
                      FOR EACH ROW EXECUTE FUNCTION refuse_change()', target);
      EXECUTE format('CREATE TRIGGER append_only_table BEFORE TRUNCATE ON %s
                      FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', target);
      CALL grant_to_app('SELECT, INSERT', target);
    END
    $$`);
  await knex.raw(`
    CREATE PROCEDURE grant_to_app(privileges text, target regclass) LANGUAGE plpgsql AS $$
    BEGIN
      IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'reckoner_app') THEN
        EXECUTE format('GRANT %s ON %s TO reckoner_app', privileges, target);
      END IF;
    END
    $$`);
  await knex.raw(`
    DO $$
    BEGIN
      IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'reckoner_app') THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO reckoner_app', current_schema());
      END IF;
    END
    $$`);

  // A month as the contract writes it. Its texts sort in order of time.
  await knex.raw(`
    CREATE DOMAIN billing_month AS text COLLATE "C"
      CONSTRAINT billing_month_form CHECK (VALUE ~ '^\\d{4}-(0[1-9]|1[0-2])$')`);
  await knex.raw(`
    CREATE FUNCTION month_after(month text) RETURNS text STABLE STRICT LANGUAGE sql AS $$
      SELECT to_char((month || '-01')::date + interval '1 month', 'YYYY-MM')
    $$`);

  // The environment a database belongs to for good, and a name of its own for the message ids it makes.
  await knex.raw(`
    CREATE TABLE installation (
      only_one boolean PRIMARY KEY DEFAULT true CONSTRAINT installation_only_one CHECK (only_one),
      environment text NOT NULL CONSTRAINT installation_environment CHECK (environment IN ('sandbox', 'production')),
      installation_id text NOT NULL DEFAULT substr(replace(gen_random_uuid()::text, '-', ''), 1, 12),
      created_at timestamptz NOT NULL DEFAULT now()
    )`);
  await knex.raw(`CALL make_append_only('installation')`);
}
