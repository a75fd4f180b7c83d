/**
 * The check of e-invoices: every document with a PDF has the e-invoice that its partner requested. Each e-invoice
 * matches its hash, names the parties as recorded with the document, and is identical when written again.
 */
import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { Instructions } from '#config/instructions';
import { query, Transaction } from '#database/transaction';
import { completed, frozenParties } from '#delivery/e-invoice';
import { documentSnapshot } from '#documents/document';
import { DocumentRow, readDocuments } from '#documents/documents.sql';
import { Parties } from '#documents/e-invoice/model';
import { drawEInvoice, E_INVOICE_WRITER_VERSION } from '#documents/e-invoice/write';
import { CheckContext } from './check.ts';
import { Difference, Finding, inMonth } from './query.ts';

type StoredEInvoice = Readonly<{
  document_id: number;
  /** Null if the e-invoice is missing. */
  xml: Buffer | null;
  sha256: string | null;
  parties: Parties | null;
  writer_version: number | null;
  instructions: Instructions | null;
  instructions_changed: boolean;
  /** Whether the contact was erased, whom the e-invoice names. */
  contact_erased: boolean;
}>;

/** How many e-invoices are in memory at once. */
const BATCH = 200;

export async function findChangedEInvoices(tx: Transaction, { month }: Pick<CheckContext, 'month'>): Promise<Finding> {
  const differences: Difference[] = [];
  let inspected = 0;
  let after = 0;
  for (;;) {
    const stored = await readAfter(tx, after, month);
    if (stored.length === 0) return { inspected, differences };
    after = stored.at(-1)?.document_id ?? after;
    inspected += stored.length;
    const documents = await readDocuments(tx, { ids: stored.map(({ document_id }) => document_id) });
    const byId = new Map(documents.map((document) => [document.document_id, document]));
    for (const each of stored) {
      const document = byId.get(each.document_id);
      const detail = document === undefined ? 'has an e-invoice, but cannot be read' : whatDiffers(document, each);
      if (detail !== undefined)
        differences.push({ subject: document?.number ?? `document ${each.document_id}`, detail });
    }
  }
}

const readAfter = (tx: Transaction, after: number, month: string | null): Promise<StoredEInvoice[]> =>
  query(
    tx,
    `SELECT d.document_id, x.xml, x.sha256, x.parties, x.writer_version, v.content AS instructions,
            w.instructions_changed, is_erased(d.contact_name) AS contact_erased
     FROM documents d
     JOIN document_pdfs w ON w.document_id = d.document_id
     LEFT JOIN document_e_invoices x ON x.document_id = d.document_id
     LEFT JOIN instruction_versions v ON v.instruction_version_id = w.instruction_version_id
     WHERE d.document_id > :after AND (d.e_invoice <> 'none' OR x.document_id IS NOT NULL) AND ${inMonth('d.month')}
     ORDER BY d.document_id LIMIT :batch`,
    { after, month, batch: BATCH },
  );

function whatDiffers(document: DocumentRow, stored: StoredEInvoice) {
  const { xml, sha256, parties } = stored;
  if (document.e_invoice === 'none') return 'has an e-invoice that its partner did not ask for';
  if (xml === null || parties === null) return `has no e-invoice (${document.e_invoice}) beside its PDF`;
  const found = hash('sha256', xml);
  if (found !== sha256) return `its e-invoice hashes to ${found}, recorded as ${sha256}`;
  if (stored.contact_erased) return undefined;
  if (!isDeepStrictEqual(completed(frozenParties(document), parties), parties)) {
    return 'its e-invoice and the document name a party differently';
  }
  // For an e-invoice of a later version, only the hash is checked.
  if (stored.writer_version !== E_INVOICE_WRITER_VERSION) return undefined;
  const snapshot = documentSnapshot(document, {
    paymentLink: document.printed_link,
    instructions: stored.instructions,
    instructionsChanged: stored.instructions_changed,
  });
  const facts = { format: document.e_invoice, parties, corrects_issued_on: document.corrects_issued_on };
  return drawEInvoice(snapshot, facts).equals(xml) ? undefined : 'writing its e-invoice again gives another one';
}
