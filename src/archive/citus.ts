/**
 * A cold store in a cluster of Citus: a table `cold_rows`, distributed by partner, with a columnar partition for each
 * month. The columns are the texts of the rows' lines in the log. The workers hash them.
 *
 * A month is written in one transaction, which commits in two phases because Citus manages `cold_months`. If a server
 * ends between them, the rows of some workers are invisible, and no read fails. So every read compares the numbers of
 * rows with those of the closes, and has Citus end such transactions if they differ. Once a day, a process also compares
 * the sums and roots of what it reads.
 */
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { connectionUrl } from '#database/address';
import { LOCKS } from '#database/locks';
import { connectClient, SESSION } from '#database/session';
import { reasonOf } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { Month } from '#month';
import { packageRoot } from '#package';
import {
  COLUMNS,
  FIELDS,
  Fill,
  LINE_COLUMNS,
  otherTotals,
  proveStatement,
  Reading,
  Scope,
  Store,
  StoreError,
  SUMS,
  texts,
} from './store.ts';

const LINE = `concat_ws(chr(9), 'ledger_rows', entry_id, ${FIELDS})`;
const LEAF = `sha256('\\x00'::bytea || convert_to(${LINE}, 'UTF8'))`;

/** `installation` is the ledger's. A schema has the months of one ledger. */
export const citusStore = (url: string, schema: string, installation: string): Store => {
  const at = namesOf(schema);
  const reading: Store['reading'] = (files, scope, work) =>
    connected(url, async (cluster) => {
      const { query } = cluster;
      const rows = at.rows(
        files.map(({ month }) => month),
        scope.partnerIds,
      );
      await query(BEGIN_READING);
      await compareRead(cluster, at, rows, scope);
      let lists = 0;
      return work({
        ...{ rows, query, leaf: `encode(${LEAF}, 'hex')`, json: ['array_agg', 'json_build_object'] },
        list: async (fill) => {
          lists += 1;
          await query(`SET LOCAL cold.list TO ${lists}`);
          await copyIn(cluster, `COPY ${at.lists} (partner_id, id) FROM STDIN`, fill);
          return `(SELECT partner_id, id FROM ${at.lists} WHERE list = ${lists} ${ofPartners(scope.partnerIds)})`;
        },
        async *copy(where) {
          const sql = `COPY (SELECT ${LINE_COLUMNS.join(', ')} FROM ${rows} WHERE ${where}) TO STDOUT`;
          const lines = cluster.client.query(copyTo(sql));
          try {
            for await (const piece of lines) yield piece as Buffer;
          } catch (error) {
            throw clusterError(error);
          }
        },
      });
    });
  return {
    isThere: () => connected(url, (cluster) => hasTables(cluster, at)),
    write: (...given) => connected(url, (cluster) => writeMonth(cluster, at, installation, given)),
    prove: (month) =>
      proveStatement(
        `${month}.statement`,
        connected(url, (cluster) => statementOf(cluster, at, month)),
        (_, stated) =>
          connected(url, async (cluster) => {
            await recover(cluster);
            return otherTotals(await totalsOf(cluster, at, at.rows([month])), stated);
          }),
      ),
    lost: (files, scope) =>
      reading(files, { ...scope, counted: true }, async ({ query }) => {
        const stated = (await query(`SELECT month FROM ${at.months}`)).map(String);
        const others = files.filter(({ month }) => !stated.includes(month));
        return others.map(({ month }) => ({ month, name: `${month}.statement` }));
      }),
    reading,
  };
};

async function statementOf({ query }: Cluster, at: Names, month: Month) {
  const [row] = await query(at.statement(month));
  if (row === undefined) throw new StoreError('the cluster does not have it');
  return String(row[0]);
}

/** Citus asks only the workers that have these partners. */
const ofPartners = (partnerIds: Scope['partnerIds']) =>
  partnerIds === undefined ? '' : `AND partner_id IN (${texts(partnerIds)})`;

