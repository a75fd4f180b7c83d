/**
 * The locks of the ledger. The ledger lock is a lock on the empty table `ledger_gate`, which a role that only reads
 * cannot take. A writer takes it in shared mode for the statement that decides a row's posting month. A close takes it
 * in exclusive mode. Each row is therefore recorded entirely before or entirely after the close.
 *
 * Imports of ledger rows also take the importers' lock, because a quote's limits are checked across the ledger and the
 * whole import. Imports of partners also take the importers' lock, because rows are checked against their partner's
 * time zone, policies and arrangement.
 *
 * Always take the importers' lock before the ledger lock: a fixed order rules out deadlocks.
 */
import { LOCKS, takeLock } from './locks.ts';
import { execute, executing, prepared, Transaction } from './transaction.ts';

/** Takes the ledger lock in shared mode, for a writer's last statement. The lock is held until the transaction ends. */
export const lockLedgerShared = executing('SELECT lock_ledger()');

/**
 * Takes the ledger lock in shared mode and waits at most `ledger` milliseconds. After that, the transaction waits at
 * most `rows` milliseconds for each other lock, such as the lock on a row that another transaction is about to insert;
 * 0 means no limit.
 */
export async function lockLedgerFor(tx: Transaction, patience: { ledger: number; rows: number }) {
  await execute(tx, LOCK_LEDGER_FOR, { ledger: String(patience.ledger), rows: String(patience.rows) });
}

const LOCK_LEDGER_FOR = prepared(
  'lock_ledger_for',
  // The order matters: a lock_timeout applies only to locks that are requested after it.
  `SELECT set_config('lock_timeout', :ledger, true), lock_ledger(), set_config('lock_timeout', :rows, true)`,
);

/**
 * Takes the ledger lock in exclusive mode, for a close. Waits for current writers, and blocks new writers until the
 * transaction ends.
 */
export const lockLedgerWhole = executing('LOCK TABLE ledger_gate IN SHARE ROW EXCLUSIVE MODE');

/**
 * Takes the importers' lock. Transactions that record reversals or change partners run one at a time, from their checks
 * to their commit.
 */
export async function lockImporters(tx: Transaction) {
  // In the order of all locks: an importer looks at the archives.
  await execute(tx, `SELECT pg_advisory_xact_lock_shared(${LOCKS.archives})`);
  await takeLock(tx, LOCKS.importers);
}
