/**
 * What the schema of a database amounts to, for reading: each table with its columns, constraints, indexes and
 * triggers, each view with its columns, each function with its signature, in the order of the migrations. Definitions
 * stand in the migrations. Here each object has a hash of PostgreSQL's own text of everything that belongs to it. The
 * description is written from PostgreSQL's catalogs, so nothing that a migration made is missing.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MIGRATION_NAMES } from '../../src/database/migrate.ts';
import { packageRoot } from '../../src/package.ts';

type Ask = <Row extends object>(sql: string) => Promise<Row[]>;

/** A piece of an object. The pieces of one object have the same `place`, which is the order of creation. */
interface Piece {
  readonly place: number;
  /** The name of the object. */
  readonly name: string;
  /** The kind of the object, or the line of a table on which the piece is printed. */
  readonly title: string;
  /** What is printed. */
  readonly brief: string;
  /** What is hashed. */
  readonly text: string;
}

const OURS = `'public'::regnamespace AND c.relname NOT LIKE 'migrations%'`;

const RELATIONS = `
  SELECT c.oid::int AS place, c.relname AS name,
         CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'TABLE' END AS title,
         c.relname AS brief,
         concat_ws(' ', c.relpersistence, c.reloptions,
                   CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid, true) END) AS text
  FROM pg_class c WHERE c.relkind IN ('r', 'p', 'v', 'm') AND c.relnamespace = ${OURS}`;

const COLUMNS = `
  SELECT c.oid::int AS place, c.relname AS name, 'columns' AS title,
         CASE WHEN c.relkind IN ('v', 'm') THEN a.attname ELSE
           concat_ws(' ', a.attname, replace(type, 'timestamp with time zone', 'timestamptz'),
             CASE WHEN NOT a.attnotnull THEN 'null' END,
             CASE WHEN a.attidentity <> '' THEN 'identity' WHEN a.attgenerated <> '' THEN 'generated'
                  WHEN d.oid IS NOT NULL THEN 'default' END) END AS brief,
         concat_ws(' ', a.attname, type, a.attcollation, a.attstorage, a.attnotnull, a.attidentity, a.attgenerated,
                   pg_get_expr(d.adbin, d.adrelid)) AS text
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  CROSS JOIN LATERAL format_type(a.atttypid, a.atttypmod) AS type
  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  WHERE c.relkind IN ('r', 'p', 'v', 'm') AND c.relnamespace = ${OURS}
  ORDER BY a.attnum`;

/** Prints the columns of keys, and the names that PostgreSQL did not make itself. */
const CONSTRAINTS = `
  SELECT c.oid::int AS place, c.relname AS name,
         CASE n.contype WHEN 'p' THEN 'key' WHEN 'u' THEN 'unique' WHEN 'f' THEN 'references' ELSE 'checks' END AS title,
         CASE WHEN n.contype IN ('c', 'x') THEN n.conname ELSE
           concat_ws(' ', CASE WHEN n.conname !~ '_(pkey|key|fkey)$' THEN n.conname END, columns,
                     'of ' || nullif(n.confrelid, 0)::regclass) END AS brief,
         concat_ws(' ', n.conname, pg_get_constraintdef(n.oid, true)) AS text
  FROM pg_constraint n JOIN pg_class c ON c.oid = n.conrelid
  CROSS JOIN LATERAL (
    SELECT '(' || string_agg(a.attname, ', ' ORDER BY k.place) || ')'
    FROM unnest(n.conkey) WITH ORDINALITY AS k (attnum, place)
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum) AS keyed (columns)
  WHERE n.contype IN ('p', 'u', 'c', 'f', 'x') AND c.relnamespace = ${OURS}
  ORDER BY position(n.contype::text IN 'pufxc'), n.oid`;

