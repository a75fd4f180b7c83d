/**
 * Delivering one document: look at what it lacks (payment link, drawing, sending) and do that, each step recorded
 * before or after in a transaction of its own, none of them across a call to the outside. Safe to repeat at any point.
 */
import { createHash } from 'node:crypto';
import type { Environment } from '../config/environment.ts';
import { instructionsFor } from '../config/instructions.ts';
import type { Settings } from '../config/settings.ts';
import type { Database } from '../database/database.ts';
import { sendWithin, type Transaction } from '../database/transaction.ts';
import { documentSnapshot } from '../documents/document.ts';
import { withdrawEmails } from '../documents/emails.ts';
import { whyHeld } from '../documents/hold.ts';
import { type DocumentRow, readDocuments } from '../documents/queries.ts';
import type { DocumentSnapshot } from '../documents/snapshot.ts';
import { Refusal } from '../errors/refusals.ts';
import { failpoint } from '../failpoint.ts';
import type { TemplateFolder } from '../mail/document-email.ts';
import { writeLetter } from '../mail/document-email.ts';
import { enclose, type Wrapper } from '../mail/enclosing.ts';
import { type Envelope, envelopeOf, type Mailbox, wrapMessage } from '../mail/message.ts';
import { type SendOutcome, sandboxAllows, type Transport } from '../mail/transport.ts';
import { Amount } from '../money.ts';
import { drawnWith, type Studio } from './drawing.ts';
import { hasLinkWork, type LinkFacts, type LinkProvider, newToken } from './link.ts';
import { type LinkContext, syncPaymentLink } from './links/sync.ts';
import {
  type DrawingFacts,
  holdSending,
  type InstructionUse,
  type KeptDrawing,
  type KeptMessage,
  type LinkToKeep,
  noteFailure,
  type RowOfDocument,
  readPaymentLinks,
  type SendingRow,
} from './queries.ts';
import { rowsCsv } from './rows.ts';
import type { DeliverySteps, StepsTogether } from './together.ts';

export interface Deliverer {
  readonly environment: Environment;
  readonly settings: Settings;
  readonly database: Database;
  /** Over the same database. */
  readonly steps: StepsTogether;
  readonly studio: Studio;
  readonly transport: Transport;
  readonly templates: TemplateFolder;
  readonly links: LinkProvider;
  /** Whether a number is that of a worker of this process which has nothing in hand. */
  readonly isIdle?: (worker: number) => boolean;
}

/** For a document that goes through the steps of its delivery. */
interface Underway extends Omit<Deliverer, 'steps'> {
  readonly steps: DeliverySteps;
}

/** How a look at one document ended; `deferred` is tried again later. */
export interface Delivery {
  readonly number: string;
  readonly status: 'sent' | 'held' | 'failed' | 'uncertain' | 'deferred' | 'elsewhere' | 'withdrawn';
  readonly detail: string;
  /** It was so before: this look sent nothing. */
  readonly before?: true;
  /** What is the matter with its link at the processor, and why; absent where nothing is. */
  readonly link?: string;
}

/** More rows than this are not attached: their e-mail would be larger than many servers take (about 7 MB). */
const MOST_ATTACHED_ROWS = 20_000;

/** A document that prints its processor's URL waits so long for it, and then goes out with bank instructions alone. */
const LONGEST_WAIT_FOR_LINK_SECONDS = 15 * 60;

/** Something that the document needs is missing, and a person can supply it. */
class Held extends Error {}

/** Something that the document needs will be there in a while. */
class NotYet extends Error {}

/**
 * Sends what is to be sent, then sees to the link behind it. In that order: a processor that is slow or down keeps no
 * document from its partner, and the page has its button once there is a link.
 */
export async function deliverDocument(deliverer: Deliverer, documentId: number, worker: number): Promise<Delivery> {
  const delivery = await deliverer.steps.through((steps) =>
    deliverSending({ ...deliverer, steps }, documentId, worker),
  );
  if (!hasLinkWork(deliverer.links)) return delivery;
  const link = await syncPaymentLink(deliverer, documentId);
  if (link.status === 'in_sync') return delivery;
  return {
    ...delivery,
    link: `${link.kind === 'limit' ? 'has no payment link' : 'its payment link waits'}: ${link.reason}`,
  };
}

