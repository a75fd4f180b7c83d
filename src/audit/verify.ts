/** `verify`: runs every check in one snapshot of the database. Refusals: nothing_to_verify, month_not_closed. */
import { query, queryOne, raiseWorkMemory, type Transaction } from '../database/transaction.ts';
import type { AddedFont } from '../documents/pdf/added-fonts.ts';
import { refuse } from '../errors/refusals.ts';
import type { Month } from '../month.ts';
import { checkJournal } from './checks/journal.ts';
import { checkRows } from './checks/rows.ts';
import { CHECKS, type CheckContext, type Difference } from './checks.ts';

export interface CheckReport {
  readonly check: string;
  readonly inspected: number;
  readonly differences: readonly Difference[];
}

export interface Verification {
  readonly month: Month | null;
  readonly checks: readonly CheckReport[];
  /** Items inspected and differences found, over all checks. */
  readonly inspected: number;
  readonly differences: number;
}

/**
 * Runs all checks in the caller's transaction, which must be one snapshot. Refuses an empty ledger. `fonts` are those that
 * the installation adds: without them, PDFs that need one are verified by their hashes alone.
 */
export async function verify(
  tx: Transaction,
  month: Month | undefined,
  onCheck?: (report: CheckReport) => void,
  fonts: readonly AddedFont[] = [],
): Promise<Verification> {
  const context = await checkContext(tx, month ?? null, fonts);
  const { rows } = await queryOne<{ rows: boolean }>(tx, `SELECT EXISTS (SELECT FROM ledger_rows) AS rows`);
  if (!rows) throw refuse('nothing_to_verify', {});
  // Enough to group rows by hashing rather than sorting: a third of the time over a million rows.
  await raiseWorkMemory(tx);
  const checks: CheckReport[] = [];
  for (const { name, run } of CHECKS) {
    const report = { check: name, ...(await run(tx, context)) };
    checks.push(report);
    onCheck?.(report);
  }
  return {
    month: month ?? null,
    checks,
    inspected: checks.reduce((sum, each) => sum + each.inspected, 0),
    differences: checks.reduce((sum, each) => sum + each.differences.length, 0),
  };
}

/** What checks of one month, or of everything, need within this transaction. */
export async function checkContext(
  tx: Transaction,
  month: Month | null,
  fonts: readonly AddedFont[] = [],
): Promise<CheckContext> {
  const scope = { month, after: month === null ? ('' as const) : await readMonthBefore(tx, month) };
  return { ...scope, fonts, rows: once(() => checkRows(tx, scope)), journal: once(() => checkJournal(tx, scope)) };
}

async function readMonthBefore(tx: Transaction, month: Month): Promise<Month | ''> {
  const [closed] = await query<{ previous: Month | null }>(
    tx,
    `SELECT previous FROM closed_months WHERE month = :month`,
    { month },
  );
  if (closed === undefined) throw refuse('month_not_closed', { month });
  return closed.previous ?? '';
}

function once<Result>(work: () => Promise<Result>): () => Promise<Result> {
  let done: Promise<Result> | undefined;
  return () => {
    done ??= work();
    return done;
  };
}
