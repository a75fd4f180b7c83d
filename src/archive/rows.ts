/**
 * Reads with the rows of archived months. The rows are copied from the files into `archived_rows`, a temporary child of
 * ledger_rows on a connection of its own, so that every query and view has them, and no other session sees them. The files
 * to read are those that the transaction's snapshot names: rows that are archived or brought back meanwhile are read once.
 * Refusals: archive_incomplete, archive_store_unknown, duckdb_missing, environment_invalid (CITUS_URL).
 */
import { join, resolve } from 'node:path';
import { Environment } from '#config/environment';
import { readSettings } from '#config/settings';
import { attempt } from '#database/attempt';
import { copyIn, copyOut } from '#database/copy';
import { Database } from '#database/database';
import { Elsewhere } from '#database/elsewhere';
import { readInstallation } from '#database/installation.sql';
import { patiently, sqlstate, Transaction } from '#database/transaction';
import { Refusal, reasonOf, refuse } from '#errors/refusals';
import { DerivedRows, isDerived } from '#log/derive';
import { Month } from '#month';
import {
  copyInto,
  countArchived,
  HOT_LINES,
  hasTable,
  keepArchives,
  keepOneCopy,
  keepOnlyMoved,
  keepReversedSales,
  lockArchives,
  NUMBER_LINES,
  namesArchived,
  QUOTE_LINES,
  quotesOf,
  RowScope,
  readColdMonths,
  readStagedPartners,
  readStated,
  readStoredFiles,
  recallRows,
  STAGED_DAYS,
  STAGED_IDS,
  StoredFile,
  Tree,
} from './archive.sql.ts';
import { citusStore } from './citus.ts';
import { DAY, findRows, NUMBER, ofIds, readTrees, Wanted } from './cold.sql.ts';
import { folderStore } from './folder.ts';
import { Fill, LINE_COLUMNS, Reading, Store, StoreError } from './store.ts';

/** What a transaction has copies of: files, with their partners if not all partners were copied, and searches. */
interface Copied {
  readonly of: string;
  readonly partnerIds?: readonly string[] | undefined;
  /** Why it could not be copied. */
  readonly fault?: string | undefined;
}
const COPIED = new WeakMap<Transaction, readonly Copied[]>();

const nameOf = ({ month, name }: StoredFile) => `${month} ${name}`;

function remember(tx: Transaction, copied: readonly Copied[]) {
  COPIED.set(tx, [...(COPIED.get(tx) ?? []), ...copied]);
}

const remembers = (tx: Transaction, what: string) => COPIED.get(tx)?.find(({ of }) => of === what);

/** Returns whether a transaction has copies of the file's rows, for these partners. */
const hasCopy = (tx: Transaction, file: StoredFile, wanted?: RowScope['partnerIds']) =>
  (COPIED.get(tx) ?? []).some(
    ({ of, partnerIds }) =>
      of === nameOf(file) && (partnerIds === undefined || wanted?.every((id) => partnerIds.includes(id))),
  );

/**
 * Makes sure that a transaction has the archived rows of these months and partners. Call this before anything else that
 * reads their rows: if rows are elsewhere, the work is repeated (database/elsewhere.ts).
 */
export async function needRows(tx: Transaction, scope: RowScope) {
  const files = await readStoredFiles(tx, scope);
  if (files.length === 0 && scope.numbers === undefined && (await countArchived(tx, scope)) > 0) {
    const reason = 'the database names no file of it';
    throw refuse('archive_incomplete', { month: scope.from ?? 'an old month', store: 'archive', reason });
  }
  if (files.every((file) => hasCopy(tx, file, scope.partnerIds))) return;
  throw new Elsewhere((next, environment) => haveRows(next, environment, scope));
}

/** Gives archived rows to a transaction that cannot be repeated. Its session has the table for them. */
export async function haveRows(tx: Transaction, environment: Environment, scope: RowScope) {
  await keepArchives(tx);
  const { partnerIds } = scope;
  const files = (await readStoredFiles(tx, scope)).filter((file) => !hasCopy(tx, file, partnerIds));
  if (files.length === 0) return;
  const copied = await copyRows(tx, environment, files, { partnerIds });
  const counts = await readStated(tx, monthsIn(files), partnerIds);
  const stated = counts.reduce((sum, { entries }) => sum + entries, 0);
  const [{ month, store }] = files as [StoredFile];
  if (copied !== stated) {
    throw refuse('archive_incomplete', { month, store, reason: `${copied} rows were read where ${stated} are` });
  }
  remember(
    tx,
    files.map((file) => ({ of: nameOf(file), partnerIds })),
  );
}

