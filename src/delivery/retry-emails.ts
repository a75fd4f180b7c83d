/**
 * Resends e-mails that failed together: refused or returned while the mail server was set up wrongly, or cut off with
 * an unknown outcome. Each gets a new e-mail with its own Message-ID, logged beside the earlier one; a refused address
 * is refused again. Documents on hold or void and dismissed e-mails are left alone.
 */
import { lockLedgerWhole } from '../database/ledger-lock.ts';
import { execute, query, type Transaction } from '../database/transaction.ts';
import { mailDomain } from '../documents/issue/context.ts';
import { resendEmails } from '../mail/resend.ts';
import { type ActorContext, recordEvent } from '../people/audit-events.ts';

export const RETRIED = ['failed', 'uncertain', 'bounced'] as const;

export interface RetryRequest {
  readonly status: (typeof RETRIED)[number];
  /** ISO instant: only e-mails whose last attempt began then or later. */
  readonly since?: string | undefined;
}

export interface Retried {
  readonly documents: number;
  /** E-mails without a document. */
  readonly others: number;
}

export async function retryEmails(tx: Transaction, context: ActorContext, request: RetryRequest): Promise<Retried> {
  // If two commands ask for the same, the second finds the first one's e-mails queued.
  await lockLedgerWhole(tx);
  const { status, since = null } = request;
  const emails = await query<{ email_id: number; document_id: number | null; addressed_to: string | null }>(
    tx,
    `SELECT e.email_id, e.document_id, e.addressed_to
     FROM emails e JOIN unfinished_emails USING (email_id)
     WHERE e.status = :status::text AND e.attempted_at >= coalesce(:since::timestamptz, '-infinity')
       AND e.kind <> 'status'
       AND NOT EXISTS (SELECT FROM current_holds h WHERE h.document_id = e.document_id)
     ORDER BY e.email_id`,
    { status, since },
  );
  const documents = emails.filter(({ document_id }) => document_id !== null);
  const others = emails.filter(({ document_id }) => document_id === null);
  const retried = { documents: documents.length, others: others.length };
  if (emails.length === 0) return retried;
  const now = context.environment.now().toISO();
  const eventId = await recordEvent(tx, context.actor, {
    ...{ action: 'delivery.retry', subject: status, now },
    details: { ...(since !== null && { since }), ...retried },
  });
  await execute(
    tx,
    `SELECT queue_document_emails(array_agg(d.document_id ORDER BY d.document_id), 'resend', d.addressed_to,
                                  :eventId::bigint, :mailDomain::text, :now::timestamptz)
     FROM json_to_recordset(:documents::json) AS d (document_id bigint, addressed_to text) GROUP BY d.addressed_to`,
    { documents: JSON.stringify(documents), eventId, mailDomain: mailDomain(context.settings), now },
  );
  await resendEmails(tx, context, others, eventId);
  return retried;
}
