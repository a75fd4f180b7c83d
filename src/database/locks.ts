import { execute, Transaction } from './transaction.ts';

/**
 * The advisory locks. Each lock has a class and a number, as PostgreSQL expects. Some of these locks also appear in
 * migrations. A transaction that needs several locks takes them in this order: processor, archives, importers, approvals,
 * ledger, payments, log.
 */
export const LOCKS = {
  migration: '7310::integer, 1::integer',
  importers: '7310::integer, 3::integer',
  /** Shared by transactions that have copies of archived rows. Alone for one that moves rows. */
  archives: '7310::integer, 4::integer',
  payments: '7310::integer, 51::integer',
  reminders: '7310::integer, 61::integer',
  closeReports: '7310::integer, 62::integer',
  /** The last lock of a checkpoint, held for milliseconds. */
  log: '7310::integer, 63::integer',
  timeStamps: '7310::integer, 65::integer',
  /**
   * The lock is held for the whole duration of a job that notifies people. A second job at the same moment waits, and
   * then finds that the people were notified.
   */
  watch: '7310::integer, 64::integer',
  processor: '7310::integer, 81::integer',
  /** The lock is held for a moment before a command begins, and never together with a different lock. */
  settings: '7310::integer, 82::integer',
  users: '7310::integer, 83::integer',
} as const;

/** Takes one of LOCKS until the transaction ends. */
export const takeLock = (tx: Transaction, lock: string) => execute(tx, `SELECT pg_advisory_xact_lock(${lock})`);

/** Takes the lock of a class for the hash of a name, until the transaction ends. */
export const takeLockOf = (tx: Transaction, ofClass: number, name: string) =>
  execute(tx, `SELECT pg_advisory_xact_lock(${ofClass}, hashtext(:name))`, { name });

/**
 * The class of locks on items that are being delivered. The number of a lock is the hash of the item's name
 * (`claims.ts`).
 */
export const CLAIM_LOCKS = 7311;

/** The class of locks on API clients. The number of a lock is the hash of the client id. */
export const CLIENT_LOCKS = 7312;

/**
 * The class of locks for approvals. The number of a lock is the hash of a request's number, the hash of a user and an
 * action whose amounts are compared, or a number for the partners whose adjustments are compared.
 */
export const APPROVAL_LOCKS = 7313;
