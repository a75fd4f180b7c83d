/**
 * The ledger's lock. Writers hold it shared for the statement that decides a row's posting month, a close holds it
 * whole, so a row lands wholly before or wholly after the cut. Importers additionally queue behind each other, because
 * the limits of a quote are judged over the ledger and one import; imports of partners queue with them, because rows are
 * judged by their partners' zones, policies and arrangements.
 *
 * Order of taking, always: importers' queue, then ledger. Nobody takes them the other way round, so they can't deadlock.
 */
import { execute, prepared, type Transaction } from '../database/transaction.ts';

const LEDGER = '7310::integer, 2::integer';
const IMPORTERS = '7310::integer, 3::integer';

/** For a writer's last statement; held until its transaction ends. */
export async function lockLedgerShared(tx: Transaction): Promise<void> {
  await execute(tx, `SELECT pg_advisory_xact_lock_shared(${LEDGER})`);
}

/**
 * The same for callers who wait for no longer than `ledger` milliseconds. For what else they meet, a row that somebody
 * else is about to record, they then wait for `rows` milliseconds. 0 is for ever.
 */
export async function lockLedgerFor(tx: Transaction, patience: { ledger: number; rows: number }): Promise<void> {
  await execute(tx, LOCK_LEDGER_FOR, { ledger: String(patience.ledger), rows: String(patience.rows) });
}

const LOCK_LEDGER_FOR = prepared(
  'lock_ledger_for',
  // In this order: each takes effect for the lock that is asked for after it.
  `SELECT set_config('lock_timeout', :ledger, true), pg_advisory_xact_lock_shared(${LEDGER}),
          set_config('lock_timeout', :rows, true)`,
);

/** For a close: waits for writers under way and keeps new ones waiting until the transaction ends. */
export async function lockLedgerWhole(tx: Transaction): Promise<void> {
  await execute(tx, `SELECT pg_advisory_xact_lock(${LEDGER})`);
}

/** For whoever records reversals or changes partners: one at a time from its checks to its commit. */
export async function lockImporters(tx: Transaction): Promise<void> {
  await execute(tx, `SELECT pg_advisory_xact_lock(${IMPORTERS})`);
}
