import { querying, queryOne, Transaction } from '#database/transaction';
import { PaymentContext } from './context.ts';

/** Returns the date of the refund's journal entry. */
export async function insertRefund(
  tx: Transaction,
  { now, eventId, earliest }: PaymentContext,
  refund: { documentId: number; amount: string; method: string; reference: string; on: string },
) {
  const { entry_on } = await queryOne<{ entry_on: string }>(
    tx,
    `INSERT INTO credit_refunds (
       document_id, partner_id, currency, amount, method, account, reference, refunded_on, entry_on, recorded_at,
       event_id)
     SELECT d.document_id, d.partner_id, d.currency, :amount::numeric, :method, '', :reference, :on::date,
            -- The journal entry is dated no earlier than the credit was last reopened. With an earlier date, the credit
            -- would count twice in between.
            greatest(:on::date, :earliest::date, document_reopened_on(d.document_id)),
            :now::timestamptz, :eventId::bigint
     FROM documents d WHERE d.document_id = :documentId
     RETURNING entry_on`,
    { ...refund, now, eventId, earliest },
  );
  return entry_on;
}

/** Reads the refunds of a credit note, the latest refund first. */
export const readRefunds = querying<
  { credit_refund_id: number; amount: string; reference: string; refunded_on: string },
  { documentId: number }
>(`
  SELECT credit_refund_id, amount, personal(reference) AS reference, refunded_on FROM live_credit_refunds
  WHERE document_id = :documentId ORDER BY credit_refund_id DESC`);

export async function insertRefundReturn(
  tx: Transaction,
  { now, eventId, earliest }: PaymentContext,
  returned: { refundId: number; bankLineId: number | null; reason: string; on: string },
) {
  const { entry_on } = await queryOne<{ entry_on: string }>(
    tx,
    `INSERT INTO credit_refund_returns (
       credit_refund_id, bank_line_id, reason, returned_on, entry_on, recorded_at, event_id)
     SELECT f.credit_refund_id, :bankLineId::bigint, :reason, :on::date,
            greatest(:on::date, f.entry_on, :earliest::date), :now::timestamptz, :eventId::bigint
     FROM credit_refunds f WHERE f.credit_refund_id = :refundId
     RETURNING entry_on`,
    { ...returned, now, eventId, earliest },
  );
  return entry_on;
}
