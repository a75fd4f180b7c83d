/**
 * `verify`: runs every check in one snapshot of the database. A check that cannot run because of damage is itself a
 * difference. Refusals: nothing_to_verify, month_not_closed.
 */

import { DateTime } from 'luxon';
import { namesArchived, readColdMonths } from '#archive/archive.sql';
import { needNamedRows, needRows } from '#archive/rows';
import { Environment } from '#config/environment';
import { attempt } from '#database/attempt';
import { compareSchema, SchemaComparison } from '#database/schema';
import { raiseWorkMemory, Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { readClosedMonth } from '#ledger/closed-months.sql';
import { readMonthRoots } from '#log/checkpoints.sql';
import { DerivedRows } from '#log/derive';
import { Month } from '#month';
import { Check, CheckContext } from './checks/check.ts';
import { Difference, Finding, unchecked } from './checks/query.ts';
import { CHECKS } from './checks.ts';
import { readEmptiness } from './exports.sql.ts';

export type CheckReport = Readonly<{
  check: string;
  inspected: number;
  differences: readonly Difference[];
  note?: string;
}>;

export type Verification = Readonly<{
  month: Month | null;
  checks: readonly CheckReport[];
  /** Items inspected and differences found, over all checks. */
  inspected: number;
  differences: number;
}>;

type CheckOptions = Readonly<{
  /**
   * Fonts that the installation adds. Without the added fonts, PDFs that need such a font are verified by hash only.
   */
  fonts?: CheckContext['fonts'];
  /**
   * This option is for callers that have already compared the schema and prevent changes to it. Tests compare the
   * schema once for all clones of a database.
   */
  schema?: SchemaComparison | undefined;
  /** For the files of archived months. */
  environment?: Environment | undefined;
  /** The rows whose leaves are hashed again; by default all. */
  derived?: DerivedRows | undefined;
  /** The archived months whose quotes are copied; by default those of `derived`. */
  copied?: DerivedRows | undefined;
}>;

interface VerifyOptions extends CheckOptions {
  readonly onCheck?: (report: CheckReport) => void;
  /** A second transaction on the same snapshot, in which the rules run in parallel with the other checks. */
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
  // Copies of archived rows are where temporary tables can be made.
  const copies = beside ?? tx;
  if (month !== undefined) await needRows(copies, { from: month, to: month });
  const context = await checkContext(tx, month ?? null, options);
  const fault = await needNamedRows(copies, context.copied);
  if (await isEmpty(tx)) throw refuse('nothing_to_verify', {});
  const done = new Map<string, CheckReport>();
  const checks: CheckReport[] = [];
  const run = async (on: Transaction, those: readonly Check[], within: CheckContext) => {
    // With this much memory, PostgreSQL groups by hashing. For a million rows, hashing takes a third of the time of
    // sorting.
    await raiseWorkMemory(on);
    for (const check of those) {
      const finding = await attempt<Finding>(
        on,
        () => (fault !== undefined && check.needsArchives ? without(fault, on, check, within) : check.run(on, within)),
        (error) => ({ inspected: 0, differences: [unchecked(check.name, error)] }),
      );
      done.set(check.name, { check: check.name, ...finding });
      for (let next = nextOf(done, checks); next !== undefined; next = nextOf(done, checks)) {
        checks.push(next);
        onCheck?.(next);
      }
    }
  };
  if (beside === undefined) await run(tx, CHECKS, context);
  else if ((await readColdMonths(tx)).some((each) => each.month === month)) {
    // The other connection does not have the month's rows.
    await run(copies, CHECKS, await checkContext(copies, month ?? null, options));
  } else {
    const rules = checkContext(beside, month ?? null, options).then((own) => run(beside, BESIDE, own));
    const others = run(tx, OTHERS, context);
    // Waits for both transactions even if one fails, because the caller then ends them.
    for (const each of await Promise.allSettled([rules, others])) if (each.status === 'rejected') throw each.reason;
  }
  return {
    month: month ?? null,
    checks,
    inspected: checks.reduce((sum, each) => sum + each.inspected, 0),
    differences: checks.reduce((sum, each) => sum + each.differences.length, 0),
  };
}

/** A check without archived rows. Facts that name such rows would look wrong. */
async function without(fault: string, tx: Transaction, check: Check, context: CheckContext) {
  const isBlind = await namesArchived(tx);
  const found = isBlind ? unread : await check.run(tx, { ...context, copied: { month: null } });
  return { ...found, differences: [{ subject: 'archived months', detail: fault }, ...found.differences] };
}
const unread: Finding = { inspected: 0, differences: [] };

const BESIDE = CHECKS.filter(({ beside }) => beside);
const OTHERS = CHECKS.filter(({ beside }) => !beside);

/** The next report in the order of the list, if its check is done. */
const nextOf = (done: ReadonlyMap<string, CheckReport>, checks: readonly CheckReport[]) =>
  done.get(CHECKS[checks.length]?.name ?? '');

/**
 * The rows that a daily run hashes: the rows of open months and, in turn, the rows of one closed month. Everything else
 * is always verified.
 */
export async function rowsOfToday(tx: Transaction, now: DateTime): Promise<DerivedRows> {
  const months = (await readMonthRoots(tx)).map(({ month }) => month);
  const day = Math.floor(now.toSeconds() / 86_400);
  return { month: months[day % months.length] ?? null };
}

/** A ledger without its table of rows is damaged, not empty. */
function isEmpty(tx: Transaction) {
  return attempt(
    tx,
    async () => (await readEmptiness(tx)).empty,
    () => false,
  );
}

/**
 * The context of checks of one month, or of everything, in this transaction. The rules always check everything: a
 * payment or a void of any month may concern a document of this one.
 */
export async function checkContext(
  tx: Transaction,
  month: Month | null,
  { fonts = [], schema, derived: ofAll = 'all', copied, environment }: CheckOptions = {},
): Promise<CheckContext> {
  if (month !== null && (await readClosedMonth(tx, month)) === undefined) throw refuse('month_not_closed', { month });
  // The caller has copied the rows of the month that it verifies.
  const cold = (await readColdMonths(tx)).filter((each) => each.month !== month);
  const compared = once(async () => schema ?? compareSchema(tx));
  const derived = month === null ? ofAll : { month };
  return { month, fonts, schema: compared, derived, copied: copied ?? derived, environment, cold };
}

function once<Result>(work: () => Promise<Result>) {
  let done: Promise<Result> | undefined;
  return () => {
    done ??= work();
    return done;
  };
}
