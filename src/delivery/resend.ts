/**
 * Sends a document once more: a new e-mail with a Message-ID of its own, logged beside the ones before.
 * Refusals: document_unknown, document_void, document_on_hold, sending_unfinished, argument_invalid, recipient_refused.
 */

import type { Transaction } from '../database/transaction.ts';
import { documentToCorrect } from '../documents/correctable.ts';
import { queueResend } from '../documents/emails.ts';
import { type IssueContext, mailDomain } from '../documents/issue/context.ts';
import { refuse } from '../errors/refusals.ts';
import { isOneAddress } from '../mail/message.ts';
import { whyRefusedInSandbox } from '../mail/sandbox.ts';
import { recordEvent } from '../people/audit-events.ts';
import { readDocumentEmail } from './queries.ts';

/** To the partner's contacts as they are when it is sent, or to the one address given instead of them. */
export async function resendDocument(
  tx: Transaction,
  { environment, settings, actor }: IssueContext,
  { number, to }: { number: string; to?: string | undefined },
): Promise<void> {
  if (to !== undefined) {
    if (!isOneAddress(to)) {
      throw refuse('argument_invalid', { argument: '--to', value: to, reason: 'is not one e-mail address' });
    }
    if (whyRefusedInSandbox({ environment, settings }, [to]) !== undefined) {
      throw refuse('recipient_refused', { address: to });
    }
  }
  const { document_id: documentId, held_at: since, hold_reason } = await documentToCorrect(tx, number);
  if (since !== null) throw refuse('document_on_hold', { number, since, reason: hold_reason ?? '' });
  const latest = await readDocumentEmail(tx, documentId);
  if (latest !== undefined && ['queued', 'sending', 'held'].includes(latest.status)) {
    throw refuse('sending_unfinished', { number, status: latest.status, reason: latest.reason ?? '' });
  }
  const now = environment.now().toISO();
  const details = to === undefined ? {} : { to };
  await queueResend(tx, {
    documentId,
    addressedTo: to ?? null,
    eventId: await recordEvent(tx, actor, { action: 'invoice.resend', subject: number, details, now }),
    mailDomain: mailDomain(settings),
    now,
  });
}
