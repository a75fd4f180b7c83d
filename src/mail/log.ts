/** The e-mail log. A row of `email_attempts` is written when an attempt ends and never changes. */
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { DELIVER, Remedy, toDo } from '#remedy';
import { plural } from '#text';
import { EmailKind } from './kinds.ts';
import { AttemptOutcome, insertOutcomes, ListedEmail, readEmails } from './log.sql.ts';
import { lockEmails } from './outbox.sql.ts';

/**
 * Records the outcomes of attempts. False for an attempt that another worker has taken over, or whose e-mail was
 * withdrawn or held before it was offered. Deletes the message's bytes unless they may have to be sent again.
 */
export async function recordOutcomes(tx: Transaction, outcomes: readonly AttemptOutcome[]) {
  const [, recorded] = await Promise.all([
    // Locks the rows first, so that the next statement sees a void or hold by a transaction that had locked these rows.
    lockEmails(tx, outcomes),
    insertOutcomes(tx, { outcomes }),
  ]);
  const ids = new Set(recorded.map((row) => row.email_id));
  return outcomes.map(({ emailId }) => ids.has(emailId));
}

export const recordOutcome = async (tx: Transaction, outcome: AttemptOutcome) =>
  (await recordOutcomes(tx, [outcome]))[0] === true;

// --- Reading ---

export async function readEmail(tx: Transaction, emailId: number): Promise<ListedEmail> {
  const [email] = await readEmails(tx, { limit: 1, emailIds: [emailId] });
  if (email === undefined) throw refuse('email_unknown', { email: emailId });
  return email;
}

/** What an e-mail is about: "INV-2026-000001", "checkpoint of 3,028 facts", "reminder to p-1". */
export function nameOf(
  email: Pick<
    ListedEmail,
    | ('kind' | 'partner_id' | 'month' | 'day' | 'payment_id')
    | ('checkpoint_size' | 'approval_request_id' | 'preliminary')
  > & {
    document?: string | null;
  },
) {
  if (email.document != null) return email.document;
  const { kind, partner_id, month, day, payment_id, checkpoint_size, approval_request_id, preliminary } = email;
  const names = {
    reminder: `reminder to ${partner_id}`,
    account_statement: `${preliminary ? 'preliminary ' : ''}account statement to ${partner_id}`,
    close_report: `close report of ${month}`,
    instructions_changed: `changed bank details of ${day}`,
    feed_doubts: `doubtful feeds of ${day?.slice(0, 7)}`,
    checkpoint: `checkpoint of ${plural(checkpoint_size ?? 0, 'fact')}`,
    payment_receipt: `receipt for payment ${payment_id} to ${partner_id}`,
    refund_notice: `notice of a refund to ${partner_id}`,
    void_notice: `notice of a void to ${partner_id}`,
    approval_request: `request ${approval_request_id} for approval`,
    approval_decision: `decision on request ${approval_request_id}`,
    security_notice: 'security notice',
  };
  return (names as Partial<Record<EmailKind, string>>)[kind] ?? kind;
}

export function remediesOf({ email_id, document, status }: ListedEmail): Remedy[] {
  const input = { emailId: String(email_id) };
  const isSent = status !== 'queued' && status !== 'sending' && status !== 'held';
  return [
    isSent ? toDo('Resend it', 'email.resend', input) : DELIVER,
    ...(document === null && (isSent || status === 'held') ? [toDo('Dismiss it', 'email.dismiss', input)] : []),
  ];
}
