/**
 * Roles of users, each for all partners or for one partner. The description of an action names the role that it needs
 * (src/actions). A viewer's access may be limited to months of the books, and end by itself.
 */
import { refuse } from '#errors/refusals';
import { Month } from '#month';
import { Period, Scope } from './scope.ts';

/** Every role can read. Apart from that, no role includes another role. */
export const ROLES = ['viewer', 'finance', 'approver', 'administrator'] as const;
export type Role = (typeof ROLES)[number];

export type PresentRole = Readonly<{
  role: Role;
  partner_id: string | null;
}>;

export type User = Readonly<{
  user_id: number;
  kind: 'person' | 'program';
  /** The e-mail address of a person, or the name of a program. */
  login: string;
  name: string;
  roles: readonly PresentRole[];
  /** Only of a viewer. */
  limits: Limits | null;
}>;

export type Limits = Readonly<{
  /** The first and the last month that the user may see; null for all. */
  from: Month | null;
  to: Month | null;
  /** The last day of the access, in the issuer's time zone. */
  until: string | null;
}>;

/** The months that a user may see. */
export const periodOf = ({ limits }: Pick<User, 'limits'>): Period =>
  limits === null || limits.from === null || limits.to === null ? null : { from: limits.from, to: limits.to };

/** Refuses a user after the last day of the access. */
export function refuseEnded({ login, limits }: Pick<User, 'login' | 'limits'>, today: string) {
  if (limits?.until != null && today > limits.until) throw refuse('access_ended', { login, until: limits.until });
}

/** The partners for which a user has a role, or undefined if the user does not have the role. */
export function scopeOf({ roles }: Pick<User, 'roles'>, role: Role): Scope | undefined {
  const partners = roles.filter((each) => role === 'viewer' || each.role === role).map(({ partner_id }) => partner_id);
  if (partners.length === 0) return undefined;
  return partners.includes(null) ? null : [...new Set(partners as string[])].sort();
}

/** Like `scopeOf`, with a second role that counts for users without the first. */
export function scopeOfEither(user: Pick<User, 'roles'>, role: Role, other: Role | undefined): Scope | undefined {
  const scope = scopeOf(user, role);
  return scope === undefined && other !== undefined ? scopeOf(user, other) : scope;
}

/**
 * The partner of an item that does not exist, so that a user with a role for some partners gets the same refusal as for
 * another partner's item.
 */
export const NOBODY = '';

/** Refuses a user without the role for all of these partners. Without `partners`, it must be for all. */
export function requireRole(user: User, role: Role, partners: readonly string[] = []) {
  const scope = scopeOf(user, role);
  if (scope === null) return;
  if (scope !== undefined && partners.length > 0 && partners.every((each) => scope.includes(each))) return;
  throw refuse('role_needed', { login: user.login, role, some_partners: scope !== undefined });
}

export const rolesInWords = (roles: readonly PresentRole[]) =>
  [...new Set(roles.map(({ role, partner_id }) => (partner_id === null ? role : `${role} of ${partner_id}`)))].join(
    ', ',
  );

export const limitsInWords = (limits: Limits | null) =>
  [
    limits?.from && (limits.from === limits.to ? limits.from : `${limits.from} to ${limits.to}`),
    limits?.until && `until ${limits.until}`,
  ]
    .filter(Boolean)
    .join(', ');

/** The roles of a user, and their limits. */
export const accessInWords = ({ roles, limits }: Pick<User, 'roles' | 'limits'>) =>
  [rolesInWords(roles), limitsInWords(limits)].filter(Boolean).join(', ');
