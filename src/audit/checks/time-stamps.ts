/**
 * The check of stored time stamps: each covers the hash of an existing seal, has a valid signature, and states the
 * recorded time.
 */
import { query, type Transaction } from '../../database/transaction.ts';
import { sealTitle } from '../../seals/signature.ts';
import type { SealName } from '../../seals/signatures.sql.ts';
import { checkTimeStamp } from '../../seals/time-stamp.ts';
import type { CheckContext } from './check.ts';
import type { Difference, Finding } from './query.ts';

interface TimeStampRow extends SealName {
  readonly authority: string;
  readonly response: Buffer;
  readonly stamped_at: string;
  readonly stamped: string;
  /** Null if there is no such seal. */
  readonly seal: string | null;
  readonly record: string | null;
}

async function faultOf({
  authority,
  response,
  stamped_at,
  stamped,
  seal,
  record,
}: TimeStampRow): Promise<string | undefined> {
  if (seal === null || record === null) return 'has a time stamp, but there is no such seal';
  if (stamped !== seal) return `is ${seal}, but its time stamp covers ${stamped}`;
  const checked = await checkTimeStamp(response, record);
  if ('problem' in checked) return `has an invalid time stamp: ${authority} ${checked.problem}`;
  return Date.parse(checked.stampedAt) === Date.parse(stamped_at)
    ? undefined
    : `was stamped at ${checked.stampedAt}, but is recorded as stamped at ${stamped_at}`;
}

export async function findBrokenTimeStamps(tx: Transaction, { month }: Pick<CheckContext, 'month'>): Promise<Finding> {
  const found = await query<TimeStampRow>(
    tx,
    `SELECT kind, name, authority, response, stamped_at, s.seal AS stamped, m.seal, m.record
     FROM seal_time_stamps s LEFT JOIN every_seal m USING (kind, name)
     WHERE :month::text IS NULL OR name = :month ORDER BY kind, name`,
    { month },
  );
  const differences: Difference[] = [];
  for (const each of found) {
    const detail = await faultOf(each);
    if (detail !== undefined) differences.push({ subject: sealTitle(each), detail });
  }
  return { inspected: found.length, differences };
}
