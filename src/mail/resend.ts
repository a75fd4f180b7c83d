/**
 * Resends an e-mail without a document by a new one with its own Message-ID. Refusals: email_unknown, email_unfinished,
 * argument_invalid, recipient_refused.
 */
import { Transaction } from '#database/transaction';
import { mailDomain } from '#documents/issue/context';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { ActorContext, recordEvent } from '#people/audit-events';
import { EmailSubject } from './email.ts';
import { ListedEmail } from './log.sql.ts';
import { nameOf, readEmail } from './log.ts';
import { insertRepetitions, readLatest, readNewAddresses } from './outbox.sql.ts';
import { refuseRecipient } from './sandbox.ts';

/** Resends to the kind's usual recipients at the time of sending, or only to the given address. */
export async function resendEmail(
  tx: Transaction,
  context: ActorContext,
  { emailId, to }: { emailId: number; to?: string | undefined },
): Promise<EmailSubject> {
  if (to !== undefined) refuseRecipient(context, to);
  const email = await readEmail(tx, emailId);
  const latest = await readEmail(tx, await readLatest(tx, { emailId }));
  const unfinished = refuse('email_unfinished', {
    ...{ email: latest.email_id, status: latest.status, reason: latest.reason ?? '' },
  });
  if (['queued', 'sending', 'held'].includes(latest.status)) throw unfinished;
  const eventId = await record(tx, context, email, to === undefined ? {} : { to });
  const emails = [{ email_id: latest.email_id, addressed_to: to ?? null }];
  const [queued] = await queueAgain(tx, context, { askedFor: 'resend', emails, eventId });
  // A concurrent process has queued the same e-mail.
  if (queued === undefined) throw unfinished;
  failpoint('resend.queued');
  return queued;
}

/**
 * Queues a new e-mail for each failed, bounced or uncertain one that would now go to a different address, so that
 * correcting an address is enough. The status e-mail is sent daily anyway.
 */
export async function queueForNewAddresses(tx: Transaction, context: ActorContext) {
  const { finance_email: finance, auditor_email: auditor, operations_email: operations } = context.settings;
  const emails = await readNewAddresses(tx, { finance, auditor, operations });
  for (const { email_id: emailId, address } of emails) {
    const eventId = await record(tx, context, await readEmail(tx, emailId), { to: address, because: 'new_address' });
    const again = [{ email_id: emailId, addressed_to: null }];
    await queueAgain(tx, context, { askedFor: 'new_address', emails: again, eventId });
  }
}

const record = (
  tx: Transaction,
  { actor, environment }: ActorContext,
  email: ListedEmail,
  details: Readonly<Record<string, string>>,
) =>
  recordEvent(tx, actor, {
    ...{ action: 'email.resend', subject: nameOf(email), now: environment.now().toISO() },
    details: { email: String(email.email_id), ...details },
  });

/** Queues several e-mails again, each to the address that is given for it, or to its usual recipients. */
export const queueAgain = (
  tx: Transaction,
  { environment, settings }: ActorContext,
  facts: Pick<Parameters<typeof insertRepetitions>[1], 'askedFor' | 'emails' | 'eventId'>,
) => insertRepetitions(tx, { ...facts, mailDomain: mailDomain(settings), now: environment.now().toISO() });