/** Brings the links behind documents in line with what is owed on them, and sends nothing. What waits is recorded. */
export async function syncPaymentLinks(context: LinkContext, documentIds: readonly number[]): Promise<void> {
  if (!hasLinkWork(context.links)) return;
  for (const id of documentIds) await syncPaymentLink(context, id);
}

async function deliverSending(deliverer: Underway, documentId: number, worker: number): Promise<Delivery> {
  const { database, steps } = deliverer;
  const { document, sending } = await steps.look(documentId);
  if (document === undefined || sending === undefined) throw new Error(`there is no document ${documentId} to deliver`);
  const { number } = document;
  if (document.status === 'void' && (sending.status === 'queued' || sending.status === 'held')) {
    const [taken] = await database.transaction((tx) => withdrawEmails(tx, [documentId]));
    if (taken === undefined) return { number, status: 'elsewhere', detail: 'another worker is sending it' };
    return { number, status: taken.status, detail: taken.reason };
  }
  if (sending.status !== 'queued' && sending.status !== 'held' && sending.status !== 'sending') {
    return { number, status: sending.status, detail: sending.reason ?? '', before: true };
  }
  try {
    if (document.held_at !== null && sending.status !== 'sending') {
      throw new Held(whyHeld(document.held_at, document.hold_reason ?? ''));
    }
    if (sending.status === 'sending') return await takeOver(deliverer, document, sending, worker);
    const ready = await makeReady(deliverer, document, sending);
    return await send(deliverer, document, sending, ready, worker);
  } catch (error) {
    if (error instanceof NotYet) {
      await database.transaction((tx) => noteFailure(tx, documentId, error.message));
      return { number, status: 'deferred', detail: error.message };
    }
    // A template that does not render is for a person to mend, like an address that is missing.
    if (!(error instanceof Held || error instanceof Refusal)) throw error;
    await database.transaction((tx) => holdSending(tx, sending.sending_id, error.message));
    return { number, status: 'held', detail: error.message };
  }
}

const ISO = (environment: Environment): string => environment.now().toISO();

// --- Link, drawing and message ----------------------------------------------------------------------------------------

const isPayable = (document: DocumentRow): boolean =>
  document.document === 'invoice' && Amount.of(document.amount_due, document.currency).isPositive();

/** Why there can be no message yet: a person can supply what is missing. */
type Hindrance = Held | Refusal;

interface Mail {
  readonly raw: Buffer;
  readonly sha256: string;
  readonly envelope: Envelope;
  readonly kept: KeptMessage;
}

/** What goes out, not recorded yet. */
interface Ready {
  /** Undefined where one was kept before. */
  readonly drawing: DrawingFacts | undefined;
  readonly mail: Mail | Hindrance;
}

/** Makes the link, the drawing and the message where they are missing. A document that cannot be sent is drawn too. */
async function makeReady(deliverer: Underway, document: DocumentRow, sending: SendingRow): Promise<Ready> {
  if (sending.unclear_attempts > 0 && sending.message !== null) {
    const kept = { message: sending.message, drawingAt: sending.drawing_at };
    const raw = await wholeOf(deliverer, document, kept);
    const envelope = { from: sending.envelope_from ?? '', to: sending.recipients ?? [] };
    return { drawing: undefined, mail: { raw, sha256: sha256(raw), envelope, kept } };
  }
  const missing = whyUnsendable(deliverer, document, sending);
  const attached = missing === undefined && sending.entries <= MOST_ATTACHED_ROWS ? sending.entries : undefined;
  const { snapshot, rows, drawing, versionId } = await prepare(deliverer, document, attached);
  const letter = missing ?? orHindrance(() => compose(deliverer, document, snapshot, sending, rows));
  if (drawing !== undefined) {
    if (letter instanceof Error) return { drawing: undefined, mail: letter };
    const { wrapper, envelope } = letter;
    const raw = enclose(wrapper, drawing.pdf);
    return { drawing: undefined, mail: { raw, sha256: sha256(raw), envelope, kept: keptOf(wrapper) } };
  }
  const facts = {
    documentId: document.document_id,
    rendererVersion: drawnWith.version,
    libraries: drawnWith.libraries,
    instructionVersionId: versionId,
    instructionsChanged: snapshot.instructions_changed,
    now: ISO(deliverer.environment),
  };
  if (letter instanceof Error) {
    const pdf = await deliverer.studio.draw(snapshot);
    failpoint('delivery.drawn');
    return { drawing: { ...facts, pdf, sha256: sha256(pdf) }, mail: letter };
  }
  const made = await deliverer.studio.drawEnclosed(snapshot, letter.wrapper);
  failpoint('delivery.drawn');
  const { wrapper, envelope } = letter;
  return { drawing: { ...facts, ...made.drawing }, mail: { ...made.message, envelope, kept: keptOf(wrapper) } };
}

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

