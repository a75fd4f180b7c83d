/**
 * Rows of the ledger as Parquet files, written and read by DuckDB. The columns are those of the rows' lines in the log,
 * as texts, with the number of the row and the hash of its leaf. A line can be written again from the columns exactly, so
 * every row can be proved. The same rows make the same bytes, with the same version of DuckDB.
 *
 * DuckDB is an optional dependency, because its library has 70 MB. Refusal: duckdb_missing.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdtemp, open, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBConnection } from '@duckdb/node-api';
import { reasonOf, refuse } from '#errors/refusals';
import { codeOf } from '#files';
import { COLUMNS, FIELDS, Fill, Reading, SUMS, text, texts } from './store.ts';

const LEAF = `unhex(sha256('\\x00'::BLOB || encode(concat_ws(chr(9), 'ledger_rows', entry_id, ${FIELDS}))))`;

/** The lines of a file that COPY wrote, as rows of named columns with DuckDB's types. */
function linesIn(path: string, columns: Readonly<Record<string, string>>) {
  const types = Object.entries(columns).map(([name, type]) => `${name}: '${type}'`);
  return `read_csv(${text(path)}, delim = '\t', header = false, auto_detect = false, quote = '', escape = '',
    nullstr = '\\N', columns = {${types.join(', ')}})`;
}

/** A folder for files that exist only while `work` runs, and DuckDB in one thread, which keeps the order of rows. */
export async function withDuckDb<Result>(work: (connection: DuckDBConnection, folder: string) => Promise<Result>) {
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
export async function writeParquet(connection: DuckDBConnection, lines: string, target: string) {
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
export async function readTotals(connection: DuckDBConnection, files: readonly string[]) {
  const totals: string[] = [];
  for (const file of files) {
    const read = await connection.runAndReadAll(
      `WITH RECURSIVE own AS (
         SELECT *, concat_ws(' ', partner_id, currency, arrangement) AS k FROM ${parquet([file])}),
       tree (k, i, hash, n) AS (
         SELECT k, row_number() OVER (PARTITION BY k ORDER BY entry_id) - 1, ${LEAF}, count(*) OVER (PARTITION BY k)
         FROM own
         UNION ALL
         SELECT l.k, l.i // 2, coalesce(unhex(sha256('\\x01'::BLOB || l.hash || r.hash)), l.hash), (l.n + 1) // 2
         FROM tree l LEFT JOIN tree r ON r.k = l.k AND r.i = l.i + 1 WHERE l.i % 2 = 0 AND l.n > 1)
       SELECT concat_ws(' ', k, count(*), ${SUMS}, max(accepted_at), any_value(to_base64(hash)))
       FROM own JOIN tree USING (k) WHERE n = 1 GROUP BY k`,
    );
    for (const [line] of read.getRows()) totals.push(String(line));
  }
  return totals;
}

/** Returns whether DuckDB could not read or write a file. */
export const isFileError = (error: unknown) =>
  /^(IO|Permission|Invalid Input|Serialization|Out of Memory|TProtocolException)\b.*Error/.test(reasonOf(error));

const LINE = `concat_ws(chr(9), entry_id, ${FIELDS})`;

/** Reads files of months, whose names begin with the month. */
export function readingParquet(connection: DuckDBConnection, folder: string, files: readonly string[]): Reading {
  const query = async (sql: string) => (await connection.runAndReadAll(sql)).getRows();
  const rows = `(SELECT *, left(parse_filename(filename), 7) AS billed FROM ${parquet(files, 'filename = true')})`;
  let lists = 0;
  return {
    ...{ rows, query, leaf: 'lower(hex(leaf))', json: ['list', 'json_object'] },
    list: async (fill) => {
      lists += 1;
      const path = join(folder, String(lists));
      await writeFile(path, fill);
      const columns = { partner_id: 'VARCHAR', id: 'VARCHAR' };
      await connection.run(`CREATE TABLE list_${lists} AS FROM ${linesIn(path, columns)}`);
      return `list_${lists}`;
    },
    async *copy(where) {
      // A few columns tell which files have these rows. All columns of the others need not be read.
      const found = await query(`SELECT DISTINCT filename FROM ${rows} WHERE ${where}`);
      if (found.length === 0) return;
      const lines = await connection.stream(`SELECT ${LINE} FROM ${parquet(found.map(String))} WHERE ${where}`);
      for (;;) {
        const chunk = await lines.fetchChunk();
        if (chunk === null || chunk.rowCount === 0) return;
        yield Buffer.from(`${chunk.getColumnValues(0).join('\n')}\n`);
      }
    },
  };
}

const parquet = (files: readonly string[], option = 'filename = false') => `read_parquet([${texts(files)}], ${option})`;

/** The files that this process has hashed, with what tells that they did not change since. */
const HASHED = new Map<string, { readonly seen: string; readonly sha256: string }>();

/** The SHA-256 of a file. A file of the same time and size is not read again. */
export async function sha256Of(path: string) {
  const { mtimeMs, size, ino } = await stat(path);
  const seen = `${mtimeMs} ${size} ${ino}`;
  const known = HASHED.get(path);
  if (known?.seen === seen) return known.sha256;
  const sha256 = await hashed(path);
  HASHED.set(path, { seen, sha256 });
  return sha256;
}

async function hashed(path: string) {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

export async function writeFile(path: string, fill: Fill) {
  const file = await open(path, 'w');
  try {
    await fill(async (piece) => {
      await file.writeFile(piece);
    });
  } finally {
    await file.close();
  }
}
