/**
 * A fingerprint of a database's catalog: objects, privileges, settings and owner. A clone of the template has the
 * template's fingerprint until a test changes the schema. Comparing fingerprints takes a few milliseconds; comparing
 * the schema takes a hundred.
 */
import pg from 'pg';

const hashed = (columns: string, from: string) => `(SELECT sum(hash_record_extended(ROW(${columns}), 0)) FROM ${from})`;

const OURS = `(SELECT oid FROM pg_namespace WHERE nspname NOT IN ('pg_catalog', 'information_schema'))`;

export const CATALOG = `SELECT concat_ws(' ',
  ${hashed('oid, relname, relkind, relowner, relchecks, relrowsecurity, relacl::text, reloptions::text', 'pg_class')},
  ${hashed('attrelid, attname, attnum, atttypid, attnotnull, atthasdef, attisdropped, attacl::text', 'pg_attribute')},
  ${hashed('oid, tgrelid, tgname, tgenabled, tgfoid', 'pg_trigger')},
  ${hashed('oid, conname, convalidated, xmin::text', 'pg_constraint')},
  ${hashed('oid, xmin::text', 'pg_attrdef')},
  ${hashed('oid, xmin::text', 'pg_rewrite')},
  ${hashed('indexrelid, indisvalid', 'pg_index')},
  ${hashed('oid, prosrc, proowner, prosecdef, proacl::text, proconfig::text', `pg_proc WHERE pronamespace IN ${OURS}`)},
  ${hashed('nspname, nspowner, nspacl::text', `pg_namespace WHERE nspname NOT LIKE 'pg\\_t%'`)},
  ${hashed('oid, defaclacl::text', 'pg_default_acl')},
  ${hashed('extname', 'pg_extension')},
  ${hashed('setrole, setconfig::text', 'pg_db_role_setting WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())')},
  (SELECT json_agg(i) FROM installation i), (SELECT count(*) FROM schema_records), (SELECT count(*) FROM migrations)) AS catalog`;

export async function catalogAt(url: string): Promise<string> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    const { rows } = await client.query<{ catalog: string }>(CATALOG);
    return rows[0]?.catalog ?? '';
  } finally {
    await client.end();
  }
}
