/**
 * `verify`: runs every check in one snapshot of the database. A check that cannot run because of damage is itself a
 * difference. Refusals: nothing_to_verify, month_not_closed.
 */
import { compareSchema, type SchemaComparison } from '../database/schema.ts';
import { execute, isFaultOfOne, raiseWorkMemory, sqlstate, type Transaction } from '../database/transaction.ts';
import { Refusal, reasonOf, refuse } from '../errors/refusals.ts';
import { readClosedMonth } from '../ledger/closed-months.sql.ts';
import type { Month } from '../month.ts';
import { hashAgain } from '../seals/checkpoint.ts';
import type { Check, CheckContext } from './checks/check.ts';
import { checkJournal } from './checks/journal.ts';
import type { Difference, Finding } from './checks/query.ts';
import { checkRows } from './checks/rows.ts';
import { CHECKS } from './checks.ts';
import { readEmptiness } from './exports.sql.ts';

export interface CheckReport {
  readonly check: string;
  readonly inspected: number;
  readonly differences: readonly Difference[];
  readonly note?: string;
}

export interface Verification {
  readonly month: Month | null;
  readonly checks: readonly CheckReport[];
  /** Items inspected and differences found, over all checks. */
  readonly inspected: number;
  readonly differences: number;
}

/** Options that the caller passes to the checks. */
interface CheckOptions {
  /** Fonts that the installation adds. Without them, PDFs that need one are verified by hash only. */
  readonly fonts?: CheckContext['fonts'];
  /**
   * For callers that have compared the schema already and prevent changes to it. Tests compare it once for all clones
   * of a database.
   */
  readonly schema?: SchemaComparison | undefined;
}

interface VerifyOptions extends CheckOptions {
  readonly onCheck?: (report: CheckReport) => void;
  /** A second transaction on the same snapshot, in which rows are hashed in parallel with the other checks. */
  readonly beside?: Transaction | undefined;
}

/**
 * Runs all checks in the caller's transaction, which must be one snapshot, and reports each in the order of the list.
 * Refuses an empty ledger.
 */
export async function verify(
  tx: Transaction,
  month: Month | undefined,
  { onCheck, beside, ...options }: VerifyOptions = {},
): Promise<Verification> {
  const context = await checkContext(tx, month ?? null, options);
  if (await isEmpty(tx)) throw refuse('nothing_to_verify', {});
  const done = new Map<string, CheckReport>();
  const checks: CheckReport[] = [];
  const run = async (on: Transaction, those: readonly Check[], within: CheckContext) => {
    // Enough to group rows by hashing rather than sorting, which takes a third of the time for a million rows.
    await raiseWorkMemory(on);
    for (const check of those) {
      const finding = await attempt(on, () => check.run(on, within), unchecked(check));
      done.set(check.name, { check: check.name, ...finding });
      for (let next = nextOf(done, checks); next !== undefined; next = nextOf(done, checks)) {
        checks.push(next);
        onCheck?.(next);
      }
    }
  };
  if (beside === undefined) await run(tx, CHECKS, context);
  else {
    const hashing = checkContext(beside, month ?? null, options).then((own) => run(beside, HASHING, own));
    const others = run(tx, OTHERS, context);
    // Waits for both even if one fails, because the caller then ends the transactions.
    for (const each of await Promise.allSettled([hashing, others])) if (each.status === 'rejected') throw each.reason;
  }
  return {
    month: month ?? null,
    checks,
    inspected: checks.reduce((sum, each) => sum + each.inspected, 0),
    differences: checks.reduce((sum, each) => sum + each.differences.length, 0),
  };
}

const HASHING = CHECKS.filter(({ hashesRows }) => hashesRows);
const OTHERS = CHECKS.filter(({ hashesRows }) => !hashesRows);

/** The next report in the order of the list, if its check is done. */
const nextOf = (done: ReadonlyMap<string, CheckReport>, checks: readonly CheckReport[]): CheckReport | undefined =>
  done.get(CHECKS[checks.length]?.name ?? '');

/** A ledger without its table of rows is damaged, not empty. */
function isEmpty(tx: Transaction): Promise<boolean> {
  return attempt(
    tx,
    async () => (await readEmptiness(tx)).empty,
    () => false,
  );
}

/** Does the work, or returns `instead` if damaged data prevents it. */
async function attempt<Result>(
  tx: Transaction,
  work: () => Promise<Result>,
  instead: (error: unknown) => Result,
): Promise<Result> {
  await execute(tx, 'SAVEPOINT attempt');
  try {
    const result = await work();
    await execute(tx, 'RELEASE SAVEPOINT attempt');
    return result;
  } catch (error) {
    if (error instanceof Refusal || (sqlstate(error) !== undefined && !isFaultOfOne(error))) throw error;
    // If the connection was lost, this fails with that error.
    await execute(tx, 'ROLLBACK TO SAVEPOINT attempt');
    return instead(error);
  }
}

const unchecked =
  ({ name }: Check) =>
  (error: unknown): Finding => ({
    inspected: 0,
    differences: [{ subject: name, detail: `cannot be checked, the database is damaged: ${reasonOf(error)}` }],
  });

/** The context of checks of one month, or of everything, in this transaction. */
export async function checkContext(
  tx: Transaction,
  month: Month | null,
  { fonts = [], schema }: CheckOptions = {},
): Promise<CheckContext> {
  const scope = { month, after: month === null ? ('' as const) : await readMonthBefore(tx, month) };
  return {
    ...scope,
    fonts,
    schema: once(async () => schema ?? compareSchema(tx)),
    rows: once(() => checkRows(tx, scope)),
    journal: once(() => checkJournal(tx, scope)),
    hashedAgain: once(() => hashAgain(tx, month)),
  };
}

async function readMonthBefore(tx: Transaction, month: Month): Promise<Month | ''> {
  const closed = await readClosedMonth(tx, month);
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