/** Indexes that belong to no constraint. A condition is hashed only. */
const INDEXES = `
  SELECT i.indrelid::int AS place, i.indrelid::regclass AS name, 'indexes' AS title,
         concat_ws(' ', c.relname, CASE WHEN i.indisunique THEN 'unique' END,
                   substring(text FROM ' USING (?:btree )?(.*?)(?: INCLUDE .*| WITH .*| WHERE .*)?$')) AS brief,
         text
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
  CROSS JOIN LATERAL pg_get_indexdef(i.indexrelid, 0, true) AS text
  WHERE c.relnamespace = ${OURS} AND NOT EXISTS (SELECT FROM pg_constraint n WHERE n.conindid = i.indexrelid)
  ORDER BY i.indexrelid`;

const TRIGGERS = `
  SELECT c.oid::int AS place, c.relname AS name, 'triggers' AS title,
         t.tgname || CASE WHEN t.tgenabled <> 'A' THEN ' not always' ELSE '' END AS brief,
         concat_ws(' ', pg_get_triggerdef(t.oid, true), t.tgenabled) AS text
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
  WHERE c.relnamespace = ${OURS} AND NOT t.tgisinternal
  ORDER BY t.tgname COLLATE "C"`;

/** Sequences that belong to no identity column. */
const SEQUENCES = `
  SELECT c.oid::int AS place, c.relname AS name, 'SEQUENCE' AS title, c.relname AS brief,
         concat_ws(' ', s.seqtypid::regtype, s.seqstart, s.seqincrement) AS text
  FROM pg_class c JOIN pg_sequence s ON s.seqrelid = c.oid
  WHERE c.relnamespace = ${OURS}
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'i' AND d.refobjsubid > 0)`;

/** Prints the privileges that do not follow from the rule of `close_functions`. */
const FUNCTIONS = `
  SELECT p.oid::int AS place, p.proname AS name, CASE p.prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END AS title,
         concat_ws(' ', format('%s(%s)', p.proname, pg_get_function_arguments(p.oid)), pg_get_function_result(p.oid),
           CASE WHEN p.prosecdef THEN 'security definer' END,
           CASE WHEN has_function_privilege('public', p.oid, 'EXECUTE') THEN 'for everybody' END,
           CASE WHEN has_function_privilege('reckoner_app', p.oid, 'EXECUTE')
                     <> (p.prokind = 'f' AND p.prorettype <> 'trigger'::regtype) THEN 'granted otherwise' END) AS brief,
         pg_get_functiondef(p.oid) AS text
  FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace`;

const DOMAINS = `
  SELECT t.oid::int AS place, t.typname AS name, 'DOMAIN' AS title,
         concat_ws(' ', t.typname, format_type(t.typbasetype, t.typtypmod)) AS brief,
         concat_ws(' ', t.typcollation::regcollation,
                   (SELECT string_agg(concat_ws(' ', n.conname, pg_get_constraintdef(n.oid, true)), ' ' ORDER BY n.conname)
                    FROM pg_constraint n WHERE n.contypid = t.oid AND n.contype = 'c')) AS text
  FROM pg_type t WHERE t.typtype = 'd' AND t.typnamespace = 'public'::regnamespace`;

const OBJECTS = [DOMAINS, SEQUENCES, RELATIONS, FUNCTIONS, COLUMNS, CONSTRAINTS, INDEXES, TRIGGERS];

/**
 * The privileges of roles other than the owner. Those on functions follow from a rule, and so does reading sequences.
 * Statements on the same objects are one.
 */
const GRANTS = `
  SELECT format('GRANT %s ON %s%s TO %s;', privileges, kind, string_agg(name, ', ' ORDER BY place), grantee) AS "grant"
  FROM (
    SELECT o.place, o.name, o.kind, string_agg(g.privilege_type || o.columns, ', ' ORDER BY g.privilege_type) AS privileges,
           CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END AS grantee
    FROM (
      SELECT c.oid::int AS place, c.relname AS name, CASE c.relkind WHEN 'S' THEN 'SEQUENCE ' ELSE '' END AS kind,
             '' AS columns, c.relacl AS acl, c.relowner AS owner
      FROM pg_class c WHERE c.relnamespace = ${OURS}
      UNION ALL
      SELECT c.oid::int, c.relname, '', format(' (%s)', a.attname), a.attacl, c.relowner
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relnamespace = ${OURS}) AS o
    CROSS JOIN LATERAL aclexplode(o.acl) AS g
    WHERE g.grantee <> o.owner AND g.grantee IS DISTINCT FROM to_regrole('reckoner_reader')
    GROUP BY o.place, o.name, o.kind, o.columns, g.grantee) AS granted
  WHERE (kind, privileges) <> ('SEQUENCE ', 'SELECT')
  GROUP BY kind, privileges, grantee
  ORDER BY grantee, kind, privileges`;

