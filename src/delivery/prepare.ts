/** Prepares a document for its e-mail: records the link and the instructions that it prints, and its PDF. */
import { hash } from 'node:crypto';
import { instructionsFor, sameInstructions } from '#config/instructions';
import { Settings } from '#config/settings';
import { documentSnapshot } from '#documents/document';
import { DocumentRow } from '#documents/documents.sql';
import { DocumentSnapshot } from '#documents/snapshot';
import { failpoint } from '#failpoint';
import { InstructionUse, PdfToKeep, RowsOfDocument } from './documents.sql.ts';
import { eInvoiceFor } from './e-invoice.ts';
import { HoldReason } from './hold-reason.ts';
import { currentRenderer, librariesWith, PdfRendererPool } from './pdf-renderer-pool.ts';
import { isPayable, linkToPrint, PrintContext } from './printed-link.ts';
import { DeliverySteps } from './steps.ts';

type PrepareContext = PrintContext &
  Readonly<{
    settings: Settings;
    steps: DeliverySteps;
    renderer: PdfRendererPool;
  }>;

export type PreparedDocument = Readonly<{
  snapshot: DocumentSnapshot;
  rows: RowsOfDocument;
  pdf: Buffer;
  /** The e-invoice as a separate file; undefined if there is none, or if the PDF contains it. */
  eInvoice: Buffer | undefined;
  /** Whether the stored PDF has bank details that are no longer valid. */
  instructionsOutdated: boolean;
  /** The newly rendered PDF with its facts; undefined if the PDF was stored earlier. */
  pdfToKeep: PdfToKeep | undefined;
}>;

/**
 * Makes the missing parts of a document. `rows` is their number, if they are wanted. If the printed data is unchanged,
 * the stored PDF is used, whatever the current renderer and settings are.
 */
export async function prepareDocument(
  context: PrepareContext,
  document: DocumentRow,
  rows: number | undefined,
): Promise<PreparedDocument> {
  const { document_id: documentId } = document;
  const payable = isPayable(document);
  const rendered = document.pdf_sha256 !== null;
  const link =
    payable && !rendered && document.printed_link === null
      ? await context.steps.outside(() => linkToPrint(context, document))
      : undefined;
  const use = payable && !rendered ? instructionsOf(context, document) : undefined;
  const buyer = document.e_invoice === 'none' || rendered ? undefined : document.partner_id;
  const prepared = await context.steps.prepare({ documentId, link, instructions: use, pdf: rendered, rows, buyer });
  if (link !== undefined) failpoint('delivery.linked');
  const { pdf: kept, instructions } = prepared;
  // Another process has just adopted instructions without this currency.
  if (use !== undefined && instructions === undefined) throw noInstructions(document);
  const snapshot = documentSnapshot(document, {
    paymentLink: payable
      ? ((rendered ? document.payment_link : document.printed_link) ?? prepared.paymentLink ?? null)
      : null,
    instructions: kept === undefined ? (instructions?.content ?? null) : kept.instructions,
    instructionsChanged: kept?.instructions_changed ?? instructions?.changed ?? false,
  });
  if (kept !== undefined) {
    const instructionsOutdated =
      kept.instructions !== null &&
      !sameInstructions(kept.instructions, instructionsFor(context.settings, document.currency));
    const eInvoice = attachedOf(document, kept.xml ?? undefined);
    return { snapshot, rows: prepared.rows, pdf: kept.pdf, eInvoice, instructionsOutdated, pdfToKeep: undefined };
  }
  if (rendered) throw new Error(`${document.number} has no PDF to send`);
  const eInvoice = eInvoiceFor(document, snapshot, context.settings, prepared.buyer);
  // Loaded for the first document that needs it.
  const { fontsFor, textsOf } = await import('#documents/printable');
  const fonts = fontsFor(context.environment, `The PDF of ${document.number}`, textsOf(snapshot), document);
  const pdf = await context.renderer.render(snapshot, {
    fonts,
    eInvoice: document.e_invoice === 'facturx' ? eInvoice?.xml : undefined,
  });
  failpoint('delivery.rendered');
  const pdfToKeep = {
    documentId,
    rendererVersion: currentRenderer.version,
    libraries: librariesWith(fonts),
    instructionVersionId: instructions?.id ?? null,
    instructionsChanged: snapshot.instructions_changed,
    sha256: hash('sha256', pdf),
    pdf,
    eInvoice,
    now: context.environment.now().toISO(),
  };
  const attached = attachedOf(document, eInvoice?.xml);
  return { snapshot, rows: prepared.rows, pdf, eInvoice: attached, instructionsOutdated: false, pdfToKeep };
}

const attachedOf = ({ e_invoice: format }: DocumentRow, xml: Buffer | undefined) =>
  format === 'facturx' ? undefined : xml;

/** Throws a HoldReason if there are no bank details to print. */
export function instructionsOf(
  { settings, environment }: Pick<PrepareContext, 'settings' | 'environment'>,
  document: DocumentRow,
): InstructionUse {
  const { document_id: documentId, partner_id: partnerId, currency } = document;
  if (instructionsFor(settings, currency) === undefined) {
    const instructions = settings.sections?.file.instructions ?? {};
    throw instructionsFor({ instructions }, currency) === undefined
      ? new HoldReason(`settings.json has no payment instructions for ${currency}`)
      : noInstructions(document);
  }
  return { documentId, partnerId, currency, now: environment.now().toISO() };
}

const noInstructions = ({ currency }: DocumentRow) =>
  new HoldReason(`no payment instructions for ${currency} are in force: adopt those of settings.json`);
