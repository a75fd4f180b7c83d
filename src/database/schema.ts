/**
 * The objects of a database's schema, each with its definition as PostgreSQL writes it, and the list of those that the
 * migrations make (migrations/objects.json), which ships with the program. The list has hashes, so that a difference is
 * named by its object.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../package.ts';
import { execute, query, queryOne, type Transaction } from './transaction.ts';

export interface SchemaObject {
  /** Kind and name: `trigger documents.append_only_rows`. */
  readonly object: string;
  readonly definition: string;
}

// Not those of the list of migrations, which knex keeps, nor those of extensions, which a hosted database may have.
const OURS = `
  SELECT c.oid, c.relname, c.relkind, c.relowner, c.relacl, c.reloptions, c.relpersistence, c.relrowsecurity,
         c.relforcerowsecurity
  FROM pg_class c CROSS JOIN home
  WHERE c.relnamespace = home.oid AND c.relname !~ '^migrations(_lock)?(_id_seq|_index_seq|_pkey)?$'
    AND NOT EXISTS (SELECT FROM pg_depend d
                    WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')`;

const OUR_FUNCTIONS = `
  SELECT p.oid, p.proname, p.proowner, p.proacl, pg_get_function_identity_arguments(p.oid) AS arguments, p.prokind
  FROM pg_proc p CROSS JOIN home
  WHERE p.pronamespace = home.oid
    AND NOT EXISTS (SELECT FROM pg_depend d
                    WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')`;

