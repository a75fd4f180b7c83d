/**
 * The e-mail log, table `email_attempts`: when each attempt to send an e-mail began and ended, to whom it went, and the
 * mail server's reply. A line is written when an attempt ends and never changes.
 */
import { prepared, query, type Transaction } from '../database/transaction.ts';
import { lockEmails } from './queries.ts';

export interface AttemptOutcome {
  readonly emailId: number;
  /** Whose attempt it was. */
  readonly worker: number | null;
  readonly outcome: 'sent' | 'refused' | 'deferred' | 'unclear';
  /** How the e-mail stands from now on. */
  readonly status: 'queued' | 'sent' | 'failed' | 'uncertain';
  /** The mail server's reply, or why there is none. */
  readonly reply: string;
  /** ISO instant. */
  readonly now: string;
}

const RECORD_OUTCOME = prepared(
  'mail.record_outcome',
  `WITH ended AS (
       UPDATE emails e SET status = o.status, worker = NULL, reason = o.reply,
              unclear_attempts = e.unclear_attempts + CASE WHEN o.outcome = 'unclear' THEN 1 ELSE 0 END,
              message = CASE WHEN o.status = 'queued' AND (o.outcome = 'unclear' OR e.unclear_attempts > 0)
                             THEN e.message END,
              sent_at = CASE WHEN o.status = 'sent' THEN o.now END
       FROM json_to_recordset(:outcomes::json) AS o (
         "emailId" bigint, worker bigint, outcome text, status text, reply text, now timestamptz)
       WHERE e.email_id = o."emailId" AND e.status = 'sending' AND e.worker = o.worker
       RETURNING e.email_id, e.attempts, e.attempted_at, e.recipients, e.message_sha256, o.outcome, o.reply, o.now)
     INSERT INTO email_attempts (email_id, attempt, started_at, ended_at, outcome, reply, recipients, message_sha256)
     SELECT email_id, attempts, attempted_at, now, outcome, reply, recipients, message_sha256
     FROM ended ORDER BY email_id
     RETURNING email_id`,
);

/**
 * Records how attempts ended, in the log too; false for one that is another worker's by now. The bytes stay only while a
 * repetition must have the same.
 */
export async function recordOutcomes(tx: Transaction, outcomes: readonly AttemptOutcome[]): Promise<boolean[]> {
  const [, recorded] = await Promise.all([
    outcomes.length > 1 ? lockEmails(tx, outcomes) : undefined,
    query<{ email_id: number }>(tx, RECORD_OUTCOME, { outcomes: JSON.stringify(outcomes) }),
  ]);
  const ids = new Set(recorded.map((row) => row.email_id));
  return outcomes.map(({ emailId }) => ids.has(emailId));
}

export const recordOutcome = async (tx: Transaction, outcome: AttemptOutcome): Promise<boolean> =>
  (await recordOutcomes(tx, [outcome]))[0] === true;