const HEAD = `/*
What the migrations make, in their order. Generated for reading: change a migration, then run npm run db:schema.
Definitions and reasons stand in the migrations. The hash of an object changes with every part of its definition.
A FACT is a table to which make_fact added log_no with its check and index, and the triggers append_only, fact_number
and facts_in_order. A column may be null where it says so. Every trigger is enabled always. The app may call every
function that is no trigger, and read every sequence.
`;

/** Which migration creates an object of this name. */
function migrationsByName(): Map<string, string> {
  const found = new Map<string, string>();
  for (const migration of MIGRATION_NAMES) {
    const sql = readFileSync(join(packageRoot, 'migrations', `${migration}.sql`), 'utf8');
    const created = /^CREATE (?:OR REPLACE |UNLOGGED )?(?:TABLE|VIEW|SEQUENCE|FUNCTION|PROCEDURE|DOMAIN) (\w+)/gm;
    for (const [, name = ''] of sql.matchAll(created)) found.set(name, migration);
  }
  return found;
}

/** Breaks a line after commas, so that it has at most 120 columns. The lines after the first are indented more. */
function wrapped(line: string): string {
  const indent = `\n${/^ */.exec(line)?.[0]}  `;
  let [text = '', ...words] = line.split(/(?<=,) /);
  let columns = text.length;
  for (const word of words) {
    const fits = columns + 1 + word.length <= 120;
    text += `${fits ? ' ' : indent}${word}`;
    columns = fits ? columns + 1 + word.length : indent.length - 1 + word.length;
  }
  return `${text}\n`;
}

/** What `make_fact` adds to a table. */
const ofFact = (table: string): readonly string[] => [
  ...['log_no bigint', `${table}_fact_positive`, `${table}_fact unique (log_no)`],
  ...['append_only', 'fact_number', 'facts_in_order'],
];

/** The lines of an object: its name and hash, and what belongs to it, one line for each kind. */
function describeObject(pieces: readonly Piece[]): string {
  const hash = createHash('sha256');
  for (const { text } of pieces) hash.update(`${text}\n`);
  const [{ title: kind = '', name = '', brief: signature = '' } = {}, ...parts] = pieces;
  const isFact = ofFact(name).every((brief) => parts.some((part) => part.brief === brief));
  const lines = new Map<string, string[]>();
  for (const { title, brief } of parts) {
    if (!(isFact && ofFact(name).includes(brief))) lines.set(title, [...(lines.get(title) ?? []), brief]);
  }
  return [
    `${isFact ? 'FACT' : kind} ${signature} #${hash.digest('hex').slice(0, 8)}`,
    ...[...lines].map(([title, briefs]) => `  ${title}: ${briefs.join(', ')}`),
  ]
    .map(wrapped)
    .join('');
}

export async function dumpSchema(ask: Ask): Promise<string> {
  const objects = new Map<number, Piece[]>();
  for (const kind of OBJECTS) {
    for (const piece of await ask<Piece>(kind)) objects.set(piece.place, [...(objects.get(piece.place) ?? []), piece]);
  }
  const migrations = migrationsByName();
  let text = HEAD;
  let heading = '';
  for (const [, pieces] of [...objects].sort(([one], [other]) => one - other)) {
    const migration = migrations.get(pieces[0]?.name ?? '') ?? 'made by no migration';
    if (migration !== heading) text += `\n-- ${migration} ${'-'.repeat(116 - migration.length)}\n\n`;
    heading = migration;
    text += describeObject(pieces);
  }
  const grants = await ask<{ readonly grant: string }>(GRANTS);
  return `${text}*/\n\n${grants.map(({ grant }) => wrapped(grant)).join('')}`;
}
