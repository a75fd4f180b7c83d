import type { DateTime } from 'luxon';
import { readRequests } from '../approvals/requests.sql.ts';
import { statusOf } from '../approvals/requests.ts';
import type { Transaction } from '../database/transaction.ts';

export interface WaitingApproval {
  readonly request_id: number;
  readonly action: string;
  readonly subject: string;
  readonly requested_by: string;
  readonly requested_at: string;
  readonly expires_at: string;
}

export async function readWaitingApprovals(tx: Transaction, now: DateTime<true>): Promise<WaitingApproval[]> {
  const open = await readRequests(tx, { undecided: true });
  return open
    .filter((each) => statusOf(each, now.toMillis()) === 'waiting')
    .map(({ request_id, action, subject, requester, requested_at, expires_at }) => ({
      ...{ request_id, action, subject, requested_by: requester, requested_at, expires_at },
    }))
    .reverse();
}
