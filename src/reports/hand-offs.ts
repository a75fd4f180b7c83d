/** What is left to hand over to the general ledger once books are closed. Its tables are the general ledger's: views say it. */
import { existsSync } from 'node:fs';
import type { Environment } from '../config/environment.ts';
import { accountsFile } from '../config/fields-file.ts';
import { query, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';

export interface HandOff {
  readonly month: Month;
  /** The program that has it; null: none does. */
  readonly format: string | null;
  /** `outdated` was exported before the books were closed, and they have changed since. */
  readonly state: 'missing' | 'preliminary' | 'outdated' | 'final';
}

/**
 * The last month whose books are closed, and every one since the first that was exported, if no program has it; and every one
 * that was exported too early. None without accounts.json: finance then keeps its general ledger by other means.
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

/** What programs have of a month whose books are closed; one that none has is `missing`. */
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
