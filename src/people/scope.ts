import { Month } from '#month';

/**
 * The partners that a user may see; null means all partners, and items without a partner. In SQL: `:scope::text[] IS
 * NULL OR … = ANY (:scope)`.
 */
export type Scope = readonly string[] | null;

/** The first and the last month of the books that a user may see; null means all of the ledger. */
export type Period = { readonly from: Month; readonly to: Month } | null;

export const isInPeriod = (period: Period, month: string) =>
  period === null || (period.from <= month && month <= period.to);

export const isInScope = (scope: Scope, partnerId: string) => scope === null || scope.includes(partnerId);
