/** One-time sign-in links, for a new user or one without a passkey at hand. */
import { execute, query, type Transaction } from '../database/transaction.ts';
import type { Installation } from './audit-events.ts';
import type { User } from './roles.ts';
import { hashOf, newSecret, SECRET } from './secrets.ts';
import { ROLES_OF_USER } from './users.sql.ts';

export interface MadeLink {
  /** Shown once; its hash is stored. */
  readonly secret: string;
  readonly expires_at: string;
}

/** When a link made now expires. */
export const linkEnd = ({ environment, settings }: Installation): string =>
  environment.now().plus({ hours: settings.console.link_hours }).toUTC().toISO();

/** Makes a link for an event; the user's earlier ones expire. */
export async function insertSignInLink(
  tx: Transaction,
  context: Installation,
  { user: { user_id: userId }, eventId }: { user: User; eventId: number },
): Promise<MadeLink> {
  const secret = newSecret();
  const expires_at = linkEnd(context);
  await execute(tx, `DELETE FROM sign_in_links WHERE user_id = :userId`, { userId });
  await execute(
    tx,
    `INSERT INTO sign_in_links (sha256, user_id, expires_at, event_id)
     VALUES (:sha256, :userId, :expiresAt::timestamptz, :eventId)`,
    { sha256: hashOf(secret), userId, expiresAt: expires_at, eventId },
  );
  return { secret, expires_at };
}

/** The user of a usable link; otherwise undefined. */
export async function readSignInLink(
  tx: Transaction,
  given: { secret: string; now: string },
): Promise<User | undefined> {
  if (!SECRET.test(given.secret)) return undefined;
  const rows = await query<User>(
    tx,
    `SELECT u.user_id, u.kind, u.login, u.name, ${ROLES_OF_USER} AS roles
     FROM sign_in_links l JOIN active_users u USING (user_id)
     WHERE l.sha256 = :sha256 AND l.used_at IS NULL AND l.expires_at > :now::timestamptz`,
    { sha256: hashOf(given.secret), now: given.now },
  );
  return rows[0];
}

/** Uses a link up. Of two concurrent uses, one gets the user. */
export async function takeSignInLink(
  tx: Transaction,
  given: { secret: string; now: string },
): Promise<User | undefined> {
  const user = await readSignInLink(tx, given);
  if (user === undefined) return undefined;
  const used = await execute(
    tx,
    `UPDATE sign_in_links SET used_at = :now::timestamptz WHERE sha256 = :sha256 AND used_at IS NULL`,
    { sha256: hashOf(given.secret), now: given.now },
  );
  return used === 1 ? user : undefined;
}
