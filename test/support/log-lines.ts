/** The lines of the log. */
import type { Transaction } from '../../src/database/transaction.ts';
import { copyLines } from '../../src/log/lines.sql.ts';

/** The lines up to a number, in order. */
export async function linesTo(tx: Transaction, to: number): Promise<string[]> {
  const pieces: Buffer[] = [];
  await copyLines(tx, { after: 0, to }, (piece) => void pieces.push(piece));
  return Buffer.concat(pieces).toString().split('\n').slice(0, -1);
}
