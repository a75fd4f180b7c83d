/**
 * Resends an e-mail without a document: a new e-mail with its own Message-ID, logged beside the earlier one. An e-mail
 * of a document is resent by `src/delivery/resend.ts`.
 * Refusals: email_unknown, email_unfinished, argument_invalid, recipient_refused.
 */
import { query, queryOne, type Transaction } from '../database/transaction.ts';
import { mailDomain } from '../documents/issue/context.ts';
import { refuse } from '../errors/refusals.ts';
import { failpoint } from '../failpoint.ts';
import { type ActorContext, recordEvent } from '../people/audit-events.ts';
import type { EmailSubject } from './email.ts';
import { type ListedEmail, nameOf, readEmail } from './log.ts';
import { refuseRecipient } from './sandbox.ts';

/** To the usual recipients of this kind when it is sent, or to the one address given instead. */
export async function resendEmail(
  tx: Transaction,
  context: ActorContext,
  { emailId, to }: { emailId: number; to?: string | undefined },
): Promise<EmailSubject> {
  if (to !== undefined) refuseRecipient(context, to);
  const email = await readEmail(tx, emailId);
  const latest = await readEmail(tx, await readLatest(tx, emailId));
  const unfinished = refuse('email_unfinished', {
    ...{ email: latest.email_id, status: latest.status, reason: latest.reason ?? '' },
  });
  if (['queued', 'sending', 'held'].includes(latest.status)) throw unfinished;
  const eventId = await record(tx, context, email, to === undefined ? {} : { to });
  const [queued] = await queueAgain(tx, context, [latest.email_id], { askedFor: 'resend', to: to ?? null, eventId });
  // Another process has just queued the same.
  if (queued === undefined) throw unfinished;
  failpoint('resend.queued');
  return queued;
}

/**
 * Queues a new e-mail for each one that failed, bounced or is uncertain and would now go to another address, from the
 * settings or the partner's contact: a corrected address repairs the delivery. The status is mailed anew each day in
 * any case.
 */
export async function queueForNewAddresses(tx: Transaction, context: ActorContext): Promise<void> {
  const { finance_email: finance, auditor_email: auditor, operations_email: operations } = context.settings;
  const emails = await query<{ email_id: number; address: string }>(
    tx,
    `SELECT e.email_id, a.address
     FROM latest_other_emails e LEFT JOIN partners p USING (partner_id)
     CROSS JOIN LATERAL (
       SELECT CASE e.kind WHEN 'seal' THEN :auditor::text WHEN 'books_seal' THEN :auditor::text
                          WHEN 'checkpoint' THEN :auditor::text
                          WHEN 'close_report' THEN :finance::text
                          WHEN 'missing_feeds' THEN coalesce(nullif(:finance::text, ''), :operations::text)
                          WHEN 'instructions_changed' THEN coalesce(nullif(:finance::text, ''), :operations::text)
                          WHEN 'reminder' THEN p.contact_email
                          WHEN 'account_statement' THEN p.contact_email
                          WHEN 'payment_receipt' THEN p.contact_email
                          WHEN 'refund_notice' THEN p.contact_email END AS address) AS a
     WHERE e.status IN ('failed', 'uncertain', 'bounced') AND e.dismissal_reason IS NULL AND e.addressed_to IS NULL
       AND a.address <> '' AND a.address <> ALL (e.recipients)
     ORDER BY e.email_id`,
    { finance, auditor, operations },
  );
  for (const { email_id: emailId, address } of emails) {
    const eventId = await record(tx, context, await readEmail(tx, emailId), { to: address, because: 'new_address' });
    await queueAgain(tx, context, [emailId], { askedFor: 'new_address', to: null, eventId });
  }
}

const record = (
  tx: Transaction,
  { actor, environment }: ActorContext,
  email: ListedEmail,
  details: Readonly<Record<string, string>>,
): Promise<number> =>
  recordEvent(tx, actor, {
    ...{ action: 'email.resend', subject: nameOf(email), now: environment.now().toISO() },
    details: { email: String(email.email_id), ...details },
  });

/** The latest e-mail with the same subject as this one. */
async function readLatest(tx: Transaction, emailId: number): Promise<number> {
  const { email_id } = await queryOne<{ email_id: number }>(
    tx,
    `SELECT max(l.email_id) AS email_id FROM emails e JOIN latest_other_emails l
       ON (l.kind, l.partner_id, l.month, l.day, l.payment_id, l.credit_refund_id, l.checkpoint_number,
           l.approval_request_id)
          IS NOT DISTINCT FROM (e.kind, e.partner_id, e.month, e.day, e.payment_id, e.credit_refund_id,
                                e.checkpoint_number, e.approval_request_id)
     WHERE e.email_id = :emailId`,
    { emailId },
  );
  return email_id;
}

/** The same for several e-mails, each to the address named for it, or to the usual one. */
export async function resendEmails(
  tx: Transaction,
  context: ActorContext,
  emails: readonly { readonly email_id: number; readonly addressed_to: string | null }[],
  eventId: number,
): Promise<void> {
  for (const to of new Set(emails.map(({ addressed_to }) => addressed_to))) {
    const ids = emails.filter(({ addressed_to }) => addressed_to === to).map(({ email_id }) => email_id);
    await queueAgain(tx, context, ids, { askedFor: 'resend', to, eventId });
  }
}

/**
 * Queues another e-mail on the same subject, under a Message-ID that names the previous one, so each is repeated once.
 */
function queueAgain(
  tx: Transaction,
  { environment, settings }: ActorContext,
  emailIds: readonly number[],
  facts: { readonly askedFor: 'resend' | 'new_address'; readonly to: string | null; readonly eventId: number },
): Promise<EmailSubject[]> {
  return query(
    tx,
    `INSERT INTO emails (
       kind, partner_id, month, day, payment_id, credit_refund_id, checkpoint_number, approval_request_id, preliminary,
       asked_for, addressed_to, event_id, message_id, status, queued_at)
     SELECT e.kind, e.partner_id, e.month, e.day, e.payment_id, e.credit_refund_id, e.checkpoint_number,
            e.approval_request_id, e.preliminary,
            :askedFor::text, :to::text, :eventId::bigint,
            format('<%s.again-%s.%s@%s>', e.kind, e.email_id, i.installation_id, :mailDomain::text), 'queued',
            :now::timestamptz
     FROM emails e CROSS JOIN installation i WHERE e.email_id = ANY (:emailIds::bigint[])
     ON CONFLICT DO NOTHING
     RETURNING email_id, kind, document_id, partner_id, month, day, payment_id, credit_refund_id, checkpoint_number,
               approval_request_id, preliminary, addressed_to`,
    { ...facts, emailIds, mailDomain: mailDomain(settings), now: environment.now().toISO() },
  );
}