function namesOf(schema: string) {
  const of = (name: string) => `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(name)}`;
  const all = of('cold_rows');
  return {
    ...{ schema: pg.escapeIdentifier(schema), all, months: of('cold_months'), lists: of('cold_lists') },
    ...{ root: of('tree_root'), month: (month: Month) => of(`rows_${month}`) },
    statement: (month: Month) => `SELECT statement FROM ${of('cold_months')} WHERE month = ${texts([month])}`,
    rows: (months: readonly Month[], partnerIds?: Scope['partnerIds']) =>
      `(SELECT * FROM ${all} WHERE billed IN (${texts(months)}) ${ofPartners(partnerIds)}) AS cold`,
  };
}
type Names = ReturnType<typeof namesOf>;

type Cluster = Pick<Reading, 'query'> & Readonly<{ client: pg.Client; url: string }>;

/** An error of the cluster. Other errors are not of the store. */
const clusterError = (error: unknown) =>
  error instanceof StoreError
    ? error
    : new StoreError(`its cluster answers: ${reasonOf(error).replaceAll(/\s+/g, ' ')}`, { cause: error });

const answered = <Result>(answer: Promise<Result>) =>
  answer.catch((error: unknown) => {
    throw clusterError(error);
  });

async function connected<Result>(url: string, work: (cluster: Cluster) => Promise<Result>) {
  const client = await answered(connectClient({ connectionString: connectionUrl(url), ...SESSION }));
  try {
    const query = async (text: string) =>
      (await answered(client.query({ text, rowMode: 'array' }))).rows as unknown[][];
    return await work({ client, query, url });
  } finally {
    await client.end().catch(() => {});
  }
}

const hasTables = async ({ query }: Pick<Reading, 'query'>, at: Names) =>
  (await query(`SELECT to_regclass(${texts([at.months])})`))[0]?.[0] !== null;

/** Has Citus end transactions whose parts are prepared on workers. Without this it does so each minute. */
const recover = ({ query }: Cluster) => query('SELECT recover_prepared_transactions()');

/** A transaction may wait for the ledger or for another store. */
const BEGIN = 'BEGIN; SET LOCAL idle_in_transaction_session_timeout TO 0; SET LOCAL standard_conforming_strings TO on';
/** Nothing that a read writes remains. Lists have no statistics, so the planner would take them for short. */
const BEGIN_READING = `${BEGIN}; SET LOCAL citus.propagate_set_commands TO local; SET LOCAL enable_nestloop TO off`;

/** The hashes of what this process has compared with the closes, and when, in milliseconds. */
const COMPARED = new Map<string, number>();
const A_DAY = 86_400_000;

/** Refuses rows that are not those that the closes counted. */
async function compareRead(cluster: Cluster, at: Names, rows: string, { stated, counted }: Scope) {
  const what = hash('sha256', `${cluster.url} ${rows}`);
  const compared = COMPARED.get(what);
  const isCounted = counted === true || (compared !== undefined && performance.now() - compared < A_DAY);
  const counts = `SELECT billed, partner_id, count(*) FROM ${rows} GROUP BY billed, partner_id`;
  const were = isCounted
    ? stated.map(({ month, partner_id, entries }) => `${month} ${partner_id} ${entries}`)
    : stated.flatMap(({ lines }) => lines);
  for (let attempt = 1; ; attempt += 1) {
    const are = isCounted
      ? (await cluster.query(counts)).map((row) => row.join(' '))
      : await totalsOf(cluster, at, rows, 'billed, ');
    const others = otherTotals(are, were);
    if (others.length === 0) break;
    if (attempt === 2) throw new StoreError(others.slice(0, 4).join(', '));
    await cluster.query('ROLLBACK');
    await recover(cluster);
    await cluster.query(BEGIN_READING);
  }
  if (!isCounted) COMPARED.set(what, performance.now());
}

/** The sums and roots of partners, each after the values of `more`. */
const totalsOf = async ({ query }: Cluster, at: Names, rows: string, more = '') => {
  const found = await query(
    `SELECT concat_ws(' ', ${more}partner_id, currency, arrangement, count(*), ${SUMS}, max(accepted_at),
                      encode(${at.root}(array_agg(${LEAF} ORDER BY entry_id)), 'base64'))
     FROM ${rows} GROUP BY ${more}partner_id, currency, arrangement`,
  );
  return found.map(([line]) => String(line)).sort();
};

