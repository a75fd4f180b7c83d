/**
 * Moves the rows of a month whose books are closed to a cold store, and back. A store's files are accepted only if the
 * rows that are read back from them have the totals and the roots that the close of the month stated. Then one
 * transaction records the files and deletes the rows. So a month is in the database or in the store, whenever a process
 * ends. `verify` proves them again. Refusals: month_not_closed, archive_too_early, archive_store_unknown,
 * archive_incomplete, duckdb_missing, month_not_archived.
 */
import { isDeepStrictEqual } from 'node:util';
import { Environment } from '#config/environment';
import { Database } from '#database/database';
import { lockImporters } from '#database/ledger-lock';
import { patiently, Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { Checkpoint, readCheckpoints } from '#log/checkpoints.sql';
import { readTree } from '#log/head';
import { copyLines, copyRowLines } from '#log/lines.sql';
import { bodyOf } from '#log/note';
import { hashLines } from '#log/tree';
import { Month } from '#month';
import { ActorContext, recordEvent } from '#people/audit-events';
import { atMost } from '#turns';
import {
  ArchivedFile,
  countPresent,
  lockArchives,
  MonthState,
  moveMonth,
  presentLeaves,
  readColdMonths,
  readMonthPartners,
  readMonthState,
  readStated,
  readStoredFiles,
  returnMonth,
  storedGroups,
} from './archive.sql.ts';
import { otherGroups, otherRows } from './cold.sql.ts';
import { JOBS } from './folder.ts';
import { faultOf, linesOf, monthsIn, needRows, needWholeQuotes, openStore, readingFiles } from './rows.ts';
import { compareHeld, Named, Store, StoreError, Take } from './store.ts';

/** A close compares feeds and amounts with those of the last months. */
const LATER_MONTHS = 3;

/** A partner's rows are in one file. A file has at most this number of rows, unless one partner has more. */
const ROWS_IN_A_FILE = 1_000_000;

export type Moved = Readonly<{
  month: Month;
  store: string;
  entries: number;
  moved: number;
  /** The month's rows that stay, because their quotes can still change. */
  stay: number;
  files: readonly ArchivedFile[];
}>;

/** The partners of each part, in order. They follow from the facts of the close, so the same month has the same parts. */
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

async function readArchivable(tx: Transaction, month: Month) {
  const [state] = await readMonthState(tx, { month });
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

async function statementOf(tx: Transaction, first: number, files: readonly ArchivedFile[]) {
  const checkpoints = await readCheckpoints(tx);
  const at = checkpoints.findIndex(({ last_no }) => last_no >= first);
  const [before, own] = [checkpoints[at - 1], checkpoints[at] as Checkpoint];
  const range = { after: before?.last_no ?? 0, to: first - 1 };
  await needRows(tx, { numbers: range });
  const tree = await readTree(tx, before, range.to);
  const facts: Buffer[] = [];
  await copyLines(tx, { after: range.to, to: own.last_no }, (piece) => void facts.push(Buffer.from(piece)));
  const named = files.map((file) => `${JSON.stringify(file)}\n`).join('');
  return [bodyOf(own), hashLines(tree.hashes()), Buffer.concat(facts), named].join('\n');
}

/** Writes a month to its store, unless it is archived. Safe to repeat. */
export async function writeMonth(
  { database, environment }: Pick<ActorContext, 'environment'> & { readonly database: Database },
  { month, store }: { readonly month: Month; readonly store: string },
) {
  await database.reading(async (tx) => {
    const { previous, first, store: archived } = await readArchivable(tx, month);
    if (archived !== null) return;
    const into = await openStore(tx, environment, store);
    await patiently(tx);
    const isKnown = (await readColdMonths(tx)).some((each) => each.store === store);
    if (isKnown && !(await mendable(store, into.isThere()))) {
      const reason = 'it is empty, although it has other months. Is its disk mounted, and is its address the same?';
      throw refuse('archive_incomplete', { month, store, reason });
    }
    const range = { after: previous ?? '', to: month };
    const parts = rangesOf(await readMonthPartners(tx, { month })).map((part) => ({
      ...part,
      copy: (take: Take) => copyRowLines(tx, range, part, take),
    }));
    await mendable(
      store,
      into.write(month, parts, (files) => statementOf(tx, first, files)),
    );
  });
}

const mendable = <Result>(store: string, work: Promise<Result>) =>
  work.catch((error: unknown) => {
    if (!(error instanceof StoreError)) throw error;
    throw refuse('file_unwritable', { file: store, reason: error.message });
  });

/** Reads a month back from its store, and refuses it if its rows are not exactly those that the close counted. */
async function readProven(
  tx: Transaction,
  environment: Environment,
  month: Month,
  store: string,
): Promise<{ files: readonly ArchivedFile[]; statement?: string | undefined }> {
  await patiently(tx);
  const proof = await (await openStore(tx, environment, store)).prove(month);
  const { wrong, open, files, statement } = compareHeld(proof, (await readCheckpoints(tx)).map(bodyOf));
  for (const reason of [...wrong, ...open]) throw refuse('archive_incomplete', { month, store, reason });
  return { files, statement };
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
  await openStore(tx, environment, store);
  const proven = context.undone ? { files: [] } : await readProven(tx, environment, month, store);
  const { files, statement } = state.store === null ? proven : { files: [] };
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
  return {
    month,
    store,
    entries: state.entries,
    moved,
    stay: await countPresent(tx, { month, previous: state.previous }),
    files,
  };
}

/** Another command may have moved the month or brought it back before this one had the locks. */
async function refuseOtherState(tx: Transaction, month: Month, { store }: MonthState) {
  const [now] = await readMonthState(tx, { month });
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
  const [state] = await readMonthState(tx, { month });
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
  return { month, store, entries: await countPresent(tx, { month, previous: state.previous }) };
}

/** What is wrong with archived months: all that can be found in `months`, what is lost in others. */
export async function proveColdMonths(
  tx: Transaction,
  environment: Environment,
  months: readonly Month[],
  jobs = JOBS,
) {
  const files = await readStoredFiles(tx, {});
  const held = (await readCheckpoints(tx)).map(bodyOf);
  const cold = await readColdMonths(tx);
  const stores = new Map<string, Store>();
  for (const { store } of cold) if (!stores.has(store)) stores.set(store, await openStore(tx, environment, store));
  const rest = files.filter(({ month }) => !months.includes(month));
  const stated = await readStated(tx, monthsIn(rest), undefined);
  const inTurn = atMost(jobs);
  const lostOf = async ([name, store]: [string, Store]) => {
    const own = rest.filter((file) => file.store === name);
    if (own.length === 0) return [];
    const ofOwn = stated.filter(({ month }) => own.some((file) => file.month === month));
    const lost: Named[] = [];
    const fault = await faultOf(async () => lost.push(...(await store.lost(own, { stated: ofOwn }))));
    if (fault !== undefined) return monthsIn(own).map((subject) => ({ subject, detail: fault }));
    return lost.map((file) => ({ subject: file.month, detail: `${file.name} is missing, or has another size` }));
  };
  const others = await Promise.all([...stores].map((each) => inTurn(() => lostOf(each))));
  const asked = cold.flatMap(({ month, store }) => {
    const of = stores.get(store);
    return of !== undefined && months.includes(month) ? [{ month, of }] : [];
  });
  const proofs = await Promise.all(
    asked.map(({ month, of }) => inTurn(async () => compareHeld(await of.prove(month), held))),
  );
  const own = files.filter(({ month }) => months.includes(month));
  const isProved = proofs.every(({ wrong }) => wrong.length === 0) && own.length > 0;
  // Rows and groups that stayed are compared with their files.
  const differing = !isProved
    ? []
    : await readingFiles(tx, environment, own, async (readings) => {
        const found: string[] = [];
        for (const { reading, months: of } of readings) {
          const rows = await otherRows(reading, linesOf(tx, presentLeaves(of)));
          const groups = await otherGroups(reading, linesOf(tx, storedGroups(of)));
          found.push(...rows.map((each) => `row ${each.split(' ', 1)[0]}`));
          found.push(...groups.map((each) => `group ${each.split(' ', 4).join(' ')}`));
        }
        return found;
      });
  const wrongRows = differing.map((subject) => ({ subject, detail: 'is not that of the archive' }));
  const ofFiles = proofs.flatMap(({ months: subject, wrong, open, files: proved }) => {
    const named = files.filter(({ month }) => month === subject).map(({ month: _, store: __, ...file }) => file);
    const isOther = wrong.length === 0 && !isDeepStrictEqual(named, proved);
    const other = isOther ? ['has other files in the database than its statement names'] : [];
    return [...wrong, ...open, ...other].map((detail) => ({ subject, detail }));
  });
  return [...others.flat(), ...ofFiles, ...wrongRows];
}
