/**
 * Users, their roles and their deactivation. The first one is created from the shell; after that, every action is done
 * by an active user. Refusals: argument_invalid, user_unknown, user_exists, user_ended, role_needed, role_unchanged,
 * last_administrator, limits_of_viewers_only.
 */

import { isDeepStrictEqual } from 'node:util';
import { todayOf } from '#config/today';
import { LOCKS, takeLock } from '#database/locks';
import { setLocally, Transaction } from '#database/transaction';
import { refuse, refuseField } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { Actor, ActorContext, recordEvent, thisProcess } from './audit-events.ts';
import { readPasskeys } from './passkeys.sql.ts';
import { removePasskeys } from './passkeys.ts';
import { Limits, PresentRole, Role, refuseEnded, requireRole, User } from './roles.ts';
import { endSessions } from './sign-in.sql.ts';
import { insertSignInLink, linkEnd, MadeLink } from './sign-in-links.ts';
import {
  countWithRole,
  hasUsers,
  insertLimits,
  insertRoles,
  insertUser,
  insertUserEnd,
  loginOf,
  readActiveUser,
  readRolesFrom,
  readUsers,
} from './users.sql.ts';

/** The user of unattended work, created together with the first person. */
const CRON = 'cron';

/** Records all later events of this transaction as events of this user. */
export async function actAs(tx: Transaction, { user }: Actor) {
  if (user === undefined) return;
  await setLocally(tx, 'reckoner.user_id', String(user.user_id));
}

/**
 * Adds the acting user: an active one, if the installation has users. Unattended work runs as `cron` unless it names
 * one.
 */
export async function identify(
  tx: Transaction,
  actor: Actor,
  { login, unattended }: { login: string | undefined; unattended: boolean },
) {
  if (!(await hasUsers(tx))) return actor;
  const given = login ?? (unattended ? CRON : undefined);
  const user = given === undefined ? undefined : await readActiveUser(tx, given);
  if (user === undefined) throw refuse('user_unknown', { login: given ?? null, acting: true });
  return { ...actor, claimedBy: actor.claimedBy ?? user.login, user };
}

/** The actor of work that the process itself starts, such as after a processor event: the user `cron`. */
export const actingByItself = (tx: Transaction, via: Actor['via']) =>
  identify(tx, thisProcess(via), { login: undefined, unattended: true });

/**
 * Like `identify`, for what anyone with shell access may do: a restore, a migration, a backup. A known caller is named.
 */
export async function identifyIfKnown(tx: Transaction, actor: Actor, login: string | undefined) {
  const user = await readActiveUser(tx, login ?? CRON);
  return user === undefined ? actor : { ...actor, claimedBy: actor.claimedBy ?? user.login, user };
}

type Invitation = Readonly<{
  login: string;
  name: string | undefined;
  roles: readonly Role[];
  partnerId: string | undefined;
  limits?: Limits | null;
}>;

export type InvitedUser = Readonly<{
  user: User;
  link: MadeLink;
}>;

export async function inviteUser(tx: Transaction, context: ActorContext, given: Invitation): Promise<InvitedUser> {
  await lockUsers(tx);
  const isFirst = !(await hasUsers(tx));
  if (!isFirst) await mayManage(tx, context);
  const { actor, environment } = context;
  const login = loginOf(given.login);
  if ((await readActiveUser(tx, login)) !== undefined) throw refuse('user_exists', { login });
  const partner_id = given.partnerId ?? null;
  const named: readonly Role[] = given.roles.length > 0 ? given.roles : [isFirst ? 'administrator' : 'viewer'];
  const roles = [...new Set(named)].map((role): PresentRole => ({ role, partner_id }));
  const now = environment.now().toISO();
  const name = given.name ?? login;
  const { limits = null } = given;
  const details = { name, roles, ...(limits && { limits }) };
  const eventId = await recordEvent(tx, actor, { action: 'user.invite', subject: login, details, now });
  if (isFirst) await insertUser(tx, { kind: 'program', login: CRON, name: 'Scheduled jobs', now, eventId });
  const userId = await insertUser(tx, { kind: 'person', login, name, now, eventId });
  await insertRoles(tx, { userId, action: 'grant', roles, source: 'administrator', now, eventId });
  if (limits !== null) await insertLimits(tx, { userId, ...limits, now, eventId });
  failpoint('user.invited');
  const user = await readChanged(tx, login);
  return { user, link: await insertSignInLink(tx, context, { user, eventId }) };
}

/** Creates another sign-in link. The user's earlier links expire. */
export async function linkUser(tx: Transaction, context: ActorContext, given: { login: string }): Promise<InvitedUser> {
  await lockUsers(tx);
  await mayManage(tx, context);
  const user = await userNamed(tx, context, given.login);
  const { login } = user;
  refuseEnded(user, todayOf(context));
  if (user.kind === 'program') throw refuseField('login', login, 'is a program and cannot sign in');
  const details = { expires_at: linkEnd(context) };
  const now = context.environment.now().toISO();
  const eventId = await recordEvent(tx, context.actor, { action: 'user.link', subject: login, details, now });
  return { user, link: await insertSignInLink(tx, context, { user, eventId }) };
}

type RoleChange = Readonly<{
  login: string;
  grant: readonly PresentRole[];
  revoke: readonly PresentRole[];
  /** Those of the user's limits that change; null ends all. */
  limits?: Partial<Limits> | null;
}>;

