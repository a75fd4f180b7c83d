/**
 * Waits until every fact up to a log number is either committed or rolled back.
 *
 * Facts get their numbers before they are committed, so a low number may become visible after a higher number. A
 * transaction that records facts takes the ledger's lock in shared mode before it draws its first number, and keeps the
 * lock until its commit (begin_recording). The view pg_locks shows the transactions that hold the lock. This function
 * reads the last number drawn, then waits until each transaction that held the lock at that moment has ended. An
 * exclusive lock would ensure the same. However, while the exclusive lock waited for a long import, every acceptance
 * would wait behind it. With this function, no writer waits.
 */
import { Database } from '#database/database';
import { Transaction } from '#database/transaction';
import { readLastNumber } from './checkpoints.sql.ts';
import { readRecorders } from './fence.sql.ts';

/** The last log number that was drawn, and the transactions that may still commit a fact up to this number. */
export interface Cut {
  readonly to: number;
  readonly recorders: readonly string[];
}

const LOOK_AGAIN_MILLISECONDS = 5;

/** The two statements must run in this order. */
export async function readCut(tx: Transaction): Promise<Cut> {
  const to = await readLastNumber(tx);
  return { to, recorders: await readRecorders(tx) };
}

/**
 * Waits for the recording transactions of a cut until a deadline (`Date.now()`). Returns false if a transaction is
 * still recording at the deadline.
 */
export async function awaitCut(database: Pick<Database, 'transaction'>, cut: Cut, deadline: number) {
  let { recorders } = cut;
  while (recorders.length > 0) {
    if (Date.now() >= deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MILLISECONDS));
    const still = new Set(await database.transaction(readRecorders));
    recorders = recorders.filter((each) => still.has(each));
  }
  return true;
}
