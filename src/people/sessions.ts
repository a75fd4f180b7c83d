/**
 * Sessions of the console: rows behind the hash of a cookie's secret. A session ends when idle for too long, some hours
 * after it began, when its user's roles change, or when someone with the right ends it. Roles are read with it, so they
 * are never stale.
 */
import { execute, query, queryOne, type Transaction } from '../database/transaction.ts';
import { type Actor, type ActorContext, type Installation, recordEvent } from './audit-events.ts';
import type { User } from './roles.ts';
import { hashOf, newSecret, SECRET } from './secrets.ts';
import { loginOf, ROLES_OF_USER } from './users.sql.ts';

export type SignInMethod = 'link' | 'passkey' | 'provider';

export interface Session {
  readonly session_id: number;
  readonly user: User;
  readonly method: SignInMethod;
  readonly last_seen_at: string;
  readonly ends_at: string;
}

export interface ListedSession {
  readonly session_id: number;
  readonly login: string;
  readonly method: SignInMethod;
  readonly network: string;
  readonly browser: string;
  readonly created_at: string;
  readonly last_seen_at: string;
  readonly ends_at: string;
}

/** How long ended sessions are kept for review. */
const KEPT_DAYS = 30;

/** Starts a session for an authenticated user. Returns the secret for the cookie. */
export async function beginSession(
  tx: Transaction,
  { actor, environment, settings }: ActorContext,
  given: { user: User; method: SignInMethod; network: string; browser: string },
): Promise<string> {
  const at = environment.now();
  const now = at.toISO();
  const { user, method, network } = given;
  const own: Actor = { ...actor, claimedBy: user.login, via: 'console', user };
  const details = { method, network };
  const eventId = await recordEvent(tx, own, { action: 'user.sign_in', subject: user.login, details, now });
  await execute(tx, `DELETE FROM sessions WHERE ends_at < :before::timestamptz`, {
    before: at.minus({ days: KEPT_DAYS }).toISO(),
  });
  const secret = newSecret();
  await execute(
    tx,
    `INSERT INTO sessions (sha256, user_id, method, network, browser, created_at, last_seen_at, ends_at, event_id)
     VALUES (:sha256, :userId, :method, :network, :browser, :now::timestamptz, :now::timestamptz, :endsAt::timestamptz,
             :eventId)`,
    {
      ...{ sha256: hashOf(secret), userId: user.user_id, method, network, browser: given.browser.slice(0, 200), now },
      ...{ endsAt: at.plus({ hours: settings.console.session_hours }).toISO(), eventId },
    },
  );
  return secret;
}

const LIVE = `s.ended_at IS NULL AND s.ends_at > :now::timestamptz AND s.last_seen_at > :idleSince::timestamptz`;

/** The session of a cookie's secret with its user and current roles, in one query; undefined if it has ended. */
export async function readSession(
  tx: Transaction,
  { secret, ...given }: { secret: string; now: string; idleSince: string },
): Promise<Session | undefined> {
  if (!SECRET.test(secret)) return undefined;
  const rows = await query<Omit<Session, 'user'> & User>(
    tx,
    `SELECT s.session_id, s.method, s.last_seen_at, s.ends_at, u.user_id, u.kind, u.login, u.name,
            ${ROLES_OF_USER} AS roles
     FROM sessions s JOIN active_users u USING (user_id) WHERE s.sha256 = :sha256 AND ${LIVE}`,
    { ...given, sha256: hashOf(secret) },
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  const { session_id, method, last_seen_at, ends_at, ...user } = row;
  return { session_id, method, last_seen_at, ends_at, user };
}

export async function touchSession(tx: Transaction, given: { sessionId: number; now: string }): Promise<void> {
  await execute(
    tx,
    `UPDATE sessions SET last_seen_at = :now::timestamptz
     WHERE session_id = :sessionId AND last_seen_at < :now::timestamptz AND ended_at IS NULL`,
    given,
  );
}

/** Ends one session of this user, or of any user, and records who did it. */
export async function endSession(
  tx: Transaction,
  { actor, environment }: Pick<ActorContext, 'actor' | 'environment'>,
  { sessionId, userId }: { sessionId: number; userId: number | null },
): Promise<void> {
  const now = environment.now().toISO();
  const [ended] = await query<{ login: string }>(
    tx,
    `UPDATE sessions s SET ended_at = :now::timestamptz FROM users u
     WHERE s.session_id = :sessionId AND u.user_id = s.user_id AND s.ended_at IS NULL
       AND (:userId::bigint IS NULL OR s.user_id = :userId::bigint)
     RETURNING u.login`,
    { sessionId, userId, now },
  );
  if (ended === undefined) return;
  await recordEvent(tx, actor, { action: 'user.sign_out', subject: ended.login, details: { sessions: 1 }, now });
}

/** Ends all sessions and links of a user. Returns how many sessions were live. */
export async function endSessions(tx: Transaction, given: { userId: number; now: string }): Promise<number> {
  await execute(tx, `DELETE FROM sign_in_links WHERE user_id = :userId AND used_at IS NULL`, given);
  const { ended } = await queryOne<{ ended: number }>(
    tx,
    `WITH ended AS (
       UPDATE sessions SET ended_at = :now::timestamptz
       WHERE user_id = :userId AND ended_at IS NULL AND ends_at > :now::timestamptz RETURNING 1)
     SELECT count(*) AS ended FROM ended`,
    given,
  );
  return ended;
}

/** After a restore: all users sign in again. */
export async function forgetSignIns(tx: Transaction): Promise<void> {
  await execute(tx, `DELETE FROM sessions`);
  await execute(tx, `DELETE FROM sign_in_links`);
  await execute(tx, `DELETE FROM sign_in_challenges`);
}

/** The live sessions, of one user if given, latest first. */
export const readSessions = (
  tx: Transaction,
  given: { login: string | null; now: string; idleSince: string },
): Promise<ListedSession[]> =>
  query(
    tx,
    `SELECT s.session_id, u.login, s.method, s.network, s.browser, s.created_at, s.last_seen_at, s.ends_at
     FROM sessions s JOIN active_users u USING (user_id)
     WHERE ${LIVE} AND (:login::text IS NULL OR u.login = :login::text)
     ORDER BY s.last_seen_at DESC, s.session_id`,
    { ...given, login: given.login === null ? null : loginOf(given.login) },
  );

/** The query parameters that define live sessions. */
export function liveAt({ environment, settings }: Installation): {
  now: string;
  idleSince: string;
} {
  const now = environment.now();
  return { now: now.toISO(), idleSince: now.minus({ minutes: settings.console.idle_minutes }).toISO() };
}
