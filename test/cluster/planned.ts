/** Which statements Citus can plan if ledger_rows is distributed by partner, and its reasons to refuse others. */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

export interface Statement {
  readonly session: string;
  readonly text: string;
  readonly values: readonly unknown[];
  /** The file and function of the program that sends it. */
  readonly sender: string;
}

export type Planned = Readonly<{ sender: string; refused: string | undefined }>;

const OWN_ID = '(coalesce($1.reversal_id, $1.requote_id, $1.quote_id))::identifier';

/**
 * What stands in the way of distributing the rows goes: foreign keys to them, their triggers, their child table, and the
 * functions that take a whole row, or move a month.
 */
export const DISTRIBUTE = `
  SET client_min_messages TO error;
  DO $do$ DECLARE
    each record;
    own CONSTANT text := '${OWN_ID.replaceAll('$', '\\')}';
  BEGIN
    FOR each IN SELECT conrelid::regclass AS name, conname FROM pg_constraint
                WHERE contype = 'f' AND confrelid = 'ledger_rows'::regclass LOOP
      EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', each.name, each.conname);
    END LOOP;
    FOR each IN SELECT tgname FROM pg_trigger WHERE tgrelid = 'ledger_rows'::regclass AND NOT tgisinternal LOOP
      EXECUTE format('DROP TRIGGER %I ON ledger_rows', each.tgname);
    END LOOP;
    FOR each IN SELECT format('CREATE OR REPLACE VIEW %s AS %s', oid::regclass, pg_get_viewdef(oid)) AS text FROM pg_class
                WHERE relkind = 'v' AND relnamespace = 'public'::regnamespace AND pg_get_viewdef(oid) ~ 'own_id\\('
                UNION ALL
                SELECT pg_get_functiondef(oid) FROM pg_proc
                WHERE prokind = 'f' AND pronamespace = 'public'::regnamespace AND pg_get_functiondef(oid) ~ 'own_id\\(\\w+\\.\\*' LOOP
      EXECUTE regexp_replace(each.text, 'own_id\\((\\w+)\\.\\*\\)', own, 'g');
    END LOOP;
  END $do$;
  DROP TABLE rows_elsewhere;
  DROP FUNCTION own_id(ledger_rows);
  DROP FUNCTION row_leaf(ledger_rows) CASCADE;
  DROP FUNCTION archive_month CASCADE;
  SELECT create_distributed_table('ledger_rows', 'partner_id')`;

/** The table and the views over it. */
const NAMES = `
  WITH RECURSIVE readers AS (
    SELECT 'ledger_rows'::regclass AS oid
    UNION SELECT w.ev_class FROM readers r
    JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = r.oid AND d.classid = 'pg_rewrite'::regclass
    JOIN pg_rewrite w ON w.oid = d.objid)
  SELECT oid::regclass::text AS name FROM readers`;

/** The columns of a table that was just made, to make one like it. */
const COLUMNS = `
  SELECT string_agg(format('%I %s', attname, format_type(atttypid, atttypmod)), ', ' ORDER BY attnum) AS columns
  FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped`;

const PLANNABLE =
  /^(SELECT|WITH|INSERT|UPDATE|DELETE|CREATE (TEMP |TEMPORARY |UNLOGGED )?TABLE \S+( ON COMMIT DROP)?\s+AS)\b/i;
