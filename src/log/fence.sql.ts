/** SQL of the fence. */
import { prepared, queryingColumn } from '#database/transaction';

const RECORDERS = prepared(
  'log.recorders',
  `SELECT virtualtransaction FROM pg_locks
   WHERE relation = 'ledger_gate'::regclass AND granted AND mode <> 'AccessShareLock'
     AND pid IS DISTINCT FROM pg_backend_pid()
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
);

/** The transactions that are recording facts now. */
export const readRecorders = queryingColumn<string>(RECORDERS);
