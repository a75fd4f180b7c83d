import { executing, query, Transaction } from '#database/transaction';
import { User } from './roles.ts';
import { USER } from './users.sql.ts';

/** Inserts one row, or none if the credential is known, also of another user. */
export const insertPasskey = executing<{
  userId: number;
  credentialId: string;
  publicKey: Buffer;
  counter: number;
  name: string;
  now: string;
  eventId: number;
}>(`
  WITH added AS (
    INSERT INTO passkeys (user_id, credential_id, public_key, name, recorded_at, event_id)
    VALUES (:userId, :credentialId, :publicKey, :name, :now, :eventId)
    ON CONFLICT ON CONSTRAINT passkey_once DO NOTHING RETURNING passkey_id
  ) INSERT INTO passkey_uses (passkey_id, counter, used_at)
  SELECT passkey_id, :counter, :now FROM added`);

export const insertPasskeyEnds = executing<{
  passkeyIds: readonly number[];
  eventIds: readonly number[];
  now: string;
}>(`
  INSERT INTO passkey_ends (passkey_id, recorded_at, event_id)
  SELECT passkey_id, :now, event_id
  FROM unnest(:passkeyIds::bigint[], :eventIds::bigint[]) AS ended (passkey_id, event_id)
  ON CONFLICT (passkey_id) DO NOTHING`);

/** Updates one row, or none if the counter has not increased, which indicates a copied passkey. */
export const updatePasskeyUse = executing<{ passkeyId: number; counter: number; now: string }>(`
  UPDATE passkey_uses SET counter = :counter, used_at = :now
  WHERE passkey_id = :passkeyId AND (counter < :counter OR (counter = 0 AND :counter::bigint = 0))`);

export type Passkey = Readonly<{
  passkey_id: number;
  credential_id: string;
  name: string;
  recorded_at: string;
  used_at: string | null;
  login: string;
}>;

/** The passkeys of all active users, or of one, that have not ended. */
export const readPasskeys = (
  tx: Transaction,
  { passkeyId = null, userId = null }: { passkeyId?: number | null; userId?: number | null },
): Promise<Passkey[]> =>
  query(
    tx,
    `SELECT p.passkey_id, p.credential_id, personal(p.name) AS name, p.recorded_at, c.used_at, u.login
     FROM passkeys p JOIN active_users u USING (user_id) LEFT JOIN passkey_uses c USING (passkey_id)
     WHERE (:passkeyId::bigint IS NULL OR p.passkey_id = :passkeyId)
       AND (:userId::bigint IS NULL OR p.user_id = :userId)
       AND NOT EXISTS (SELECT FROM passkey_ends e WHERE e.passkey_id = p.passkey_id)
     ORDER BY u.login, p.passkey_id`,
    { passkeyId, userId },
  );

type KnownCredential = Readonly<{
  passkey_id: number;
  public_key: Buffer;
  counter: number;
  user: User;
}>;

/** A passkey of an active user. Locks its signature count, so that the second of two concurrent answers waits. */
export async function readCredential(tx: Transaction, credentialId: string): Promise<KnownCredential | undefined> {
  const rows = await query<Omit<KnownCredential, 'user'> & User>(
    tx,
    `SELECT p.passkey_id, p.public_key, c.counter, ${USER}
     FROM passkeys p JOIN passkey_uses c USING (passkey_id) JOIN active_users u USING (user_id)
     WHERE p.credential_id = :credentialId
       AND NOT EXISTS (SELECT FROM passkey_ends e WHERE e.passkey_id = p.passkey_id)
     FOR UPDATE OF c`,
    { credentialId },
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  const { passkey_id, public_key, counter, ...user } = row;
  return { passkey_id, public_key, counter, user };
}
