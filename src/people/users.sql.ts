import { executing, query, querying, queryingFirst, queryingValue, Transaction } from '#database/transaction';
import { Limits, PresentRole, Role, User } from './roles.ts';

/** The user `u` of the surrounding query, with the current roles and limits as JSON. */
export const USER = `u.user_id, u.kind, personal(u.login) AS login, personal(u.name) AS name, coalesce((
  SELECT json_agg(DISTINCT jsonb_build_object('role', role, 'partner_id', partner_id))
  FROM present_roles r WHERE r.user_id = u.user_id), '[]') AS roles, (
  SELECT json_build_object('from', from_month, 'to', to_month, 'until', last_day)
  FROM present_user_limits l WHERE l.user_id = u.user_id) AS limits`;

export type ListedUser = User &
  Readonly<{
    recorded_at: string;
    ended_at: string | null;
    last_seen_at: string | null;
    sessions: number;
    passkeys: number;
  }>;

/** All users by login, deactivated ones last. */
export function readUsers(tx: Transaction, { login = null, now }: { login?: string | null; now: string }) {
  return query<ListedUser>(
    tx,
    `SELECT ${USER}, u.recorded_at, e.recorded_at AS ended_at,
            (SELECT max(last_seen_at) FROM sessions s WHERE s.user_id = u.user_id) AS last_seen_at,
            (SELECT count(*) FROM sessions s
             WHERE s.user_id = u.user_id AND s.ended_at IS NULL AND s.ends_at > :now) AS sessions,
            (SELECT count(*) FROM passkeys p WHERE p.user_id = u.user_id
               AND NOT EXISTS (SELECT FROM passkey_ends x WHERE x.passkey_id = p.passkey_id)) AS passkeys
     FROM users u LEFT JOIN user_ends e USING (user_id)
     WHERE :login::text IS NULL OR personal(u.login) = :login
     ORDER BY e.recorded_at IS NOT NULL, personal(u.login) COLLATE "C", u.user_id`,
    { login, now },
  );
}

/** Lowercases a login as the database does in collation C: only A to Z. */
export const loginOf = (text: string) => text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());

export async function readActiveUser(tx: Transaction, login: string) {
  const rows = await query<User>(
    tx,
    `SELECT ${USER} FROM active_users u
     WHERE u.login = :login`,
    { login: loginOf(login) },
  );
  return rows[0];
}

/** Whether there are users. After the first person was created, every command is run by one. */
export const hasUsers = queryingValue<boolean>(`SELECT EXISTS (SELECT FROM users WHERE kind = 'person') AS there`);

export const insertUser = queryingValue<
  number,
  { kind: User['kind']; login: string; name: string; now: string; eventId: number }
>(`
  INSERT INTO users (kind, login, name, follows, recorded_at, event_id)
  VALUES (:kind, :login, :name,
          (SELECT max(user_id) FROM users JOIN user_ends USING (user_id) WHERE personal(login) = :login),
          :now, :eventId)
  RETURNING user_id`);

export const insertRoles = executing<{
  userId: number;
  action: 'grant' | 'revoke';
  roles: readonly PresentRole[];
  source: 'administrator' | 'claim';
  now: string;
  eventId: number;
}>(`
  INSERT INTO user_roles (user_id, action, role, partner_id, source, recorded_at, event_id)
  SELECT :userId, :action, role, partner_id, :source, :now, :eventId
  FROM json_to_recordset(:roles::json) AS t (role text, partner_id text)`);

/** Without values, ends the limits. */
export const insertLimits = executing<Limits & { userId: number; now: string; eventId: number }>(`
  INSERT INTO user_limits (user_id, from_month, to_month, last_day, recorded_at, event_id)
  VALUES (:userId, :from, :to, :until, :now, :eventId)`);

export const readRolesFrom = querying<PresentRole, { userId: number; source: 'administrator' | 'claim' }>(
  `SELECT role, partner_id FROM present_roles WHERE user_id = :userId AND source = :source ORDER BY role, partner_id`,
);

export const insertUserEnd = executing<{ userId: number; reason: string | null; now: string; eventId: number }>(`
  INSERT INTO user_ends (user_id, reason, recorded_at, event_id)
  VALUES (:userId, :reason, :now, :eventId)`);

export const countWithRole = queryingValue<number, { role: Role }>(`
  SELECT count(DISTINCT user_id) AS users FROM present_roles JOIN users USING (user_id)
  WHERE role = :role AND partner_id IS NULL AND kind = 'person'`);

export type Assignment = Readonly<{
  item: string;
  login: string;
  name: string;
}>;

/** The current assignments. Items of a deactivated user are unassigned. */
export const readAssignments = querying<Assignment>(`
  SELECT w.item, u.login, u.name FROM present_work_assignments w JOIN active_users u USING (user_id)
  WHERE u.kind = 'person'`);

export const readByIdentity = queryingFirst<User, { issuer: string; subject: string }>(`
  SELECT ${USER}
  FROM user_identities i JOIN active_users u USING (user_id) WHERE i.issuer = :issuer AND i.subject = :subject`);

export const hasIdentity = async (tx: Transaction, given: { userId: number; issuer: string }) =>
  (await query(tx, `SELECT FROM user_identities WHERE user_id = :userId AND issuer = :issuer`, given)).length > 0;

export const insertIdentity = executing<{
  userId: number;
  issuer: string;
  subject: string;
  now: string;
  eventId: number;
}>(`
  INSERT INTO user_identities (user_id, issuer, subject, recorded_at, event_id)
  VALUES (:userId, :issuer, :subject, :now, :eventId)`);

/** A deactivated user can return only by invitation, not through the identity provider. */
export async function hasEnded(
  tx: Transaction,
  { issuer, subject, email = '' }: { issuer: string; subject: string; email: string | undefined },
) {
  const rows = await query(
    tx,
    `SELECT FROM users u JOIN user_ends USING (user_id)
     WHERE personal(u.login) = :login
        OR EXISTS (SELECT FROM user_identities i
                   WHERE i.user_id = u.user_id AND i.issuer = :issuer AND i.subject = :subject)
     LIMIT 1`,
    { issuer, subject, login: loginOf(email) },
  );
  return rows.length > 0;
}
