/** Passkeys of users. A public key is a fact, but its signature count is updated in place. */

import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { ActorContext, recordEvent, recordEvents } from './audit-events.ts';
import { insertPasskey, insertPasskeyEnds, readPasskeys, updatePasskeyUse } from './passkeys.sql.ts';
import { User } from './roles.ts';

export async function addPasskey(
  tx: Transaction,
  { environment, actor }: ActorContext,
  given: { user: User; credentialId: string; publicKey: Uint8Array; counter: number; name: string },
) {
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
  const added = await insertPasskey(tx, { userId: user.user_id, credentialId, publicKey, counter, name, now, eventId });
  if (added !== 1) throw refuse('passkey_refused', { reason: 'it has been registered here before' });
}

/** Ends one passkey, or all of a user; null: of any user. Returns how many ended. */
export async function removePasskeys(
  tx: Transaction,
  { environment, actor }: ActorContext,
  given: { passkeyId?: number; userId: number | null },
) {
  const known = await readPasskeys(tx, given);
  const now = environment.now().toISO();
  const events = known.map(({ login, name, credential_id }) => ({
    ...{ action: 'user.remove_passkey', subject: login, details: { name, credential_id }, now },
  }));
  const eventIds = await recordEvents(tx, actor, events);
  const passkeyIds = known.map(({ passkey_id }) => passkey_id);
  await insertPasskeyEnds(tx, { passkeyIds, eventIds, now });
  return known.length;
}

export async function countUse(tx: Transaction, given: { passkeyId: number; counter: number; now: string }) {
  if ((await updatePasskeyUse(tx, given)) !== 1) throw refuse('passkey_refused', { reason: 'it has been copied' });
}
