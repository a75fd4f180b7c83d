/**
 * Delivers one document: makes whatever is missing of its payment link, PDF and e-mail. Each step is recorded in its
 * own transaction, and no transaction stays open during an external call. A delivery can be repeated from any point.
 */
import { Environment } from '#config/environment';
import { Settings } from '#config/settings';
import { Database } from '#database/database';
import { DocumentRow } from '#documents/documents.sql';
import { withdrawEmails } from '#documents/emails.sql';
import { whyHeld } from '#documents/hold';
import { Refusal } from '#errors/refusals';
import { failpoint } from '#failpoint';
import {
  attempt,
  ELSEWHERE,
  messageOf,
  messageToRepeat,
  Sender,
  SendResult,
  takeOver,
  whyUnsendable,
} from '#mail/attempt';
import { setAside } from '#mail/outbox.sql';
import { EmailTemplates } from '#mail/templates';
import { Transport } from '#mail/transport';
import { composeDocumentEmail, MOST_ATTACHED_ROWS, recipientsOf } from './document-email.ts';
import { DocumentEmail, noteFailure, PdfToKeep } from './documents.sql.ts';
import { HoldReason, NotYet } from './hold-reason.ts';
import { syncPaymentLink } from './links/sync.ts';
import { hasLinkWork, LinkProvider } from './payment-link.ts';
import { PdfRendererPool } from './pdf-renderer-pool.ts';
import { PreparedDocument, prepareDocument } from './prepare.ts';
import { isPayable, linkToPrint, whyNoLink } from './printed-link.ts';
import { DeliveryState, DeliverySteps } from './steps.ts';

export type DeliveryContext = Readonly<{
  environment: Environment;
  settings: Settings;
  database: Database;
  steps: DeliverySteps;
  renderer: PdfRendererPool;
  transport: Transport;
  templates: EmailTemplates;
  links: LinkProvider;
  holder: number;
}>;

export type Delivery = Omit<SendResult, 'status'> &
  Readonly<{
    number: string;
    /** `no_email`: the previous system sent the document, so only its payment link is made. */
    status: SendResult['status'] | 'no_email';
    /** This attempt sent nothing. */
    before?: true;
    /** The problem with the link at the processor, if any. */
    link?: string;
  }>;

/**
 * Sends the e-mail before it syncs the link, so that a slow processor does not delay it. The payment page shows its
 * button as soon as the link exists.
 */
export async function deliverDocument(context: DeliveryContext, documentId: number): Promise<Delivery> {
  const found = await context.steps.find(documentId);
  const delivery = await deliverEmail(context, documentId, found);
  const link = await syncLink(context, documentId);
  if (found.check !== undefined) await context.steps.endCheck(found.check);
  return { ...delivery, ...link };
}

async function syncLink(context: DeliveryContext, documentId: number): Promise<Pick<Delivery, 'link'>> {
  if (!hasLinkWork(context.links)) return {};
  const link = await context.steps.outside(() => syncPaymentLink(context, documentId));
  if (link.status === 'in_sync') return {};
  const state = link.kind === 'limit' ? 'has no payment link' : 'its payment link waits';
  return { link: `${state}: ${link.reason}` };
}

async function deliverEmail(
  context: DeliveryContext,
  documentId: number,
  { document, email }: DeliveryState,
): Promise<Delivery> {
  if (document?.purpose === 'opening') {
    await keepLink(context, document);
    return { number: document.number, status: 'no_email', detail: '', before: true };
  }
  if (document === undefined || email === undefined) throw new Error(`there is no document ${documentId} to deliver`);
  const { number, status } = document;
  if (email.status === 'sending') {
    const ended = await takeOver(senderOf(context), email, { repeats: status !== 'void' });
    if (ended.status !== 'deferred') return { number, ...ended };
    // After the first unclear attempt, the same message is sent again at once.
    return deliverEmail(context, documentId, await context.steps.find(documentId));
  }
  if (email.status !== 'queued' && email.status !== 'held') {
    return { number, status: email.status, detail: email.reason ?? '', before: true };
  }
  const result = status === 'void' ? withdraw(context, documentId) : sendOrHold(context, document, email);
  return { number, ...(await result) };
}

