/** SQL over refunds of credit and their returns. */
import { execute, query, queryOne, type Transaction } from '../database/transaction.ts';
import type { PaymentContext } from './context.ts';

/** Gives the day of the refund, which is not before the credit note was issued. */
export async function insertRefund(
  { tx, now, eventId, earliest }: PaymentContext,
  refund: { documentId: number; amount: string; method: string; reference: string; on: string },
): Promise<string> {
  const { refunded_on } = await queryOne<{ refunded_on: string }>(
    tx,
    `INSERT INTO credit_refunds (
       document_id, partner_id, currency, amount, method, account, reference, refunded_on, entry_on, recorded_at,
       event_id)
     SELECT d.document_id, d.partner_id, d.currency, :amount::numeric, :method, '', :reference, day.refunded_on,
            -- Not before the credit was last reopened: it would count twice on the days between.
            greatest(day.refunded_on, :earliest::date, credit_reopened_on(d.document_id)),
            :now::timestamptz, :eventId::bigint
     FROM documents d
     CROSS JOIN LATERAL (SELECT greatest(:on::date, d.issued_on) AS refunded_on) AS day
     WHERE d.document_id = :documentId
     RETURNING refunded_on`,
    { ...refund, now, eventId, earliest },
  );
  return refunded_on;
}

/** The refunds that were not returned, the latest first. */
export function readRefunds(
  tx: Transaction,
  documentId: number,
): Promise<{ credit_refund_id: number; amount: string; reference: string; refunded_on: string }[]> {
  return query(
    tx,
    `SELECT credit_refund_id, amount, reference, refunded_on FROM live_credit_refunds
     WHERE document_id = :documentId ORDER BY credit_refund_id DESC`,
    { documentId },
  );
}

export async function insertRefundReturn(
  { tx, now, eventId, earliest }: PaymentContext,
  returned: { refundId: number; reason: string; on: string },
): Promise<void> {
  await execute(
    tx,
    `INSERT INTO credit_refund_returns (credit_refund_id, reason, returned_on, entry_on, recorded_at, event_id)
     SELECT f.credit_refund_id, :reason, greatest(:on::date, f.refunded_on),
            greatest(:on::date, f.entry_on, :earliest::date), :now::timestamptz, :eventId::bigint
     FROM credit_refunds f WHERE f.credit_refund_id = :refundId`,
    { ...returned, now, eventId, earliest },
  );
}
