import { execute, executing, query, querying, queryingFirst, queryOne, Transaction } from '#database/transaction';
import { User } from './roles.ts';
import { hashOf, SECRET } from './secrets.ts';
import { loginOf, USER } from './users.sql.ts';

/** Inserts a challenge and deletes expired challenges. */
export const insertChallenge = executing<{
  sha256: string;
  kind: string;
  content: string;
  now: string;
  expiresAt: string;
}>(`
  WITH expired AS (DELETE FROM sign_in_challenges WHERE expires_at < :now)
  INSERT INTO sign_in_challenges (sha256, kind, content, expires_at)
  VALUES (:sha256, :kind, :content::jsonb, :expiresAt)`);

/** Deletes and returns an unexpired challenge. Of two concurrent calls, only one gets it. */
export const deleteChallenge = querying<
  { content: Record<string, string> },
  { sha256: string; kind: string; now: string }
>(`
  DELETE FROM sign_in_challenges WHERE sha256 = :sha256 AND kind = :kind AND expires_at > :now
  RETURNING content`);

/** Ends the session that it replaces in the same browser, and deletes those that ended before `forgetBefore`. */
export const insertSession = executing<{
  sha256: string;
  userId: number;
  method: SignInMethod;
  network: string;
  browser: string;
  now: string;
  provedAt: string;
  replacesSha256: string | null;
  endsAt: string;
  eventId: number;
  forgetBefore: string;
}>(`
  WITH old AS (DELETE FROM sessions WHERE ends_at < :forgetBefore),
  replaced AS (UPDATE sessions SET ended_at = :now
               WHERE sha256 = :replacesSha256 AND ended_at IS NULL AND ends_at >= :forgetBefore)
  INSERT INTO sessions (sha256, user_id, method, network, browser, created_at, proved_at, last_seen_at, ends_at,
                        event_id)
  VALUES (:sha256, :userId, :method, :network, :browser, :now, :provedAt, :now, :endsAt, :eventId)`);

/** Whether the user has signed in before, but not from this network. */
export async function isElsewhere(tx: Transaction, given: { userId: number; network: string }) {
  const { elsewhere } = await queryOne<{ elsewhere: boolean | null }>(
    tx,
    `SELECT bool_and(personal(details->>'network') <> :network) AS elsewhere FROM audit_events
     WHERE user_id = :userId AND action = 'user.sign_in'`,
    given,
  );
  return elsewhere === true;
}

/** Ends one session and returns its user. If `userId` is null, it may belong to any user. */
export const endSessionNumbered = querying<
  { login: string },
  { sessionId: number; userId: number | null; now: string }
>(`
  UPDATE sessions s SET ended_at = :now FROM users u
  WHERE s.session_id = :sessionId AND u.user_id = s.user_id AND s.ended_at IS NULL
    AND (:userId::bigint IS NULL OR s.user_id = :userId)
  RETURNING personal(u.login) AS login`);

type LinkToInsert = Readonly<{ sha256: string; userId: number; expiresAt: string; eventId: number }>;

export const insertLink = executing<LinkToInsert>(`
  INSERT INTO sign_in_links (sha256, user_id, expires_at, event_id)
  VALUES (:sha256, :userId, :expiresAt, :eventId)`);

/** Inserts a link. The user's earlier links end. */
export async function replaceLinks(tx: Transaction, given: LinkToInsert) {
  await execute(tx, `DELETE FROM sign_in_links WHERE user_id = :userId`, { userId: given.userId });
  await insertLink(tx, given);
}

/** The person with this login who signs in only with links: without a passkey and without an identity provider. */
export const readLinkUser = queryingFirst<User, { login: string }>(`
  SELECT ${USER} FROM active_users u
  WHERE u.login = :login AND u.kind = 'person'
    AND NOT EXISTS (SELECT FROM user_identities i WHERE i.user_id = u.user_id)
    AND NOT EXISTS (SELECT FROM passkeys p WHERE p.user_id = u.user_id
                      AND NOT EXISTS (SELECT FROM passkey_ends e WHERE e.passkey_id = p.passkey_id))`);

