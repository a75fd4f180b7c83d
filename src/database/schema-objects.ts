/**
 * Reads the objects of a database's schema. The *facts* of an object are those that are identical in the catalogs of
 * every PostgreSQL from 16 on: columns, types, keys, triggers, privileges, the source of functions. *Expressions* (of
 * views, checks, defaults, conditions) are written differently by each server, even by minor versions. The *tree* of an
 * expression in the catalog stays the same until the expression is changed.
 */
import { execute, query, Transaction } from './transaction.ts';

export type SchemaObject = Readonly<{
  object: string;
  facts: string;
  /** The hash of the trees of its expressions in this database, or null without expressions. */
  tree: string | null;
  /** The server's text of the object, if requested. */
  printed: string | null;
  /** The oid of a table; null for any other object. */
  oid: number | null;
}>;

// Omits the list of migrations, which knex keeps, and objects of extensions, which a hosted database may have.
const OURS = `
  SELECT c.oid, c.relname, c.relkind, c.relowner, c.relacl, c.reloptions, c.relpersistence, c.relrowsecurity,
         c.relforcerowsecurity
  FROM pg_class c CROSS JOIN home
  WHERE c.relnamespace = home.oid AND c.relname !~ '^migrations(_lock)?(_id_seq|_index_seq|_pkey)?$'
    AND NOT EXISTS (SELECT FROM pg_depend d
                    WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')`;

const OUR_FUNCTIONS = `
  SELECT p.oid, p.proname, p.proowner, p.proacl, p.provolatile, p.prosecdef, p.prokind,
         pg_get_function_identity_arguments(p.oid) AS arguments
  FROM pg_proc p CROSS JOIN home
  WHERE p.pronamespace = home.oid
    AND NOT EXISTS (SELECT FROM pg_depend d
                    WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')`;

/**
 * The names of columns in the order of an array of their numbers. In such an array, the number 0 stands for an
 * expression. Each name is looked up by an index.
 */
const columnNames = (table: string, numbers: string) => `
  (SELECT string_agg(coalesce((SELECT a.attname FROM pg_attribute a
                               WHERE a.attrelid = ${table} AND a.attnum = k.attnum AND k.attnum > 0), '()'),
                     ',' ORDER BY k.place)
   FROM unnest(${numbers}) WITH ORDINALITY AS k (attnum, place))`;

/**
 * Adds the schema to a name, unless the schema is `home`. Objects of the same name in two schemas are different
 * objects.
 */
const named = (name: string, namespace: string, home: string) =>
  `CASE WHEN ${namespace} <> ${home} THEN ${namespace}::regnamespace || '.' ELSE '' END || ${name}`;

const CATALOG = `'pg_catalog'::regnamespace`;

/** SQL for the server's text of an expression, or for NULL if the text is not needed. */
type ExpressionPrinter = (sql: string) => string;

const NO_TREE = `NULL::text, NULL::text, NULL::bigint`;

/**
 * Each query returns an object, its facts, the trees of its expressions, the server's text of the object, and the oid
 * if it is a table.
 */