async function keepLink(context: DeliveryContext, document: DocumentRow) {
  if (document.status !== 'open' || document.printed_link !== null || !isPayable(document)) return;
  if (whyNoLink(context.links) !== undefined) return;
  const link = await context.steps.outside(() => linkToPrint(context, document));
  const { document_id: documentId } = document;
  if (link !== undefined) {
    await context.steps.prepare({ documentId, link, instructions: undefined, pdf: false, rows: undefined });
  }
}

async function withdraw({ database }: DeliveryContext, documentId: number): Promise<SendResult> {
  const [withdrawn] = await database.transaction((tx) =>
    withdrawEmails(tx, { documentIds: [documentId], happened: 'voided' }),
  );
  if (withdrawn === undefined) return { status: 'elsewhere', detail: 'another worker is sending it' };
  return { status: withdrawn.status, detail: withdrawn.reason };
}

async function sendOrHold(context: DeliveryContext, document: DocumentRow, email: DocumentEmail): Promise<SendResult> {
  const { database } = context;
  try {
    return await send(context, document, email);
  } catch (error) {
    if (error instanceof NotYet) {
      await database.transaction((tx) => noteFailure(tx, { documentId: document.document_id, reason: error.message }));
      return { status: 'deferred', detail: error.message };
    }
    // An unusable template holds the e-mail until it is corrected, as a missing address does.
    if (!(error instanceof HoldReason || error instanceof Refusal)) throw error;
    const { email_id: emailId, attempts } = email;
    const held = { emailId, attempts, status: 'held', reason: error.message } as const;
    const done = await database.transaction((tx) => setAside(tx, held));
    return done ? { status: 'held', detail: error.message } : ELSEWHERE;
  }
}

async function send(context: DeliveryContext, document: DocumentRow, email: DocumentEmail) {
  if (document.held_at !== null) throw new HoldReason(whyHeld(document.held_at, document.hold_reason ?? ''));
  // What others will have seen, this host remembers first.
  await context.database.look();
  const repeated = messageToRepeat(email);
  if (repeated !== undefined) return attempt(senderOf(context), email, repeated);
  const missing = whyNoEmail(context, document, email);
  const rows = missing === undefined && email.entries <= MOST_ATTACHED_ROWS ? email.entries : undefined;
  const prepared = await prepareDocument(context, document, rows);
  const message = missing ?? (await compose(context, document, email, prepared));
  const pdf = prepared.pdfToKeep;
  const sender = senderOf(context, pdf);
  const result = message instanceof Error ? undefined : await attempt(sender, email, message);
  // The PDF is stored even if the e-mail could not be offered.
  if (pdf !== undefined && !sender.keepsPdf()) await context.steps.keep({ pdf });
  failpoint('delivery.kept');
  if (message instanceof Error) throw message;
  return result as SendResult;
}

export function whyNoEmail(
  context: Pick<DeliveryContext, 'environment' | 'settings'>,
  document: DocumentRow,
  email: DocumentEmail,
) {
  const recipients = recipientsOf(email);
  if (recipients.to.address === '') {
    return new HoldReason(`partner ${document.partner_id} has no invoicing contact's e-mail address`);
  }
  const reason = whyUnsendable(context, recipients);
  return reason === undefined ? undefined : new HoldReason(reason);
}

async function compose(
  context: DeliveryContext,
  document: DocumentRow,
  email: DocumentEmail,
  prepared: PreparedDocument,
) {
  try {
    return await messageOf(
      context,
      email.message_id,
      composeDocumentEmail(document, email, prepared, context.templates),
    );
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

/** Stores this PDF in the transaction that offers the e-mail. */
function senderOf({ environment, transport, steps, holder }: DeliveryContext, pdf?: PdfToKeep) {
  let offers = 0;
  return {
    ...{ environment, holder, keepsPdf: () => offers > 0 },
    recordOutcome: (outcome) => steps.keep({ outcome }),
    transport: { send: (message) => steps.outside(() => transport.send(message)) },
    async offer(offer) {
      offers += 1;
      const hashes = { pdfSha256: pdf?.sha256, eInvoiceSha256: pdf?.eInvoice?.sha256 };
      const offered = await steps.keep({ pdf, offer: { ...offer, ...hashes } });
      failpoint('delivery.kept');
      return offered;
    },
  } satisfies Sender & { keepsPdf: () => boolean };
}