const keptOf = ({ before, after }: Wrapper): KeptMessage => ({
  message: Buffer.concat([before, after]),
  drawingAt: before.length,
});

/** The message that an earlier attempt sent, byte for byte. */
async function wholeOf(
  { steps }: Underway,
  { document_id: documentId, number }: DocumentRow,
  { message, drawingAt }: KeptMessage,
): Promise<Buffer> {
  if (drawingAt === null) return message;
  const { drawing } = await steps.prepare({ documentId, drawing: true, rows: false });
  if (drawing === undefined) throw withoutDrawing(number);
  return enclose({ before: message.subarray(0, drawingAt), after: message.subarray(drawingAt) }, drawing.pdf);
}

const withoutDrawing = (number: string) => new Error(`${number} has no drawing to send`);

function orHindrance<Result>(work: () => Result): Result | Hindrance {
  try {
    return work();
  } catch (error) {
    // A template that does not render is for a person to mend, like an address that is missing.
    if (error instanceof Held || error instanceof Refusal) return error;
    throw error;
  }
}

/** The snapshot of a document with all that it prints, that recorded, and what else its letter takes from the database. */
async function prepare(
  deliverer: Underway,
  document: DocumentRow,
  rows: number | undefined,
): Promise<{
  snapshot: DocumentSnapshot;
  rows: readonly RowOfDocument[];
  drawing: KeptDrawing | undefined;
  versionId: number | null;
}> {
  const payable = isPayable(document);
  const drawn = document.pdf_sha256 !== null;
  const link = payable && !drawn && document.payment_link === null ? await linkToPrint(deliverer, document) : undefined;
  const use = payable && !drawn ? instructionsOf(deliverer, document) : undefined;
  const prepared = await deliverer.steps.prepare({
    documentId: document.document_id,
    link,
    instructions: use,
    drawing: drawn,
    rows: rows ?? false,
  });
  if (link !== undefined) failpoint('delivery.linked');
  const { drawing, instructions } = prepared;
  if (drawn && drawing === undefined) throw withoutDrawing(document.number);
  // What the letter says is what the kept drawing says, whoever drew it and whatever the settings are now.
  const snapshot = documentSnapshot(document, {
    paymentLink: payable ? (document.payment_link ?? prepared.paymentLink ?? null) : null,
    instructions: drawing === undefined ? (use?.instructions ?? null) : drawing.instructions,
    instructionsChanged: drawing?.instructions_changed ?? instructions?.changed ?? false,
  });
  return { snapshot, rows: prepared.rows, drawing, versionId: instructions?.id ?? null };
}

/** The link whose URL the document is to print, to be recorded before it is drawn; undefined where it prints none. */
async function linkToPrint(deliverer: Underway, document: DocumentRow): Promise<LinkToKeep | undefined> {
  const { links, environment } = deliverer;
  const token = newToken();
  const printed = links.printed(token, linkFactsOf(document));
  if (printed.kind === 'nothing') return undefined;
  if (printed.kind === 'missing') throw new Held(printed.what);
  const url = printed.kind === 'url' ? printed.url : await linkAtProcessor(deliverer, document);
  if (url === null) return undefined;
  return { documentId: document.document_id, provider: links.printedBy, token, url, now: ISO(environment) };
}

