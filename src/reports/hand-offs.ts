/**
 * The months to export to the general ledger after their books are closed. This module reads the general ledger's
 * tables through views.
 */
import { existsSync } from 'node:fs';
import { accountsFile } from '#config/accounts';
import { Transaction } from '#database/transaction';
import { Month } from '#month';
import { Installation } from '#people/audit-events';
import { HandOff, readHandOffs, readUnfinishedHandOffs } from './books.sql.ts';

const hasAccounts = ({ environment, settings }: Installation) =>
  settings.accounts !== undefined || existsSync(accountsFile(environment));

/**
 * The hand-offs to do. There are none without a map of accounts, because finance then keeps its general ledger in a
 * different way.
 */
export const readDueHandOffs = async (tx: Transaction, context: Installation): Promise<HandOff[]> =>
  hasAccounts(context) ? readUnfinishedHandOffs(tx) : [];

/** The exports of a month whose books are closed. A month without an export has one entry with the state `missing`. */
export async function readHandOffsOf(
  tx: Transaction,
  { month, ...context }: Installation & { readonly month: Month },
): Promise<HandOff[]> {
  const found = await readHandOffs(tx, { month });
  return found.filter(({ state }) => state !== 'missing' || hasAccounts(context));
}
