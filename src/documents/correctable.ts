/**
 * Checks whether a document may be corrected. Refusals: document_unknown, document_void, not_an_invoice,
 * document_on_hold, payment_applied, credit_used, document_written_off.
 */

import { lockLedgerWhole } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { Amount, isZero } from '#money';
import { DocumentRow, readDocuments } from './documents.sql.ts';
import { documentUnknown } from './unknown.ts';

/** A live document, read under the ledger's lock, so that it does not change until the transaction ends. */
export async function documentToCorrect(tx: Transaction, number: string): Promise<DocumentRow> {
  await lockLedgerWhole(tx);
  const [document] = await readDocuments(tx, { number });
  if (document === undefined) throw await documentUnknown(tx, number);
  const { month, purpose, replaced_by, voided_on } = document;
  if (voided_on !== null) throw refuse('document_void', { number, voided_on, purpose, month, replaced_by });
  return document;
}

/** A live invoice whose balance may be lowered or disputed, read under the ledger's lock. */
export async function invoiceToCorrect(
  tx: Transaction,
  number: string,
  action: 'credited' | 'written off' | 'reopened' | 'disputed',
): Promise<DocumentRow> {
  const invoice = await documentToCorrect(tx, number);
  const { document } = invoice;
  if (document !== 'invoice') throw refuse('not_an_invoice', { number, document, action });
  return invoice;
}

/** Refuses what waits until a document is released, such as the use of a credit note's credit. */
export function refuseHeld({ number, held_at, hold_reason }: Pick<DocumentRow, 'number' | 'held_at' | 'hold_reason'>) {
  if (held_at !== null) throw refuse('document_on_hold', { number, since: held_at, reason: hold_reason ?? '' });
}

/** Why an invoice has no balance left. Its status is `paid` even if a part was written off. */
export const howSettled = ({ written_off }: Pick<DocumentRow, 'written_off'>): string =>
  isZero(written_off) ? 'is paid' : 'is written off; undoing the write-off reopens it';

type SettledDocument = Pick<
  DocumentRow,
  'number' | 'document' | 'currency' | 'amount_paid' | 'credited' | 'written_off'
>;

/** Refuses a document that a payment, a credit application or a write-off refers to. */
export function refuseSettled(document: SettledDocument, action: 'voided' | 'run again') {
  const { number, currency } = document;
  const amount = (text: string) => Amount.of(text, currency);
  if (document.document === 'credit_note' && amount(document.credited).isPositive()) {
    throw refuse('credit_used', { number, used: amount(document.credited).forPeople(), action });
  }
  if (!amount(document.amount_paid).isZero()) {
    throw refuse('payment_applied', { number, amount_paid: amount(document.amount_paid).forPeople(), action });
  }
  if (amount(document.written_off).isPositive()) {
    throw refuse('document_written_off', { number, written_off: amount(document.written_off).forPeople(), action });
  }
}
