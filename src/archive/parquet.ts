/**
 * Rows of the ledger as Parquet files, written and read by DuckDB. The columns are those of the rows' lines in the log,
 * as texts, with the number of the row and the hash of its leaf. A line can be written again from the columns exactly, so
 * every row can be proved. The same rows make the same bytes, with the same version of DuckDB.
 *
 * DuckDB is an optional dependency, because its library has 70 MB. Refusal: duckdb_missing.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { DuckDBConnection } from '@duckdb/node-api';
import { reasonOf, refuse } from '../errors/refusals.ts';
import { codeOf } from '../files.ts';
import { GROUP_AMOUNTS, GROUP_COLUMNS, GROUP_KEYS, GROUPED } from '../ledger/row-groups.sql.ts';
import { LOG_FORMS } from '../log/forms.ts';

const COLUMNS = LOG_FORMS.find(({ kind }) => kind === 'ledger_rows')?.columns ?? [];
/** The columns of a line of `readRows`. */
export const LINE_COLUMNS: readonly string[] = ['entry_id', ...COLUMNS.map(({ name }) => name)];

const text = (value: string): string => `'${value.replaceAll("'", "''")}'`;
const list = (values: readonly string[]): string => `[${values.map(text).join(', ')}]`;

const AMOUNT = 'DECIMAL(38, 4)';

/** The fields of a line, as the log and COPY write them. */
const FIELDS = COLUMNS.map(({ name, nullable }) =>
  nullable ? `coalesce(replace(${name}, '\\', '\\\\'), '\\N')` : name,
).join(', ');
const LEAF = `unhex(sha256('\\x00'::BLOB || encode(concat_ws(chr(9), 'ledger_rows', entry_id, ${FIELDS}))))`;

/** The lines of a file that COPY wrote, as rows of named columns with DuckDB's types. */
function linesIn(path: string, columns: Readonly<Record<string, string>>): string {
  const types = Object.entries(columns).map(([name, type]) => `${name}: '${type}'`);
  return `read_csv(${text(path)}, delim = '\t', header = false, auto_detect = false, quote = '', escape = '',
    nullstr = '\\N', columns = {${types.join(', ')}})`;
}

