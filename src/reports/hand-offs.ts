/**
 * The months that are still to be exported to the general ledger after their books are closed, read through views over
 * the general ledger's tables.
 */
import { existsSync } from 'node:fs';
import type { Environment } from '../config/environment.ts';
import { accountsFile } from '../config/fields-file.ts';
import type { Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';
import { type HandOff, readHandOffs, readUnfinishedHandOffs } from './books.sql.ts';

/**
 * Unexported months: the last with closed books, and every one since the first exported; plus every month exported too
 * early. None without accounts.json, because finance then keeps its general ledger by other means.
 */
export async function readDueHandOffs(tx: Transaction, environment: Pick<Environment, 'home'>): Promise<HandOff[]> {
  if (!existsSync(accountsFile(environment))) return [];
  return readUnfinishedHandOffs(tx);
}

/** The exports of a month with closed books; `missing` if there are none. */
export async function readHandOffsOf(
  tx: Transaction,
  { environment, month }: { environment: Pick<Environment, 'home'>; month: Month },
): Promise<HandOff[]> {
  const found = await readHandOffs(tx, month);
  return found.filter(({ state }) => state !== 'missing' || existsSync(accountsFile(environment)));
}