/** Whether the secret is that of a session of an active user, which may have ended. */
export async function wasSession(tx: Transaction, secret: string) {
  if (!SECRET.test(secret)) return false;
  const { was } = await queryOne<{ was: boolean }>(
    tx,
    `SELECT EXISTS (SELECT FROM sessions JOIN active_users USING (user_id) WHERE sha256 = :sha256) AS was`,
    { sha256: hashOf(secret) },
  );
  return was;
}

export type SignInMethod = 'link' | 'passkey' | 'provider';

export type Session = Readonly<{
  session_id: number;
  user: User;
  method: SignInMethod;
  proved_at: string;
  last_seen_at: string;
}>;

export type ListedSession = Readonly<{
  session_id: number;
  login: string;
  method: SignInMethod;
  network: string;
  browser: string;
  created_at: string;
  last_seen_at: string;
  ends_at: string;
}>;

const LIVE = `s.ended_at IS NULL AND s.ends_at > :now AND s.last_seen_at > :idleSince`;

/** The live session of a secret, with its user and current roles. */
export async function readSession(
  tx: Transaction,
  { secret, ...given }: { secret: string; now: string; idleSince: string },
): Promise<Session | undefined> {
  if (!SECRET.test(secret)) return undefined;
  const rows = await query<Omit<Session, 'user'> & User>(
    tx,
    `SELECT s.session_id, s.method, s.proved_at, s.last_seen_at, ${USER}
     FROM sessions s JOIN active_users u USING (user_id) WHERE s.sha256 = :sha256 AND ${LIVE}`,
    { ...given, sha256: hashOf(secret) },
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  const { session_id, method, proved_at, last_seen_at, ...user } = row;
  return { session_id, method, proved_at, last_seen_at, user };
}

export const touchSession = executing<{ sessionId: number; now: string }>(`
  UPDATE sessions SET last_seen_at = :now
  WHERE session_id = :sessionId AND last_seen_at < :now AND ended_at IS NULL`);

/** Ends a user's sessions and unused links. Returns the number of sessions that were live. */
export async function endSessions(tx: Transaction, given: { userId: number; now: string }) {
  await execute(tx, `DELETE FROM sign_in_links WHERE user_id = :userId AND used_at IS NULL`, given);
  const { ended } = await queryOne<{ ended: number }>(
    tx,
    `WITH ended AS (
       UPDATE sessions SET ended_at = :now
       WHERE user_id = :userId AND ended_at IS NULL AND ends_at > :now RETURNING 1)
     SELECT count(*) AS ended FROM ended`,
    given,
  );
  return ended;
}

/** Ends all sessions and links, so that all users must sign in again after a restore. */
export async function forgetSignIns(tx: Transaction) {
  await execute(tx, `DELETE FROM sessions`);
  await execute(tx, `DELETE FROM sign_in_links`);
  await execute(tx, `DELETE FROM sign_in_challenges`);
}

/** The live sessions, latest first. If `login` is null, of all users. */
export const readSessions = (
  tx: Transaction,
  given: { login: string | null; now: string; idleSince: string },
): Promise<ListedSession[]> =>
  query(
    tx,
    `SELECT s.session_id, u.login, s.method, s.network, s.browser, s.created_at, s.last_seen_at, s.ends_at
     FROM sessions s JOIN active_users u USING (user_id)
     WHERE ${LIVE} AND (:login::text IS NULL OR u.login = :login)
     ORDER BY s.last_seen_at DESC, s.session_id`,
    { ...given, login: given.login === null ? null : loginOf(given.login) },
  );

/** Uses a link and returns its user. Of two concurrent uses, only one gets the user. */
export async function takeSignInLink(tx: Transaction, given: { secret: string; now: string }) {
  if (!SECRET.test(given.secret)) return undefined;
  const rows = await query<User>(
    tx,
    `WITH used AS (
       UPDATE sign_in_links SET used_at = :now
       WHERE sha256 = :sha256 AND used_at IS NULL AND expires_at > :now RETURNING user_id)
     SELECT ${USER} FROM used JOIN active_users u USING (user_id)`,
    { sha256: hashOf(given.secret), now: given.now },
  );
  return rows[0];
}
