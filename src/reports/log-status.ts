/**
 * The state of the log: its last checkpoint, the facts that no checkpoint covers yet, and how checkpoints are signed.
 */
import { DateTime } from 'luxon';
import { Transaction } from '#database/transaction';
import { readLastCheckpoint } from '#log/checkpoints.sql';
import { CheckpointOf } from '#log/closing.sql';
import { readLateSignatures, readSigning, SigningStatus } from '#log/sign';
import { readLatestKey } from '#log/signatures.sql';
import { Installation } from '#people/audit-events';
import { countFactsAfter, LostKey, readFirstAfter, readLostKey } from './log-status.sql.ts';

export type CheckpointStatus = Readonly<{
  /** Null before the first checkpoint. */
  last: (CheckpointOf & Readonly<{ taken_at: string; age_seconds: number }>) | null;
  /** The number of facts after the last checkpoint, which only the database's guards protect. */
  uncovered: number;
  /** The number of days, in the issuer's time zone, for which the next checkpoint has been overdue. */
  overdue_days: number;
  /** The sizes of checkpoints that have had no signature, or no time stamp, for more than a day. */
  unsigned: readonly number[];
  unstamped: readonly number[];
}>;

export async function readCheckpointStatus(tx: Transaction, context: Installation): Promise<CheckpointStatus> {
  const { environment, settings } = context;
  const now = environment.now();
  const last = await readLastCheckpoint(tx);
  const uncovered = await countFactsAfter(tx, { after: last?.last_no ?? 0 });
  const { at } = await readFirstAfter(tx, { after: last?.last_no ?? 0 });
  const late = await readLateSignatures(tx, context);
  return {
    last:
      last === undefined
        ? null
        : {
            ...{ size: last.size, root: last.root.toString('base64'), taken_at: last.taken_at },
            age_seconds: Math.max(0, Math.round(now.diff(DateTime.fromISO(last.taken_at)).as('seconds'))),
          },
    uncovered,
    // A fact is covered by a checkpoint on the same day or on the next day.
    overdue_days: at === null ? 0 : Math.max(0, daysBetween(at, now, settings.time_zone) - 1),
    ...late,
  };
}

const daysBetween = (from: string, to: DateTime, zone: string) =>
  Math.round(to.setZone(zone).startOf('day').diff(DateTime.fromISO(from, { zone }).startOf('day'), 'days').days);

export type KeyStatus = SigningStatus &
  Readonly<{
    /** Whether the latest recorded key is available, to sign the next key or to continue signing. */
    latest_at_hand: boolean;
    /** Set if the latest key was recorded without a signature of the previous key, and only for some days after that. */
    lost: LostKey | null;
  }>;

const LOST_KEY_DAYS = 7;

export async function readKeyStatus(tx: Transaction, { environment }: Installation): Promise<KeyStatus> {
  const latest = await readLatestKey(tx);
  const { logKey, logKeyBefore } = environment;
  const [lost = null] = await readLostKey(tx, { since: environment.now().minus({ days: LOST_KEY_DAYS }).toISO() });
  return {
    ...(await readSigning(tx, environment)),
    latest_at_hand: [logKey, logKeyBefore].some(
      (each) => each !== undefined && each.publicKey.toString('base64') === latest?.public_key,
    ),
    lost,
  };
}

/**
 * Whether two verifier keys have the same public key. The name in the key differs if a successor log uses the same key.
 */
export const isSameKey = (one: string, other: string) =>
  one.slice(one.lastIndexOf('+')) === other.slice(other.lastIndexOf('+'));