/**
 * Begins an import. Until its transaction ends, the archives stay as they are. If there is an archive, the import runs
 * on a connection of its own, which has the table for copies already.
 */
export async function beginWithArchives(tx: Transaction) {
  await keepArchives(tx);
  if ((await readStoredFiles(tx, {})).length > 0 && !(await hasTable(tx))) throw new Elsewhere(keepArchives);
}

/**
 * Makes sure that a transaction alone has the rows of a month, and all other archived rows of the same quotes.
 */
export async function needWholeQuotes(tx: Transaction, month: Month) {
  const of = `quotes of ${month}`;
  if (remembers(tx, of)) return;
  throw new Elsewhere(async (next, environment) => {
    await lockArchives(next);
    await haveRows(next, environment, { from: month, to: month });
    const files = (await readStoredFiles(next, {})).filter((file) => file.month !== month);
    if (files.length > 0)
      await copyRows(next, environment, files, { lists: [['quote_id', linesOf(next, quotesOf(month))]] });
    remember(next, [{ of }]);
  });
}

/**
 * Copies the archived rows of all quotes that a staged row names or may repeat, for the rest of an import's transaction.
 * No other lock of the ledger may be held, because this reads files.
 */
export async function copyStagedQuotes(tx: Transaction, environment: Environment) {
  if (!(await hasTable(tx))) return;
  const partnerIds = await readStagedPartners(tx);
  const files = await readStoredFiles(tx, { partnerIds });
  const lists = [...ofIds(linesOf(tx, STAGED_IDS)), [DAY, linesOf(tx, STAGED_DAYS)] as const];
  if (files.length > 0) await copyRows(tx, environment, files, { lists }, partnerIds);
}

/** Ends what beginWithArchives began, after the rows of an event were recorded. */
export async function endWithArchives(tx: Transaction, eventId: number) {
  if (await hasTable(tx)) await keepReversedSales(tx, eventId);
}

/**
 * Makes sure that a transaction has the archived rows of the quotes that have a row with this id, enrollment or order,
 * of any partner. The work is repeated if there is an archive, because only its files tell. Returns why they cannot be
 * read, if so.
 */
export async function needQuotes(tx: Transaction, id: string) {
  const of = `quotes of ${id}`;
  const known = remembers(tx, of);
  if (known !== undefined || (await readStoredFiles(tx, {})).length === 0) return known?.fault;
  throw new Elsewhere(async (next, environment) => {
    await keepArchives(next);
    const files = await readStoredFiles(next, {});
    remember(next, [{ of, fault: await faultOf(() => copyRows(next, environment, files, { named: id })) }]);
  });
}

const NAMED_ROWS = 'rows that facts name';

/**
 * Makes sure that a transaction has the archived rows that the rules of `verify` read: those that other facts name, and
 * in the month of `derived`, or in all months, the rows of quotes with a requote or reversal. Of the others the rules read
 * `archived_groups`. Returns why the rows cannot be read, if so.
 */
export async function needNamedRows(tx: Transaction, derived: DerivedRows) {
  const known = remembers(tx, NAMED_ROWS);
  if (known !== undefined) return known.fault;
  if ((await monthsToRead(tx, derived)) === undefined) return undefined;
  throw new Elsewhere((next, environment) => haveNamedRows(next, environment, derived));
}

/** The archived months whose quotes are to be read whole; undefined if nothing is to be read. */
async function monthsToRead(tx: Transaction, derived: DerivedRows) {
  const cold = await readColdMonths(tx);
  const months = cold.map(({ month }) => month).filter((month) => isDerived(derived, month));
  return months.length > 0 || (cold.length > 0 && (await namesArchived(tx))) ? months : undefined;
}

/** The same for a transaction that cannot be repeated. Its session has the table for copies. */
export async function haveNamedRows(tx: Transaction, environment: Environment, derived: DerivedRows) {
  await keepArchives(tx);
  const months = await monthsToRead(tx, derived);
  const lists = [[NUMBER, linesOf(tx, NUMBER_LINES)] as const, ['quote_id', linesOf(tx, QUOTE_LINES)] as const];
  const wanted = { lists, months: months ?? [], hot: linesOf(tx, HOT_LINES) };
  const fault = months && (await faultOf(async () => copyRows(tx, environment, await readStoredFiles(tx, {}), wanted)));
  remember(tx, [{ of: NAMED_ROWS, fault }]);
  return fault;
}

/** Why the archive cannot be read; undefined if it was. */
export async function faultOf(work: () => Promise<unknown>) {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (error instanceof StoreError) return error.message;
    const codes = ['archive_incomplete', 'archive_store_unknown', 'duckdb_missing', 'environment_invalid'];
    if (error instanceof Refusal && codes.includes(error.code)) return error.message;
    throw error;
  }
}