/** What later statements of a transaction need. */
const MAKES =
  /^(CREATE (?!.*FUNCTION)|ALTER|DROP|SET\b.*search_path|SELECT (pg_catalog\.)?set_config\('search_path|SELECT open_archive)/i;
const MADE = /^CREATE (?:(?:TEMP|TEMPORARY|UNLOGGED) )?(?:TABLE|VIEW) (?:IF NOT EXISTS )?([\w.]+)/i;

/** What a COPY reads. */
const readOf = (text: string): string => /^COPY\s*\(([\s\S]*)\)\s*TO STDOUT/i.exec(text)?.[1] ?? text;

const bare = (text: string): string =>
  text
    .replace(/^\s*(--.*\n\s*)*/, '')
    .trim()
    .replace(/;$/, '');
/** Statements of one text, which are sent together if they have no parameters. */
const partsOf = ({ text, values }: Statement): string[] =>
  values.length > 0 || text.includes('$$')
    ? [bare(text)]
    : text
        .split(/;\s*(?:\n|$|(?=[A-Z]))/)
        .map(bare)
        .filter(Boolean);
/** The same for statements that differ in literals only. */
const keyOf = (text: string): string =>
  text
    .replace(/--.*\n/g, ' ')
    .replace(/\s+/g, ' ')
    .replace(/'[^']*'/g, `''`)
    .replace(/(?<!\$)\b\d+\b/g, '0');

async function connect(url: string): Promise<pg.Client> {
  // After a crash the server needs some seconds.
  for (let left = 60; ; left -= 1) {
    const client = new pg.Client(url);
    client.on('error', () => {});
    try {
      await client.connect();
      await client.query(`SET client_min_messages TO error; SET TIME ZONE 'UTC'`);
      return client;
    } catch (error) {
      await client.end().catch(() => {});
      if (left === 0) throw error;
      await sleep(500);
    }
  }
}

/** Runs a statement in a transaction, which goes on if it fails. Returns why it failed. */
async function tried(client: pg.Client, text: string, values: readonly unknown[]): Promise<string | undefined> {
  try {
    await client.query('SAVEPOINT before');
    await client.query(values.length > 0 ? { text, values: [...values] } : text);
    return undefined;
  } catch (error) {
    const [reason = ''] = (error as Error).message.split('\n');
    return client.query('ROLLBACK TO before').then(
      () => reason,
      () => CRASH,
    );
  }
}
const CRASH = 'the coordinator crashes';
/** What Citus says of a statement after one that failed on the same connection between servers. */
const ABORTED = /^current transaction is aborted/;

/** What made a table, in the plain and in the distributed database. */
type Made = Readonly<{ plain: string; citus: string; values: readonly unknown[] }>;

/**
 * Plans each distinct statement about rows as it comes in its session, after those that made the temporary tables that it
 * reads. A table that Citus refuses to make is made empty, with the columns that it has in the plain database.
 */
export async function planned(
  statements: readonly Statement[],
  at: Readonly<{ plain: string; distributed: string }>,
): Promise<Planned[]> {
  const found = new Map<string, Planned>();
  const plain = await connect(at.plain);
  let citus = await connect(at.distributed);
  const names = (await plain.query<{ name: string }>(NAMES)).rows.map(({ name }) => name);
  const aboutRows = new RegExp(`\\b(${names.join('|')})\\b`);
  let made: Made[] = [];

  /** Begins again on the cluster, with what was made so far. */
  async function resume(): Promise<void> {
    await citus.query('ROLLBACK; BEGIN').catch(async () => {
      citus = await connect(at.distributed);
      await citus.query('BEGIN');
    });
    for (const each of made) await tried(citus, each.citus, each.values);
  }
  async function begin(before: readonly Made[]): Promise<void> {
    made = [...before];
    await plain.query('ROLLBACK; BEGIN');
    for (const each of made) await tried(plain, each.plain, each.values);
    await resume();
  }

  async function plan(text: string, { values, sender }: Statement): Promise<void> {
    const read = written(readOf(text));
    let refused = await tried(citus, `EXPLAIN ${read}`, values);
    // Citus explains what it plans for the coordinator on another connection, which has no temporary tables.
    if (refused !== undefined && ABORTED.test(refused)) {
      await resume();
      refused = await tried(citus, read, values);
      await resume();
    }
    found.set(keyOf(text), { sender, refused });
    if (refused === CRASH) await resume();
  }

  async function make(text: string, values: readonly unknown[]): Promise<void> {
    await tried(plain, text, values);
    const each = { plain: text, citus: written(text), values };
    if ((await tried(citus, each.citus, values)) === undefined) {
      made.push(each);
      return;
    }
    const name = MADE.exec(text)?.[1] ?? 'pg_temp.archived_rows';
    const [{ columns } = { columns: null }] = (await plain.query(COLUMNS, [name])).rows;
    if (columns === null) return;
    made.push({ plain: text, citus: `CREATE TEMP TABLE ${name.replace(/^.*\./, '')} (${columns})`, values: [] });
    await resume();
  }

  const isNew = (text: string) => aboutRows.test(text) && PLANNABLE.test(readOf(text)) && !found.has(keyOf(text));
  for (const session of new Set(statements.map((each) => each.session))) {
    const all = statements.filter((each) => each.session === session);
    const last = all.findLastIndex((each) => partsOf(each).some(isNew));
    if (last === -1) continue;
    for (const client of [plain, citus]) {
      await client.query('ROLLBACK');
      await client.query('DISCARD ALL');
    }
    await begin([]);
    let lasting: readonly Made[] | undefined;
    for (const statement of all.slice(0, last + 1)) {
      for (const text of partsOf(statement)) {
        if (/^(BEGIN|START)\b/i.test(text)) {
          lasting ??= made;
          await begin(lasting);
        } else if (/^(COMMIT|ROLLBACK(?! TO))\b/i.test(text)) {
          made = [...(lasting ?? made)];
          lasting = undefined;
        }
        if (isNew(text)) await plan(text, statement);
        if (MAKES.test(text)) await make(text, statement.values);
      }
    }
  }
  await Promise.all([plain.end(), citus.end()]);
  return [...found.values()];
}

/** As if the functions over a whole row were written out. */
const written = (text: string): string => text.replace(/(?:public\.)?own_id\((\w+)(?:\.\*)?\)/g, OWN_ID);

/** The refused statements by reason and sender, with their numbers. */
export function listOf(refused: readonly Planned[]): string {
  const counted = (values: readonly string[]) =>
    [...new Set(values)].sort().map((value) => [value, values.filter((each) => each === value).length] as const);
  const reasons = counted(refused.map((each) => each.refused ?? ''));
  const parts = reasons.map(([reason, count]) => {
    const senders = counted(refused.filter((each) => each.refused === reason).map(({ sender }) => sender));
    return `${reason}: ${count}\n${senders.map(([sender, n]) => `  ${n} ${sender}\n`).join('')}`;
  });
  return parts.join('\n');
}
