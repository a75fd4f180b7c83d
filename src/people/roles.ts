/**
 * What a user may do: roles, each for all partners or for one. An action's description names the role it needs
 * (src/actions). Refusal: role_needed.
 */
import { refuse } from '../errors/refusals.ts';
import type { Scope } from './scope.ts';

/** A viewer can read, and so can every other role. Otherwise no role includes another. */
export const ROLES = ['viewer', 'finance', 'approver', 'administrator'] as const;
export type Role = (typeof ROLES)[number];

export interface PresentRole {
  readonly role: Role;
  /** Null for all partners. */
  readonly partner_id: string | null;
}

export interface User {
  readonly user_id: number;
  readonly kind: 'person' | 'program';
  /** The e-mail address of a person, the name of a program. */
  readonly login: string;
  readonly name: string;
  readonly roles: readonly PresentRole[];
}

/** The partners for which a user has a role; undefined without the role. */
export function scopeOf({ roles }: Pick<User, 'roles'>, role: Role): Scope | undefined {
  const partners = roles.filter((each) => role === 'viewer' || each.role === role).map(({ partner_id }) => partner_id);
  if (partners.length === 0) return undefined;
  return partners.includes(null) ? null : [...new Set(partners as string[])].sort();
}

/**
 * Stands for the partner of an item that does not exist. A role for some partners is refused as if the item belonged to
 * a different partner.
 */
export const NOBODY = '';

/** Refuses a user without this role for all of these partners; if none are given, for every partner. */
export function requireRole(user: User, role: Role, partners: readonly string[] = []): void {
  const scope = scopeOf(user, role);
  if (scope === null) return;
  if (scope !== undefined && partners.length > 0 && partners.every((each) => scope.includes(each))) return;
  throw refuse('role_needed', { login: user.login, role, some_partners: scope !== undefined });
}

/** `finance`, `viewer of p-1, viewer of p-2`. */
export const rolesInWords = (roles: readonly PresentRole[]): string =>
  [...new Set(roles.map(({ role, partner_id }) => (partner_id === null ? role : `${role} of ${partner_id}`)))].join(
    ', ',
  );
