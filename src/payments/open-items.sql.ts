import { querying, queryingFirst } from '#database/transaction';
import { KnownPayer } from './open-items.ts';

export type PayableRow = Readonly<{
  document_id: number;
  number: string;
  document: 'invoice' | 'credit_note' | 'statement';
  partner_id: string;
  currency: string;
  status: 'open' | 'paid' | 'void';
  balance: string;
  written_off: string;
  issued_on: string;
  due_on: string | null;
  month: string | null;
  replaced_by: string | null;
  held_at: string | null;
  hold_reason: string | null;
}>;

const PAYABLE = `SELECT d.document_id, d.number, d.document, d.partner_id, d.currency, b.status, b.balance,
            (SELECT coalesce(sum(w.amount), 0) FROM live_write_offs w
             WHERE w.document_id = d.document_id) AS written_off,
            d.issued_on, d.due_on, d.month,
            successor.number AS replaced_by, h.held_at, h.reason AS hold_reason
     FROM documents d JOIN document_balances b USING (document_id)
     LEFT JOIN current_holds h ON h.document_id = d.document_id
     LEFT JOIN documents successor ON successor.replaces = d.document_id`;

export const readPayable = queryingFirst<PayableRow, { number: string }>(`${PAYABLE} WHERE d.number = :number`);

export const readPayables = querying<PayableRow, { numbers: readonly string[] }>(`
  WITH RECURSIVE named AS (
    SELECT d.document_id FROM documents d WHERE d.number = ANY (:numbers::text[])
    UNION
    SELECT successor.document_id FROM named JOIN documents successor ON successor.replaces = named.document_id
  )
  ${PAYABLE}
  WHERE d.document = 'invoice' AND d.document_id = ANY (ARRAY(
    SELECT document_id FROM open_documents UNION SELECT document_id FROM named))
  ORDER BY d.document_id`);

/** Reads the credit notes that are open, and those that are named. */
export const readCreditNotes = querying<PayableRow, { numbers: readonly string[] }>(`
  ${PAYABLE} WHERE d.document = 'credit_note' AND d.document_id = ANY (ARRAY(
    SELECT document_id FROM open_documents
    UNION SELECT document_id FROM documents WHERE number = ANY (:numbers::text[])))
  ORDER BY d.document_id`);

/** Reads the numbers of items carried over from the previous system. */
export const readCarriedNumbers = querying<{ document: 'invoice' | 'credit_note'; written: string; number: string }>(`
  SELECT d.document, coalesce(d.opening_number, d.number) AS written, d.number FROM documents d
  WHERE d.opening_id IS NOT NULL AND NOT EXISTS (SELECT FROM documents n WHERE n.opening_follows = d.document_id)
  ORDER BY d.document_id`);

export const readPayers = querying<KnownPayer>(`SELECT partner_id, name, parent FROM partners ORDER BY partner_id`);