const KINDS: readonly string[] = [
  // The options of a table, such as those of autovacuum, are the operator's to tune; those of a view are part of it.
  `SELECT CASE relkind WHEN 'r' THEN 'table ' WHEN 'v' THEN 'view ' WHEN 'm' THEN 'materialized view '
               WHEN 'S' THEN 'sequence '
          ELSE relkind::text || ' ' END || relname,
          concat_ws(' ', relkind, relpersistence, CASE WHEN relkind <> 'r' THEN array_to_string(reloptions, ',') END,
            CASE WHEN relrowsecurity THEN 'ROW LEVEL SECURITY' END,
            CASE WHEN relforcerowsecurity THEN 'FORCED' END,
            CASE WHEN ours.relowner <> home.owner THEN 'OWNED BY ANOTHER' END,
            CASE WHEN relkind IN ('v', 'm') THEN pg_get_viewdef(ours.oid, true) END,
            (SELECT concat_ws(' ', s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmin, s.seqmax, s.seqcache,
                              CASE WHEN s.seqcycle THEN 'CYCLE' END) FROM pg_sequence s WHERE s.seqrelid = ours.oid))
   FROM ours CROSS JOIN home WHERE relkind NOT IN ('i', 'I', 't', 'c')`,
  `SELECT 'column ' || relname || '.' || a.attname,
          concat_ws(' ', format_type(a.atttypid, a.atttypmod),
            CASE WHEN a.attcollation <> t.typcollation
                 THEN (SELECT collname FROM pg_collation WHERE oid = a.attcollation) END,
            a.attstorage, CASE WHEN a.attnotnull THEN 'NOT NULL' END, a.attidentity, a.attgenerated,
            pg_get_expr(d.adbin, d.adrelid))
   FROM ours JOIN pg_attribute a ON a.attrelid = ours.oid AND a.attnum > 0 AND NOT a.attisdropped
   JOIN pg_type t ON t.oid = a.atttypid
   LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
   WHERE relkind IN ('r', 'p', 'f')`,
  `SELECT 'constraint ' || relname || '.' || n.conname,
          concat_ws(' ', pg_get_constraintdef(n.oid, true),
            CASE WHEN EXISTS (SELECT FROM pg_trigger g
                              WHERE g.tgconstraint = n.oid AND g.tgisinternal AND g.tgenabled <> 'O')
                 THEN 'SWITCHED OFF' END)
   FROM ours JOIN pg_constraint n ON n.conrelid = ours.oid WHERE n.contype IN ('p', 'u', 'c', 'f', 'x')`,
  `SELECT 'index ' || ours.relname,
          pg_get_indexdef(i.indexrelid, 0, true) || CASE WHEN i.indisvalid THEN '' ELSE ' INVALID' END
   FROM ours JOIN pg_index i ON i.indexrelid = ours.oid`,
  `SELECT 'trigger ' || relname || '.' || g.tgname, pg_get_triggerdef(g.oid, true) || ' ' || g.tgenabled::text
   FROM ours JOIN pg_trigger g ON g.tgrelid = ours.oid AND NOT g.tgisinternal`,
  `SELECT 'rule ' || relname || '.' || r.rulename, pg_get_ruledef(r.oid, true)
   FROM ours JOIN pg_rewrite r ON r.ev_class = ours.oid AND r.rulename <> '_RETURN'`,
  `SELECT 'policy ' || relname || '.' || y.polname,
          concat_ws(' ', y.polcmd, y.polpermissive, pg_get_expr(y.polqual, y.polrelid),
                    pg_get_expr(y.polwithcheck, y.polrelid))
   FROM ours JOIN pg_policy y ON y.polrelid = ours.oid`,
  `SELECT 'inheritance ' || relname, i.inhparent::regclass::text FROM ours JOIN pg_inherits i ON i.inhrelid = ours.oid`,
  `SELECT 'function ' || proname || '(' || arguments || ')',
          CASE WHEN prokind = 'a' THEN 'aggregate'
               ELSE replace(pg_get_functiondef(functions.oid), home.name || '.', '') END
            || CASE WHEN proowner <> home.owner THEN ' OWNED BY ANOTHER' ELSE '' END
   FROM functions CROSS JOIN home`,
  `SELECT 'domain ' || t.typname,
          concat_ws(' ', format_type(t.typbasetype, t.typtypmod),
            (SELECT collname FROM pg_collation WHERE oid = t.typcollation), CASE WHEN t.typnotnull THEN 'NOT NULL' END,
            (SELECT string_agg(n.conname || ' ' || pg_get_constraintdef(n.oid, true), ' ' ORDER BY n.conname)
             FROM pg_constraint n WHERE n.contypid = t.oid AND n.contype = 'c'))
   FROM pg_type t CROSS JOIN home WHERE t.typtype = 'd' AND t.typnamespace = home.oid`,
  // Whoever may only read changes nothing: a hosted database may have a role for reports.
  `SELECT 'privileges on ' || name,
          string_agg(grantee || ': ' || privileges, '; ' ORDER BY grantee COLLATE "C")
   FROM (
     SELECT g.name, CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(g.grantee) END AS grantee,
            string_agg(g.privilege_type || CASE WHEN g.is_grantable THEN ' (to grant)' ELSE '' END, ', '
                       ORDER BY g.privilege_type) AS privileges
     FROM (
       SELECT 'schema' AS name, home.acl_owner AS owner, x.* FROM home CROSS JOIN LATERAL aclexplode(home.acl) AS x
       UNION ALL
       SELECT relname, relowner, x.* FROM ours CROSS JOIN LATERAL aclexplode(relacl) AS x
       UNION ALL
       SELECT relname || '.' || a.attname, relowner, x.*
       FROM ours JOIN pg_attribute a ON a.attrelid = ours.oid CROSS JOIN LATERAL aclexplode(a.attacl) AS x
       UNION ALL
       SELECT proname || '(' || arguments || ')', proowner, x.*
       FROM functions CROSS JOIN LATERAL aclexplode(coalesce(proacl, acldefault('f', proowner))) AS x
     ) AS g
     WHERE g.grantee <> g.owner
       AND (g.grantee = coalesce(to_regrole('reckoner_app'), 0) OR g.privilege_type NOT IN ('SELECT', 'USAGE'))
     GROUP BY g.name, g.grantee
   ) AS granted
   GROUP BY name`,
  `SELECT 'default privileges of ' || pg_get_userbyid(d.defaclrole), d.defaclobjtype::text || ' ' || d.defaclacl::text
   FROM pg_default_acl d CROSS JOIN home WHERE d.defaclnamespace = home.oid
     AND EXISTS (SELECT FROM aclexplode(d.defaclacl) AS x
                 WHERE x.grantee <> d.defaclrole AND x.privilege_type NOT IN ('SELECT', 'USAGE'))`,
  `SELECT 'event trigger ' || evtname, concat_ws(' ', evtevent, evtfoid::regproc, evtenabled) FROM pg_event_trigger e
   WHERE EXISTS (SELECT FROM functions f WHERE f.oid = e.evtfoid)`,
  // What another schema calls by a name of ours would be read or run instead of it.
  `SELECT 'shadow ' || n.nspname || '.' || c.relname, c.relkind::text
   FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND n.oid <> (SELECT oid FROM home)
     AND n.nspname <> 'graphile_worker' AND c.relkind IN ('r', 'v', 'm', 'S', 'f', 'p')
     AND c.relname IN (SELECT relname FROM ours WHERE relkind IN ('r', 'v', 'm', 'S'))`,
  `SELECT 'shadow ' || n.nspname || '.' || p.proname || '()', pg_get_function_identity_arguments(p.oid)
   FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
   WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND n.oid <> (SELECT oid FROM home)
     AND n.nspname <> 'graphile_worker' AND p.proname IN (SELECT proname FROM functions)`,
  // Settings that change what a statement means, or which guards hold; others, such as timeouts, are the operator's.
  `SELECT 'setting ' || split_part(setting, '=', 1),
          concat_ws(' ', setting, 'in the database', d.datname, 'for the role', pg_get_userbyid(nullif(s.setrole, 0)))
   FROM pg_db_role_setting s LEFT JOIN pg_database d ON d.oid = s.setdatabase
   CROSS JOIN LATERAL unnest(s.setconfig) AS setting
   WHERE (s.setdatabase = 0 OR d.datname = current_database())
     AND split_part(setting, '=', 1) IN ('session_replication_role', 'search_path', 'row_security', 'role',
       'event_triggers', 'transform_null_equals', 'session_preload_libraries', 'local_preload_libraries',
       'default_transaction_isolation')`,
  `SELECT 'setting session_replication_role', 'is ' || current_setting('session_replication_role')
   WHERE current_setting('session_replication_role') <> 'origin'`,
  `SELECT 'role reckoner_app',
          concat_ws(' ', CASE WHEN r.rolsuper THEN 'SUPERUSER' END, CASE WHEN r.rolcreaterole THEN 'CREATEROLE' END,
            CASE WHEN r.rolbypassrls THEN 'BYPASSRLS' END, CASE WHEN r.rolreplication THEN 'REPLICATION' END,
            (SELECT 'MEMBER OF ' || string_agg(pg_get_userbyid(m.roleid), ', ') FROM pg_auth_members m
             WHERE m.member = r.oid))
   FROM pg_roles r WHERE r.rolname = 'reckoner_app'`,
];

