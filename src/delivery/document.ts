/**
 * Delivering one document: look at what it lacks (payment link, drawing, sending) and do that, each step recorded
 * before or after in a transaction of its own, none of them across a call to the outside. Safe to repeat at any point.
 */
import { createHash } from 'node:crypto';
import { type Environment, type Instructions, instructionsFor, printsOwnPage, type Settings } from '../config.ts';
import type { Database } from '../database/database.ts';
import type { Transaction } from '../database/transaction.ts';
import { documentFace } from '../documents/document.ts';
import { whyHeld } from '../documents/hold.ts';
import { type DocumentRow, readDocuments } from '../documents/queries.ts';
import { Refusal } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { Amount } from '../money.ts';
import { drawnWith, type Studio } from './drawing.ts';
import type { TemplateFolder } from './letter.ts';
import { writeLetter } from './letter.ts';
import { type LinkFacts, type LinkProvider, newToken } from './link.ts';
import { type Settler, settleLink } from './links/settle.ts';
import { composeMessage, envelopeOf } from './message.ts';
import {
  holdSending,
  type KeptDrawing,
  noteFailure,
  readPaymentLinks,
  type SendingRow,
  withdrawSending,
} from './queries.ts';
import { rowsCsv } from './rows.ts';
import type { DeliverySteps } from './together.ts';
import { type SendOutcome, sandboxAllows, type Transport } from './transport.ts';

export interface Deliverer {
  readonly environment: Environment;
  readonly settings: Settings;
  readonly database: Database;
  /** Over the same database. */
  readonly steps: DeliverySteps;
  readonly studio: Studio;
  readonly transport: Transport;
  readonly templates: TemplateFolder;
  readonly links: LinkProvider;
  /** Whether a number is that of a worker of this process which has nothing in hand. */
  readonly isIdle?: (worker: number) => boolean;
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
  const delivery = await deliverer.steps.through(() => deliverSending(deliverer, documentId, worker));
  const { stripe, stripeLinks } = deliverer.links;
  if (stripe === undefined && stripeLinks === undefined) return delivery;
  const link = await settleLink(settlerOf(deliverer), documentId);
  if (link.status === 'settled') return delivery;
  return {
    ...delivery,
    link: `${link.kind === 'limit' ? 'has no payment link' : 'its payment link waits'}: ${link.reason}`,
  };
}

/** Brings the links behind documents in line with what is owed on them, and sends nothing. What waits is recorded. */
export async function settleLinks(
  deliverer: Pick<Deliverer, 'environment' | 'database' | 'links'>,
  documentIds: readonly number[],
): Promise<void> {
  const { stripe, stripeLinks } = deliverer.links;
  if (stripe === undefined && stripeLinks === undefined) return;
  for (const id of documentIds) await settleLink(settlerOf(deliverer), id);
}

const settlerOf = ({
  environment,
  database,
  links,
}: Pick<Deliverer, 'environment' | 'database' | 'links'>): Settler => ({
  environment,
  database,
  stripeLinks: links.stripeLinks,
  wanted: links.stripe,
});

