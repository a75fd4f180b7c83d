/**
 * What the rules of `verify` need of archived months: the rows that other facts or rows name, and the counts and sums of
 * all others in groups, as `row_groups` of checks.sql has them. Reading these takes a part of the time that copying all
 * rows takes. Refusals: those of rows.ts.
 */
import type { Environment } from '../config/environment.ts';
import { Elsewhere } from '../database/elsewhere.ts';
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import {
  countGrouped,
  DIGITS,
  describeCopies,
  keepArchives,
  NAMED,
  OTHER_QUOTES,
  PRESENT,
  readStoredFiles,
  type StoredFile,
} from './archive.sql.ts';
import { GROUP_COLUMNS, LINE_COLUMNS, summarized } from './parquet.ts';
import { faultOf, hasCopy, readingFiles, remember, remembers } from './rows.ts';

const SUMMARIES = 'summaries';

/**
 * Makes sure that a transaction has the summaries of all archived months that it has no copy of. Returns why they cannot
 * be read, if so.
 */
export async function needSummaries(tx: Transaction): Promise<string | undefined> {
  const known = remembers(tx, SUMMARIES);
  if (known !== undefined || (await readStoredFiles(tx, {})).length === 0) return known?.fault;
  throw new Elsewhere(haveSummaries);
}

/** The same for a transaction that cannot be repeated. Its session has the tables for copies. */
export async function haveSummaries(tx: Transaction, environment: Environment): Promise<string | undefined> {
  await keepArchives(tx);
  const files = (await readStoredFiles(tx, {})).filter((file) => !hasCopy(tx, file));
  const fault = files.length > 0 ? await faultOf(() => copySummaries(tx, environment, files)) : undefined;
  remember(tx, [{ of: SUMMARIES, fault }]);
  return fault;
}

async function copySummaries(tx: Transaction, environment: Environment, files: readonly StoredFile[]): Promise<void> {
  const counted = await readingFiles(tx, environment, files, async ({ connection, paths, written, copied }) => {
    const given = {
      present: await written(PRESENT),
      named: await written(NAMED),
      quotes: await written(OTHER_QUOTES),
      digits: await written(DIGITS),
    };
    const { present, rows, groups } = await summarized(connection, paths, given);
    return {
      named: await copied('archived_rows', LINE_COLUMNS, rows),
      groups: await copied('archived_groups', GROUP_COLUMNS, groups),
      present,
    };
  });
  await describeCopies(tx);
  const grouped = await countGrouped(tx);
  const stated = files.reduce((sum, { entries }) => sum + entries, 0);
  const read = counted.named + grouped + counted.present;
  if (read === stated) return;
  const [{ month, store }] = files as [StoredFile];
  throw refuse('archive_incomplete', { month, store, reason: `${read} rows were read where ${stated} are` });
}
