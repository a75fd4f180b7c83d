/** Passkeys of users. The public key is a fact; its signature count is not. Refusal: passkey_refused. */
import { execute, query, queryOne, type Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { type ActorContext, recordEvent } from './audit-events.ts';
import type { User } from './roles.ts';
import { ROLES_OF_USER } from './users.sql.ts';

export interface Passkey {
  readonly passkey_id: number;
  readonly credential_id: string;
  readonly name: string;
  readonly recorded_at: string;
  readonly used_at: string | null;
}

export const readPasskeys = (tx: Transaction, userId: number): Promise<Passkey[]> =>
  query(
    tx,
    `SELECT p.passkey_id, p.credential_id, p.name, p.recorded_at, u.used_at
     FROM passkeys p LEFT JOIN passkey_uses u USING (passkey_id)
     WHERE p.user_id = :userId AND NOT EXISTS (SELECT FROM passkey_ends e WHERE e.passkey_id = p.passkey_id)
     ORDER BY p.passkey_id`,
    { userId },
  );

export async function addPasskey(
  tx: Transaction,
  { environment, actor }: ActorContext,
  given: { user: User; credentialId: string; publicKey: Uint8Array; counter: number; name: string },
): Promise<void> {
  const now = environment.now().toISO();
  const { user, credentialId, counter, name } = given;
  const event = {
    action: 'user.add_passkey',
    subject: user.login,
    details: { name, credential_id: credentialId },
    now,
  };
  const eventId = await recordEvent(tx, actor, event);
  const { passkey_id: passkeyId } = await queryOne<{ passkey_id: number }>(
    tx,
    `INSERT INTO passkeys (user_id, credential_id, public_key, name, recorded_at, event_id)
     VALUES (:userId, :credentialId, :publicKey::bytea, :name, :now::timestamptz, :eventId) RETURNING passkey_id`,
    { userId: user.user_id, credentialId, publicKey: Buffer.from(given.publicKey), name, now, eventId },
  );
  await execute(
    tx,
    `INSERT INTO passkey_uses (passkey_id, counter, used_at) VALUES (:passkeyId, :counter, :now::timestamptz)`,
    { passkeyId, counter, now },
  );
}

/** All passkeys, by user. */
export const readEverybodysPasskeys = (tx: Transaction): Promise<(Passkey & { login: string })[]> =>
  query(
    tx,
    `SELECT p.passkey_id, p.credential_id, p.name, p.recorded_at, c.used_at, u.login
     FROM passkeys p JOIN active_users u USING (user_id) LEFT JOIN passkey_uses c USING (passkey_id)
     WHERE NOT EXISTS (SELECT FROM passkey_ends e WHERE e.passkey_id = p.passkey_id)
     ORDER BY u.login, p.passkey_id`,
    {},
  );

/** Ends a passkey of this user, or of any user. Another user's or an ended one is unchanged. */
export async function removePasskey(
  tx: Transaction,
  { environment, actor }: ActorContext,
  { passkeyId, userId }: { passkeyId: number; userId: number | null },
): Promise<void> {
  const [known] = await query<Pick<Passkey, 'name' | 'credential_id'> & { login: string }>(
    tx,
    `SELECT p.name, p.credential_id, u.login FROM passkeys p JOIN users u USING (user_id)
     WHERE p.passkey_id = :passkeyId AND (:userId::bigint IS NULL OR p.user_id = :userId::bigint)
       AND NOT EXISTS (SELECT FROM passkey_ends e WHERE e.passkey_id = p.passkey_id)`,
    { passkeyId, userId },
  );
  if (known === undefined) return;
  const now = environment.now().toISO();
  const { login, ...details } = known;
  const event = { action: 'user.remove_passkey', subject: login, details, now };
  const eventId = await recordEvent(tx, actor, event);
  await execute(
    tx,
    `INSERT INTO passkey_ends (passkey_id, recorded_at, event_id) VALUES (:passkeyId, :now::timestamptz, :eventId)
     ON CONFLICT (passkey_id) DO NOTHING`,
    { passkeyId, now, eventId },
  );
}

interface KnownCredential {
  readonly passkey_id: number;
  readonly public_key: Buffer;
  readonly counter: number;
  readonly user: User;
}

/** An active user's live passkey. Locks its count: of two concurrent answers, one waits. */
export async function readCredential(tx: Transaction, credentialId: string): Promise<KnownCredential | undefined> {
  const rows = await query<Omit<KnownCredential, 'user'> & User>(
    tx,
    `SELECT p.passkey_id, p.public_key, c.counter, u.user_id, u.kind, u.login, u.name, ${ROLES_OF_USER} AS roles
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

export async function countUse(
  tx: Transaction,
  given: { passkeyId: number; counter: number; now: string },
): Promise<void> {
  const counted = await execute(
    tx,
    `UPDATE passkey_uses SET counter = :counter::bigint, used_at = :now::timestamptz
     WHERE passkey_id = :passkeyId AND (counter < :counter::bigint OR (counter = 0 AND :counter::bigint = 0))`,
    given,
  );
  if (counted !== 1) throw refuse('passkey_refused', { reason: 'it has been copied' });
}
