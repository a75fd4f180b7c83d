/**
 * Dismisses an e-mail without a document: it is not sent again and no longer needs attention. One that was never tried
 * is withdrawn; one that failed or may have arrived keeps its status. An e-mail with a document must still reach the
 * partner. Refusals: email_unknown, email_unfinished (a worker is sending it), email_not_dismissible.
 */
import { execute, Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { ActorContext, recordEvent } from '#people/audit-events';
import { toDo } from '#remedy';
import { nameOf, readEmail } from './log.ts';
import { lockEmails } from './outbox.sql.ts';

export async function dismissEmail(
  tx: Transaction,
  { actor, environment }: Pick<ActorContext, 'actor' | 'environment'>,
  { emailId, reason }: { emailId: number; reason: string },
) {
  await lockEmails(tx, [{ emailId }]);
  const email = await readEmail(tx, emailId);
  const { status, dismissal_reason: dismissed } = email;
  if (email.document !== null) {
    throw refuse('email_not_dismissible', {
      email: emailId,
      because: `it belongs to ${email.document}`,
      remedies: [toDo('Resend it', 'invoice.resend', { number: email.document })],
    });
  }
  if (status === 'sent' || status === 'withdrawn' || dismissed !== null) {
    throw refuse('email_not_dismissible', {
      email: emailId,
      because: `it is ${dismissed === null ? status : 'dismissed'}`,
      remedies: [],
    });
  }
  if (status === 'sending') throw refuse('email_unfinished', { email: emailId, status, reason: email.reason ?? '' });
  await recordEvent(tx, actor, {
    ...{ action: 'email.dismiss', subject: nameOf(email), now: environment.now().toISO() },
    details: { email: String(emailId), reason },
  });
  await execute(
    tx,
    `UPDATE emails
     SET dismissal_reason = :reason, message = NULL,
         status = CASE WHEN status IN ('failed', 'uncertain', 'bounced') THEN status
                       WHEN unclear_attempts > 0 THEN 'uncertain' ELSE 'withdrawn' END
     WHERE email_id = :emailId`,
    { emailId, reason },
  );
}