/** Opens a store. Each installation has its own folder in a folder. */
export async function openStore(tx: Transaction, environment: Environment, store: string): Promise<Store> {
  const { archive } = readSettings(environment);
  const { installation_id: installation } = await readInstallation(tx);
  const given = archive[store];
  if (given === undefined) throw refuse('archive_store_unknown', { store, known: Object.keys(archive) });
  if (given.citus !== undefined) {
    const reason = `is not set, and the settings have the store '${store}'`;
    const { citusUrl } = environment;
    if (citusUrl === undefined) throw refuse('environment_invalid', { variable: 'CITUS_URL', reason });
    return citusStore(citusUrl, given.citus, installation);
  }
  const folder = resolve(environment.home, given.parquet ?? '');
  return folderStore(join(folder, installation));
}

/** The lines of a query, for a list of a store. */
export const linesOf =
  (tx: Transaction, select: string): Fill =>
  (take) =>
    copyOut(tx, `COPY (${select}) TO STDOUT`, take);

export const monthsIn = (files: readonly StoredFile[]) => [...new Set(files.map(({ month }) => month))];

/** A store that is open, with the months of the files. */
type Opened = Readonly<{ reading: Reading; months: readonly Month[] }>;

/** Reads files, which must be what was archived. Refuses files that cannot be read. `partnerIds` are the only partners. */
export async function readingFiles<Result>(
  tx: Transaction,
  environment: Environment,
  files: readonly StoredFile[],
  work: (opened: readonly Opened[]) => Promise<Result>,
  partnerIds?: RowScope['partnerIds'],
): Promise<Result> {
  const next = async (opened: readonly Opened[], [store, ...rest]: readonly string[]): Promise<Result> => {
    if (store === undefined) return work(opened);
    const own = files.filter((file) => file.store === store);
    const months = monthsIn(own);
    const scope = { partnerIds, stated: await readStated(tx, months, partnerIds) };
    const from = await openStore(tx, environment, store);
    return from
      .reading(own, scope, (reading) => next([...opened, { reading, months }], rest))
      .catch((error: unknown) => {
        if (!(error instanceof StoreError)) throw error;
        throw refuse('archive_incomplete', { month: months.join(', '), store, reason: error.message });
      });
  };
  return next([], [...new Set(files.map(({ store }) => store))]);
}

/**
 * Brings the archived rows of a partner's quotes back into ledger_rows, each with the proof that its close counted it.
 * Their months stay archived, and the store keeps its copies. Quotes with a pending late request stay from then on.
 */
export const recallQuotes = (
  database: Database,
  environment: Environment,
  partnerId: string,
  quoteIds: readonly string[],
) =>
  database.transaction(async (tx) => {
    const files = await readStoredFiles(tx, { partnerIds: [partnerId] });
    if (files.length === 0) return;
    await patiently(tx);
    const trees = await readingFiles(
      tx,
      environment,
      files,
      async (opened) => {
        const found: Tree[] = [];
        for (const { reading } of opened) found.push(...(await readTrees(reading, { partnerId, quoteIds })));
        return found;
      },
      [partnerId],
    );
    // Others may have copies of these rows.
    await lockArchives(tx);
    // A partner may have more leaves than one statement can carry.
    for (const tree of trees) await recallRows(tx, partnerId, tree);
  });

/** Copies the wanted rows that have left the database. Returns the number of all wanted rows. */
async function copyRows(
  tx: Transaction,
  environment: Environment,
  files: readonly StoredFile[],
  wanted: Wanted,
  partnerIds = 'partnerIds' in wanted ? wanted.partnerIds : undefined,
) {
  const work = async (opened: readonly Opened[]) => {
    // This may read from the database, which cannot be done during the COPY.
    const lines = await findRows(
      opened.map(({ reading }) => reading),
      wanted,
    );
    const copied = () => copyIn(tx, copyInto(LINE_COLUMNS), lines);
    return attempt(tx, copied, (error) => {
      // The ledger cannot have such a row.
      const isOfRow = /^(22|23)/.test(sqlstate(error) ?? '');
      throw isOfRow ? new StoreError(`a row of it is damaged: ${reasonOf(error)}`, { cause: error }) : error;
    });
  };
  const count = await readingFiles(tx, environment, files, work, partnerIds);
  if (count === 0) return 0;
  if (COPIED.has(tx)) await keepOneCopy(tx);
  await keepOnlyMoved(tx);
  return count;
}
