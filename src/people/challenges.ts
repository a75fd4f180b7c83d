/** Challenges of sign-ins in progress. A challenge can be answered once, by the browser that has its cookie. */

import { Transaction } from '#database/transaction';
import { ActorContext } from './audit-events.ts';
import { hashOf, newSecret, SECRET } from './secrets.ts';
import { deleteChallenge, insertChallenge } from './sign-in.sql.ts';

type ChallengeKind = 'passkey' | 'new_passkey' | 'provider' | 'link';

const MINUTES = 15;

/** Stores what the answer is compared with. Returns the secret for the browser's cookie. */
export async function keepChallenge(
  tx: Transaction,
  { environment }: Pick<ActorContext, 'environment'>,
  given: { kind: ChallengeKind; content: Readonly<Record<string, string>> },
) {
  const now = environment.now();
  const secret = newSecret();
  await insertChallenge(tx, {
    ...{ sha256: hashOf(secret), kind: given.kind, content: JSON.stringify(given.content) },
    ...{ now: now.toISO(), expiresAt: now.plus({ minutes: MINUTES }).toISO() },
  });
  return secret;
}

/** Returns and deletes the stored data; undefined if there is none or it has expired. */
export async function takeChallenge(
  tx: Transaction,
  { environment }: Pick<ActorContext, 'environment'>,
  { secret, kind }: { secret: string | undefined; kind: ChallengeKind },
): Promise<Readonly<Record<string, string>> | undefined> {
  if (secret === undefined || !SECRET.test(secret)) return undefined;
  const [taken] = await deleteChallenge(tx, { sha256: hashOf(secret), kind, now: environment.now().toISO() });
  return taken?.content;
}
