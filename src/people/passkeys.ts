/** Passkeys of users. A public key is a fact, but its signature count is updated in place. Refusal: passkey_refused. */

import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { type ActorContext, recordEvent } from './audit-events.ts';
import { insertPasskey, insertPasskeyEnd, readPasskey, updatePasskeyUse } from './passkeys.sql.ts';
import type { User } from './roles.ts';

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
  const publicKey = Buffer.from(given.publicKey);
  await insertPasskey(tx, { userId: user.user_id, credentialId, publicKey, counter, name, now, eventId });
}

/**
 * Ends a passkey. If `userId` is null, the passkey may belong to any user. Does nothing if the passkey has ended or
 * belongs to a different user.
 */
export async function removePasskey(
  tx: Transaction,
  { environment, actor }: ActorContext,
  { passkeyId, userId }: { passkeyId: number; userId: number | null },
): Promise<void> {
  const [known] = await readPasskey(tx, { passkeyId, userId });
  if (known === undefined) return;
  const now = environment.now().toISO();
  const { login, ...details } = known;
  const event = { action: 'user.remove_passkey', subject: login, details, now };
  const eventId = await recordEvent(tx, actor, event);
  await insertPasskeyEnd(tx, { passkeyId, now, eventId });
}

export async function countUse(
  tx: Transaction,
  given: { passkeyId: number; counter: number; now: string },
): Promise<void> {
  if ((await updatePasskeyUse(tx, given)) !== 1) throw refuse('passkey_refused', { reason: 'it has been copied' });
}
