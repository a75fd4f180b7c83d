import { DateTime } from 'luxon';
import { statusOf } from '#approvals/requests';
import { readRequests } from '#approvals/requests.sql';
import { Transaction } from '#database/transaction';

export type WaitingApproval = Readonly<{
  request_id: number;
  action: string;
  subject: string;
  requested_by: string;
  requested_at: string;
  expires_at: string;
}>;

export async function readWaitingApprovals(tx: Transaction, now: DateTime<true>): Promise<WaitingApproval[]> {
  const open = await readRequests(tx, { undecided: true });
  return open
    .filter((each) => statusOf(each, now.toMillis()) === 'waiting')
    .map(({ request_id, action, subject, requester, requested_at, expires_at }) => ({
      ...{ request_id, action, subject, requested_by: requester, requested_at, expires_at },
    }))
    .reverse();
}
