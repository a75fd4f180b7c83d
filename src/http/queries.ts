/** SQL of the payment page: from a link's token to its document, and to the one that replaced it. */
import type { Instructions } from '../config/instructions.ts';
import { query, type Transaction } from '../database/transaction.ts';
import { type DocumentRow, readDocuments } from '../documents/queries.ts';

export interface PaymentPage {
  readonly document: DocumentRow;
  /** Those that the document carries. */
  readonly instructions: Instructions | null;
  /** Where the processor takes the payment; null where there is no link to it. */
  readonly processor_url: string | null;
  readonly replacement_number: string | null;
  readonly replacement_token: string | null;
}

export async function readPaymentPage(tx: Transaction, token: string): Promise<PaymentPage | undefined> {
  const rows = await query<Omit<PaymentPage, 'document'> & { document_id: number }>(
    tx,
    `SELECT k.document_id, v.content AS instructions, o.url AS processor_url, r.number AS replacement_number,
            l.token AS replacement_token
     FROM payment_links k
     LEFT JOIN document_pdfs w ON w.document_id = k.document_id
     LEFT JOIN instruction_versions v ON v.instruction_version_id = w.instruction_version_id
     JOIN document_balances b ON b.document_id = k.document_id
     JOIN documents d ON d.document_id = k.document_id
     LEFT JOIN documents r ON r.replaces = k.document_id
     LEFT JOIN payment_links l ON l.document_id = r.document_id
     LEFT JOIN LATERAL (
       -- Over what is open now: after a payment or a credit, delivery makes another.
       SELECT o.url
       FROM payment_link_objects o JOIN payment_link_intents i USING (document_id, version)
       WHERE o.document_id = k.document_id AND (i.amount, i.currency) = (b.balance, d.currency)
         AND NOT EXISTS (SELECT FROM payment_link_closings c WHERE c.document_id = o.document_id AND c.version = o.version)
       ORDER BY o.version DESC LIMIT 1) AS o ON true
     WHERE k.token = :token`,
    { token },
  );
  const [found] = rows;
  if (found === undefined) return undefined;
  const { document_id: documentId, ...facts } = found;
  const [document] = await readDocuments(tx, { ids: [documentId] });
  return document === undefined ? undefined : { ...facts, document };
}
