/**
 * Writing off what is still open on an invoice. Refusals: document_unknown, document_void, not_an_invoice,
 * nothing_to_write_off, clock_behind.
 */

import { todayOf } from '../config/today.ts';
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { Amount } from '../money.ts';
import { recordEvent } from '../people/audit-events.ts';
import { invoiceToCorrect } from './correctable.ts';
import { insertWriteOff } from './corrections.sql.ts';
import { type IssueContext, refuseClockBehind } from './issue/context.ts';

export async function writeOffInvoice(
  tx: Transaction,
  context: IssueContext,
  { number, reason }: { number: string; reason: string },
): Promise<void> {
  const invoice = await invoiceToCorrect(tx, number, 'written off');
  const balance = Amount.of(invoice.balance, invoice.currency);
  if (!balance.isPositive()) throw refuse('nothing_to_write_off', { number });
  const amount = balance.toString();
  const now = context.environment.now().toISO();
  const details = { amount, currency: invoice.currency, reason };
  const eventId = await recordEvent(tx, context.actor, { action: 'invoice.write_off', subject: number, details, now });
  const today = todayOf(context);
  await refuseClockBehind(tx, today);
  await insertWriteOff(tx, { documentId: invoice.document_id, amount, reason, today, now, eventId });
}
