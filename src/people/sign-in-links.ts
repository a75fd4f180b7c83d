import type { Transaction } from '../database/transaction.ts';
import type { Installation } from './audit-events.ts';
import type { User } from './roles.ts';
import { hashOf, newSecret } from './secrets.ts';
import { insertLink } from './sign-in.sql.ts';

export type MadeLink = Readonly<{
  /** Shown once. Only its hash is stored. */
  secret: string;
  expires_at: string;
}>;

export const linkEnd = ({ environment, settings }: Installation): string =>
  environment.now().plus({ hours: settings.console.link_hours }).toUTC().toISO();

/** Creates a sign-in link that works once. The user's earlier links expire. */
export async function insertSignInLink(
  tx: Transaction,
  context: Installation,
  { user: { user_id: userId }, eventId }: { user: User; eventId: number },
): Promise<MadeLink> {
  const secret = newSecret();
  const expires_at = linkEnd(context);
  await insertLink(tx, { sha256: hashOf(secret), userId, expiresAt: expires_at, eventId });
  return { secret, expires_at };
}
