/**
 * Reads with the rows of archived months. The rows are copied from the files into `archived_rows`, a temporary child of
 * ledger_rows on a connection of its own, so that every query and view has them, and no other session sees them. The files
 * to read are those that the transaction's snapshot names: rows that are archived or brought back meanwhile are read once.
 * Refusals: archive_incomplete, archive_store_unknown, duckdb_missing.
 */
import { createReadStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { from as copyFrom } from 'pg-copy-streams';
import type { Database } from '../database/database.ts';
import type { Transaction } from '../database/transaction.ts';
import { reasonOf, refuse } from '../errors/refusals.ts';
import type { Installation } from '../people/audit-events.ts';
import { countArchived, keepOnlyMoved, type RowScope, readStoredFiles, type StoredFile } from './archive.sql.ts';
import { LINE_COLUMNS, readRows, type Wanted, withDuckDb } from './parquet.ts';
import { folderOf, sha256Of } from './store.ts';

/** Copies the archived rows of these months and partners for the rest of the transaction. */
export async function copyArchived(tx: Transaction, context: Installation, scope: RowScope): Promise<void> {
  const files = await readStoredFiles(tx, scope);
  if (files.length === 0) return;
  const copied = await copyRows(tx, context, files, { partnerIds: scope.partnerIds });
  const months = [...new Set(files.map(({ month }) => month))];
  const entries = await countArchived(tx, months, scope);
  const [{ month, store }] = files as [StoredFile];
  if (copied !== entries) {
    throw refuse('archive_incomplete', { month, store, reason: `${copied} rows were read where ${entries} are` });
  }
  await keepOnlyMoved(tx);
}

/** Copies the archived rows of all quotes that have a row with one of these ids. */
export async function copyArchivedQuotes(tx: Transaction, context: Installation, ids: string): Promise<void> {
  const files = await readStoredFiles(tx, {});
  if (files.length === 0 || ids === '') return;
  await copyRows(tx, context, files, { ids });
  await keepOnlyMoved(tx);
}

async function copyRows(
  tx: Transaction,
  context: Installation,
  files: readonly StoredFile[],
  wanted: Wanted,
): Promise<number> {
  const paths: string[] = [];
  for (const file of files) paths.push(await provenPath(await folderOf(tx, context, file.store), file));
  return withDuckDb(async (connection, folder) => {
    const target = join(folder, 'rows.tsv');
    let given = wanted;
    if ('ids' in wanted) {
      given = { ids: join(folder, 'ids.tsv') };
      await writeFile(given.ids, wanted.ids);
    }
    await readRows(connection, paths, given, target);
    const copy = tx.client.query(copyFrom(`COPY pg_temp.archived_rows (${LINE_COLUMNS.join(', ')}) FROM STDIN`));
    await pipeline(createReadStream(target), copy);
    return copy.rowCount;
  });
}

/** The path of a file, whose content must be what was archived. */
async function provenPath(folder: string, { month, store, name, sha256 }: StoredFile): Promise<string> {
  const path = join(folder, name);
  const incomplete = (reason: string) => refuse('archive_incomplete', { month, store, reason });
  const found = await sha256Of(path).catch((error: unknown) => {
    throw incomplete(reasonOf(error));
  });
  if (found !== sha256) throw incomplete(`${path} is not the file of the archive`);
  return path;
}

/** The database for work that needs the rows of these months and partners, wherever they are. */
export function withRows(context: Installation, database: Database, scope: RowScope): Database {
  /** Runs `work` as `run` does, or aside if archived rows are among those that it needs. */
  const either = async <Result, More extends unknown[]>(
    run: (on: Database, work: (tx: Transaction, ...more: More) => Promise<Result | undefined>) => Promise<Result | undefined>,
    work: (tx: Transaction, ...more: More) => Promise<Result>,
  ): Promise<Result> => {
    let away = false;
    const done = await run(database, async (tx, ...more) => {
      away = (await readStoredFiles(tx, scope)).length > 0;
      return away ? undefined : work(tx, ...more);
    });
    if (!away) return done as Result;
    const copied = (tx: Transaction, ...more: More) => copyArchived(tx, context, scope).then(() => work(tx, ...more));
    return database.aside((own) => run(own, copied)) as Promise<Result>;
  };
  return {
    ...database,
    reading: (work) => either((on, each) => on.reading(each), work),
    readingBeside: (work) => either((on, each) => on.readingBeside(each), work),
    transaction: (work) => either((on, each) => on.transaction(each), work),
    preview: (work) => either((on, each) => on.preview(each), work),
  };
}
