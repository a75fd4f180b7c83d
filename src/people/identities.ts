/**
 * Users of an identity provider. The provider's own identifier identifies a user; a verified e-mail address can match
 * an invited user once, or create a user. Groups give roles, which are read again at each sign-in.
 */
import { execute, query, type Transaction } from '../database/transaction.ts';
import { type ActorContext, recordEvent } from './audit-events.ts';
import type { PresentRole, Role, User } from './roles.ts';
import { endSessions } from './sessions.ts';
import { insertRoles, insertUser, loginOf, ROLES_OF_USER, readActiveUser, readRolesFrom } from './users.sql.ts';
import { lockUsers } from './users.ts';

/** What the provider says about a user. */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
  readonly email: string | undefined;
  /** Verified by the provider, or by settings that trust it. */
  readonly emailVerified: boolean;
  readonly name: string | undefined;
  /** The roles that the groups give; null: only administrators grant roles. */
  readonly roles: readonly Role[] | null;
}

type IdentityContext = Pick<ActorContext, 'environment' | 'actor'>;

/** The user of an identity, created or given roles as the groups say; or why there is none. */
export async function userOfIdentity(
  tx: Transaction,
  context: IdentityContext,
  identity: Identity,
): Promise<{ readonly user: User } | { readonly reason: string }> {
  await lockUsers(tx);
  const known = (await readByIdentity(tx, identity)) ?? (await readInvited(tx, context, identity));
  if (known !== undefined && 'reason' in known) return known;
  const found = known?.login ?? (await provision(tx, context, identity));
  if (typeof found !== 'string') return found;
  await syncRoles(tx, context, found, identity.roles);
  const user = (await readActiveUser(tx, found)) as User;
  return user.roles.length > 0 ? { user } : { reason: 'your groups at the identity provider give you no role here' };
}

async function readByIdentity(tx: Transaction, { issuer, subject }: Identity): Promise<User | undefined> {
  const rows = await query<User>(
    tx,
    `SELECT u.user_id, u.kind, u.login, u.name, ${ROLES_OF_USER} AS roles
     FROM user_identities i JOIN active_users u USING (user_id) WHERE i.issuer = :issuer AND i.subject = :subject`,
    { issuer, subject },
  );
  return rows[0];
}

/** The user invited with this e-mail address, from now on linked to the identity. */
async function readInvited(
  tx: Transaction,
  context: IdentityContext,
  identity: Identity,
): Promise<User | { reason: string } | undefined> {
  const { email, emailVerified } = identity;
  const user = email === undefined ? undefined : await readActiveUser(tx, email);
  if (user === undefined) return (await hasEnded(tx, identity)) ? { reason: 'your user was deactivated' } : undefined;
  if (user.kind !== 'person') return { reason: 'this name belongs to a program' };
  if (!emailVerified) return unverified(user.login);
  // A reassigned address must not turn its new owner into this user.
  if (await hasIdentity(tx, user, identity))
    return {
      reason:
        `${user.login} is linked to another account of the identity provider. An administrator can deactivate ` +
        'that user',
    };
  await identify(tx, context, user, identity);
  return user;
}

const unverified = (email: string) => ({ reason: `the identity provider does not say that ${email} is verified` });

async function hasIdentity(tx: Transaction, { user_id: userId }: User, { issuer }: Identity): Promise<boolean> {
  const found = `SELECT FROM user_identities WHERE user_id = :userId AND issuer = :issuer`;
  return (await query(tx, found, { userId, issuer })).length > 0;
}

/** A deactivated user comes back only by invitation, not through the provider. */
async function hasEnded(tx: Transaction, { issuer, subject, email = '' }: Identity): Promise<boolean> {
  const rows = await query(
    tx,
    `SELECT FROM users u JOIN user_ends USING (user_id)
     WHERE u.login = :login
        OR EXISTS (SELECT FROM user_identities i
                   WHERE i.user_id = u.user_id AND i.issuer = :issuer AND i.subject = :subject)
     LIMIT 1`,
    { issuer, subject, login: loginOf(email) },
  );
  return rows.length > 0;
}

async function provision(
  tx: Transaction,
  context: IdentityContext,
  identity: Identity,
): Promise<string | { reason: string }> {
  const { email, emailVerified, roles, name } = identity;
  if (roles === null || roles.length === 0)
    return { reason: 'you were not invited, and your groups give you no role here' };
  if (email === undefined) return { reason: 'the identity provider names no valid e-mail address' };
  // An administrator may invite this address one day: the user must be the person who receives its mail.
  if (!emailVerified) return unverified(email);
  const login = loginOf(email);
  const now = context.environment.now().toISO();
  const details = { name: name ?? login, roles, issuer: identity.issuer };
  const eventId = await recordEvent(tx, context.actor, { action: 'user.provision', subject: login, details, now });
  const userId = await insertUser(tx, { kind: 'person', login, name: name ?? login, now, eventId });
  await insertRoles(tx, { userId, action: 'grant', roles: roles.map(ofAll), source: 'claim', now, eventId });
  await identify(tx, context, (await readActiveUser(tx, login)) as User, identity);
  return login;
}

const ofAll = (role: Role): PresentRole => ({ role, partner_id: null });

async function identify(
  tx: Transaction,
  { environment, actor }: IdentityContext,
  { user_id: userId, login }: User,
  { issuer, subject }: Identity,
): Promise<void> {
  const now = environment.now().toISO();
  const event = { action: 'user.identify', subject: login, details: { issuer, subject }, now };
  const eventId = await recordEvent(tx, actor, event);
  await execute(
    tx,
    `INSERT INTO user_identities (user_id, issuer, subject, recorded_at, event_id)
     VALUES (:userId, :issuer, :subject, :now::timestamptz, :eventId)`,
    { userId, issuer, subject, now, eventId },
  );
}

/** The groups grant and revoke only their own roles. A change ends the user's other sessions. */
async function syncRoles(
  tx: Transaction,
  { environment, actor }: IdentityContext,
  login: string,
  roles: readonly Role[] | null,
): Promise<void> {
  const { user_id: userId } = (await readActiveUser(tx, login)) as User;
  const held = await readRolesFrom(tx, { userId, source: 'claim' });
  const wanted = roles ?? [];
  const grant = wanted.filter((role) => !held.some((each) => each.role === role)).map(ofAll);
  const revoke = held.filter(({ role }) => !wanted.includes(role));
  if (grant.length + revoke.length === 0) return;
  const now = environment.now().toISO();
  const details = { granted: grant, revoked: revoke };
  const eventId = await recordEvent(tx, actor, { action: 'user.claims', subject: login, details, now });
  for (const [action, changed] of [['grant', grant] as const, ['revoke', revoke] as const]) {
    if (changed.length > 0) await insertRoles(tx, { userId, action, roles: changed, source: 'claim', now, eventId });
  }
  await endSessions(tx, { userId, now });
}
