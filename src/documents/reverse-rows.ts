/**
 * Reverses sales that a person names by the numbers of their rows. The rules of imported reversals apply: a reversal that
 * the cancellation terms do not cover is a request until finance grants it. Refusals: row_not_correctable.
 */
import { lockImporters } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { importRows } from '#ledger/import';
import { Amount } from '#money';
import { ActorContext } from '#people/audit-events';
import { RowToCorrect, readRowsNumbered, reversalId } from './rows-to-correct.sql.ts';
import { refuseUncorrectable } from './rows-to-correct.ts';

export type ReversedRows = Readonly<{
  rows: readonly RowToCorrect[];
  recorded: number;
  requested: number;
}>;

export async function reverseRows(
  tx: Transaction,
  { environment, actor, settings }: ActorContext,
  { rows: ids, reason }: Readonly<{ rows: readonly number[]; reason: string }>,
): Promise<ReversedRows> {
  await lockImporters(tx);
  const rows = await readRowsNumbered(tx, { ids });
  refuseUncorrectable(rows, ids, { action: 'reversed', missing: 'the ledger has no such row' });
  const now = environment.now();
  const text = rows.map((row) => `${JSON.stringify(reversalLine(row, now.toUTC().toISO()))}\n`).join('');
  const { accepted, held, errors } = await importRows(tx, [{ name: 'the reversals', format: 'ndjson', text }], {
    ...{ skipInvalid: false, now, actor, ceilings: settings.reversals, environment },
    action: { action: 'rows.reverse', subject: ids.join(' '), details: { reason } },
  });
  const [error] = errors;
  if (error !== undefined) {
    const { entry_id } = rows[error.line - 1] as RowToCorrect;
    throw refuse('row_not_correctable', { row: entry_id, action: 'reversed', reason: error.reason });
  }
  return { rows, recorded: accepted, requested: held };
}

/** The reversal of a whole row, with the fields of an import. */
function reversalLine(row: RowToCorrect, acceptedAt: string) {
  const { kind: _, entry_id, spot_price, partner_cut, invoice_amount, credited_by: __, reversed_by: ___, ...of } = row;
  const back = (amount: string | null) =>
    Amount.of(amount ?? '0', row.currency)
      .negated()
      .toString();
  return {
    ...{ ...of, kind: 'reversal', reversal_id: reversalId(entry_id), accepted_at: acceptedAt },
    ...{ spotPrice: back(spot_price), partnerCut: back(partner_cut), invoiceAmount: back(invoice_amount) },
  };
}
