/**
 * Reads with the rows of archived months. The rows are copied from the files into `archived_rows`, a temporary child of
 * ledger_rows on a connection of its own, so that every query and view has them, and no other session sees them. The files
 * to read are those that the transaction's snapshot names: rows that are archived or brought back meanwhile are read once.
 * Refusals: archive_incomplete, archive_store_unknown, duckdb_missing.
 */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { from as copyFrom } from 'pg-copy-streams';
import type { Environment } from '../config/environment.ts';
import { copyOut } from '../database/copy.ts';
import type { Database } from '../database/database.ts';
import { Elsewhere } from '../database/elsewhere.ts';
import { lockImporters } from '../database/ledger-lock.ts';
import type { Transaction } from '../database/transaction.ts';
import { reasonOf, refuse } from '../errors/refusals.ts';
import {
  copyInto,
  countArchived,
  insertRecalled,
  keepOnlyMoved,
  openArchive,
  type RowScope,
  readArchiveState,
  readPartnerIds,
  readStoredFiles,
  STAGED_IDS,
  type StoredFile,
} from './archive.sql.ts';
import { LINE_COLUMNS, readRows, withDuckDb } from './parquet.ts';
import { folderOf, sha256Of, type Take, writeFile } from './store.ts';

/** The files whose rows a transaction has a copy of, by partner if not all partners were copied. */
const COPIED = new WeakMap<
  Transaction,
  { readonly file: string; readonly partnerIds: readonly string[] | undefined }[]
>();

/**
 * Makes sure that a transaction has the archived rows of these months and partners. Call this before anything else that
 * reads their rows: if rows are elsewhere, the work is repeated (database/elsewhere.ts).
 */
export async function needRows(tx: Transaction, scope: RowScope): Promise<void> {
  const files = await readStoredFiles(tx, scope);
  const copied = COPIED.get(tx) ?? [];
  const has = ({ month, name }: StoredFile) =>
    copied.some(
      ({ file, partnerIds }) =>
        file === `${month} ${name}` &&
        (partnerIds === undefined || scope.partnerIds?.every((id) => partnerIds.includes(id))),
    );
  if (files.every(has)) return;
  throw new Elsewhere((next, environment) => copyArchived(next, environment, scope));
}

/** Gives all archived rows to a transaction that cannot be repeated. */
export async function haveRows(tx: Transaction, environment: Environment): Promise<void> {
  await copyArchived(tx, environment, {});
}

async function copyArchived(tx: Transaction, environment: Environment, scope: RowScope): Promise<void> {
  const files = await readStoredFiles(tx, scope);
  if (files.length === 0) return;
  const { partnerIds } = scope;
  const copied = await copyRows(tx, environment, files, { partnerIds });
  const months = [...new Set(files.map(({ month }) => month))];
  const entries = await countArchived(tx, months, scope);
  const [{ month, store }] = files as [StoredFile];
  if (copied !== entries) {
    throw refuse('archive_incomplete', { month, store, reason: `${copied} rows were read where ${entries} are` });
  }
  COPIED.set(tx, [
    ...(COPIED.get(tx) ?? []),
    ...files.map((file) => ({ file: `${file.month} ${file.name}`, partnerIds })),
  ]);
}

/**
 * Copies the archived rows of all quotes that a staged row names, for the rest of an import's transaction. Returns the
 * state of the archive that was read, and does nothing if this state is known. No lock of the ledger may be held, because
 * this reads the files of all archived months.
 */
export async function copyStagedQuotes(tx: Transaction, environment: Environment, known?: string): Promise<string> {
  const state = await readArchiveState(tx);
  if (state === known) return state;
  const files = await readStoredFiles(tx, {});
  if (files.length > 0) await copyRows(tx, environment, files, { writeIds: (take) => copyOut(tx, STAGED_IDS, take) });
  return state;
}

/**
 * Makes sure that a transaction has the archived rows of the quotes that have a row with this id, of any partner. The
 * work is repeated if there is an archive, because only its files tell.
 */
export async function needQuotes(tx: Transaction, id: string): Promise<void> {
  const name = `quotes of ${id}`;
  if (COPIED.get(tx)?.some(({ file }) => file === name) || (await readStoredFiles(tx, {})).length === 0) return;
  throw new Elsewhere(async (next, environment) => {
    const files = await readStoredFiles(next, {});
    const ids = (await readPartnerIds(next)).map((partner) => `${partner}\t${id}\n`).join('');
    await copyRows(next, environment, files, { writeIds: (take) => take(Buffer.from(ids)) });
    COPIED.set(next, [...(COPIED.get(next) ?? []), { file: name, partnerIds: [] }]);
  });
}

/**
 * Brings the archived rows of a partner's quotes back into ledger_rows. Their months stay archived, and the store keeps
 * its copies. Returns the state of the archive in which the database has all rows of these quotes.
 */
export const recallQuotes = (
  database: Database,
  environment: Environment,
  partnerId: string,
  quoteIds: readonly string[],
): Promise<string> =>
  // Only the owner may add rows to archived months.
  database.asOwner(async (tx) => {
    const state = await readArchiveState(tx);
    const files = await readStoredFiles(tx, { partnerIds: [partnerId] });
    const ids = Buffer.from(quoteIds.map((id) => `${partnerId}\t${id}\n`).join(''));
    const found = files.length > 0 && (await copyRows(tx, environment, files, { writeIds: (take) => take(ids) }));
    await requireState(tx, state);
    if (found) await insertRecalled(tx, LINE_COLUMNS);
    return state;
  });

/** Throws if a month was archived or brought back since the state was read. None is until the transaction ends. */
export async function requireState(tx: Transaction, state: string): Promise<void> {
  await lockImporters(tx);
  if ((await readArchiveState(tx)) !== state) throw new Error('a month was archived or brought back meanwhile');
}

/** Copies the wanted rows that have left the database. Returns the number of all wanted rows. */
async function copyRows(
  tx: Transaction,
  environment: Environment,
  files: readonly StoredFile[],
  wanted: Pick<RowScope, 'partnerIds'> | { readonly writeIds: (take: Take) => Promise<void> },
): Promise<number> {
  const paths: string[] = [];
  for (const file of files) paths.push(await provenPath(await folderOf(tx, environment, file.store), file));
  return withDuckDb(async (connection, folder) => {
    const target = join(folder, 'rows.tsv');
    if ('writeIds' in wanted) {
      const ids = join(folder, 'ids.tsv');
      await writeFile(ids, wanted.writeIds);
      await readRows(connection, paths, { ids }, target);
    } else await readRows(connection, paths, wanted, target);
    if ((await stat(target)).size === 0) return 0;
    // Making the table waits for other sessions that are making theirs, so it is made only for rows.
    await openArchive(tx);
    const copy = tx.client.query(copyFrom(copyInto(LINE_COLUMNS)));
    await pipeline(createReadStream(target), copy);
    await keepOnlyMoved(tx);
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
