/**
 * What is left to export to the general ledger once books are closed, read through views over the general ledger's
 * tables.
 */
import { existsSync } from 'node:fs';
import type { Environment } from '../config/environment.ts';
import { accountsFile } from '../config/fields-file.ts';
import { query, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';

export interface HandOff {
  readonly month: Month;
  /** The format it was exported in; null: none. */
  readonly format: string | null;
  /** `outdated`: exported before the books were closed, and changed since. */
  readonly state: 'missing' | 'preliminary' | 'outdated' | 'final';
}

/**
 * Unexported months: the last with closed books, and every one since the first exported; plus every month exported too
 * early. None without accounts.json: finance then keeps its general ledger by other means.
 */
export async function readDueHandOffs(tx: Transaction, environment: Pick<Environment, 'home'>): Promise<HandOff[]> {
  if (!existsSync(accountsFile(environment))) return [];
  return query(
    tx,
    `SELECT month, NULL AS format, 'missing' AS state FROM gl_unexported_months
     WHERE month = (SELECT max(month) FROM book_closes) OR month > (SELECT min(month) FROM gl_export_states)
     UNION ALL
     SELECT month, format, state FROM gl_export_states WHERE state = 'outdated'
     ORDER BY month, format`,
  );
}

/** The exports of a month with closed books; `missing` if there are none. */
export async function readHandOffsOf(
  tx: Transaction,
  { environment, month }: { environment: Pick<Environment, 'home'>; month: Month },
): Promise<HandOff[]> {
  const found = await query<HandOff>(
    tx,
    `SELECT month, format, state FROM gl_export_states WHERE month = :month
     UNION ALL
     SELECT month, NULL, 'missing' FROM gl_unexported_months WHERE month = :month
     ORDER BY format`,
    { month },
  );
  return found.filter(({ state }) => state !== 'missing' || existsSync(accountsFile(environment)));
}
