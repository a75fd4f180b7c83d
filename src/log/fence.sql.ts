/** SQL of the fence. */
import { prepared, query, type Transaction } from '../database/transaction.ts';

const RECORDERS = prepared(
  'log.recorders',
  `SELECT virtualtransaction FROM pg_locks
   WHERE relation = 'ledger_gate'::regclass AND granted AND mode <> 'AccessShareLock'
     AND pid IS DISTINCT FROM pg_backend_pid()
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
);

/** The transactions that are recording facts now. */
export async function readRecorders(tx: Transaction): Promise<string[]> {
  const rows = await query<{ virtualtransaction: string }>(tx, RECORDERS);
  return rows.map(({ virtualtransaction: each }) => each);
}
