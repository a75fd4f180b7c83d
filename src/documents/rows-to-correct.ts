/**
 * Ledger rows that a person names by their numbers, to credit, dispute or reverse them. Each row is a sale that was not
 * credited or reversed before. Refusals: row_not_correctable, archive_incomplete.
 */
import { needRows } from '#archive/rows';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { Amount } from '#money';
import { DocumentRow } from './documents.sql.ts';
import { RowToCorrect, readRowsBilled } from './rows-to-correct.sql.ts';

/** The amount before tax of rows that an invoice bills. */
export async function amountOfRows(
  tx: Transaction,
  { document_id: documentId, number, month, partner_id, currency }: DocumentRow,
  ids: readonly number[],
  action: 'credited' | 'disputed',
) {
  await needRows(tx, { from: month, to: month, partnerIds: [partner_id] });
  const rows = await readRowsBilled(tx, { ids, documentId });
  refuseUncorrectable(rows, ids, { action, missing: `${number} does not bill it` });
  return Amount.sum(currency, rows, ({ invoice_amount }) => Amount.of(invoice_amount, currency));
}

export function refuseUncorrectable(
  rows: readonly RowToCorrect[],
  ids: readonly number[],
  { action, missing }: Readonly<{ action: 'credited' | 'disputed' | 'reversed'; missing: string }>,
) {
  for (const [index, id] of ids.entries()) {
    const row = rows.find(({ entry_id }) => entry_id === id);
    const reason = ids.indexOf(id) < index ? 'it is given twice' : row === undefined ? missing : whyNot(row);
    if (reason !== undefined) throw refuse('row_not_correctable', { row: id, action, reason });
  }
}

function whyNot({ kind, credited_by, reversed_by }: RowToCorrect) {
  if (kind === 'reversal') return 'it is a reversal, not a sale';
  if (credited_by !== null) return `${credited_by} credits it`;
  return reversed_by === null ? undefined : `the reversal ${reversed_by} takes it back`;
}
