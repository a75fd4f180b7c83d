/** SQL for the facts that a partner's pages show besides the document. */
import { Instructions } from '#config/instructions';
import { query, querying, Transaction } from '#database/transaction';
import { InvoiceInCheckout, readInvoicesInCheckout } from '#delivery/checkouts/checkouts.sql';
import { OpenDispute, readOpenDisputes } from '#documents/disputes.sql';
import { DocumentRow, readDocuments } from '#documents/documents.sql';

type Reduction = Readonly<{
  kind: 'payment' | 'credit' | 'bank_charges' | 'written_off';
  /** For a payment, the day when it was received. */
  on: string;
  amount: string;
  /** If the reduction is a credit. */
  credit_note: string | null;
}>;

export type InvoiceFacts = Readonly<{
  document: DocumentRow;
  /** The token of the payment page. Null if the token was revoked, or if nothing is to be paid. */
  token: string | null;
  instructions: Instructions | null;
  /** Whether the document warns that its payment instructions differ from those on the previous invoice. */
  instructions_changed: boolean;
  reductions: readonly Reduction[];
  /** The processor's payment page. */
  processor_url: string | null;
  /** In progress at the processor. Empty if the document is not open. */
  payments: readonly InvoiceInCheckout[];
  dispute: OpenDispute | null;
  /** The date on which the document was settled. Null while the document is open. */
  settled_on: string | null;
}>;

/** Selects a document by the token of its payment page, or by its number and partner. */
export type WhichInvoice = { readonly token: string } | Readonly<{ partnerId: string; number: string }>;

// A voided document was settled at the latest by its void.
const SETTLED_ON = `CASE WHEN b.status <> 'open' THEN greatest(d.issued_on, (
              SELECT max(greatest(c.dated_on, CASE c.changes WHEN 'amount_due' THEN c.undone_dated_on END))
              FROM balance_changes c WHERE c.document_id = d.document_id)) END`;

export async function readInvoiceFacts(
  tx: Transaction,
  which: WhichInvoice,
  now: string,
): Promise<InvoiceFacts | undefined> {
  const [found] = await query<
    Pick<InvoiceFacts, 'token' | 'instructions' | 'instructions_changed' | 'processor_url' | 'settled_on'> & {
      readonly document_id: number;
    }
  >(
    tx,
    `SELECT d.document_id, k.token, v.content AS instructions,
            coalesce(w.instructions_changed, false) AS instructions_changed, o.url AS processor_url,
            ${SETTLED_ON} AS settled_on
     FROM (
       SELECT document_id FROM payment_links WHERE token = :token
       UNION SELECT document_id FROM payment_link_changes WHERE token = :token
       UNION SELECT document_id FROM documents WHERE number = :number AND partner_id = :partnerId) AS t
     JOIN documents d ON d.document_id = t.document_id
     JOIN document_balances b ON b.document_id = t.document_id
     LEFT JOIN current_links k ON k.document_id = t.document_id
     LEFT JOIN document_pdfs w ON w.document_id = t.document_id
     LEFT JOIN instruction_versions v ON v.instruction_version_id = w.instruction_version_id
     LEFT JOIN LATERAL (
       -- A link for an earlier balance is ignored. After a payment or credit, delivery creates another link.
       SELECT o.url
       FROM payment_link_objects o JOIN payment_link_intents i USING (document_id, version)
       WHERE o.document_id = t.document_id AND (i.amount, i.currency) = (b.balance, d.currency)
         AND NOT EXISTS (
           SELECT FROM payment_link_closings c WHERE c.document_id = o.document_id AND c.version = o.version)
       ORDER BY o.version DESC LIMIT 1) AS o ON true
     WHERE :token::text IS NULL OR k.token = :token`,
    { token: null, number: null, partnerId: null, ...which },
  );
  if (found === undefined) return undefined;
  const { document_id: documentId, ...facts } = found;
  const [document] = await readDocuments(tx, { ids: [documentId] });
  if (document === undefined) return undefined;
  const [dispute = null] = await readOpenDisputes(tx, { number: document.number });
  return {
    ...{ ...facts, document, dispute },
    reductions: await readReductions(tx, { documentId }),
    payments: isAskedFor(document)
      ? await readInvoicesInCheckout(tx, { partnerId: document.partner_id, documentId, now })
      : [],
  };
}

export const isAskedFor = ({ document, status }: Pick<DocumentRow, 'document' | 'status'>) =>
  document === 'invoice' && status === 'open';

/** Others are omitted, because the page shows only their sum. */
const readReductions = querying<Reduction, { documentId: number }>(`
  SELECT k.kind, CASE k.kind WHEN 'payment' THEN p.received_on ELSE c.dated_on END AS "on", -c.amount AS amount,
         n.number AS credit_note
  FROM balance_changes c
  JOIN (VALUES ('payment_applied', 'payment'), ('credit_applied', 'credit'), ('small_difference', 'bank_charges'),
          ('written_off', 'written_off')) AS k (fact, kind) USING (fact)
  LEFT JOIN payments p USING (payment_id) LEFT JOIN documents n ON n.document_id = c.credit_note_id
  WHERE c.document_id = :documentId AND c.document = 'invoice' AND NOT c.undone
  ORDER BY c.recorded`);