const tablesOf = (printed: ExpressionPrinter): readonly string[] => [
  // Options of tables, such as those of autovacuum, are the operator's choice. Options of views are compared.
  `SELECT CASE relkind WHEN 'r' THEN 'table ' WHEN 'v' THEN 'view ' WHEN 'm' THEN 'materialized view '
               WHEN 'S' THEN 'sequence '
          ELSE relkind::text || ' ' END || relname,
          concat_ws(' ', relkind, relpersistence, CASE WHEN relkind <> 'r' THEN array_to_string(reloptions, ',') END,
            CASE WHEN relrowsecurity THEN 'ROW LEVEL SECURITY' END,
            CASE WHEN relforcerowsecurity THEN 'FORCED' END,
            CASE WHEN ours.relowner <> home.owner THEN 'OWNED BY ANOTHER' END,
            CASE WHEN relkind IN ('v', 'm') THEN
              (SELECT string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum)
               FROM pg_attribute a WHERE a.attrelid = ours.oid AND a.attnum > 0) END,
            (SELECT concat_ws(' ', s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmin, s.seqmax, s.seqcache,
                              CASE WHEN s.seqcycle THEN 'CYCLE' END) FROM pg_sequence s WHERE s.seqrelid = ours.oid)),
          CASE WHEN relkind IN ('v', 'm') THEN
            (SELECT r.ev_action::text FROM pg_rewrite r WHERE r.ev_class = ours.oid AND r.rulename = '_RETURN') END,
          ${printed(`CASE WHEN relkind IN ('v', 'm') THEN pg_get_viewdef(ours.oid, true) END`)},
          CASE WHEN relkind = 'r' THEN ours.oid::bigint END
   FROM ours CROSS JOIN home WHERE relkind NOT IN ('i', 'I', 't', 'c')`,
  `SELECT 'column ' || relname || '.' || a.attname,
          concat_ws(' ', format_type(a.atttypid, a.atttypmod),
            CASE WHEN a.attcollation <> t.typcollation
                 THEN (SELECT ${named('collname', 'collnamespace', CATALOG)}
                       FROM pg_collation WHERE oid = a.attcollation) END,
            a.attstorage, CASE WHEN a.attnotnull THEN 'NOT NULL' END, a.attidentity, a.attgenerated,
            CASE WHEN d.oid IS NOT NULL THEN 'DEFAULT' END),
          d.adbin::text, ${printed('pg_get_expr(d.adbin, d.adrelid)')}, NULL
   FROM ours JOIN pg_attribute a ON a.attrelid = ours.oid AND a.attnum > 0 AND NOT a.attisdropped
   JOIN pg_type t ON t.oid = a.atttypid
   LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
   WHERE relkind IN ('r', 'p', 'f')`,
  `SELECT 'constraint ' || relname || '.' || n.conname,
          concat_ws(' ', n.contype, ${columnNames('n.conrelid', 'n.conkey')},
            CASE WHEN n.contype = 'f' THEN
              concat_ws(' ', n.confrelid::regclass, ${columnNames('n.confrelid', 'n.confkey')}, n.confupdtype,
                        n.confdeltype, n.confmatchtype, ${columnNames('n.conrelid', 'n.confdelsetcols')}) END,
            CASE WHEN n.condeferrable THEN 'DEFERRABLE' END, CASE WHEN n.condeferred THEN 'DEFERRED' END,
            CASE WHEN NOT n.convalidated THEN 'NOT VALID' END,
            CASE WHEN EXISTS (SELECT FROM pg_trigger g
                              WHERE g.tgconstraint = n.oid AND g.tgisinternal AND g.tgenabled <> 'O')
                 THEN 'SWITCHED OFF' END),
          n.conbin::text, ${printed('pg_get_constraintdef(n.oid, true)')}, NULL
   FROM ours JOIN pg_constraint n ON n.conrelid = ours.oid WHERE n.contype IN ('p', 'u', 'c', 'f', 'x')`,
  `SELECT 'index ' || ours.relname,
          concat_ws(' ', i.indrelid::regclass, m.amname, i.indnkeyatts, ${columnNames('i.indrelid', 'i.indkey')},
            (SELECT string_agg((SELECT ${named('o.opcname', 'o.opcnamespace', CATALOG)}
                                FROM pg_opclass o WHERE o.oid = k.oid), ',' ORDER BY k.place)
             FROM unnest(i.indclass) WITH ORDINALITY AS k (oid, place)),
            (SELECT string_agg(coalesce((SELECT ${named('o.collname', 'o.collnamespace', CATALOG)}
                                         FROM pg_collation o WHERE o.oid = k.oid), '-'), ',' ORDER BY k.place)
             FROM unnest(i.indcollation) WITH ORDINALITY AS k (oid, place)),
            i.indoption::text, CASE WHEN i.indisunique THEN 'UNIQUE' END, CASE WHEN i.indisprimary THEN 'PRIMARY' END,
            CASE WHEN i.indnullsnotdistinct THEN 'NULLS NOT DISTINCT' END,
            CASE WHEN NOT i.indimmediate THEN 'DEFERRABLE' END, CASE WHEN i.indpred IS NOT NULL THEN 'PARTIAL' END,
            CASE WHEN NOT i.indisvalid THEN 'INVALID' END),
          concat(i.indexprs::text, i.indpred::text), ${printed('pg_get_indexdef(i.indexrelid, 0, true)')}, NULL
   FROM ours JOIN pg_index i ON i.indexrelid = ours.oid
   JOIN pg_class c ON c.oid = ours.oid JOIN pg_am m ON m.oid = c.relam`,
];

