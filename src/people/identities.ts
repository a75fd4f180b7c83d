/**
 * Users of an identity provider, whose own identifier identifies them. A verified e-mail address can match an invited
 * user once, or create a user. The user's groups give roles, and are read again at each sign-in.
 */
import { Transaction } from '#database/transaction';
import { ActorContext, recordEvent } from './audit-events.ts';
import { PresentRole, Role, User } from './roles.ts';
import { endSessions } from './sign-in.sql.ts';
import {
  hasEnded,
  hasIdentity,
  insertIdentity,
  insertRoles,
  insertUser,
  loginOf,
  readActiveUser,
  readByIdentity,
  readRolesFrom,
} from './users.sql.ts';
import { lockUsers } from './users.ts';

export type Identity = Readonly<{
  issuer: string;
  subject: string;
  email: string | undefined;
  /** Or the settings trust the provider. */
  emailVerified: boolean;
  name: string | undefined;
  /** The roles of the user's groups; null means that only administrators grant roles. */
  roles: readonly Role[] | null;
}>;

type IdentityContext = Pick<ActorContext, 'environment' | 'actor'>;

/** The user of an identity, with the roles of its groups, created if necessary. Otherwise, why there is no user. */
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

async function readInvited(tx: Transaction, context: IdentityContext, identity: Identity) {
  const { email, emailVerified } = identity;
  const user = email === undefined ? undefined : await readActiveUser(tx, email);
  if (user === undefined) return (await hasEnded(tx, identity)) ? { reason: 'your user was deactivated' } : undefined;
  if (user.kind !== 'person') return { reason: 'this name belongs to a program' };
  if (!emailVerified) return unverified(user.login);
  // The address may have been reassigned to a different person.
  if (await hasIdentity(tx, { userId: user.user_id, issuer: identity.issuer }))
    return {
      reason:
        `${user.login} is linked to another account of the identity provider. An administrator can deactivate ` +
        'that user',
    };
  await identify(tx, context, user, identity);
  return user;
}

const unverified = (email: string) => ({ reason: `the identity provider does not say that ${email} is verified` });

async function provision(tx: Transaction, context: IdentityContext, identity: Identity) {
  const { email, emailVerified, roles, name } = identity;
  if (roles === null || roles.length === 0)
    return { reason: 'you were not invited, and your groups give you no role here' };
  if (email === undefined) return { reason: 'the identity provider names no valid e-mail address' };
  // An administrator may later invite this address, so the user must be who receives its mail.
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
) {
  const now = environment.now().toISO();
  const event = { action: 'user.identify', subject: login, details: { issuer, subject }, now };
  const eventId = await recordEvent(tx, actor, event);
  await insertIdentity(tx, { userId, issuer, subject, now, eventId });
}

/**
 * Makes a user's roles from groups equal to `roles`. Roles that an administrator granted are unchanged. A change ends
 * the user's sessions.
 */
async function syncRoles(
  tx: Transaction,
  { environment, actor }: IdentityContext,
  login: string,
  roles: readonly Role[] | null,
) {
  const { user_id: userId, limits } = (await readActiveUser(tx, login)) as User;
  const held = await readRolesFrom(tx, { userId, source: 'claim' });
  // A user with limits stays a viewer, whatever the groups give.
  const wanted = (roles ?? []).filter((role) => limits === null || role === 'viewer');
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
