/** The proof that a row is under a month's seal: its line, its path to the Merkle root, and the seal record. */
import type { Transaction } from '../database/transaction.ts';
import { query } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import type { Month } from '../month.ts';
import { readRowLine } from '../seals/canonical.ts';
import { leafHash } from '../seals/merkle.ts';
import { hashRows } from '../seals/seal.ts';

export interface Proof {
  readonly format: 'reckoner-proof';
  readonly version: 1;
  readonly month: Month;
  readonly entry_id: number;
  /** The row in canonical form. */
  readonly line: string;
  /** SHA-256 of 0x00 and the line. */
  readonly leaf: string;
  /** The row's index in the month, from 0, and the number of rows. */
  readonly index: number;
  readonly rows: number;
  /** The siblings from the leaf upwards (RFC 9162, 2.1.3). */
  readonly path: readonly string[];
  readonly root: string;
  readonly record: string;
  /** SHA-256 of the record. */
  readonly seal: string;
}

/** Refusals: row_unknown, month_not_closed. */
export async function proveRow(tx: Transaction, entryId: number): Promise<Proof> {
  const [place] = await query<{
    month: Month;
    previous: Month | null;
    record: string | null;
    seal: string | null;
    posted_month: Month;
    index: number;
  }>(
    tx,
    `SELECT m.month, m.previous, s.record, s.seal, e.posted_month,
            (SELECT count(*) FROM ledger_rows earlier
             WHERE earlier.posted_month > coalesce(m.previous, '') AND earlier.posted_month <= m.month
               AND earlier.entry_id < e.entry_id) AS index
     FROM ledger_rows e
     LEFT JOIN closed_months m ON m.month = greatest(e.posted_month, (SELECT min(month) FROM closed_months))
     LEFT JOIN seals s ON s.month = m.month
     WHERE e.entry_id = :entryId`,
    { entryId },
  );
  if (place === undefined) throw refuse('row_unknown', { entry_id: entryId });
  const { month, previous, record, seal, index } = place;
  if (record === null || seal === null) throw refuse('month_not_closed', { month: place.posted_month });
  const line = (await readRowLine(tx, entryId)) as string;
  const tree = await hashRows(tx, { after: previous ?? '', to: month }, index);
  const { root, path } = tree.finish();
  return {
    format: 'reckoner-proof',
    version: 1,
    month,
    entry_id: entryId,
    line,
    leaf: leafHash(Buffer.from(line)).toString('hex'),
    index,
    rows: tree.leaves,
    path: path.map((hash) => hash.toString('hex')),
    root: root.toString('hex'),
    record,
    seal,
  };
}
