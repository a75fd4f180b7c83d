import { execute, type Transaction } from './transaction.ts';

/**
 * The advisory locks. Each has a class and a number, as PostgreSQL expects. Some also appear in migrations. If several
 * are held, they are taken in this order: processor, importers, ledger, payments.
 */
export const LOCKS = {
  /** If two commands run at once, one migrates and the other waits. */
  migration: '7310::integer, 1::integer',
  ledger: '7310::integer, 2::integer',
  importers: '7310::integer, 3::integer',
  payments: '7310::integer, 51::integer',
  reminders: '7310::integer, 61::integer',
  closeReports: '7310::integer, 62::integer',
  timeStamps: '7310::integer, 63::integer',
  /**
   * Held for the whole of a job that notifies people. A second job at the same moment waits, then finds that they were
   * notified.
   */
  watch: '7310::integer, 64::integer',
  processor: '7310::integer, 81::integer',
  /** Held for a moment before a command begins, without any other lock. */
  settings: '7310::integer, 82::integer',
  users: '7310::integer, 83::integer',
} as const;

/** Waits for one of LOCKS, and holds it until the transaction ends. */
export const takeLock = (tx: Transaction, lock: string): Promise<number> =>
  execute(tx, `SELECT pg_advisory_xact_lock(${lock})`);

/** Takes one lock of a class, by the hash of a name. */
export const takeLockOf = (tx: Transaction, ofClass: number, name: string): Promise<number> =>
  execute(tx, `SELECT pg_advisory_xact_lock(${ofClass}, hashtext(:name))`, { name });

/** The class of locks on items being delivered, by the hash of the item's name (`claims.ts`). */
export const CLAIM_LOCKS = 7311;

/** The class of locks on clients, by the hash of their id. */
export const CLIENT_LOCKS = 7312;

/** The class of locks on approval requests being decided, by the hash of their number. */
export const APPROVAL_LOCKS = 7313;
