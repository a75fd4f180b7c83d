/**
 * Rows of the ledger as Parquet files, written and read by DuckDB. The columns are those of the rows' lines in the log,
 * as texts, with the number of the row. A line and its leaf can be written again from the columns exactly, so every row
 * can be proved. The same rows make the same bytes, with the same version of DuckDB.
 *
 * DuckDB is an optional dependency, because its library has 70 MB. Refusal: duckdb_missing.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DuckDBConnection } from '@duckdb/node-api';
import { refuse } from '../errors/refusals.ts';
import { codeOf } from '../files.ts';
import { LOG_FORMS } from '../log/forms.ts';

const COLUMNS = LOG_FORMS.find(({ kind }) => kind === 'ledger_rows')?.columns ?? [];
/** The columns of a line of `readRows`. */
export const LINE_COLUMNS: readonly string[] = ['entry_id', ...COLUMNS.map(({ name }) => name)];

const text = (value: string): string => `'${value.replaceAll("'", "''")}'`;
const list = (values: readonly string[]): string => `[${values.map(text).join(', ')}]`;

/** The fields of a line, as the log and COPY write them. */
const FIELDS = COLUMNS.map(({ name, nullable }) =>
  nullable ? `coalesce(replace(${name}, '\\', '\\\\'), '\\N')` : name,
).join(', ');
const LEAF = `unhex(sha256('\\x00'::BLOB || encode(concat_ws(chr(9), 'ledger_rows', entry_id, ${FIELDS}))))`;

/** Text without quotes: no line contains the delimiter. */
const AS_IT_IS = `FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER E'\\x01'`;

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
  const read = ['kind_of_fact', 'entry_id', ...COLUMNS.map(({ name }) => name)]
    .map((name) => `${name}: '${name === 'entry_id' ? 'BIGINT' : 'VARCHAR'}'`)
    .join(', ');
  const columns = COLUMNS.map(({ name, nullable }) =>
    nullable ? `replace(${name}, '\\\\', '\\') AS ${name}` : name,
  ).join(', ');
  await connection.run(
    `COPY (SELECT entry_id, ${columns} FROM read_csv(${text(lines)}, delim = '\t', header = false, auto_detect = false,
       quote = '', escape = '', nullstr = '\\N', columns = {${read}})
     ORDER BY partner_id, entry_id) TO ${text(target)} (FORMAT parquet, COMPRESSION zstd)`,
  );
}

/** Reads the totals and roots of partners, as the columns of month_partners from the second on, with spaces between. */
export async function readTotals(connection: DuckDBConnection, files: readonly string[]): Promise<string[]> {
  const sums = ['spot_price', 'partner_cut', 'invoice_amount'].map(
    (name) => `rtrim(rtrim(sum(${name}::DECIMAL(38, 4))::VARCHAR, '0'), '.')`,
  );
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

/** Which rows to read: those of partners, or those of all quotes that have a row with one of some ids. */
export type Wanted =
  | { readonly partnerIds?: readonly string[] | undefined }
  /** A file with lines of a partner and an id of a quote, requote or reversal. */
  | { readonly ids: string };

/** Writes the lines of wanted rows to a file: the values of LINE_COLUMNS in the text format of COPY. */
export async function readRows(
  connection: DuckDBConnection,
  files: readonly string[],
  wanted: Wanted,
  target: string,
): Promise<void> {
  const rows = `read_parquet(${list(files)})`;
  await connection.run(
    `COPY (SELECT concat_ws(chr(9), entry_id, ${FIELDS}) FROM ${rows} r ${conditionOf(wanted, rows)})
     TO ${text(target)} (${AS_IT_IS})`,
  );
}

function conditionOf(wanted: Wanted, rows: string): string {
  if ('ids' in wanted) {
    const named = ['quote_id', 'requote_id', 'reversal_id'].map(
      (id) =>
        `SELECT n.partner_id, n.quote_id FROM ${rows} n JOIN ids i ON i.partner_id = n.partner_id AND i.id = n.${id}`,
    );
    return `SEMI JOIN (
      WITH ids AS MATERIALIZED (
        SELECT partner_id, id FROM read_csv(${text(wanted.ids)}, delim = '\t', header = false, auto_detect = false,
          quote = '', escape = '', columns = {partner_id: 'VARCHAR', id: 'VARCHAR'}))
      ${named.join(' UNION ')}) AS q ON q.partner_id = r.partner_id AND q.quote_id = r.quote_id`;
  }
  return wanted.partnerIds === undefined ? '' : `WHERE partner_id IN (${wanted.partnerIds.map(text).join(', ')})`;
}
