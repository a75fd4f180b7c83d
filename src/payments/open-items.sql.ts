/** SQL over what cash can be applied to, and over its payers. */
import { query, type Transaction } from '../database/transaction.ts';

export interface PayableRow {
  readonly document_id: number;
  readonly number: string;
  readonly document: 'invoice' | 'credit_note' | 'statement';
  readonly partner_id: string;
  readonly currency: string;
  readonly status: 'open' | 'paid' | 'void';
  readonly balance: string;
  readonly due_on: string | null;
  readonly replaced_by: string | null;
}

const PAYABLE = `SELECT d.document_id, d.number, d.document, d.partner_id, d.currency, b.status, b.balance, d.due_on,
            successor.number AS replaced_by
     FROM documents d JOIN document_balances b USING (document_id)
     LEFT JOIN documents successor ON successor.replaces = d.document_id`;

export async function readPayable(tx: Transaction, number: string): Promise<PayableRow | undefined> {
  const rows = await query<PayableRow>(tx, `${PAYABLE} WHERE d.number = :number`, { number });
  return rows[0];
}

/** All open invoices, the invoices with these numbers, and those that replaced them. */
export function readPayables(tx: Transaction, numbers: readonly string[]): Promise<PayableRow[]> {
  return query(
    tx,
    `WITH RECURSIVE named AS (
       SELECT d.document_id FROM documents d WHERE d.number = ANY (:numbers::text[])
       UNION
       SELECT successor.document_id FROM named JOIN documents successor ON successor.replaces = named.document_id
     )
     ${PAYABLE}
     WHERE d.document = 'invoice' AND (b.status = 'open' OR d.document_id IN (SELECT document_id FROM named))
     ORDER BY d.document_id`,
    { numbers },
  );
}

/** The credit notes with these numbers. */
export function readCreditNotes(tx: Transaction, numbers: readonly string[]): Promise<PayableRow[]> {
  return query(
    tx,
    `${PAYABLE} WHERE d.document = 'credit_note' AND d.number = ANY (:numbers::text[]) ORDER BY d.document_id`,
    { numbers },
  );
}

/** Accounts whose applied payments are all of one partner, with that partner. */
export async function readPayerAccounts(tx: Transaction): Promise<Map<string, string>> {
  const rows = await query<{ payer_account: string; partner_id: string }>(
    tx,
    `SELECT p.payer_account, min(a.partner_id) AS partner_id
     FROM payments p JOIN live_payment_applications a USING (payment_id)
     WHERE p.payer_account IS NOT NULL
     GROUP BY p.payer_account HAVING count(DISTINCT a.partner_id) = 1`,
  );
  return new Map(rows.map((row) => [row.payer_account, row.partner_id]));
}

export function readPayers(tx: Transaction): Promise<{ partner_id: string; name: string }[]> {
  return query(tx, `SELECT partner_id, name FROM partners ORDER BY partner_id`);
}
