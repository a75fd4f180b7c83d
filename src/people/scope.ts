/** The partners that a user may see. */

/**
 * The ids of partners; null: all of them, and what has no partner. In SQL: `:scope::text[] IS NULL OR … = ANY
 * (:scope)`.
 */
export type Scope = readonly string[] | null;

export const isInScope = (scope: Scope, partnerId: string): boolean => scope === null || scope.includes(partnerId);
