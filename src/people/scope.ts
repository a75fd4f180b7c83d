/**
 * The partners that a user may see; null means all partners, and items without a partner. In SQL: `:scope::text[] IS
 * NULL OR … = ANY (:scope)`.
 */
export type Scope = readonly string[] | null;

export const isInScope = (scope: Scope, partnerId: string) => scope === null || scope.includes(partnerId);