const codeOf = (printed: ExpressionPrinter): readonly string[] => [
  `SELECT 'trigger ' || relname || '.' || g.tgname,
          concat_ws(' ', g.tgtype, ${named('p.proname', 'p.pronamespace', 'home.oid')}, g.tgenabled,
            ${columnNames('g.tgrelid', 'g.tgattr')},
            CASE WHEN g.tgdeferrable THEN 'DEFERRABLE' END, CASE WHEN g.tginitdeferred THEN 'DEFERRED' END,
            'OLD TABLE ' || g.tgoldtable, 'NEW TABLE ' || g.tgnewtable, encode(g.tgargs, 'hex'),
            CASE WHEN g.tgqual IS NOT NULL THEN 'WHEN' END),
          g.tgqual::text, ${printed('pg_get_triggerdef(g.oid, true)')}, NULL
   FROM ours JOIN pg_trigger g ON g.tgrelid = ours.oid AND NOT g.tgisinternal JOIN pg_proc p ON p.oid = g.tgfoid
   CROSS JOIN home`,
  `SELECT 'rule ' || relname || '.' || r.rulename, concat_ws(' ', r.ev_type, r.is_instead, r.ev_enabled),
          r.ev_action::text, ${printed('pg_get_ruledef(r.oid, true)')}, NULL
   FROM ours JOIN pg_rewrite r ON r.ev_class = ours.oid AND r.rulename <> '_RETURN'`,
  `SELECT 'policy ' || relname || '.' || y.polname, concat_ws(' ', y.polcmd, y.polpermissive),
          concat(y.polqual::text, y.polwithcheck::text),
          ${printed(`concat_ws(' ', pg_get_expr(y.polqual, y.polrelid), pg_get_expr(y.polwithcheck, y.polrelid))`)},
          NULL
   FROM ours JOIN pg_policy y ON y.polrelid = ours.oid`,
  `SELECT 'function ' || p.proname || '(' || arguments || ')',
          concat_ws(' ', p.prokind, l.lanname, pg_get_function_result(p.oid), p.proargnames, p.pronargdefaults,
            p.provolatile, p.proparallel, CASE WHEN p.proisstrict THEN 'STRICT' END,
            CASE WHEN p.prosecdef THEN 'SECURITY DEFINER' END, CASE WHEN p.proleakproof THEN 'LEAKPROOF' END,
            p.procost, p.prorows, p.proconfig, CASE WHEN p.proowner <> home.owner THEN 'OWNED BY ANOTHER' END,
            p.prosrc),
          concat(p.prosqlbody::text, p.proargdefaults::text),
          ${printed(`CASE WHEN p.prokind <> 'a' THEN replace(pg_get_functiondef(p.oid), home.name || '.', '') END`)},
          NULL
   FROM functions JOIN pg_proc p USING (oid) JOIN pg_language l ON l.oid = p.prolang CROSS JOIN home`,
  `SELECT 'domain ' || t.typname,
          concat_ws(' ', format_type(t.typbasetype, t.typtypmod),
            (SELECT collname FROM pg_collation WHERE oid = t.typcollation), CASE WHEN t.typnotnull THEN 'NOT NULL' END,
            CASE WHEN t.typdefault IS NOT NULL THEN 'DEFAULT' END,
            (SELECT string_agg(concat(n.conname, CASE WHEN NOT n.convalidated THEN ' NOT VALID' END), ' '
                               ORDER BY n.conname)
             FROM pg_constraint n WHERE n.contypid = t.oid AND n.contype = 'c')),
          concat(t.typdefaultbin::text,
            (SELECT string_agg(n.conbin::text, ' ' ORDER BY n.conname)
             FROM pg_constraint n WHERE n.contypid = t.oid AND n.contype = 'c')),
          ${printed(`concat_ws(' ', t.typdefault,
            (SELECT string_agg(n.conname || ' ' || pg_get_constraintdef(n.oid, true), ' ' ORDER BY n.conname)
             FROM pg_constraint n WHERE n.contypid = t.oid AND n.contype = 'c'))`)}, NULL
   FROM pg_type t CROSS JOIN home WHERE t.typtype = 'd' AND t.typnamespace = home.oid`,
];