function instructionsOf({ settings, environment }: Underway, document: DocumentRow): InstructionUse {
  const instructions = instructionsFor(settings, document.currency) ?? null;
  if (instructions === null) throw new Held(`settings.json has no payment instructions for ${document.currency}`);
  const { document_id: documentId, partner_id: partnerId, currency } = document;
  return { documentId, partnerId, currency, instructions, now: ISO(environment) };
}

/** What a link says of its document: the amount that the document shows, whatever was paid since. */
export const linkFactsOf = (document: DocumentRow): LinkFacts => ({
  number: document.number,
  partnerId: document.partner_id,
  amount: Amount.of(document.amount_due, document.currency),
  dueOn: document.due_on ?? '',
});

/** Of these documents, those whose kept drawing shows another link than they would print today. */
export async function findOtherLinks(
  tx: Transaction,
  links: LinkProvider,
  documentIds: readonly number[],
): Promise<ReadonlySet<number>> {
  const kept = new Map((await readPaymentLinks(sendWithin(tx), documentIds)).map((each) => [each.document_id, each]));
  const drawn = (await readDocuments(tx, { ids: documentIds })).filter(
    (each) => each.pdf_sha256 !== null && isPayable(each),
  );
  const other = drawn.filter((each) => !links.matches(kept.get(each.document_id) ?? null, linkFactsOf(each)));
  return new Set(other.map((each) => each.document_id));
}

/** The link that is to be printed. Waits a little for a processor that is down; null where it can't have one. */
async function linkAtProcessor(deliverer: Underway, document: DocumentRow): Promise<string | null> {
  const link = await syncPaymentLink(deliverer, document.document_id);
  if (link.status === 'in_sync') return link.url;
  if (link.kind === 'unavailable' && link.waitedSeconds < LONGEST_WAIT_FOR_LINK_SECONDS) {
    throw new NotYet(`waits for its payment link: ${link.reason}`);
  }
  return null;
}

// --- Sending --------------------------------------------------------------------------------------------------------

const elsewhere = (number: string): Delivery => ({
  number,
  status: 'elsewhere',
  detail: 'another worker is sending it, or it was voided or put on hold just now',
});

/** Of what another attempt has in hand, or had: ends the attempt of a worker that is dead. */
async function takeOver(
  deliverer: Underway,
  document: DocumentRow,
  sending: SendingRow,
  worker: number,
): Promise<Delivery> {
  // A worker sends one letter at a time: what stands under the number of one that has none in hand, or of this one, is
  // an attempt whose end could not be recorded.
  const { worker: sender } = sending;
  const inHand = sender !== null && sender !== worker && deliverer.isIdle?.(sender) !== true;
  if (sending.worker_lives && inHand) return elsewhere(document.number);
  // Its worker died without telling how the attempt ended. After the first time that is repeated at once.
  const reply = 'the program was stopped while this was being sent';
  const settled = await settle(deliverer, document, sending, sending.worker, { outcome: 'unclear', reply });
  return settled.status === 'deferred' ? deliverSending(deliverer, document.document_id, worker) : settled;
}

async function send(
  deliverer: Underway,
  document: DocumentRow,
  sending: SendingRow,
  { drawing, mail }: Ready,
  worker: number,
): Promise<Delivery> {
  const { steps, environment, transport } = deliverer;
  if (mail instanceof Error) {
    if (drawing !== undefined) await steps.keep({ drawing, claim: undefined });
    failpoint('delivery.kept');
    throw mail;
  }
  failpoint('delivery.composed');
  const { raw, envelope, kept } = mail;
  const claimed = await steps.keep({
    drawing,
    claim: {
      sendingId: sending.sending_id,
      attempts: sending.attempts,
      worker,
      recipients: envelope.to,
      envelopeFrom: envelope.from,
      kept,
      sha256: mail.sha256,
      drawing: drawing?.sha256,
      now: ISO(environment),
    },
  });
  failpoint('delivery.kept');
  if (!claimed) return elsewhere(document.number);
  failpoint('delivery.claimed');
  const outcome = await transport.send({ messageId: sending.message_id, envelope, raw });
  failpoint('delivery.sent');
  const delivery = await settle(deliverer, document, sending, worker, outcome);
  failpoint('delivery.settled');
  return delivery;
}

