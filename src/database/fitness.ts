/**
 * Checks the conditions for writing to a database: the server accepts writes, this version knows its migrations, and
 * its clock agrees with this machine's clock. The checks run before the first transaction that writes, then every 30
 * seconds, and at once after this machine's clock was set. Refusals: clock_differs, database_read_only, database_newer,
 * database_unreleased.
 */
import { Environment } from '#config/environment';
import { refuse } from '#errors/refusals';
import { refuseOthers } from './migrate.ts';
import { Queryable } from './session.ts';
import { queryOne, Transaction } from './transaction.ts';

type Clock = Pick<Environment, 'now' | 'clockIsSet'>;

/** Network time keeps clocks within a second of each other. A difference larger than this is a fault. */
const TOLERANCE_MILLISECONDS = 120_000;
const CHECKED_EVERY_MILLISECONDS = 30_000;
/** If this machine's clock and the time since the process began differ by more than this, the clock was set. */
const JUMP_MILLISECONDS = 1_000;

export interface Fitness {
  /** Throws the refusal if nothing may be written now. Asks the server only if the last answer is too old. */
  readonly assure: () => Promise<void>;
  /** Like `assure`, but always asks the server. */
  readonly check: () => Promise<void>;
}

type Answer = Readonly<{
  /** Milliseconds since 1970 by the database's clock. */
  now: number;
  read_only: boolean;
  recovering: boolean;
  migrations: readonly string[];
}>;

const NOW = 'SELECT extract(epoch FROM clock_timestamp())::double precision * 1000 AS now';
const QUESTION = `
  ${NOW}, current_setting('transaction_read_only')::boolean AS read_only, pg_is_in_recovery() AS recovering`;
const WITH_MIGRATIONS = `${QUESTION}, ARRAY(SELECT name::text FROM migrations ORDER BY id) AS migrations`;

/** Returns the checks for the server behind a pool. `name` is the database's name in messages. */
export function fitnessOf(pool: Queryable, name: string, clock: Clock): Fitness {
  let checkedAt = Number.NEGATIVE_INFINITY;
  let clockBase = 0;
  let checking: Promise<void> | undefined;
  const elapsedBase = () => Date.now() - performance.now();
  const check = async () => {
    const [before, base] = [clock.now().toMillis(), elapsedBase()];
    const answer = (await pool.query(WITH_MIGRATIONS)).rows[0] as Answer;
    refuseReadOnly(answer, name);
    refuseOthers(answer.migrations);
    if (!clock.clockIsSet) refuseOtherClock(answer.now, before, clock.now().toMillis());
    [checkedAt, clockBase] = [performance.now(), base];
  };
  return {
    check,
    async assure() {
      const old = performance.now() - checkedAt > CHECKED_EVERY_MILLISECONDS;
      if (!old && Math.abs(elapsedBase() - clockBase) <= JUMP_MILLISECONDS) return;
      // If many transactions begin at once, only one of them asks the server.
      checking ??= check().finally(() => {
        checking = undefined;
      });
      await checking;
    },
  };
}

/** Checks a database that may have no migrations yet. `init`, `migrate` and `restore` write to such a database. */
export async function checkUnmigrated(pool: Queryable, name: string, clock?: Clock) {
  const before = clock?.now().toMillis() ?? 0;
  const answer = (await pool.query(QUESTION)).rows[0] as Omit<Answer, 'migrations'>;
  refuseReadOnly(answer, name);
  if (clock && !clock.clockIsSet) refuseOtherClock(answer.now, before, clock.now().toMillis());
}

function refuseReadOnly({ read_only, recovering }: Pick<Answer, 'read_only' | 'recovering'>, name: string) {
  if (!read_only) return;
  const reason = recovering ? 'is a standby' : 'has default_transaction_read_only = on';
  throw refuse('database_read_only', { database: name, reason });
}

/**
 * Compares clocks. The database answered at some time from `before` to `after`, so a slow answer does not count as a
 * difference.
 */
function refuseOtherClock(there: number, before: number, after: number) {
  const differs = there < before ? before - there : Math.max(0, there - after);
  if (differs <= TOLERANCE_MILLISECONDS) return;
  const [machine, database] = [after, there].map((each) => new Date(each).toISOString()) as [string, string];
  throw refuse('clock_differs', { machine, database, seconds: Math.round(differs / 1000), ahead: there < before });
}

/**
 * How many seconds this machine's clock is ahead of the database's clock. The result is 0 within the tolerance, or if
 * RECKONER_NOW is set.
 */
export async function readClockDifference(tx: Transaction, clock: Clock) {
  const before = clock.now().toMillis();
  const { now } = await queryOne<{ now: number }>(tx, NOW);
  const after = clock.now().toMillis();
  const ahead = now < before ? before - now : Math.min(0, after - now);
  return clock.clockIsSet || Math.abs(ahead) <= TOLERANCE_MILLISECONDS ? 0 : Math.round(ahead / 1000);
}

/**
 * The time that decides whether a month has ended: the earlier of the two clocks' times. The database refuses to close
 * a month that has not ended by its own clock (migrations/004_ledger.sql).
 */
export async function readClosingTime(tx: Transaction, clock: Clock) {
  const here = clock.now();
  if (clock.clockIsSet) return here;
  const { now: there } = await queryOne<{ now: number }>(tx, NOW);
  return there < here.toMillis() ? here.minus({ milliseconds: here.toMillis() - there }) : here;
}