const PLAIN: readonly string[] = [
  `SELECT 'inheritance ' || relname, i.inhparent::regclass::text, ${NO_TREE}
   FROM ours JOIN pg_inherits i ON i.inhrelid = ours.oid`,
  // Omits privileges that only allow reading: a hosted database may have a role for reports, which also calls the
  // functions of views.
  `SELECT 'privileges on ' || name,
          string_agg(grantee || ': ' || privileges, '; ' ORDER BY grantee COLLATE "C"), ${NO_TREE}
   FROM (
     SELECT g.name, CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(g.grantee) END AS grantee,
            string_agg(g.privilege_type || CASE WHEN g.is_grantable THEN ' (to grant)' ELSE '' END, ', '
                       ORDER BY g.privilege_type) AS privileges
     FROM (
       SELECT 'schema' AS name, home.acl_owner AS owner, false AS reads, x.*
       FROM home CROSS JOIN LATERAL aclexplode(home.acl) AS x
       UNION ALL
       SELECT relname, relowner, false, x.* FROM ours CROSS JOIN LATERAL aclexplode(relacl) AS x
       UNION ALL
       SELECT relname || '.' || a.attname, relowner, false, x.*
       FROM ours JOIN pg_attribute a ON a.attrelid = ours.oid CROSS JOIN LATERAL aclexplode(a.attacl) AS x
       UNION ALL
       SELECT proname || '(' || arguments || ')', proowner, provolatile <> 'v' AND NOT prosecdef, x.*
       FROM functions CROSS JOIN LATERAL aclexplode(coalesce(proacl, acldefault('f', proowner))) AS x
     ) AS g
     WHERE g.grantee <> g.owner
       AND (g.grantee = coalesce(to_regrole('reckoner_app'), 0)
            OR g.privilege_type NOT IN ('SELECT', 'USAGE') AND NOT (g.reads AND g.grantee <> 0))
     GROUP BY g.name, g.grantee
   ) AS granted
   GROUP BY name`,
  `SELECT 'default privileges of ' || pg_get_userbyid(d.defaclrole), d.defaclobjtype::text || ' ' || d.defaclacl::text,
          ${NO_TREE}
   FROM pg_default_acl d CROSS JOIN home WHERE d.defaclnamespace = home.oid
     AND EXISTS (SELECT FROM aclexplode(d.defaclacl) AS x
                 WHERE x.grantee <> d.defaclrole AND x.privilege_type NOT IN ('SELECT', 'USAGE'))`,
  `SELECT 'event trigger ' || evtname, concat_ws(' ', evtevent, evtfoid::regproc, evtenabled), ${NO_TREE}
   FROM pg_event_trigger e
   WHERE EXISTS (SELECT FROM functions f WHERE f.oid = e.evtfoid)`,
  // An object of a different schema with one of our names could be read or run instead of ours.
  `SELECT 'shadow ' || n.nspname || '.' || c.relname, c.relkind::text, ${NO_TREE}
   FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND n.oid <> (SELECT oid FROM home)
     AND c.relkind IN ('r', 'v', 'm', 'S', 'f', 'p')
     AND c.relname IN (SELECT relname FROM ours WHERE relkind IN ('r', 'v', 'm', 'S'))`,
  `SELECT 'shadow ' || n.nspname || '.' || p.proname || '()', pg_get_function_identity_arguments(p.oid), ${NO_TREE}
   FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
   WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND n.oid <> (SELECT oid FROM home)
     AND p.proname IN (SELECT proname FROM functions)`,
  // Settings that change the meaning of a statement or disable guards. Other settings, such as timeouts, are the
  // operator's choice.
  `SELECT 'setting ' || split_part(setting, '=', 1),
          concat_ws(' ', setting, 'in the database', d.datname, 'for the role', pg_get_userbyid(nullif(s.setrole, 0))),
          ${NO_TREE}
   FROM pg_db_role_setting s LEFT JOIN pg_database d ON d.oid = s.setdatabase
   CROSS JOIN LATERAL unnest(s.setconfig) AS setting
   WHERE (s.setdatabase = 0 OR d.datname = current_database())
     AND split_part(setting, '=', 1) IN ('session_replication_role', 'search_path', 'row_security', 'role',
       'event_triggers', 'transform_null_equals', 'session_preload_libraries', 'local_preload_libraries',
       'default_transaction_isolation')`,
  `SELECT 'setting session_replication_role', 'is ' || current_setting('session_replication_role'), ${NO_TREE}
   WHERE current_setting('session_replication_role') <> 'origin'`,
  `SELECT 'role reckoner_app',
          concat_ws(' ', CASE WHEN r.rolsuper THEN 'SUPERUSER' END, CASE WHEN r.rolcreaterole THEN 'CREATEROLE' END,
            CASE WHEN r.rolbypassrls THEN 'BYPASSRLS' END, CASE WHEN r.rolreplication THEN 'REPLICATION' END,
            (SELECT 'MEMBER OF ' || string_agg(pg_get_userbyid(m.roleid), ', ') FROM pg_auth_members m
             WHERE m.member = r.oid)), ${NO_TREE}
   FROM pg_roles r WHERE r.rolname = 'reckoner_app'`,
];