/**
 * Records how the attempt of a worker ended. Once unclear, a sending is repeated with the same bytes; twice, only a
 * person can tell whether it arrived.
 */
async function settle(
  { steps, environment }: Underway,
  document: DocumentRow,
  sending: SendingRow,
  worker: number | null,
  { outcome, reply }: SendOutcome,
): Promise<Delivery> {
  const unclear = outcome === 'unclear';
  const status = {
    sent: 'sent',
    refused: 'failed',
    deferred: 'queued',
    unclear: sending.unclear_attempts === 0 && document.status !== 'void' ? 'queued' : 'uncertain',
  }[outcome] as 'sent' | 'failed' | 'queued' | 'uncertain';
  const settled = await steps.settle({
    sendingId: sending.sending_id,
    worker,
    status,
    reason: reply,
    unclear,
    now: ISO(environment),
  });
  const { number } = document;
  if (!settled) return { number, status: 'elsewhere', detail: 'another worker has taken it over' };
  return { number, status: status === 'queued' ? 'deferred' : status, detail: reply };
}

/** To whom the letter goes: the partner's present contacts, or whom a person named instead of them. */
const recipientsOf = ({ addressed_to: addressedTo, ...sending }: SendingRow): { to: Mailbox; cc: string[] } =>
  addressedTo === null
    ? { to: { name: sending.contact_name, address: sending.contact_email }, cc: sending.contact_cc }
    : { to: { name: '', address: addressedTo }, cc: [] };

/** What keeps any letter of this document from being sent. */
function whyUnsendable(
  { settings, environment }: Underway,
  document: DocumentRow,
  sending: SendingRow,
): Held | undefined {
  const { to, cc } = recipientsOf(sending);
  if (to.address === '') return new Held(`partner ${document.partner_id} has no invoicing contact's e-mail address`);
  if (settings.mail_from === '') return new Held('settings.json has no mail_from');
  if (environment.name !== 'sandbox') return undefined;
  const outside = [to.address, ...cc].filter((address) => !sandboxAllows(address, settings.sandbox_recipients));
  if (outside.length === 0) return undefined;
  return new Held(`sandbox mail goes only to sandbox_recipients, and ${outside.join(', ')} is not among them`);
}

/** The message but for its drawing. */
function compose(
  { settings, environment, templates }: Underway,
  document: DocumentRow,
  snapshot: DocumentSnapshot,
  sending: SendingRow,
  rows: readonly RowOfDocument[],
): { wrapper: Wrapper; envelope: Envelope } {
  const drawing = { filename: `${document.number}.pdf`, contentType: 'application/pdf' };
  const attachments =
    rows.length === 0
      ? []
      : [
          {
            filename: `${document.number}-rows.csv`,
            contentType: 'text/csv; charset=utf-8',
            content: rowsCsv(rows),
          },
        ];
  const letter = writeLetter(
    snapshot,
    {
      contactName: sending.contact_name,
      attachments: [
        { filename: drawing.filename, note: NOTES[document.document] },
        ...attachments.map(({ filename }) => ({ filename, note: `the ${rows.length} ledger row(s) behind it` })),
      ],
      rowsOmitted: sending.entries > MOST_ATTACHED_ROWS,
    },
    templates,
  );
  const message = {
    messageId: sending.message_id,
    date: ISO(environment),
    from: { name: document.issuer.legal_name, address: settings.mail_from },
    ...(settings.reply_to === '' ? {} : { replyTo: settings.reply_to }),
    ...recipientsOf(sending),
    letter,
    attachments,
  };
  return { wrapper: wrapMessage(message, drawing), envelope: envelopeOf(message) };
}

const NOTES = { invoice: 'the invoice', credit_note: 'the credit note', statement: 'the statement' } as const;
