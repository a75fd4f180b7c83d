/** The finding for calls of partners that wait for the archive (http/late-requests.ts). */
import { queryOne } from '../database/transaction.ts';
import { toRun } from '../remedy.ts';
import { minuteOf, plural } from '../text.ts';
import { type ReadFindings, troubleOf } from './finding.ts';

/** `deliver` runs every ten minutes, and its first attempt may meet a lock. */
const LATE_MILLISECONDS = 3_600_000;

export const readLateRequests: ReadFindings = async (tx, { scope, now }) => {
  const { count, since } = await queryOne<{ count: number; since: string | null }>(
    tx,
    'SELECT count(*) AS count, min(requested_at) AS since FROM late_requests WHERE answered_at IS NULL',
  );
  if (scope !== null || since === null || now - Date.parse(since) < LATE_MILLISECONDS) return [];
  const urgent =
    `${plural(count, 'late request')} of partners ${count === 1 ? 'waits' : 'wait'} since ${minuteOf(since)} for rows of ` +
    'archived months. The log of deliver says why: the archive may not be readable.';
  return [troubleOf('machine', 'late_requests', { urgent, since, count, remedies: [toRun('Try again', 'deliver')] })];
};
