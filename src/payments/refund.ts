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
import { matchRecordedRefunds } from './outgoing-refunds.ts';
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
  const { number, method, reference } = request;
  const on = dayOf(caller, request.on);
  const { document_id: documentId, partner_id, currency, status, balance } = await lockCreditNote(tx, number);
  if (status !== 'open') throw notRefundable(number, status === 'void' ? 'it is void' : 'its credit is used up');
  const amount = Amount.of(balance, currency).toString();
  const context = await openPaymentContext(tx, caller, {
    action: 'credit.refund',
    subject: number,
    details: { amount, currency, reference },
  });
  const refunded_on = await insertRefund(context, { documentId, amount, method, reference, on });
  await matchRecordedRefunds(context, { currency, amount });
  return { number, partner_id, currency, amount, refunded_on };
}

/** Returns the latest refund of a credit note: its credit is open again. */
export async function returnRefund(
  tx: Transaction,
  caller: Caller,
  { number, reason, on }: { number: string; reason: string; on?: string | undefined },
): Promise<Refund> {
  const returnedOn = dayOf(caller, on);
  const { document_id, partner_id, currency } = await lockCreditNote(tx, number);
  const refund = await readLatestRefund(tx, document_id);
  if (refund === undefined) throw notRefundable(number, 'it has no refund that could be returned');
  const context = await openPaymentContext(tx, caller, {
    action: 'credit.refund_returned',
    subject: number,
    details: { amount: refund.amount, currency, reason },
  });
  await insertRefundReturn(context, { refundId: refund.credit_refund_id, reason, on: returnedOn });
  const amount = Amount.of(refund.amount, currency).toString();
  return { number, partner_id, currency, amount, refunded_on: refund.refunded_on };
}

const notRefundable = (number: string, reason: string) => refuse('credit_not_refundable', { number, reason });

function dayOf(caller: Caller, on: string | undefined): string {
  const today = todayOf(caller);
  if (on !== undefined && on > today) throw refuse('date_in_future', { argument: '--on', value: on, today });
  return on ?? today;
}

async function lockCreditNote(tx: Transaction, number: string): Promise<PayableRow> {
  await lockPayments(tx);
  const document = await readPayable(tx, number);
  if (document === undefined) throw refuse('document_unknown', { number });
  if (document.document === 'credit_note') return document;
  throw notRefundable(
    number,
    `it is ${document.document === 'invoice' ? 'an invoice' : 'a statement'}, not a credit note`,
  );
}
