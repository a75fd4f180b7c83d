/**
 * Refunding the open credit of a credit note, and undoing that when the bank returns it.
 * Refusals: document_unknown, credit_not_refundable, argument_invalid.
 */

import { todayOf } from '../config/today.ts';
import { execute, query, type Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { Amount } from '../money.ts';
import { type Caller, lockPayments, openPaymentContext, type PaymentContext } from './context.ts';
import { type PayableRow, readPayable } from './open-items.sql.ts';

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
  const [row] = await query<{ refunded_on: string }>(
    tx,
    `INSERT INTO credit_refunds (
       document_id, partner_id, currency, amount, method, account, reference, refunded_on, entry_on, recorded_at, event_id)
     SELECT d.document_id, d.partner_id, d.currency, :amount::numeric, :method, '', :reference, day.refunded_on,
            -- Not before the credit was last reopened: it would count twice on the days between.
            greatest(day.refunded_on, :earliest::date,
              (SELECT max(c.entry_on) FROM credit_releases c JOIN credit_applications a USING (credit_application_id)
               WHERE a.credit_note_id = d.document_id),
              (SELECT max(b.entry_on) FROM credit_refund_returns b JOIN credit_refunds f USING (credit_refund_id)
               WHERE f.document_id = d.document_id)), :now::timestamptz, :eventId::bigint
     FROM documents d
     CROSS JOIN LATERAL (SELECT greatest(:on::date, d.issued_on) AS refunded_on) AS day
     WHERE d.document_id = :documentId
     RETURNING refunded_on`,
    {
      ...facts(context),
      documentId: note.document_id,
      amount,
      method: request.method,
      reference: request.reference,
      on,
    },
  );
  return { number: request.number, partner_id, currency, amount, refunded_on: row?.refunded_on ?? on };
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
  const [refund] = await query<{ credit_refund_id: number; amount: string; refunded_on: string }>(
    tx,
    `SELECT f.credit_refund_id, f.amount, f.refunded_on
     FROM live_credit_refunds f
     WHERE f.document_id = :documentId
     ORDER BY f.credit_refund_id DESC LIMIT 1`,
    { documentId: note.document_id },
  );
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
  await execute(
    tx,
    `INSERT INTO credit_refund_returns (credit_refund_id, reason, returned_on, entry_on, recorded_at, event_id)
     SELECT f.credit_refund_id, :reason, greatest(:on::date, f.refunded_on),
            greatest(:on::date, f.entry_on, :earliest::date), :now::timestamptz, :eventId::bigint
     FROM credit_refunds f WHERE f.credit_refund_id = :id`,
    { ...facts(context), id: refund.credit_refund_id, reason: request.reason, on },
  );
  const { partner_id, currency } = note;
  const amount = Amount.of(refund.amount, currency).toString();
  return { number: request.number, partner_id, currency, amount, refunded_on: refund.refunded_on };
}

const facts = ({ now, eventId, earliest }: PaymentContext) => ({ now, eventId, earliest });

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
