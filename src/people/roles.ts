/**
 * Roles of users, each for all partners or for one partner. The description of an action names the role that it needs
 * (src/actions). Refusal: role_needed.
 */
import { refuse } from '#errors/refusals';
import { Scope } from './scope.ts';

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
}>;

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
