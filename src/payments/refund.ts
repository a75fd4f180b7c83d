/**
 * Refunding the open credit of a credit note, and undoing that when the bank returns it.
 * Refusals: document_unknown, credit_not_refundable, argument_invalid.
 */
import { todayOf } from '../config/today.ts';
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { Amount } from '../money.ts';
import { type Caller, lockPayments, openPaymentContext } from './context.ts';
import { type PayableRow, readPayable } from './open-items.sql.ts';
import { insertRefund, insertRefundReturn, readLatestRefund } from './refund.sql.ts';

export interface RefundRequest {
  readonly number: string;
  readonly method: 'ach' | 'wire' | 'other';
  /** The bank's reference; empty where it is unknown. */
  readonly reference: string;
  /** Left out: today. */
  readonly on?: string | undefined;
}

export interface Refund {
  readonly number: string;
  readonly partner_id: string;
  readonly currency: string;
  readonly amount: string;
  readonly refunded_on: string;
}

/** Refunds all open credit of a credit note. */
export async function refundCredit(tx: Transaction, caller: Caller, request: RefundRequest): Promise<Refund> {
  const on = dayOf(caller, request.on);
  await lockPayments(tx);
  const note = await creditNote(tx, request.number);
  if (note.status !== 'open') {
    const reason = note.status === 'void' ? 'it is void' : 'its credit is used up';
    throw refuse('credit_not_refundable', { number: request.number, reason });
  }
  const { partner_id, currency } = note;
  const amount = Amount.of(note.balance, currency).toString();
  const context = await openPaymentContext(tx, caller, {
    action: 'credit.refund',
    subject: request.number,
    details: { amount, currency, reference: request.reference },
  });
  const refunded_on = await insertRefund(context, {
    documentId: note.document_id,
    amount,
    method: request.method,
    reference: request.reference,
    on,
  });
  return { number: request.number, partner_id, currency, amount, refunded_on };
}

/** Returns the latest refund of a credit note: its credit is open again. */
export async function returnRefund(
  tx: Transaction,
  caller: Caller,
  request: { number: string; reason: string; on?: string | undefined },
): Promise<Refund> {
  const on = dayOf(caller, request.on);
  await lockPayments(tx);
  const note = await creditNote(tx, request.number);
  const refund = await readLatestRefund(tx, note.document_id);
  if (refund === undefined) {
    throw refuse('credit_not_refundable', {
      number: request.number,
      reason: 'it has no refund that could be returned',
    });
  }
  const context = await openPaymentContext(tx, caller, {
    action: 'credit.refund_returned',
    subject: request.number,
    details: { amount: refund.amount, currency: note.currency, reason: request.reason },
  });
  await insertRefundReturn(context, { refundId: refund.credit_refund_id, reason: request.reason, on });
  const { partner_id, currency } = note;
  const amount = Amount.of(refund.amount, currency).toString();
  return { number: request.number, partner_id, currency, amount, refunded_on: refund.refunded_on };
}

function dayOf(caller: Caller, on: string | undefined): string {
  const today = todayOf(caller);
  if (on !== undefined && on > today) {
    throw refuse('date_in_future', { argument: '--on', value: on, today });
  }
  return on ?? today;
}

async function creditNote(tx: Transaction, number: string): Promise<PayableRow> {
  const document = await readPayable(tx, number);
  if (document === undefined) throw refuse('document_unknown', { number });
  if (document.document !== 'credit_note') {
    throw refuse('credit_not_refundable', {
      number,
      reason: `it is ${document.document === 'invoice' ? 'an invoice' : 'a statement'}, not a credit note`,
    });
  }
  return document;
}
