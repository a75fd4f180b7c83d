/**
 * Resends e-mails that failed together, because the mail server was set up wrongly or sending was cut off, each by a
 * new one with its own Message-ID. Skips those that were dismissed or whose document is void or on hold.
 */

import { lockLedgerWhole } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { queueResends } from '#documents/emails.sql';
import { mailDomain } from '#documents/issue/context';
import { readToRetry } from '#mail/outbox.sql';
import { queueAgain } from '#mail/resend';
import { ActorContext, recordEvent } from '#people/audit-events';

export const RETRIED = ['failed', 'uncertain', 'bounced'] as const;

export type RetryRequest = Readonly<{
  status: (typeof RETRIED)[number];
  /** ISO instant. Only e-mails whose last attempt began then or later. */
  since?: string | undefined;
}>;

export type RetryCounts = Readonly<{
  documents: number;
  others: number;
}>;

export async function retryEmails(tx: Transaction, context: ActorContext, request: RetryRequest): Promise<RetryCounts> {
  // The second of two concurrent commands finds the e-mails queued by the first.
  await lockLedgerWhole(tx);
  const { status, since = null } = request;
  const emails = await readToRetry(tx, { status, since });
  const documents = emails.filter(({ document_id }) => document_id !== null);
  const others = emails.filter(({ document_id }) => document_id === null);
  const retried = { documents: documents.length, others: others.length };
  if (emails.length === 0) return retried;
  const now = context.environment.now().toISO();
  const eventId = await recordEvent(tx, context.actor, {
    ...{ action: 'delivery.retry', subject: status, now },
    details: { ...(since !== null && { since }), ...retried },
  });
  await queueResends(tx, { documents, eventId, mailDomain: mailDomain(context.settings), now });
  await queueAgain(tx, context, { askedFor: 'resend', emails: others, eventId });
  return retried;
}