async function copyIn({ client }: Cluster, sql: string, fill: Fill) {
  const copy = client.query(copyFrom(sql));
  const ended = finished(copy);
  ended.catch(() => {});
  await fill(async (piece) => {
    if (!copy.write(piece)) await answered(Promise.race([once(copy, 'drain'), ended]));
  });
  copy.end();
  await answered(ended);
}

type Write = Parameters<Store['write']>;

async function writeMonth(cluster: Cluster, at: Names, installation: string, [month, parts, stateOf]: Write) {
  const { query } = cluster;
  // Parts of an attempt that was killed have locks.
  await recover(cluster);
  // The ledger's rows are deleted afterwards.
  await query(`${BEGIN}; SET LOCAL synchronous_commit TO on; SELECT pg_advisory_xact_lock(${LOCKS.archives})`);
  if (!(await hasTables(cluster, at))) await query(tablesOf(at));
  const [other] = await query(`SELECT installation FROM ${at.months} WHERE installation <> ${texts([installation])}`);
  if (other !== undefined)
    throw new StoreError(`its schema has months of another ledger, ${other}: name another schema`);
  // What a backup may name is never replaced. The proof tells whether it is the same.
  if ((await query(at.statement(month))).length > 0) return;
  const own = at.month(month);
  await query(
    `CREATE TABLE ${own} (LIKE ${at.all}, CHECK (billed = '${month}')) USING columnar;
     ALTER TABLE ${own} ALTER billed SET DEFAULT '${month}';
     SELECT create_distributed_table(${texts([own])}, 'partner_id', colocate_with => ${texts([at.all])})`,
  );
  const columns = ['fact', ...LINE_COLUMNS].join(', ');
  for (const { copy } of parts) await copyIn(cluster, `COPY ${own} (${columns}) FROM STDIN`, copy);
  await query(`ALTER TABLE ${at.all} ATTACH PARTITION ${own} FOR VALUES IN ('${month}')`);
  const sha256 = hash('sha256', (await totalsOf(cluster, at, at.rows([month]))).join('\n'));
  const [[bytes] = []] = await query(`SELECT sum(octet_length(${LINE}) + 1) FROM ${at.rows([month])}`);
  const entries = parts.reduce((sum, part) => sum + part.entries, 0);
  const files = parts.slice(0, 1).map(({ from: partner_from }) => ({
    ...{ name: `rows_${month}`, sha256, bytes: Number(bytes), entries, partner_from },
    partner_to: parts.at(-1)?.last ?? partner_from,
  }));
  await query(`INSERT INTO ${at.months} VALUES (${texts([month, await stateOf(files), installation])})`);
  failpoint('archive.copied');
  await query('COMMIT');
  await recover(cluster);
  failpoint('archive.written');
}

/** The function is that of the ledger's database. */
const [TREE_ROOT] = /CREATE FUNCTION tree_root[\s\S]*?\n\$\$/.exec(
  readFileSync(join(packageRoot, 'migrations', '016_archive.sql'), 'utf8'),
) as [string];

/** A list exists only in the transaction of its read, which is rolled back. */
const tablesOf = (at: Names) => `
  CREATE SCHEMA IF NOT EXISTS ${at.schema};
  CREATE TABLE ${at.months} (month text PRIMARY KEY, statement text NOT NULL, installation text NOT NULL);
  SELECT citus_add_local_table_to_metadata(${texts([at.months])});
  CREATE TABLE ${at.all} (
    billed text COLLATE "C" NOT NULL, fact text NOT NULL, entry_id bigint NOT NULL,
    ${COLUMNS.map(({ name, nullable }) => `${name} text COLLATE "C"${nullable ? '' : ' NOT NULL'}`).join(', ')}
  ) PARTITION BY LIST (billed);
  SELECT create_distributed_table(${texts([at.all])}, 'partner_id', colocate_with => 'none');
  CREATE UNLOGGED TABLE ${at.lists} (
    list integer NOT NULL DEFAULT current_setting('cold.list')::integer,
    partner_id text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL);
  SELECT create_distributed_table(${texts([at.lists])}, 'partner_id', colocate_with => ${texts([at.all])});
  ${TREE_ROOT.replace('tree_root', at.root)}`;