const OBJECTS = `
WITH home AS (
  SELECT n.oid, n.nspname AS name, n.nspacl AS acl, n.nspowner AS acl_owner, c.relowner AS owner
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass('migrations')
), ours AS MATERIALIZED (${OURS}
), functions AS MATERIALIZED (${OUR_FUNCTIONS}
), found (object, definition) AS (
  ${KINDS.join('\n  UNION ALL\n  ')}
)
SELECT object, string_agg(definition, E'\\n' ORDER BY definition COLLATE "C") AS definition
FROM found GROUP BY object ORDER BY object COLLATE "C"`;

/** Every object of the schema that holds the migrations, with what could stand in for one or switch one off. */
export async function readSchemaObjects(tx: Transaction): Promise<SchemaObject[]> {
  await execute(tx, 'SET LOCAL quote_all_identifiers TO off');
  return query(tx, OBJECTS);
}

export const OBJECTS_FILE = join(packageRoot, 'migrations', 'objects.json');

/** The hash of each object that the migrations make. PostgreSQL 16, 17 and 18 write them alike. */
const readMigratedObjects = (): Readonly<Record<string, string>> =>
  JSON.parse(readFileSync(OBJECTS_FILE, 'utf8')) as Record<string, string>;

/** The columns that the migrations make: `documents.number`. */
export const readMigratedColumns = (): string[] =>
  Object.keys(readMigratedObjects()).flatMap((object) => /^column (.+)$/.exec(object)?.[1] ?? []);

/** Half of a SHA-256: enough to be told apart, and the list is read by people. */
export const hashOfDefinition = (definition: string): string =>
  createHash('sha256').update(definition).digest('hex').slice(0, 32);

export interface SchemaComparison {
  readonly inspected: number;
  readonly differences: readonly { readonly object: string; readonly detail: string }[];
  /** SHA-256 of the objects with their hashes, a line each. */
  readonly sha256: string;
}

/** Where the app's role could not be made, nothing is granted to it, and triggers guard alone. */
const isOfTheRole = (object: string) => object.startsWith('privileges on ') || object === 'role reckoner_app';

const LONGEST = 300;

/** Compares the schema with what the migrations make. */
export async function compareSchema(tx: Transaction): Promise<SchemaComparison> {
  const { has_role } = await queryOne<{ has_role: boolean }>(
    tx,
    `SELECT to_regrole('reckoner_app') IS NOT NULL AS has_role`,
  );
  const objects = readMigratedObjects();
  const found = new Map((await readSchemaObjects(tx)).map(({ object, definition }) => [object, definition]));
  const expected = Object.keys(objects).filter((object) => has_role || !isOfTheRole(object));
  const differences = expected
    .filter((object) => !found.has(object))
    .map((object) => ({ object, detail: 'is missing' }));
  const lines: string[] = [];
  for (const [object, definition] of found) {
    const hash = hashOfDefinition(definition);
    lines.push(`${object} ${hash}\n`);
    if (hash === objects[object]) continue;
    const what = objects[object] === undefined ? 'was made by no migration' : 'is not as migrated';
    differences.push({ object, detail: `${what}: ${definition.replaceAll(/\s+/g, ' ').slice(0, LONGEST)}` });
  }
  const sha256 = createHash('sha256').update(lines.join('')).digest('hex');
  return { inspected: expected.length, differences, sha256 };
}
