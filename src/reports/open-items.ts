/**
 * What is open on a date, from the facts themselves: each invoice and credit note with its balance, and unapplied cash.
 * The dates are those of the journal's entries, so that a report of closed books says the same for good.
 */
import { query, type Transaction } from '../database/transaction.ts';
import type { Scope } from '../people/scope.ts';

export interface OpenItem {
  readonly document_id: number;
  readonly number: string;
  readonly document: 'invoice' | 'credit_note';
  readonly partner_id: string;
  readonly currency: string;
  readonly issued_on: string;
  /** Null on a credit note. */
  readonly due_on: string | null;
  readonly balance: string;
  /** What of the balance the partner disputes. */
  readonly disputed: string;
}

/**
 * The open documents of these partners, or of all, in number order. What was undone by the date is left out on both sides:
 * a void document is not open, whatever was applied to it and given back.
 */
export function readOpenItems(tx: Transaction, asOf: string, scope: Scope = null): Promise<OpenItem[]> {
  return query(
    tx,
    `WITH lowered AS (
       SELECT a.invoice_id AS document_id, a.amount FROM credit_applications a
       LEFT JOIN credit_releases r ON r.credit_application_id = a.credit_application_id AND r.entry_on <= :asOf::date
       WHERE a.entry_on <= :asOf::date AND r.credit_application_id IS NULL
       UNION ALL
       SELECT a.credit_note_id, a.amount FROM credit_applications a
       LEFT JOIN credit_releases r ON r.credit_application_id = a.credit_application_id AND r.entry_on <= :asOf::date
       WHERE a.entry_on <= :asOf::date AND r.credit_application_id IS NULL
       UNION ALL
       SELECT w.document_id, w.amount FROM write_offs w
       LEFT JOIN write_off_reversals r ON r.write_off_id = w.write_off_id AND r.entry_on <= :asOf::date
       WHERE w.entry_on <= :asOf::date AND r.write_off_id IS NULL
       UNION ALL
       SELECT a.document_id, a.amount + coalesce(s.amount, 0) FROM payment_applications a
       LEFT JOIN small_differences s USING (payment_application_id)
       LEFT JOIN payment_unapplications u
         ON u.payment_application_id = a.payment_application_id AND u.entry_on <= :asOf::date
       WHERE a.entry_on <= :asOf::date AND u.payment_application_id IS NULL
       UNION ALL
       SELECT f.document_id, f.amount FROM credit_refunds f
       LEFT JOIN credit_refund_returns b
         ON b.credit_refund_id = f.credit_refund_id AND b.entry_on <= :asOf::date
       WHERE f.entry_on <= :asOf::date AND b.credit_refund_id IS NULL
     ), sums AS (
       SELECT document_id, sum(amount) AS amount FROM lowered GROUP BY document_id
     )
     SELECT d.document_id, d.number, d.document, d.partner_id, d.currency, d.issued_on, d.due_on,
            d.gross - coalesce(s.amount, 0) AS balance,
            least(coalesce(t.amount, 0), d.gross - coalesce(s.amount, 0)) AS disputed
     FROM documents d
     LEFT JOIN voids v ON v.document_id = d.document_id AND v.entry_on <= :asOf::date
     LEFT JOIN sums s ON s.document_id = d.document_id
     LEFT JOIN LATERAL (
       SELECT t.amount FROM invoice_disputes t
       LEFT JOIN invoice_dispute_closings c USING (invoice_dispute_id)
       WHERE t.document_id = d.document_id AND t.disputed_on <= :asOf::date
         AND (c.closed_on IS NULL OR c.closed_on > :asOf::date)
       ORDER BY t.invoice_dispute_id DESC LIMIT 1) AS t ON true
     WHERE d.entry_on <= :asOf::date AND v.document_id IS NULL AND d.document <> 'statement'
       AND d.gross <> coalesce(s.amount, 0)
       AND (:scope::text[] IS NULL OR d.partner_id = ANY (:scope::text[]))
     ORDER BY d.series, d.sequence`,
    { asOf, scope },
  );
}

export interface UnappliedCash {
  /** Null: of a payer that is not known yet. */
  readonly partner_id: string | null;
  readonly currency: string;
  readonly amount: string;
}

/** Cash that pays nothing yet, by whose it is: what came, less what went on. */
export function readUnappliedCash(tx: Transaction, asOf: string, scope: Scope = null): Promise<UnappliedCash[]> {
  return query(
    tx,
    `WITH moved AS (
       SELECT partner_id, currency, amount FROM payments WHERE entry_on <= :asOf::date
       UNION ALL
       SELECT moved.partner_id, p.currency, moved.amount
       FROM payment_assignments g JOIN payments p USING (payment_id)
       CROSS JOIN LATERAL (VALUES (g.from_partner_id, -g.amount), (g.partner_id, g.amount)) AS moved (partner_id,
         amount)
       WHERE g.entry_on <= :asOf::date
       UNION ALL
       SELECT a.partner_id, a.currency, -a.amount FROM payment_applications a
       LEFT JOIN payment_unapplications u
         ON u.payment_application_id = a.payment_application_id AND u.entry_on <= :asOf::date
       WHERE a.entry_on <= :asOf::date AND u.payment_application_id IS NULL
       UNION ALL
       SELECT partner_id, currency, -amount FROM payment_reversals WHERE entry_on <= :asOf::date
       UNION ALL
       SELECT i.partner_id, r.currency, r.amount
       FROM payment_reinstatements i JOIN payment_reversals r USING (payment_reversal_id)
       WHERE i.entry_on <= :asOf::date
     )
     SELECT partner_id, currency, sum(amount) AS amount FROM moved
     WHERE :scope::text[] IS NULL OR partner_id = ANY (:scope::text[])
     GROUP BY partner_id, currency HAVING sum(amount) <> 0
     ORDER BY partner_id COLLATE "C" NULLS LAST, currency`,
    { asOf, scope },
  );
}
