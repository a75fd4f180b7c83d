/** Composes, in a preview's transaction, the e-mails that the previewed action would send. */

import { instructionsFor } from '#config/instructions';
import { Transaction } from '#database/transaction';
import { whyNoEmail } from '#delivery/document';
import { documentEmailText, MOST_ATTACHED_ROWS, recipientsOf } from '#delivery/document-email';
import { readDocumentEmails } from '#delivery/documents.sql';
import { isPayable } from '#delivery/printed-link';
import { documentSnapshot } from '#documents/document';
import { readDocuments } from '#documents/documents.sql';
import { Refusal } from '#errors/refusals';
import { EmailSubject } from '#mail/email';
import { EmailKind } from '#mail/kinds';
import { composeEmail } from '#mail/outbox';
import { readLastEmail, readQueuedAfter } from '#mail/outbox.sql';
import { EmailTemplates, templatesOf } from '#mail/templates';
import { ActorContext } from '#people/audit-events';
import { COMPOSERS } from './emails/composers.ts';

/** E-mails of one kind. The first of them are composed as they would be sent, or say why they would wait. */
export type ForeseenEmails = Readonly<{
  kind: EmailKind;
  count: number;
  first: readonly Readonly<{ to: readonly string[]; subject: string; text: string; held: string | null }>[];
}>;

/** Composed of each kind. */
const COMPOSED = 3;

/** Kinds that jobs send by themselves, or that report what deliveries did. */
export const BY_THEMSELVES: ReadonlySet<EmailKind> = new Set<EmailKind>([
  ...(['checkpoint', 'feed_doubts', 'status', 'security_notice', 'close_report'] as const),
  ...(['approval_request', 'approval_decision'] as const),
]);

const FOLLOWING = COMPOSERS.filter(({ kind }) => !BY_THEMSELVES.has(kind));

/** Performs `work`, and returns its result with the e-mails that it queues at once or makes due. */
export async function whileForeseeingEmails<Result>(
  tx: Transaction,
  context: ActorContext,
  work: () => Promise<Result>,
): Promise<{ result: Result; emails: ForeseenEmails[] }> {
  const queueDue = async () => {
    for (const composer of FOLLOWING) await composer.queueDue?.(tx, context);
  };
  await queueDue();
  const last = await readLastEmail(tx);
  const result = await work();
  await queueDue();
  const queued = (await readQueuedAfter(tx, { last })).filter(({ kind }) => !BY_THEMSELVES.has(kind));
  const templates = templatesOf(context.environment);
  const emails: ForeseenEmails[] = [];
  for (const kind of new Set(queued.map((each) => each.kind))) {
    const these = queued.filter((each) => each.kind === kind);
    const first = these.slice(0, COMPOSED);
    const composed = first[0]?.document_id
      ? await ofDocuments(tx, context, first, templates)
      : await Promise.all(first.map((email) => ofOther(tx, context, email, templates)));
    emails.push({ kind, count: these.length, first: composed });
  }
  return { result, emails };
}

type Composed = ForeseenEmails['first'][number];

async function ofOther(
  tx: Transaction,
  context: ActorContext,
  email: EmailSubject,
  templates: EmailTemplates,
): Promise<Composed> {
  const composed = await composeEmail(tx, email, { ...context, composers: COMPOSERS }, templates);
  if ('status' in composed) return { ...NOTHING, held: composed.reason };
  const { to, cc, content } = composed;
  return { to: [to.address, ...cc], subject: content.subject, text: content.text, held: null };
}

const NOTHING = { to: [], subject: '', text: '' };

async function ofDocuments(
  tx: Transaction,
  context: ActorContext,
  subjects: readonly EmailSubject[],
  templates: EmailTemplates,
): Promise<Composed[]> {
  const ids = subjects.map((each) => each.document_id as number);
  const emails = await readDocumentEmails(tx, ids);
  const documents = await readDocuments(tx, { ids });
  return documents.flatMap((document) => {
    const email = emails.get(document.document_id);
    if (email === undefined) return [];
    const { to, cc } = recipientsOf(email);
    const instructions = isPayable(document) ? (instructionsFor(context.settings, document.currency) ?? null) : null;
    const snapshot = documentSnapshot(document, {
      ...{ paymentLink: document.payment_link, instructions, instructionsChanged: false },
    });
    try {
      const { subject, text } = documentEmailText(
        document,
        email,
        { snapshot, instructionsOutdated: false },
        templates,
        {
          rows: email.entries > MOST_ATTACHED_ROWS ? 0 : email.entries,
          eInvoice: document.e_invoice !== 'none' && document.e_invoice !== 'facturx',
        },
      );
      const held = document.held_at === null ? whyNoEmail(context, document, email)?.message : document.hold_reason;
      return [{ to: [to.address, ...cc], subject, text, held: held ?? null }];
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return [{ ...NOTHING, held: error.message }];
    }
  });
}