/** A folder for files that exist only while `work` runs, and DuckDB in one thread, which keeps the order of rows. */
export async function withDuckDb<Result>(
  work: (connection: DuckDBConnection, folder: string) => Promise<Result>,
): Promise<Result> {
  const { DuckDBInstance } = await import('@duckdb/node-api').catch((error: unknown) => {
    if (codeOf(error) !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw refuse('duckdb_missing', {});
  });
  const folder = await mkdtemp(join(tmpdir(), 'reckoner-archive-'));
  try {
    const duckdb = await DuckDBInstance.create(':memory:', {
      ...{ threads: '1', memory_limit: '1GB', temp_directory: folder, autoinstall_known_extensions: 'false' },
    });
    const connection = await duckdb.connect();
    try {
      return await work(connection, folder);
    } finally {
      connection.closeSync();
      duckdb.closeSync();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Writes the rows of a file of lines of the log, by partner and in the order of the log. */
export async function writeParquet(connection: DuckDBConnection, lines: string, target: string): Promise<void> {
  const texts = COLUMNS.map(({ name }) => [name, 'VARCHAR'] as const);
  const read = { kind_of_fact: 'VARCHAR', entry_id: 'BIGINT', ...Object.fromEntries(texts) };
  const columns = COLUMNS.map(({ name, nullable }) =>
    nullable ? `replace(${name}, '\\\\', '\\') AS ${name}` : name,
  ).join(', ');
  await connection.run(
    `COPY (SELECT *, ${LEAF} AS leaf FROM (
       SELECT entry_id, ${columns} FROM ${linesIn(lines, read)})
     ORDER BY partner_id, entry_id) TO ${text(target)} (FORMAT parquet, COMPRESSION zstd)`,
  );
}

/** Reads the totals and roots of partners, as the columns of month_partners from the second on, with spaces between. */
export async function readTotals(connection: DuckDBConnection, files: readonly string[]): Promise<string[]> {
  const sums = GROUP_AMOUNTS.map((name) => `rtrim(rtrim(sum(${name}::${AMOUNT})::VARCHAR, '0'), '.')`);
  const totals: string[] = [];
  for (const file of files) {
    const read = await connection.runAndReadAll(
      `WITH RECURSIVE own AS (
         SELECT *, concat_ws(' ', partner_id, currency, arrangement) AS k FROM read_parquet(${text(file)})),
       tree (k, i, hash, n) AS (
         SELECT k, row_number() OVER (PARTITION BY k ORDER BY entry_id) - 1, ${LEAF}, count(*) OVER (PARTITION BY k)
         FROM own
         UNION ALL
         SELECT l.k, l.i // 2, coalesce(unhex(sha256('\\x01'::BLOB || l.hash || r.hash)), l.hash), (l.n + 1) // 2
         FROM tree l LEFT JOIN tree r ON r.k = l.k AND r.i = l.i + 1 WHERE l.i % 2 = 0 AND l.n > 1)
       SELECT concat_ws(' ', k, count(*), ${sums.join(', ')}, max(accepted_at), any_value(to_base64(hash)))
       FROM own JOIN tree USING (k) WHERE n = 1 GROUP BY k`,
    );
    for (const [line] of read.getRows()) totals.push(String(line));
  }
  return totals;
}

/** Returns whether DuckDB could not read or write a file. */
export const isStoreError = (error: unknown): boolean =>
  /^(IO|Permission|Invalid Input|Serialization|Out of Memory|TProtocolException)\b.*Error/.test(reasonOf(error));

/** Which rows to read: those of partners, or all rows of quotes. */
export type Wanted =
  | { readonly partnerIds?: readonly string[] | undefined }
  /** A file with lines of a partner and an id of a quote, requote or reversal, and one of a partner and a day of a sale. */
  | { readonly ids: string; readonly days: string }
  /** A file with lines of a partner and a quote. */
  | { readonly quotes: string }
  /**
   * A file with numbers of rows, and one with lines of a partner and a quote. Of some months also the quotes that have
   * requotes or reversals, or are in the file `hot`.
   */
  | { readonly numbers: string; readonly others: string; readonly months: readonly string[]; readonly hot: string }
  /** An id of a quote, requote or reversal, an enrollment or an order, of any partner. */
  | { readonly named: string };

const LINE = `concat_ws(chr(9), entry_id, ${FIELDS})`;

/** Reads the lines of wanted rows in pieces: the values of LINE_COLUMNS in the text format of COPY. */
export async function* readRows(
  connection: DuckDBConnection,
  files: readonly string[],
  wanted: Wanted,
): AsyncGenerator<Buffer> {
  const quotes = quotesOf(wanted, files);
  if (quotes === undefined) {
    const { partnerIds } = wanted as { partnerIds?: readonly string[] };
    const condition = partnerIds === undefined ? '' : `WHERE partner_id IN (${partnerIds.map(text).join(', ')})`;
    return yield* linesOf(connection, `SELECT ${LINE} FROM read_parquet(${list(files)}) ${condition}`);
  }
  // Two columns tell which files have these quotes. All columns of the others need not be read.
  await connection.run(`CREATE TABLE wanted AS ${quotes}`);
  const found = await connection.runAndReadAll(
    `SELECT DISTINCT filename FROM read_parquet(${list(files)}, filename = true)
     SEMI JOIN wanted USING (partner_id, quote_id)`,
  );
  const having = found.getRows().map(([name]) => String(name));
  if (having.length === 0) return;
  const rows = `read_parquet(${list(having)}) SEMI JOIN wanted USING (partner_id, quote_id)`;
  yield* linesOf(connection, `SELECT ${LINE} FROM ${rows}`);
}

/** The lines of a query of one column, in pieces. */
async function* linesOf(connection: DuckDBConnection, sql: string): AsyncGenerator<Buffer> {
  const lines = await connection.stream(sql);
  for (;;) {
    const chunk = await lines.fetchChunk();
    if (chunk === null || chunk.rowCount === 0) return;
    yield Buffer.from(`${chunk.getColumnValues(0).join('\n')}\n`);
  }
}

/** A query of the partners and quotes whose rows are wanted; undefined for all rows of partners. */
function quotesOf(wanted: Wanted, files: readonly string[]): string | undefined {
  const rows = `read_parquet(${list(files)})`;
  const quotes = (from: string) => `SELECT partner_id, quote_id FROM ${from}`;
  const given = (path: string, name: string, type = 'VARCHAR') =>
    `(FROM ${linesIn(path, { [name]: type })}) USING (${name})`;
  const pairs = (path: string, id: string) => linesIn(path, { partner_id: 'VARCHAR', [id]: 'VARCHAR' });
  const any = (queries: readonly string[]) => queries.join(' UNION ');
  if ('quotes' in wanted) return `FROM ${pairs(wanted.quotes, 'quote_id')}`;
  if ('ids' in wanted) {
    const day = `(SELECT partner_id, quote_id, left(accepted_at, 10) AS day FROM ${rows})`;
    return any([
      ...IDS.map((id) => quotes(`${rows} SEMI JOIN (FROM ${pairs(wanted.ids, id)}) USING (partner_id, ${id})`)),
      quotes(`${day} SEMI JOIN (FROM ${pairs(wanted.days, 'day')}) USING (partner_id, day)`),
    ]);
  }
  if ('numbers' in wanted) {
    const own = files.filter((path) => wanted.months.some((month) => basename(path).startsWith(`${month}-`)));
    const ofMonths = `read_parquet(${list(own)})`;
    return any([
      quotes(`${rows} SEMI JOIN ${given(wanted.numbers, 'entry_id', 'BIGINT')}`),
      `FROM ${pairs(wanted.others, 'quote_id')}`,
      ...(own.length === 0
        ? []
        : [
            quotes(`${ofMonths} WHERE kind <> 'quote_accepted'`),
            quotes(`${ofMonths} SEMI JOIN ${given(wanted.hot, 'quote_id')}`),
          ]),
    ]);
  }
  if ('named' in wanted) {
    const columns = [...IDS, 'enrollment_id', 'order_reference'];
    return quotes(`${rows} WHERE ${columns.map((id) => `${id} = ${text(wanted.named)}`).join(' OR ')}`);
  }
  return undefined;
}

const IDS = ['quote_id', 'requote_id', 'reversal_id'];

/** Rows of a partner in a closed month, currency and arrangement, with the leaves of all its rows there. */
export type Tree = Readonly<{ month: string; currency: string; arrangement: string; rows: string; leaves: string }>;

/** Reads the rows of a partner's quotes as JSON, by month, currency and arrangement, with the leaves of all rows there. */
export async function readTrees(
  connection: DuckDBConnection,
  files: readonly string[],
  { partnerId, quoteIds }: { readonly partnerId: string; readonly quoteIds: readonly string[] },
): Promise<Tree[]> {
  const found = await connection.runAndReadAll(
    `SELECT left(parse_filename(filename), 7), currency, arrangement,
            to_json(list(struct_pack(${LINE_COLUMNS.map((name) => `${name} := ${name}`).join(', ')}))
              FILTER (WHERE list_contains(${list(quoteIds)}, quote_id)))::VARCHAR,
            string_agg(hex(leaf), '' ORDER BY entry_id)
     FROM read_parquet(${list(files)}, filename = true) WHERE partner_id = ${text(partnerId)}
     GROUP BY ALL HAVING bool_or(list_contains(${list(quoteIds)}, quote_id))`,
  );
  return found.getRows().map((row) => {
    const [month, currency, arrangement, rows, leaves] = row as string[] as [string, string, string, string, string];
    return { month, currency, arrangement, rows, leaves };
  });
}

/** The numbers of rows of a file of numbers and leaves that are not the rows of these files. */
export async function otherRows(
  connection: DuckDBConnection,
  files: readonly string[],
  present: string,
): Promise<number[]> {
  const found = await connection.runAndReadAll(
    `SELECT p.entry_id::DOUBLE
     FROM ${linesIn(present, { entry_id: 'BIGINT', leaf: 'VARCHAR' })} p
     LEFT JOIN read_parquet(${list(files)}) r ON r.entry_id = p.entry_id
     WHERE r.leaf IS DISTINCT FROM unhex(p.leaf) ORDER BY 1`,
  );
  return found.getRows().map(([number]) => number as number);
}

/** The groups in a file of `storedGroups` that are not groups of the rows of these files. The rules find missing groups. */
export async function otherGroups(
  connection: DuckDBConnection,
  files: readonly string[],
  stored: string,
): Promise<string[]> {
  const isAmount = (name: string) => GROUP_AMOUNTS.some((each) => each === name);
  const type = (name: string) =>
    isAmount(name) ? AMOUNT : /^(event_id|entries|\w+_no)$/.test(name) ? 'BIGINT' : 'VARCHAR';
  const columns = Object.fromEntries(GROUP_COLUMNS.map((name) => [name, type(name)]));
  const typed = ['event_id', ...GROUP_AMOUNTS].map((name) => `${name}::${type(name)} AS ${name}`).join(', ');
  const found = await connection.runAndReadAll(
    `SELECT concat_ws(' ', posted_month, partner_id, policy_id, kind) FROM (
       FROM ${linesIn(stored, columns)} EXCEPT
       SELECT ${GROUPED} FROM (SELECT * REPLACE (${typed}) FROM read_parquet(${list(files)})) GROUP BY ${GROUP_KEYS})
     ORDER BY 1`,
  );
  return found.getRows().map(([group]) => String(group));
}
