/**
 * Signs checkpoints and has them stamped, after the transaction that took them. If the key is missing or the authority
 * is unreachable, the run continues, and the next run tries again.
 */
import { KeyObject, sign } from 'node:crypto';
import { Environment } from '#config/environment';
import { LogKey as SigningKey } from '#config/log-key';
import { Database } from '#database/database';
import { lockLedgerShared } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { ActorContext, Installation, recordEvent } from '#people/audit-events';
import { lockLog, readOrigin } from './checkpoints.sql.ts';
import { keepHead } from './head.ts';
import { bodyOf, NoteKey, signHead, TreeHead, vkeyOf } from './note.ts';
import {
  insertKey,
  insertSignatures,
  insertStamp,
  noteKeyOf,
  readLatestKey,
  readUnsigned,
  readUnsignedBefore,
  readUnstamped,
  readUnstampedBefore,
} from './signatures.sql.ts';
import { requestTimeStamp } from './time-stamp.ts';

/** Signs every unsigned checkpoint of the log if a key is available. Keeps the last checkpoint outside the database. */
export async function signCheckpoints(context: ActorContext & { readonly database: Database }) {
  const { database, environment } = context;
  await signUnsigned(context);
  await database.reading((tx) => keepHead(tx, environment));
}

async function signUnsigned({ database, ...context }: ActorContext & { readonly database: Database }) {
  const { logKey } = context.environment;
  if (logKey === undefined) return;
  const { origin, unsigned } = await database.reading(async (tx) => {
    const name = await readOrigin(tx);
    return { origin: name, unsigned: await readUnsigned(tx, { origin: name }) };
  });
  if (unsigned.length === 0) return;
  await database.transaction(async (tx) => {
    // Two runs that sign at the same time must not both record the key.
    await lockLedgerShared(tx);
    await lockLog(tx);
    const key = { name: origin, publicKey: logKey.publicKey };
    await recordKey(tx, context, key);
    const signatures = unsigned.map((head) => ({
      ...{ size: head.size, key_name: origin, line: signHead(head, key, logKey.privateKey) },
    }));
    await insertSignatures(tx, signatures, context.environment.now().toISO());
  });
}

/**
 * Records a key that signs for the first time. The previous key signs the new key. If the previous key is not
 * available, the fact states this, and auditors ask for the reason.
 */
async function recordKey(tx: Transaction, { environment, actor }: ActorContext, key: NoteKey) {
  const latest = await readLatestKey(tx);
  const public_key = key.publicKey.toString('base64');
  if (latest?.public_key === public_key) return;
  const now = environment.now().toISO();
  const vkey = vkeyOf(key);
  const previous = latest === undefined ? null : vkeyOf(noteKeyOf(latest));
  const details = { key: vkey, previous };
  const eventId = await recordEvent(tx, actor, { action: 'signing_key.change', subject: key.name, details, now });
  const signature = latest && signatureBy(environment.logKeyBefore, latest.public_key, vkey);
  const reason = latest !== undefined && signature === undefined ? 'the previous key is lost' : '';
  await insertKey(tx, {
    ...{ key_name: key.name, public_key, previous: latest?.public_key ?? null, signature: signature ?? null },
    ...{ reason, now, eventId },
  });
}

/** The content that the previous key signs: the verifier key of the next key, and a line end. */
export const successionOf = (vkey: string): Buffer => Buffer.from(`${vkey}\n`);

function signatureBy(key: SigningKey | undefined, publicKey: string, vkey: string) {
  if (key === undefined || key.publicKey.toString('base64') !== publicKey) return undefined;
  const privateKey: KeyObject = key.privateKey;
  return sign(null, successionOf(vkey), privateKey).toString('base64');
}

/**
 * Requests a time stamp for every checkpoint without one. Stops after the first failure, so that the run waits only
 * once for an authority that does not answer.
 */
export async function stampCheckpoints(
  { database, settings }: ActorContext & { readonly database: Database },
  onFailed: (head: TreeHead, reason: string) => void = () => {},
) {
  const authority = settings.time_stamping_url;
  if (authority === '') return;
  for (const head of await database.reading(readUnstamped)) {
    const answer = await requestTimeStamp(authority, bodyOf(head));
    if ('problem' in answer) return onFailed(head, `${authority} ${answer.problem}`);
    await database.transaction((tx) => insertStamp(tx, { size: head.size, authority, ...answer }));
  }
}

/**
 * A checkpoint is normally signed and stamped within minutes. A checkpoint that is not signed and stamped after this
 * time needs attention.
 */
const LATE_HOURS = 24;

/** The sizes of the checkpoints that should be signed, and of the checkpoints that should be stamped, oldest first. */
export async function readLateSignatures(
  tx: Transaction,
  { environment, settings }: Installation,
): Promise<Readonly<{ unsigned: readonly number[]; unstamped: readonly number[] }>> {
  const before = environment.now().minus({ hours: LATE_HOURS }).toISO();
  const isSigning = environment.logKey !== undefined || (await readLatestKey(tx)) !== undefined;
  const unsigned = isSigning ? await readUnsignedBefore(tx, { before }) : [];
  const unstamped = settings.time_stamping_url === '' ? [] : await readUnstampedBefore(tx, { before });
  return { unsigned: unsigned.map(({ size }) => size), unstamped: unstamped.map(({ size }) => size) };
}

export interface SigningStatus {
  /** The verifier key of the available key, or null if there is none. */
  readonly key: string | null;
  /** The verifier key of the key that was recorded last, or null before the first key. */
  readonly latest: string | null;
}

export async function readSigning(tx: Transaction, { logKey }: Pick<Environment, 'logKey'>): Promise<SigningStatus> {
  const latest = await readLatestKey(tx);
  const name = await readOrigin(tx);
  return {
    key: logKey === undefined ? null : vkeyOf({ name, publicKey: logKey.publicKey }),
    latest: latest === undefined ? null : vkeyOf(noteKeyOf(latest)),
  };
}
