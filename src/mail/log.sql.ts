/** Records the outcomes of attempts, and reads the e-mail log. */
import { prepared, query, querying, Transaction } from '#database/transaction';
import { Scope } from '#people/scope';
import { EmailStatus } from './email.ts';
import { EmailKind } from './kinds.ts';
import { AttemptFacts } from './outbox.sql.ts';

export type AttemptOutcome = Partial<AttemptFacts> &
  Readonly<{
    emailId: number;
    attempt: number;
    outcome: 'sent' | 'refused' | 'deferred' | 'unclear';
    status: 'queued' | 'sent' | 'failed' | 'uncertain';
    reply: string;
    /** An ISO instant. */
    now: string;
  }>;

const RECORD_OUTCOME = prepared(
  'mail.record_outcome',
  `WITH ended AS (
       UPDATE emails e SET status = o.status, reason = o.reply, attempts = o.attempt,
              recipients = coalesce(o.recipients, e.recipients),
              envelope_from = coalesce(o."envelopeFrom", e.envelope_from),
              message_sha256 = coalesce(o.sha256, e.message_sha256),
              attempted_at = coalesce(o."startedAt", e.attempted_at),
              due_at = CASE WHEN o.status = 'queued' THEN now() + exp(least(o.attempt, 10)) * interval '1 second'
                            ELSE e.due_at END,
              unclear_attempts = e.unclear_attempts + CASE WHEN o.outcome = 'unclear' THEN 1 ELSE 0 END,
              message = CASE WHEN o.status = 'queued' AND (o.outcome = 'unclear' OR e.unclear_attempts > 0)
                             THEN e.message END,
              sent_at = CASE WHEN o.status = 'sent' THEN o.now END
       FROM json_to_recordset(:outcomes::json) AS o (
         "emailId" bigint, attempt integer, outcome text, status text, reply text, now timestamptz,
         recipients text[], "envelopeFrom" text, sha256 text, "startedAt" timestamptz)
       WHERE e.email_id = o."emailId"
         AND (e.status = 'sending' AND e.attempts = o.attempt
              -- E-mails that were never offered.
              OR e.status IN ('queued', 'held') AND e.attempts = o.attempt - 1 AND o.outcome IN ('deferred', 'refused')
                 AND NOT EXISTS (SELECT FROM current_holds h WHERE h.document_id = e.document_id))
       RETURNING e.email_id, e.kind, e.document_id, e.message_id, e.attempts, e.attempted_at, e.recipients,
                 e.message_sha256, o.outcome, o.reply, o.now)
     INSERT INTO email_attempts (email_id, attempt, started_at, ended_at, outcome, reply, kind, message_id, recipients,
                                 message_sha256, pdf_sha256)
     SELECT email_id, attempts, attempted_at, now, outcome, reply, kind, message_id, recipients, message_sha256,
            (SELECT sha256 FROM document_pdfs p WHERE p.document_id = ended.document_id)
     FROM ended ORDER BY email_id
     RETURNING email_id`,
);

export const insertOutcomes = querying<{ email_id: number }, { outcomes: readonly AttemptOutcome[] }>(RECORD_OUTCOME);

/** An e-mail in lists for people. Times are ISO instants. */
export type ListedEmail = Readonly<{
  email_id: number;
  kind: EmailKind;
  document: string | null;
  partner_id: string | null;
  month: string | null;
  day: string | null;
  payment_id: number | null;
  credit_refund_id: number | null;
  checkpoint_size: number | null;
  approval_request_id: number | null;
  preliminary: boolean;
  asked_for: string | null;
  status: EmailStatus;
  reason: string | null;
  /** The recipients of the last attempt; null before the first attempt. */
  to: string[] | null;
  message_id: string;
  attempts: number;
  queued_at: string;
  attempted_at: string | null;
  sent_at: string | null;
  dismissal_reason: string | null;
  unfinished: boolean;
}>;

/** Reads e-mails, newest first; if only unfinished ones are requested, oldest first. */
export function readEmails(
  tx: Transaction,
  filter: Readonly<{
    /** The number of e-mails to return; null for no limit. */
    limit: number | null;
    unfinished?: boolean | undefined;
    withoutDocument?: boolean;
    emailIds?: readonly number[];
    scope?: Scope;
    after?: string | null;
  }>,
): Promise<ListedEmail[]> {
  return query(
    tx,
    `SELECT e.email_id, e.kind, d.number AS document, coalesce(e.partner_id, d.partner_id) AS partner_id,
            coalesce(e.month, d.month) AS month, e.day, e.payment_id, e.credit_refund_id, e.checkpoint_size,
            e.approval_request_id, e.preliminary, e.asked_for, e.status, e.reason,
            e.recipients AS "to", e.message_id, e.attempts, e.queued_at, e.attempted_at, e.sent_at, e.dismissal_reason,
            u.email_id IS NOT NULL AS unfinished
     FROM emails e LEFT JOIN documents d USING (document_id) LEFT JOIN unfinished_emails u USING (email_id)
     WHERE (:emailIds::bigint[] IS NULL OR e.email_id = ANY (:emailIds))
       AND (NOT :withoutDocument OR e.document_id IS NULL)
       AND (NOT :unfinished OR u.email_id IS NOT NULL)
       AND (:scope::text[] IS NULL OR coalesce(e.partner_id, d.partner_id) = ANY (:scope))
       AND (:after::bigint IS NULL OR CASE WHEN :unfinished THEN e.email_id > :after
                                           ELSE e.email_id < :after END)
     ORDER BY CASE WHEN :unfinished THEN e.email_id ELSE -e.email_id END LIMIT :limit`,
    {
      ...{ withoutDocument: false, emailIds: null, scope: null, after: null, ...filter },
      unfinished: filter.unfinished ?? false,
    },
  );
}
