/**
 * Resends a document by a new e-mail with its own Message-ID. Refusals: document_unknown, document_void,
 * document_on_hold, document_email_unfinished, carried_over, argument_invalid, recipient_refused.
 */

import { Transaction } from '#database/transaction';
import { documentToCorrect, refuseHeld } from '#documents/correctable';
import { queueResends } from '#documents/emails.sql';
import { IssueContext, mailDomain } from '#documents/issue/context';
import { refuse } from '#errors/refusals';
import { refuseRecipient } from '#mail/sandbox';
import { recordEvent } from '#people/audit-events';
import { DocumentEmail, readDocumentEmail } from './documents.sql.ts';

/** Resends to the contacts at the time of sending, or to the one address given. Returns the new e-mail's id. */
export async function resendDocument(
  tx: Transaction,
  { environment, settings, actor }: IssueContext,
  { number, to }: { number: string; to?: string | undefined },
) {
  if (to !== undefined) refuseRecipient({ environment, settings }, to);
  const document = await documentToCorrect(tx, number);
  const { document_id: documentId } = document;
  if (document.purpose === 'opening') {
    const instead = 'Its partner received it from that system. Reminders and account statements list it.';
    throw refuse('carried_over', { number, action: 'sent', instead, remedies: [] });
  }
  refuseHeld(document);
  const latest = await readDocumentEmail(tx, documentId);
  if (latest !== undefined && ['queued', 'sending', 'held'].includes(latest.status)) {
    throw refuse('document_email_unfinished', { number, status: latest.status, reason: latest.reason ?? '' });
  }
  const now = environment.now().toISO();
  const details = to === undefined ? {} : { to };
  await queueResends(tx, {
    documents: [{ document_id: documentId, addressed_to: to ?? null }],
    eventId: await recordEvent(tx, actor, { action: 'invoice.resend', subject: number, details, now }),
    mailDomain: mailDomain(settings),
    now,
  });
  const queued = await readDocumentEmail(tx, documentId);
  return (queued as DocumentEmail).email_id;
}
