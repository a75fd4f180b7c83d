/**
 * The months to export to the general ledger after their books are closed. This module reads the general ledger's
 * tables through views.
 */
import { existsSync } from 'node:fs';
import type { Environment } from '../config/environment.ts';
import { accountsFile } from '../config/fields-file.ts';
import type { Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';
import { type HandOff, readHandOffs, readUnfinishedHandOffs } from './books.sql.ts';

/**
 * The hand-offs to do. There are none without accounts.json, because finance then keeps its general ledger in a
 * different way.
 */
export async function readDueHandOffs(tx: Transaction, environment: Pick<Environment, 'home'>): Promise<HandOff[]> {
  if (!existsSync(accountsFile(environment))) return [];
  return readUnfinishedHandOffs(tx);
}

/** The exports of a month whose books are closed. A month without an export has one entry with the state `missing`. */
export async function readHandOffsOf(
  tx: Transaction,
  { environment, month }: { environment: Pick<Environment, 'home'>; month: Month },
): Promise<HandOff[]> {
  const found = await readHandOffs(tx, { month });
  return found.filter(({ state }) => state !== 'missing' || existsSync(accountsFile(environment)));
}
