/** The checks of the log: its checkpoints, their signatures and their time stamps. */
import { query, Transaction } from '#database/transaction';
import { Checkpoint } from '#log/checkpoints.sql';
import { checkpointTitle, deriveLog } from '#log/derive';
import { bodyOf, isSigned, isSignedBy, vkeyOf } from '#log/note';
import { successionOf } from '#log/sign';
import { LogKey, noteKeyOf } from '#log/signatures.sql';
import { checkTimeStamp } from '#log/time-stamp';
import { CheckContext } from './check.ts';
import { Difference, Finding } from './query.ts';

/** The recorded checkpoints agree with the facts in the tables. */
export async function findBrokenCheckpoints(tx: Transaction, { derived, cold }: CheckContext): Promise<Finding> {
  const { checkpoints, differences } = await deriveLog(tx, derived, cold);
  return { inspected: checkpoints, differences };
}

/** The checkpoint that a signature or a time stamp covers; the root is null if there is no such checkpoint. */
type Named = Pick<Checkpoint, 'size' | 'closes'> & ({ origin: string; root: Buffer } | { origin: null; root: null });

const isTaken = <Of extends Named>(each: Of): each is Of & { origin: string; root: Buffer } => each.root !== null;

/**
 * Each checkpoint's own signature is valid, by a recorded key, and each key but the first was signed by the key before
 * it.
 */
export async function findBrokenSignatures(tx: Transaction): Promise<Finding> {
  const keys = await query<LogKey>(
    tx,
    `SELECT key_name, public_key, previous, signature FROM log_keys ORDER BY log_no`,
  );
  const signed = await query<Named & { line: string; name: string }>(
    tx,
    `SELECT size, c.origin, c.root, c.closes, s.line, s.key_name AS name
     FROM log_signatures s LEFT JOIN log_checkpoints c USING (size) ORDER BY size, s.key_name, s.line`,
  );
  const differences: Difference[] = keys.flatMap((key) => brokenKey(key));
  for (const each of signed) {
    const subject = checkpointTitle(each);
    if (!isTaken(each)) {
      differences.push({ subject, detail: 'has a signature, but was not taken' });
    } else if (each.line.split(' ')[1] !== each.name) {
      differences.push({ subject, detail: `has a signature line that is not of ${each.name}` });
    } else if (each.name === each.origin) {
      const known = keys.map((key) => ({ ...noteKeyOf(key), name: each.origin }));
      if (!known.some((key) => isSignedBy(each, [each.line], key))) {
        differences.push({ subject, detail: 'has a signature that is not valid' });
      }
    }
  }
  return { inspected: keys.length + signed.length, differences };
}

function brokenKey(key: LogKey): Difference[] {
  const { previous, signature } = key;
  if (previous === null || signature === null) return [];
  const vkey = vkeyOf(noteKeyOf(key));
  if (isSigned(successionOf(vkey), Buffer.from(signature, 'base64'), Buffer.from(previous, 'base64'))) return [];
  return [{ subject: `key ${vkey}`, detail: 'is not signed by the key before it' }];
}

/** Each time stamp is valid, covers its checkpoint and states the recorded time. */
export async function findBrokenTimeStamps(tx: Transaction): Promise<Finding> {
  const stamps = await query<Named & { authority: string; response: Buffer; stamped_at: string }>(
    tx,
    `SELECT size, c.origin, c.root, c.closes, s.authority, s.response, s.stamped_at
     FROM log_stamps s LEFT JOIN log_checkpoints c USING (size) ORDER BY size`,
  );
  const differences: Difference[] = [];
  for (const each of stamps) {
    const { authority, response, stamped_at } = each;
    if (!isTaken(each)) {
      differences.push({ subject: checkpointTitle(each), detail: 'has a time stamp, but was not taken' });
      continue;
    }
    const checked = await checkTimeStamp(response, bodyOf(each));
    const detail =
      'problem' in checked
        ? `has an invalid time stamp: ${authority} ${checked.problem}`
        : Date.parse(checked.stampedAt) === Date.parse(stamped_at)
          ? undefined
          : `was stamped at ${checked.stampedAt}, but is recorded as stamped at ${stamped_at}`;
    if (detail !== undefined) differences.push({ subject: checkpointTitle(each), detail });
  }
  return { inspected: stamps.length, differences };
}
