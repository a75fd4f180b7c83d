/** SQL of the fence. */
import { LOCKS } from '../database/locks.ts';
import { prepared, query, type Transaction } from '../database/transaction.ts';

const keyOf = (lock: string) => lock.replaceAll('::integer', '');

const RECORDERS = prepared(
  'log.recorders',
  `SELECT virtualtransaction FROM pg_locks
   WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND pid IS DISTINCT FROM pg_backend_pid()
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
     AND (classid::bigint, objid::bigint) = (${keyOf(LOCKS.ledger)})`,
);

/** The transactions that are recording facts now. */
export async function readRecorders(tx: Transaction): Promise<string[]> {
  const rows = await query<{ virtualtransaction: string }>(tx, RECORDERS);
  return rows.map(({ virtualtransaction: each }) => each);
}
