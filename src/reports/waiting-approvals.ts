/** The requests for approval that wait for a decision, as the status names them. */
import type { DateTime } from 'luxon';
import { readRequests } from '../approvals/queries.ts';
import { statusOf } from '../approvals/requests.ts';
import type { Transaction } from '../database/transaction.ts';
import { minuteOf } from '../text.ts';
import { type Attention, attention } from './job-attention.ts';

export interface WaitingApproval {
  readonly request_id: number;
  readonly act: string;
  readonly subject: string;
  readonly requested_by: string;
  /** ISO instants. */
  readonly requested_at: string;
  readonly expires_at: string;
}

/** Oldest first. */
export async function readWaitingApprovals(tx: Transaction, now: DateTime<true>): Promise<WaitingApproval[]> {
  const open = await readRequests(tx, { undecided: true });
  return open
    .filter((each) => statusOf(each, now.toMillis()) === 'waiting')
    .map(({ request_id, act, subject, requester, requested_at, expires_at }) => ({
      ...{ request_id, act, subject, requested_by: requester, requested_at, expires_at },
    }))
    .reverse();
}

export const attentionToApprovals = (waiting: readonly WaitingApproval[]): Attention[] =>
  waiting.map(({ request_id, act, subject, requested_by, expires_at }) =>
    attention(
      `Request ${request_id} of ${requested_by} waits for approval until ${minuteOf(expires_at)}: ${act} of ${subject}. ` +
        `'reckoner approval show ${request_id}' shows what it would do.`,
      `approval of request ${request_id}`,
    ),
  );
