/**
 * Moves the rows of a month whose books are closed to a cold store, and back. A store is a folder. Its files are accepted
 * only if the rows that are read back from them have the totals and the roots that the close of the month stated. Then one
 * transaction records the files and deletes the rows. So a month is in the database or in the store, whenever a process
 * ends. Refusals: month_not_closed, archive_too_early, archive_store_unknown, archive_incomplete, duckdb_missing,
 * month_not_archived.
 */
import { existsSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Environment } from '../config/environment.ts';
import type { Database } from '../database/database.ts';
import { lockImporters } from '../database/ledger-lock.ts';
import { patiently, type Transaction } from '../database/transaction.ts';
import { reasonOf, refuse } from '../errors/refusals.ts';
import { failpoint } from '../failpoint.ts';
import { draftOf, isSystemError, makeFolder } from '../files.ts';
import { readCheckpoints } from '../log/checkpoints.sql.ts';
import { copyRowLines } from '../log/lines.sql.ts';
import { bodyOf } from '../log/note.ts';
import type { Month } from '../month.ts';
import { type ActorContext, recordEvent } from '../people/audit-events.ts';
import {
  type ArchivedFile,
  countPresent,
  lockArchives,
  type MonthState,
  moveMonth,
  readColdMonths,
  readMonthPartners,
  readMonthState,
  returnMonth,
} from './archive.sql.ts';
import { isStoreError, withDuckDb, writeParquet } from './parquet.ts';
import { compareHeld, proveMonth, statementPath, writeStatement } from './proof.ts';
import { needWholeQuotes } from './rows.ts';
import { folderOf, sha256Of, storeFolder, writeFile } from './store.ts';

/** A close compares feeds and amounts with those of the last months. */
const LATER_MONTHS = 3;

/** A partner's rows are in one file. A file has at most this number of rows, unless one partner has more. */
const ROWS_IN_A_FILE = 1_000_000;

export type Moved = Readonly<{
  month: Month;
  store: string;
  entries: number;
  /** The rows that left the database. */
  moved: number;
  /** The month's rows that stay, because their quotes can still change. */
  stay: number;
  files: readonly ArchivedFile[];
}>;

/** The partners of each file, in order. They follow from the facts of the close, so the same month has the same files. */
function rangesOf(partners: Awaited<ReturnType<typeof readMonthPartners>>) {
  const ranges: { from: string; last: string; entries: number }[] = [];
  for (const { partner_id: id, entries } of partners) {
    const range = ranges.at(-1);
    if (range !== undefined && (range.last === id || range.entries + entries <= ROWS_IN_A_FILE)) {
      range.last = id;
      range.entries += entries;
    } else ranges.push({ from: id, last: id, entries });
  }
  return ranges;
}

const fileName = (month: Month, index: number): string => `${month}-${String(index + 1).padStart(4, '0')}.parquet`;

async function readArchivable(tx: Transaction, month: Month): Promise<MonthState> {
  const [state] = await readMonthState(tx, month);
  if (state === undefined) throw refuse('month_not_closed', { month });
  if (!state.books_closed || state.later < LATER_MONTHS) {
    throw refuse('archive_too_early', {
      month,
      books_closed: state.books_closed,
      published: true,
      later: LATER_MONTHS,
    });
  }
  return state;
}

/** Writes the files of a month, unless it is archived. Safe to repeat: the same rows make the same files. */
export async function writeMonth(
  { database, environment }: Pick<ActorContext, 'environment'> & { readonly database: Database },
  { month, store }: { readonly month: Month; readonly store: string },
): Promise<void> {
  await database.reading(async (tx) => {
    const { previous, first, store: archived } = await readArchivable(tx, month);
    if (archived !== null) return;
    const folder = await folderOf(tx, environment, store);
    if (!existsSync(folder) && (await readColdMonths(tx)).some((each) => each.store === store)) {
      const reason = 'this folder is missing, although it has files of other months. Is it mounted?';
      throw refuse('archive_incomplete', { month, store, reason });
    }
    await writable(folder, async () => makeFolder(folder));
    await patiently(tx);
    const files: ArchivedFile[] = [];
    const ranges = rangesOf(await readMonthPartners(tx, month));
    await withDuckDb(async (connection) => {
      for (const [index, { from, last, entries }] of ranges.entries()) {
        const name = fileName(month, index);
        const path = join(folder, name);
        const [lines, file] = [draftOf(join(folder, 'lines')), draftOf(path)];
        await writable(folder, async () => {
          try {
            const range = { after: previous ?? '', to: month };
            await writeFile(lines.path, (take) => copyRowLines(tx, range, { from, last }, take));
            await writeParquet(connection, lines.path, file.path);
            await synced(file.path);
            if (existsSync(path)) await refuseOther(path, file.path);
            else await file.publish();
          } finally {
            await lines.discard();
            await file.discard();
          }
          const [sha256, bytes] = [await sha256Of(path), (await stat(path)).size];
          files.push({ name, sha256, bytes, entries, partner_from: from, partner_to: last });
        });
        failpoint('archive.written');
      }
    });
    await writable(folder, () => writeStatement(tx, statementPath(folder, month), first, files));
  });
}

