/** SQL of the checkpoints that close months and their books. */
import { query, Transaction } from '#database/transaction';
import { Month } from '#month';

export interface CheckpointOf {
  /** The number of facts. */
  readonly size: number;
  /** In Base64. */
  readonly root: string;
}

/** The checkpoints that close these months or their books, keyed by month. */
export async function readCheckpointsOf(
  tx: Transaction,
  closed: 'month' | 'books',
  months: readonly Month[],
): Promise<ReadonlyMap<Month, CheckpointOf>> {
  const rows = await query<CheckpointOf & { month: Month }>(
    tx,
    `SELECT c.month, k.size, encode(k.root, 'base64') AS root
     FROM unnest(:months::text[]) AS c (month) JOIN log_checkpoints k ON k.closes = :closed || ' ' || c.month`,
    { closed, months },
  );
  return new Map(rows.map(({ month, size, root }) => [month, { size, root }]));
}