async function deliverSending(deliverer: Deliverer, documentId: number, worker: number): Promise<Delivery> {
  const { database, steps } = deliverer;
  const { document, sending } = await steps.look(documentId);
  if (document === undefined || sending === undefined) throw new Error(`there is no document ${documentId} to deliver`);
  const { number } = document;
  if (document.status === 'void' && (sending.status === 'queued' || sending.status === 'held')) {
    const status = await database.transaction((tx) => withdrawSending(tx, sending.sending_id));
    if (status === undefined) return { number, status: 'elsewhere', detail: 'another worker is sending it' };
    return { number, status, detail: 'it was voided before it was sent' };
  }
  if (sending.status !== 'queued' && sending.status !== 'held' && sending.status !== 'sending') {
    return { number, status: sending.status, detail: sending.reason ?? '', before: true };
  }
  try {
    if (document.held_at !== null && sending.status !== 'sending') {
      throw new Held(whyHeld(document.held_at, document.hold_reason ?? ''));
    }
    const face = await completeDrawing(deliverer, document);
    return await send(deliverer, document, face, sending, worker);
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

// --- Link and drawing -----------------------------------------------------------------------------------------------

const isPayable = (document: DocumentRow): boolean =>
  document.document === 'invoice' && Amount.of(document.amount_due, document.currency).isPositive();

/** What a document carries by now besides its frozen data. */
interface Completed {
  readonly paymentLink: string | null;
  /** Undefined where it was drawn before, or by another worker just now. */
  readonly drawing: KeptDrawing | undefined;
}

/** Makes the link and the drawing where they are missing. */
async function completeDrawing(deliverer: Deliverer, document: DocumentRow): Promise<Completed> {
  const payable = isPayable(document);
  const paymentLink = payable ? await printedLink(deliverer, document) : null;
  if (document.pdf_sha256 !== null) return { paymentLink, drawing: undefined };
  return { paymentLink, drawing: await draw(deliverer, document, paymentLink, payable) };
}

/** The URL that the document prints, recorded before it is drawn; null where it prints none. */
async function printedLink(deliverer: Deliverer, document: DocumentRow): Promise<string | null> {
  if (document.payment_link !== null || document.pdf_sha256 !== null) return document.payment_link;
  const { steps, links, environment } = deliverer;
  const token = newToken();
  const printed = links.printed(token, linkFactsOf(document));
  if (printed.kind === 'nothing') return null;
  if (printed.kind === 'lacks') throw new Held(printed.what);
  const made = printed.kind === 'url' ? printed.url : await linkAtProcessor(deliverer, document);
  if (made === null) return null;
  const provider = printsOwnPage(deliverer.settings.payment_link) ? 'page' : links.name;
  const facts = { documentId: document.document_id, provider, token, url: made, now: ISO(environment) };
  const url = await steps.keepLink(facts);
  failpoint('delivery.linked');
  return url;
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
  const kept = new Map((await readPaymentLinks(tx, documentIds)).map((each) => [each.document_id, each]));
  const drawn = (await readDocuments(tx, { ids: documentIds })).filter(
    (each) => each.pdf_sha256 !== null && isPayable(each),
  );
  const other = drawn.filter((each) => !links.matches(kept.get(each.document_id) ?? null, linkFactsOf(each)));
  return new Set(other.map((each) => each.document_id));
}

/** The link that is to be printed. Waits a little for a processor that is down; null where it can't have one. */
async function linkAtProcessor(deliverer: Deliverer, document: DocumentRow): Promise<string | null> {
  const link = await settleLink(settlerOf(deliverer), document.document_id);
  if (link.status === 'settled') return link.url;
  if (link.kind === 'unavailable' && link.waitedSeconds < LONGEST_WAIT_FOR_LINK_SECONDS) {
    throw new NotYet(`waits for its payment link: ${link.reason}`);
  }
  return null;
}

/** Draws a document and keeps that, unless another worker was first: then its drawing counts, and is not given. */
async function draw(
  { steps, settings, studio, environment }: Deliverer,
  document: DocumentRow,
  paymentLink: string | null,
  payable: boolean,
): Promise<KeptDrawing | undefined> {
  let instructions: Instructions | null = null;
  if (payable) {
    instructions = instructionsFor(settings, document.currency) ?? null;
    if (instructions === null) throw new Held(`settings.json has no payment instructions for ${document.currency}`);
  }
  const facts = { documentId: document.document_id, partnerId: document.partner_id, currency: document.currency };
  const version =
    instructions === null ? undefined : await steps.useInstructions({ ...facts, instructions, now: ISO(environment) });
  const additions = { paymentLink, instructions, instructionsChanged: version?.changed ?? false };
  const pdf = await studio.draw(documentFace(document, additions));
  failpoint('delivery.drawn');
  const counts = await steps.keepDrawing({
    documentId: document.document_id,
    drawingVersion: drawnWith.version,
    libraries: drawnWith.libraries,
    instructionVersionId: version?.id ?? null,
    instructionsChanged: additions.instructionsChanged,
    sha256: createHash('sha256').update(pdf).digest('hex'),
    pdf,
    now: ISO(environment),
  });
  failpoint('delivery.kept');
  return counts ? { pdf, instructions, instructions_changed: additions.instructionsChanged } : undefined;
}

// --- Sending --------------------------------------------------------------------------------------------------------

async function send(
  deliverer: Deliverer,
  document: DocumentRow,
  completed: Completed,
  sending: SendingRow,
  worker: number,
): Promise<Delivery> {
  const { steps, environment, transport } = deliverer;
  const { number } = document;
  const elsewhere: Delivery = {
    number,
    status: 'elsewhere',
    detail: 'another worker is sending it, or it was voided or put on hold just now',
  };
  if (sending.status === 'sending') {
    // A worker sends one letter at a time: what stands under the number of one that has none in hand, or of this one, is
    // an attempt whose end could not be recorded.
    const { worker: sender } = sending;
    const inHand = sender !== null && sender !== worker && deliverer.isIdle?.(sender) !== true;
    if (sending.worker_lives && inHand) return elsewhere;
    // Its worker died without telling how the attempt ended. After the first time that is repeated at once.
    const reply = 'the program was stopped while this was being sent';
    const settled = await settle(deliverer, document, sending, sending.worker, { outcome: 'unclear', reply });
    return settled.status === 'deferred' ? deliverSending(deliverer, document.document_id, worker) : settled;
  }
  const mail =
    sending.unclear_attempts > 0 && sending.message !== null
      ? {
          raw: sending.message,
          envelope: { from: sending.envelope_from ?? '', to: sending.recipients ?? [] },
        }
      : await compose(deliverer, document, completed, sending);
  failpoint('delivery.composed');
  const claimed = await steps.claim({
    sendingId: sending.sending_id,
    attempts: sending.attempts,
    worker,
    recipients: mail.envelope.to,
    envelopeFrom: mail.envelope.from,
    message: mail.raw,
    sha256: createHash('sha256').update(mail.raw).digest('hex'),
    now: ISO(environment),
  });
  if (!claimed) return elsewhere;
  failpoint('delivery.claimed');
  const outcome = await transport.send({ messageId: sending.message_id, envelope: mail.envelope, raw: mail.raw });
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
  { steps, environment }: Deliverer,
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

async function compose(
  { steps, settings, environment, templates }: Deliverer,
  document: DocumentRow,
  { paymentLink, drawing: drawn }: Completed,
  sending: SendingRow,
): Promise<{ raw: Buffer; envelope: { from: string; to: string[] } }> {
  const { addressed_to: addressedTo } = sending;
  const to =
    addressedTo === null
      ? { name: sending.contact_name, address: sending.contact_email }
      : { name: '', address: addressedTo };
  const cc = addressedTo === null ? sending.contact_cc : [];
  const recipients = [to.address, ...cc];
  if (to.address === '') {
    throw new Held(`partner ${document.partner_id} has no invoicing contact's e-mail address`);
  }
  if (settings.mail_from === '') throw new Held('settings.json has no mail_from');
  if (environment.name === 'sandbox') {
    const outside = recipients.filter((address) => !sandboxAllows(address, settings.sandbox_recipients));
    if (outside.length > 0) {
      throw new Held(`sandbox mail goes only to sandbox_recipients, and ${outside.join(', ')} is not among them`);
    }
  }
  const rowsOmitted = sending.entries > MOST_ATTACHED_ROWS;
  const drawing = drawn ?? (await steps.readDrawing(document.document_id));
  const rows = rowsOmitted ? undefined : await steps.readRows({ id: document.document_id, entries: sending.entries });
  if (drawing === undefined) throw new Error(`${document.number} has no drawing to send`);
  const attachments = [
    {
      filename: `${document.number}.pdf`,
      contentType: 'application/pdf',
      content: drawing.pdf,
      note: NOTES[document.document],
    },
    ...(rows === undefined || rows.length === 0
      ? []
      : [
          {
            filename: `${document.number}-rows.csv`,
            contentType: 'text/csv; charset=utf-8',
            content: rowsCsv(rows),
            note: `the ${rows.length} ledger row(s) behind it`,
          },
        ]),
  ];
  // What the letter says is what the kept drawing says, whoever drew it and whatever the settings are now.
  const { instructions, instructions_changed: instructionsChanged } = drawing;
  const face = documentFace(document, { paymentLink, instructions, instructionsChanged });
  const letter = writeLetter(
    face,
    {
      contactName: sending.contact_name,
      attachments: attachments.map(({ filename, note }) => ({ filename, note })),
      rowsOmitted,
    },
    templates,
  );
  const message = {
    messageId: sending.message_id,
    date: ISO(environment),
    from: { name: document.issuer.legal_name, address: settings.mail_from },
    ...(settings.reply_to === '' ? {} : { replyTo: settings.reply_to }),
    to,
    cc,
    letter,
    attachments: attachments.map(({ filename, contentType, content }) => ({ filename, contentType, content })),
  };
  return { raw: await composeMessage(message), envelope: envelopeOf(message) };
}

const NOTES = { invoice: 'the invoice', credit_note: 'the credit note', statement: 'the statement' } as const;
