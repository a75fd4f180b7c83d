/**
 * The open items on a date, computed from the facts: invoices and credit notes with their balances, and unapplied cash.
 * The dates are those of journal entries, so a report on closed books never changes.
 */
import { query, Transaction } from '#database/transaction';
import { Scope } from '#people/scope';

export type OpenItem = Readonly<{
  document_id: number;
  number: string;
  document: 'invoice' | 'credit_note';
  partner_id: string;
  currency: string;
  issued_on: string;
  due_on: string | null;
  balance: string;
  disputed: string;
}>;

/**
 * The open documents of these partners, or of all partners, in number order. Facts that were reversed by the date are
 * omitted together with their reversals. A void document is never open.
 */
export function readOpenItems(tx: Transaction, asOf: string, scope: Scope = null): Promise<OpenItem[]> {
  return query(
    tx,
    `SELECT d.document_id, d.number, d.document, d.partner_id, d.currency, d.issued_on, d.due_on, o.balance,
            least(coalesce(t.amount, 0), o.balance) AS disputed
     FROM open_items(:asOf::date) o JOIN documents d USING (document_id)
     LEFT JOIN (
       SELECT DISTINCT ON (t.document_id) t.document_id, t.amount FROM invoice_disputes t
       LEFT JOIN invoice_dispute_closings c USING (invoice_dispute_id)
       WHERE t.disputed_on <= :asOf::date AND (c.closed_on IS NULL OR c.closed_on > :asOf::date)
       ORDER BY t.document_id, t.invoice_dispute_id DESC) AS t USING (document_id)
     WHERE :scope::text[] IS NULL OR d.partner_id = ANY (:scope::text[])
     ORDER BY d.series, d.sequence`,
    { asOf, scope },
  );
}

export type UnappliedCash = Readonly<{
  partner_id: string | null;
  currency: string;
  amount: string;
}>;

/** Unapplied cash by partner: the amounts received, less the amounts that were used. */
export function readUnappliedCash(tx: Transaction, asOf: string, scope: Scope = null): Promise<UnappliedCash[]> {
  return query(
    tx,
    `SELECT c.partner_id, p.currency, sum(c.amount) AS amount
     FROM unapplied_cash(:asOf::date) c JOIN payments p USING (payment_id)
     WHERE :scope::text[] IS NULL OR c.partner_id = ANY (:scope::text[])
     GROUP BY c.partner_id, p.currency HAVING sum(c.amount) <> 0
     ORDER BY c.partner_id COLLATE "C" NULLS LAST, p.currency`,
    { asOf, scope },
  );
}

/** Documents whose current balance differs from the balance computed from the facts. */
export function readOtherBalances(
  tx: Transaction,
  items: readonly OpenItem[],
  scope: Scope,
): Promise<{ number: string; open_items: string; balance: string }[]> {
  return query(
    tx,
    `WITH found AS (
       SELECT document_id, balance
       FROM json_to_recordset(:items::json) AS i (document_id bigint, balance numeric)
     )
     SELECT d.number, coalesce(f.balance, 0)::text AS open_items, b.balance::text AS balance
     -- Every document that is open by at least one of the two computations.
     FROM documents d JOIN document_balances b USING (document_id) LEFT JOIN found f USING (document_id)
     WHERE d.document_id = ANY (ARRAY(SELECT document_id FROM open_documents UNION SELECT document_id FROM found))
       AND b.balance <> coalesce(f.balance, 0)
       AND (:scope::text[] IS NULL OR d.partner_id = ANY (:scope::text[]))
     ORDER BY d.series, d.sequence`,
    { items: items.map(({ document_id, balance }) => ({ document_id, balance })), scope },
  );
}
