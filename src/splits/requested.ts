/** Records the reversals that wait for a person, once the processor has taken our share back (service.md 7.5). */
import { lockImporters } from '../database/ledger-lock.ts';
import type { Transaction } from '../database/transaction.ts';
import type { IssueContext } from '../documents/issue/context.ts';
import { readTakenBack } from '../ledger/held.sql.ts';
import { recordTakenBack } from '../ledger/held.ts';
import { lockProcessor } from './accounts.sql.ts';

/** Returns the number of recorded rows. */
export async function recordRequestedReversals(tx: Transaction, acting: IssueContext): Promise<number> {
  await lockProcessor(tx);
  await lockImporters(tx);
  const ids = await readTakenBack(tx);
  if (ids.length === 0) return 0;
  const { rows } = await recordTakenBack(tx, acting, ids);
  return rows.length;
}
