import { execute, querying, Transaction } from '#database/transaction';

export type ShareOfBilled = Readonly<{
  share_allocation_id: number;
  account: string;
  balance_transaction: string;
  balance_transaction_id: number;
  /** Whether the balance transaction is a reversal. If an allocation of a reversal is above zero, it undoes a match. */
  below: boolean;
  /** The payment on our account that the balance transaction reduces. */
  of_payment: string | null;
  disputed: boolean;
  amount: string;
  paid: string;
  occurred_on: string;
}>;

export type SharePayment = Readonly<{
  payment_id: number;
  balance_transaction_id: number;
  payment: string | null;
  left: string;
  /** The reversals of the payment that were not undone, with amounts above zero. */
  taken_by: readonly Readonly<{
    payment_reversal_id: number;
    balance_transaction_id: number;
    amount: string;
  }>[];
}>;

/** A quote that was billed as missing, with the shares that one action found for it. */
export type BilledQuote = Readonly<{
  partner_id: string;
  quote_id: string;
  currency: string;
  /**
   * The amount that was still owed before these shares: the expected amount, less the billed amount and `as_shares`.
   * Below zero if too much was received or billed.
   */
  owed: string;
  /** The amount on valid invoices that no share has paid yet. */
  uncovered: string;
  /** The amount of the shares received before these shares, less reversed transfers. */
  as_shares: string;
  shares: readonly ShareOfBilled[];
  payments: readonly SharePayment[];
  numbers: readonly string[];
}>;

export const readBilledQuotes = querying<BilledQuote, { eventId: number }>(`
  WITH of_action AS MATERIALIZED (
    SELECT r.*, m.account, m.id, m.net, m.kind, m.payment AS own_payment, m.of_payment, m.occurred_at
    FROM share_allocations r JOIN balance_transactions m USING (balance_transaction_id)
    WHERE r.event_id = :eventId
      AND EXISTS (SELECT FROM missing_shares b WHERE b.partner_id = r.partner_id AND b.quote_id = r.quote_id)
  ), quotes AS MATERIALIZED (
    SELECT DISTINCT partner_id, quote_id, currency FROM of_action
  ), sums AS (
    SELECT q.*,
           (SELECT coalesce(sum(e.invoice_amount), 0) FROM ledger_rows e
            WHERE e.partner_id = q.partner_id AND e.quote_id = q.quote_id
              AND e.arrangement = 'connected_account') AS expected,
           (SELECT coalesce(sum(b.amount), 0) FROM live_missing_shares b
            WHERE b.partner_id = q.partner_id AND b.quote_id = q.quote_id) AS billed,
           shares.kept, shares.paid
    FROM quotes q
    CROSS JOIN LATERAL (
      SELECT coalesce(sum(r.amount - p.paid) FILTER (WHERE r.event_id <> :eventId), 0) AS kept,
             coalesce(sum(p.paid), 0) AS paid
      FROM share_allocations r
      CROSS JOIN LATERAL (SELECT coalesce(sum(p.amount), 0) AS paid FROM share_payments p
                          WHERE p.share_allocation_id = r.share_allocation_id) AS p
      WHERE r.partner_id = q.partner_id AND r.quote_id = q.quote_id) AS shares
  )
  SELECT s.partner_id, s.quote_id, s.currency, (s.expected - s.kept - s.billed)::text AS owed,
         (s.billed - s.paid)::text AS uncovered, s.kept::text AS as_shares,
         (SELECT json_agg(json_build_object(
                   'share_allocation_id', r.share_allocation_id, 'account', r.account, 'balance_transaction', r.id,
                   'balance_transaction_id', r.balance_transaction_id, 'below', r.net < 0,
                   'of_payment', r.of_payment,
                   'amount', r.amount::text, 'occurred_on', r.occurred_on,
                   'paid', (SELECT coalesce(sum(p.amount), 0)::text FROM share_payments p
                            WHERE p.share_allocation_id = r.share_allocation_id),
                   'disputed', r.kind = 'dispute' OR EXISTS (
                     SELECT FROM settlement_lines l WHERE l.kind = 'dispute' AND l.partner_id = r.partner_id
                       AND l.quote_id = r.quote_id AND l.payment = r.own_payment))
                 ORDER BY r.occurred_at, r.share_allocation_id)
          FROM of_action r WHERE r.partner_id = s.partner_id AND r.quote_id = s.quote_id) AS shares,
         coalesce((
           SELECT json_agg(json_build_object(
                    'payment_id', p.payment_id, 'balance_transaction_id', m.balance_transaction_id,
                    'payment', m.payment,
                    'left', (b.amount - b.reversed)::text,
                    'taken_by', coalesce((
                      SELECT json_agg(json_build_object('payment_reversal_id', t.payment_reversal_id,
                               'balance_transaction_id', o.balance_transaction_id, 'amount', (-t.amount)::text))
                      FROM share_payments t JOIN share_allocations o USING (share_allocation_id)
                      WHERE t.payment_id = p.payment_id AND t.amount < 0 AND NOT EXISTS (
                        SELECT FROM payment_reinstatements i
                          WHERE i.payment_reversal_id = t.payment_reversal_id)), '[]'))
                  ORDER BY p.payment_id)
           FROM share_payments p JOIN share_allocations r USING (share_allocation_id)
             JOIN balance_transactions m USING (balance_transaction_id)
           JOIN payment_balances b USING (payment_id)
           WHERE p.payment_reversal_id IS NULL AND r.partner_id = s.partner_id
             AND r.quote_id = s.quote_id), '[]') AS payments,
         coalesce((
           SELECT json_agg(d.number ORDER BY d.document_id)
           FROM live_missing_shares b JOIN documents d USING (document_id)
           WHERE b.partner_id = s.partner_id AND b.quote_id = s.quote_id), '[]') AS numbers
  FROM sums s ORDER BY s.partner_id, s.quote_id`);

export type NewSharePayment = Readonly<{
  share_allocation_id: number;
  payment_id: number;
  /** The id is null for the payment itself. */
  payment_reversal_id: number | null;
  currency: string;
  /** The amount has the sign of the share. */
  amount: string;
}>;

export async function insertSharePayments(
  tx: Transaction,
  { now, eventId }: { now: string; eventId: number },
  rows: readonly NewSharePayment[],
) {
  if (rows.length === 0) return;
  await execute(
    tx,
    `INSERT INTO share_payments (
       share_allocation_id, payment_id, payment_reversal_id, currency, amount, recorded_at, event_id)
     SELECT share_allocation_id, payment_id, payment_reversal_id, currency, trim_scale(amount), :now,
            :eventId
     FROM json_populate_recordset(NULL::share_payments, :rows::json)`,
    { rows, now, eventId },
  );
}
