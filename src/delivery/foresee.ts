/** Finds the documents of a previewed close that would be held, with the same checks as delivery. */
import { instructionsFor } from '#config/instructions';
import { Transaction } from '#database/transaction';
import { documentSnapshot } from '#documents/document';
import { DocumentRow } from '#documents/documents.sql';
import { Refusal } from '#errors/refusals';
import { Installation } from '#people/audit-events';
import { whyNoEmail } from './document.ts';
import { readDocumentEmails, readPresentBuyers } from './documents.sql.ts';
import { eInvoiceFor } from './e-invoice.ts';
import { HoldReason } from './hold-reason.ts';
import { LinkProvider, linkProvider } from './payment-link.ts';
import { instructionsOf } from './prepare.ts';
import { isPayable, whyNoLink } from './printed-link.ts';

export type ForeseenHold = Readonly<{
  number: string;
  partner_id: string;
  reason: string;
}>;

/** The holds in the order of the documents, each with its first reason. Requests no links from a processor. */
export async function foreseeHolds(tx: Transaction, context: Installation, documents: readonly DocumentRow[]) {
  const emails = await readDocumentEmails(
    tx,
    documents.map((each) => each.document_id),
  );
  const wanting = documents.flatMap((each) => (each.e_invoice === 'none' ? [] : each.partner_id));
  const buyers = wanting.length > 0 ? await readPresentBuyers(tx, { partnerIds: wanting }) : [];
  const { fontsFor, textsOf } = await import('#documents/printable');
  const links = linkProvider(context.settings, context.environment);
  const holds: ForeseenHold[] = [];
  for (const document of documents) {
    const { number, partner_id } = document;
    const email = emails.get(document.document_id);
    try {
      if (document.held_at !== null) throw new HoldReason(document.hold_reason ?? '');
      refuseUnpayable(context, links, document);
      const instructions = instructionsFor(context.settings, document.currency) ?? null;
      const printed = { paymentLink: null, instructions, instructionsChanged: false };
      fontsFor(context.environment, `The PDF of ${number}`, textsOf(documentSnapshot(document, printed)));
      const buyer = buyers.find((each) => each.partner_id === partner_id);
      const due = isPayable(document) ? printed : { ...printed, instructions: null };
      eInvoiceFor(document, documentSnapshot(document, due), context.settings, buyer);
      const missing = email && whyNoEmail(context, document, email);
      if (missing !== undefined) throw missing;
    } catch (error) {
      if (!(error instanceof HoldReason || error instanceof Refusal)) throw error;
      holds.push({ number, partner_id, reason: error.message });
    }
  }
  return holds;
}

function refuseUnpayable(context: Installation, links: LinkProvider, document: DocumentRow) {
  if (!isPayable(document)) return;
  const noLink = whyNoLink(links);
  if (noLink !== undefined) throw new HoldReason(noLink);
  instructionsOf(context, document);
}
