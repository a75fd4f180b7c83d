/**
 * Voiding a document: a new fact dated today. The document keeps its number and its snapshot; its rows are unbilled until a
 * replacement bills them. Refusals: document_unknown, document_void, payment_applied, credit_used,
 * document_written_off, clock_behind.
 */

import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { failpoint } from '../failpoint.ts';
import { lockLedgerWhole } from '../ledger/lock.ts';
import { Amount } from '../money.ts';
import { recordEvent } from '../people/audit-events.ts';
import { type IssueContext, refuseClockBehind, todayOf } from './issue/issue.ts';
import { type DocumentRow, readDocuments, voidDocuments } from './queries.ts';

export async function voidDocument(
  tx: Transaction,
  context: IssueContext,
  { number, reason }: { number: string; reason: string },
): Promise<void> {
  const document = await documentToCorrect(tx, number);
  refuseSettled(document, 'voided');
  const today = todayOf(context);
  await refuseClockBehind(tx, today);
  const now = context.environment.now().toISO();
  const eventId = await recordEvent(tx, context.actor, {
    action: 'invoice.void',
    subject: number,
    details: { reason },
    now,
  });
  await voidDocuments(tx, { documents: [{ document_id: document.document_id, reason }], today, now, eventId });
  failpoint('void.recorded');
}

/** A live document, under the ledger's lock: nothing about it changes until the transaction ends. */
export async function documentToCorrect(tx: Transaction, number: string): Promise<DocumentRow> {
  await lockLedgerWhole(tx);
  const [document] = await readDocuments(tx, { number });
  if (document === undefined) throw refuse('document_unknown', { number });
  const { month, purpose, replaced_by, voided_on } = document;
  if (voided_on !== null) throw refuse('document_void', { number, voided_on, purpose, month, replaced_by });
  return document;
}

type Settled = Pick<DocumentRow, 'number' | 'document' | 'currency' | 'amount_paid' | 'credited' | 'written_off'>;

/** Refuses where money has moved on the strength of the document. */
export function refuseSettled(document: Settled, act: 'voided' | 'run again'): void {
  const { number, currency } = document;
  const amount = (text: string) => Amount.of(text, currency);
  if (document.document === 'credit_note' && amount(document.credited).isPositive()) {
    throw refuse('credit_used', { number, used: amount(document.credited).forPeople(), act });
  }
  if (!amount(document.amount_paid).isZero()) {
    throw refuse('payment_applied', { number, amount_paid: amount(document.amount_paid).forPeople(), act });
  }
  if (amount(document.written_off).isPositive()) {
    throw refuse('document_written_off', { number, written_off: amount(document.written_off).forPeople(), act });
  }
}