/** Grants and revokes roles, and changes limits. The user's sessions end, so that none keeps what was revoked. */
export async function changeRoles(tx: Transaction, context: ActorContext, given: RoleChange) {
  await lockUsers(tx);
  await mayManage(tx, context);
  const user = await userNamed(tx, context, given.login);
  const { user_id: userId, login } = user;
  const given_ = await readRolesFrom(tx, { userId, source: 'administrator' });
  const has = ({ role, partner_id }: PresentRole) =>
    given_.some((each) => each.role === role && each.partner_id === partner_id);
  const grant = given.grant.filter((role) => !has(role));
  const revoke = given.revoke.filter(has);
  const missing = given.revoke.find((role) => !has(role));
  if (missing !== undefined) throw refuse('role_unchanged', { login, ...missing });
  const before = user.limits ?? NO_LIMITS;
  const wanted = given.limits === null ? NO_LIMITS : { ...before, ...given.limits };
  const limits = isDeepStrictEqual(wanted, before) ? undefined : wanted;
  if (grant.length + revoke.length === 0 && limits === undefined) return user;
  const now = context.environment.now().toISO();
  const details = { granted: grant, revoked: revoke, ...(limits && { limits }) };
  const eventId = await recordEvent(tx, context.actor, { action: 'user.role', subject: login, details, now });
  const insert = (action: 'grant' | 'revoke', roles: readonly PresentRole[]) =>
    roles.length > 0 && insertRoles(tx, { userId, action, roles, source: 'administrator', now, eventId });
  // In this order, the user never has limits and another role than viewer.
  await insert('revoke', revoke);
  if (limits !== undefined) await insertLimits(tx, { userId, ...limits, now, eventId });
  await insert('grant', grant);
  failpoint('user.role_changed');
  if (revoke.length > 0) await refuseWithoutAdministrator(tx, login);
  await endSessions(tx, { userId, now });
  return readChanged(tx, login);
}

/** Reads the changed user. The database refuses limits of other roles, too. */
async function readChanged(tx: Transaction, login: string) {
  const user = (await readActiveUser(tx, login)) as User;
  const other = user.limits === null ? undefined : user.roles.find(({ role }) => role !== 'viewer');
  if (other !== undefined) throw refuse('limits_of_viewers_only', { login, role: other.role });
  return user;
}

const NO_LIMITS: Limits = { from: null, to: null, until: null };

/** Ends a user for good, with roles, sessions and links. The same login can be invited again, as a new user. */
export async function deactivateUser(
  tx: Transaction,
  context: ActorContext,
  given: { login: string; reason: string | null },
) {
  await lockUsers(tx);
  await mayManage(tx, context);
  const user = await userNamed(tx, context, given.login);
  const { user_id: userId, login } = user;
  // Without the user `cron`, no job could run.
  if (user.kind === 'program') throw refuseField('login', login, "is the jobs' user and cannot be deactivated");
  const now = context.environment.now().toISO();
  const details = { reason: given.reason };
  const eventId = await recordEvent(tx, context.actor, { action: 'user.deactivate', subject: login, details, now });
  await insertUserEnd(tx, { userId, reason: given.reason, now, eventId });
  failpoint('user.deactivated');
  await refuseWithoutAdministrator(tx, login);
  await endSessions(tx, { userId, now });
  return user;
}

export type SignedOut = Readonly<{
  sessions: number;
  passkeys_ended: number;
  passkeys_left: number;
}>;

/** Ends a user's sessions and, if wanted, passkeys. Only the user and administrators may. */
export async function signOutUser(
  tx: Transaction,
  context: ActorContext,
  { login, passkeys = false }: { login: string; passkeys?: boolean | undefined },
): Promise<SignedOut> {
  const user = await userNamed(tx, context, login);
  if (context.actor.user?.user_id !== user.user_id) await mayManage(tx, context);
  const now = context.environment.now().toISO();
  const ended = await endSessions(tx, { userId: user.user_id, now });
  if (ended > 0) {
    const event = { action: 'user.sign_out', subject: user.login, details: { sessions: ended }, now };
    await recordEvent(tx, context.actor, event);
  }
  const { user_id: userId } = user;
  const passkeys_ended = passkeys ? await removePasskeys(tx, context, { userId }) : 0;
  return { sessions: ended, passkeys_ended, passkeys_left: (await readPasskeys(tx, { userId })).length };
}

/** The active user with this login. */
export async function userNamed(tx: Transaction, { environment }: Pick<ActorContext, 'environment'>, login: string) {
  const user = await readActiveUser(tx, login);
  if (user !== undefined) return user;
  const [ended] = await readUsers(tx, { login: loginOf(login), now: environment.now().toISO() });
  if (ended?.ended_at != null) throw refuse('user_ended', { login: ended.login, ended_at: ended.ended_at });
  throw refuse('user_unknown', { login, acting: false });
}

/** If there is none, because an identity provider revoked the role, anyone with shell access may create one. */
async function mayManage(tx: Transaction, context: Pick<ActorContext, 'actor'>) {
  const { user } = context.actor;
  if (user === undefined) throw refuse('user_unknown', { login: null, acting: true });
  if (!(await isShellWithoutAdministrator(tx, context))) requireRole(user, 'administrator');
}

export const isShellWithoutAdministrator = async (tx: Transaction, { actor }: Pick<ActorContext, 'actor'>) =>
  actor.via === 'command' && (await countWithRole(tx, { role: 'administrator' })) === 0;

async function refuseWithoutAdministrator(tx: Transaction, login: string) {
  if ((await countWithRole(tx, { role: 'administrator' })) === 0) throw refuse('last_administrator', { login });
}

/** Makes concurrent changes of users wait, because each counts the remaining administrators. */
export const lockUsers = (tx: Transaction) => takeLock(tx, LOCKS.users);
