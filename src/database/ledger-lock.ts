/**
 * The advisory locks of the ledger. A writer takes the ledger lock in shared mode for the statement that decides a row's
 * posting month; a close takes it in exclusive mode. A row is therefore recorded entirely before or entirely after the
 * close.
 *
 * Imports of ledger rows also take the importers' lock, because the limits of a quote are checked across the ledger and
 * the whole import. Imports of partners take it too, because rows are checked against their partner's time zone, policies
 * and arrangement.
 *
 * Always take the importers' lock before the ledger lock: the fixed order rules out deadlocks.
 */
import { LOCKS, takeLock } from './locks.ts';
import { execute, prepared, type Transaction } from './transaction.ts';

const { ledger: LEDGER, importers: IMPORTERS } = LOCKS;

/** Takes the lock in shared mode, for a writer's last statement. Held until the transaction ends. */
export async function lockLedgerShared(tx: Transaction): Promise<void> {
  await execute(tx, `SELECT pg_advisory_xact_lock_shared(${LEDGER})`);
}

/**
 * Takes the lock in shared mode, waiting at most `ledger` milliseconds. Later lock waits of the transaction (for a row
 * that another transaction is about to insert) take at most `rows` milliseconds. 0 means no limit.
 */
export async function lockLedgerFor(tx: Transaction, patience: { ledger: number; rows: number }): Promise<void> {
  await execute(tx, LOCK_LEDGER_FOR, { ledger: String(patience.ledger), rows: String(patience.rows) });
}

const LOCK_LEDGER_FOR = prepared(
  'lock_ledger_for',
  // The order matters: each lock_timeout applies to the locks requested after it.
  `SELECT set_config('lock_timeout', :ledger, true), pg_advisory_xact_lock_shared(${LEDGER}),
          set_config('lock_timeout', :rows, true)`,
);

/**
 * Takes the lock in exclusive mode, for a close. Waits for current writers and blocks new ones until the transaction
 * ends.
 */
export async function lockLedgerWhole(tx: Transaction): Promise<void> {
  await takeLock(tx, LEDGER);
}

/** For transactions that record reversals or change partners: one at a time, from their checks to their commit. */
export async function lockImporters(tx: Transaction): Promise<void> {
  await takeLock(tx, IMPORTERS);
}