const objectsOf = (printed: ExpressionPrinter) => `
WITH home AS (
  SELECT n.oid, n.nspname AS name, n.nspacl AS acl, n.nspowner AS acl_owner, c.relowner AS owner
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass('migrations')
), ours AS MATERIALIZED (${OURS}
), functions AS MATERIALIZED (${OUR_FUNCTIONS}
), found (object, facts, tree, printed, oid) AS (
  ${[...tablesOf(printed), ...codeOf(printed), ...PLAIN].join('\n  UNION ALL\n  ')}
)
SELECT object, string_agg(facts, E'\\n' ORDER BY facts COLLATE "C") AS facts,
       left(encode(sha256(convert_to(nullif(string_agg(tree, E'\\n' ORDER BY facts COLLATE "C"), ''), 'UTF8')),
                   'hex'), 32) AS tree,
       string_agg(printed, E'\\n' ORDER BY facts COLLATE "C") AS printed, min(oid) AS oid
FROM found GROUP BY object ORDER BY object COLLATE "C"`;

const OBJECTS = objectsOf(() => 'NULL::text');
const PRINTED_OBJECTS = objectsOf((sql) => sql);

/**
 * Returns every object of the schema that holds the migrations, and objects and settings that could replace or disable
 * one.
 */
export async function readSchemaObjects(tx: Transaction, printed: 'printed' | 'facts' = 'facts') {
  // JIT compilation of this query takes 0.4 s or more.
  await execute(tx, 'SET LOCAL quote_all_identifiers TO off; SET LOCAL jit TO off');
  const objects = await query<SchemaObject>(tx, printed === 'facts' ? OBJECTS : PRINTED_OBJECTS);
  await execute(tx, 'SET LOCAL jit TO DEFAULT');
  return objects;
}
