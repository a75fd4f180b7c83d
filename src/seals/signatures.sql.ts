/** SQL of the signatures and time stamps of seals. */
import { execute, query, type Transaction } from '../database/transaction.ts';

export type SealKind = 'month' | 'books' | 'checkpoint';

/** The subject of a seal: its kind, and the month or the number of the checkpoint. */
export interface SealName {
  readonly kind: SealKind;
  readonly name: string;
}

/** A signature as stored: Base64 without the key id. */
export interface SealSignature {
  readonly key_name: string;
  readonly public_key: string;
  readonly signature: string;
}

/** The public half of a key. */
export type SigningKey = Pick<SealSignature, 'key_name' | 'public_key'>;

export const insertSignature = (
  tx: Transaction,
  given: {
    kind: string;
    name: string;
    seal: string;
    key_name: string;
    public_key: string;
    signature: string;
    now: string;
    eventId: number;
  },
): Promise<number> =>
  execute(
    tx,
    `INSERT INTO seal_signatures (kind, name, seal, key_name, public_key, signature, signed_at, event_id)
     VALUES (:kind, :name, :seal, :key_name, :public_key, :signature, :now::timestamptz, :eventId)`,
    given,
  );

/** The key of the latest signature; undefined before the first. */
export async function readLatestKey(tx: Transaction): Promise<SigningKey | undefined> {
  const [latest] = await query<SigningKey>(
    tx,
    `SELECT key_name, public_key FROM seal_signatures ORDER BY fact_id DESC LIMIT 1`,
  );
  return latest;
}

/** The signature of a seal, and whether it is the first by its key. Undefined if the seal has none. */
export async function readSignature(
  tx: Transaction,
  { kind, name }: SealName,
): Promise<(SealSignature & { readonly previous_key: string | null }) | undefined> {
  const [signature] = await query<SealSignature & { previous_key: string | null }>(
    tx,
    `SELECT key_name, public_key, signature,
            (SELECT before.public_key FROM seal_signatures before WHERE before.fact_id < s.fact_id
             ORDER BY before.fact_id DESC LIMIT 1) AS previous_key
     FROM seal_signatures s WHERE kind = :kind AND name = :name`,
    { kind, name },
  );
  return signature;
}

export interface UnstampedSeal extends SealName {
  readonly seal: string;
  readonly record: string;
}

/** The most stamps that one run requests, oldest seal first. */
const AT_ONCE = 50;

const UNSTAMPED = `FROM every_seal m
  WHERE NOT EXISTS (SELECT FROM seal_time_stamps s WHERE s.kind = m.kind AND s.name = m.name)`;

export const readUnstamped = (tx: Transaction): Promise<UnstampedSeal[]> =>
  query(tx, `SELECT kind, name, seal, record ${UNSTAMPED} ORDER BY facts_to LIMIT ${AT_ONCE}`);

export const insertTimeStamp = (
  tx: Transaction,
  given: {
    kind: string;
    name: string;
    seal: string;
    authority: string;
    response: Buffer;
    stampedAt: string;
    now: string;
    eventId: number;
  },
): Promise<number> =>
  execute(
    tx,
    `INSERT INTO seal_time_stamps (kind, name, seal, authority, response, stamped_at, recorded_at, event_id)
     VALUES (:kind, :name, :seal, :authority, :response, :stampedAt::timestamptz, :now::timestamptz, :eventId)`,
    given,
  );

/** The authority's answer for a seal; undefined if it has no stamp. */
export async function readTimeStamp(tx: Transaction, { kind, name }: SealName): Promise<Buffer | undefined> {
  const [stamp] = await query<{ response: Buffer }>(
    tx,
    `SELECT response FROM seal_time_stamps WHERE kind = :kind AND name = :name`,
    { kind, name },
  );
  return stamp?.response;
}

/** The seals made before an instant that have no stamp, in the order in which they were made. */
export const readUnstampedSince = (tx: Transaction, since: string): Promise<SealName[]> =>
  query(tx, `SELECT kind, name ${UNSTAMPED} AND sealed_at < :since::timestamptz ORDER BY facts_to`, { since });
