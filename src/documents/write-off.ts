/**
 * Writes off an invoice's balance, and undoes the write-off, for example when the partner pays later. Refusals:
 * document_unknown, document_void, not_an_invoice, nothing_to_write_off, not_written_off, clock_behind.
 */

import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { Amount } from '#money';
import { recordEvent } from '#people/audit-events';
import { invoiceToCorrect } from './correctable.ts';
import { insertWriteOff, insertWriteOffReversals } from './corrections.sql.ts';
import { DocumentRow } from './documents.sql.ts';
import { dateOfAction, IssueContext } from './issue/context.ts';

type WriteOffRequest = Readonly<{
  number: string;
  reason: string;
}>;

export async function writeOffInvoice(tx: Transaction, context: IssueContext, request: WriteOffRequest) {
  const invoice = await invoiceToCorrect(tx, request.number, 'written off');
  const amount = Amount.of(invoice.balance, invoice.currency);
  if (!amount.isPositive()) throw refuse('nothing_to_write_off', { number: request.number });
  await insertWriteOff(tx, await begin(tx, context, 'invoice.write_off', { ...request, invoice, amount }));
}

/**
 * Undoes the write-offs of an invoice, dated today. The amount is open again, and bad debts decrease by the same
 * amount.
 */
export async function undoWriteOff(tx: Transaction, context: IssueContext, request: WriteOffRequest) {
  const invoice = await invoiceToCorrect(tx, request.number, 'reopened');
  const amount = Amount.of(invoice.written_off, invoice.currency);
  if (!amount.isPositive()) throw refuse('not_written_off', { number: request.number });
  await insertWriteOffReversals(
    tx,
    await begin(tx, context, 'invoice.write_off_undone', { ...request, invoice, amount }),
  );
  failpoint('write_off_undo.recorded');
  return amount;
}

async function begin(
  tx: Transaction,
  context: IssueContext,
  action: string,
  { invoice, amount: written, number, reason }: WriteOffRequest & { invoice: DocumentRow; amount: Amount },
) {
  const [amount, now] = [written.toString(), context.environment.now().toISO()];
  const details = { amount, currency: invoice.currency, reason };
  const eventId = await recordEvent(tx, context.actor, { action, subject: number, details, now });
  const today = await dateOfAction(tx, context);
  return { documentId: invoice.document_id, amount, reason, today, now, eventId };
}
