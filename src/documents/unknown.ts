import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { partsOf } from './resume.ts';
import { readSkipped } from './skipped-numbers.sql.ts';

/**
 * The refusal document_unknown for a number that no document has. The refusal includes the reason if the number was
 * skipped.
 */
export async function documentUnknown(tx: Transaction, number: string) {
  const parts = partsOf(number);
  const [skipped] = parts === undefined ? [] : await readSkipped(tx, parts);
  return refuse('document_unknown', { number, skipped });
}
