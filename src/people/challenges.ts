/** Challenges of sign-ins under way. Each is answered once, by the browser that has its cookie. */
import { execute, query, type Transaction } from '../database/transaction.ts';
import type { ActorContext } from './audit-events.ts';
import { hashOf, newSecret, SECRET } from './secrets.ts';

type ChallengeKind = 'passkey' | 'new_passkey' | 'provider';

const MINUTES = 10;

/** Stores what to compare the answer with. Returns the secret for the browser's cookie. */
export async function keepChallenge(
  tx: Transaction,
  { environment }: Pick<ActorContext, 'environment'>,
  given: { kind: ChallengeKind; content: Readonly<Record<string, string>> },
): Promise<string> {
  const now = environment.now();
  await execute(tx, `DELETE FROM sign_in_challenges WHERE expires_at < :now::timestamptz`, { now: now.toISO() });
  const secret = newSecret();
  await execute(
    tx,
    `INSERT INTO sign_in_challenges (sha256, kind, content, expires_at)
     VALUES (:sha256, :kind, :content::jsonb, :expiresAt::timestamptz)`,
    {
      ...{ sha256: hashOf(secret), kind: given.kind, content: JSON.stringify(given.content) },
      expiresAt: now.plus({ minutes: MINUTES }).toISO(),
    },
  );
  return secret;
}

/** Takes what was stored, once; undefined if there is none or it has expired. */
export async function takeChallenge(
  tx: Transaction,
  { environment }: Pick<ActorContext, 'environment'>,
  { secret, kind }: { secret: string | undefined; kind: ChallengeKind },
): Promise<Readonly<Record<string, string>> | undefined> {
  if (secret === undefined || !SECRET.test(secret)) return undefined;
  const rows = await query<{ content: Record<string, string> }>(
    tx,
    `DELETE FROM sign_in_challenges WHERE sha256 = :sha256 AND kind = :kind AND expires_at > :now::timestamptz
     RETURNING content`,
    { sha256: hashOf(secret), kind, now: environment.now().toISO() },
  );
  return rows[0]?.content;
}