/** A file that an archive may name, even in a backup, is never replaced by another. */
async function refuseOther(target: string, written: string): Promise<void> {
  const [there, now] = await Promise.all([sha256Of(target), sha256Of(written)]);
  if (there === now) return;
  const reason = `${basename(target)} has other bytes than this month's rows give now. Move it away if no backup needs it`;
  throw refuse('file_unwritable', { file: target, reason });
}

async function synced(path: string): Promise<void> {
  const file = await open(path, 'r+');
  await file.sync().finally(() => file.close());
}

async function writable(folder: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isSystemError(error) && !isStoreError(error)) throw error;
    throw refuse('file_unwritable', { file: folder, reason: reasonOf(error) });
  }
}

/** Reads the files of a month back, and refuses them if they are not exactly the rows that the close counted. */
async function readProven(
  tx: Transaction,
  environment: Environment,
  month: Month,
  store: string,
): Promise<{ files: readonly ArchivedFile[]; statement?: string }> {
  await patiently(tx);
  const path = statementPath(await folderOf(tx, environment, store), month);
  const { wrong, open, files } = compareHeld(await proveMonth(path), (await readCheckpoints(tx)).map(bodyOf));
  for (const reason of [...wrong, ...open]) throw refuse('archive_incomplete', { month, store, reason });
  return { files, statement: await sha256Of(path) };
}

/** Records the written files of a month, and deletes its rows that need not stay. An archived month is looked at again. */
export async function archiveMonth(
  tx: Transaction,
  context: ActorContext & { readonly undone?: true | undefined },
  { month, store: asked }: { readonly month: Month; readonly store: string },
): Promise<Moved> {
  const { environment, actor } = context;
  const state = await readArchivable(tx, month);
  const store = state.store ?? asked;
  storeFolder(environment, store);
  const isMoved = context.undone || state.store !== null;
  const { files, statement } = isMoved ? { files: [] } : await readProven(tx, environment, month, store);
  if (!context.undone && !state.published) {
    throw refuse('archive_too_early', { month, books_closed: true, published: false, later: LATER_MONTHS });
  }
  failpoint('archive.proven');
  await lockArchives(tx);
  // Reversals through the API look at their quotes while they have this lock.
  await lockImporters(tx);
  await refuseOtherState(tx, month, state);
  const now = environment.now();
  const details = { store, files: files.map(({ name, sha256 }) => ({ name, sha256 })), statement };
  const eventId = await recordEvent(tx, actor, { action: 'month.archive', subject: month, details, now: now.toISO() });
  const named = context.undone ? null : files;
  const moved = await moveMonth(tx, { month, store, files: named, day: now.toISODate(), now: now.toISO(), eventId });
  failpoint('archive.moved');
  return { month, store, entries: state.entries, moved, stay: await countPresent(tx, month, state.previous), files };
}

/** Another command may have moved the month or brought it back before this one had the locks. */
async function refuseOtherState(tx: Transaction, month: Month, { store }: MonthState): Promise<void> {
  const [now] = await readMonthState(tx, month);
  if (now?.store === store) return;
  const reason = 'another command archived the month or brought it back meanwhile';
  throw refuse('archive_incomplete', { month, store: store ?? now?.store ?? '', reason });
}

/** Brings the rows of a month back. The files stay in the store. */
export async function unarchiveMonth(
  tx: Transaction,
  context: ActorContext,
  month: Month,
): Promise<Pick<Moved, 'month' | 'store' | 'entries'>> {
  const { environment, actor } = context;
  const [state] = await readMonthState(tx, month);
  if (state === undefined) throw refuse('month_not_closed', { month });
  const { store } = state;
  if (store === null) throw refuse('month_not_archived', { month });
  await needWholeQuotes(tx, month);
  await lockImporters(tx);
  await refuseOtherState(tx, month, state);
  const now = environment.now().toISO();
  await recordEvent(tx, actor, { action: 'month.unarchive', subject: month, details: { store }, now });
  await returnMonth(tx, month);
  failpoint('archive.returned');
  return { month, store, entries: await countPresent(tx, month, state.previous) };
}
