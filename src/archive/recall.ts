/**
 * Brings the archived rows of some quotes back into ledger_rows, because a partner wants to change the quotes. Their
 * months stay archived: the store keeps its copies, and `reckoner archive` moves the rows again when nothing needs them.
 * The rows come from files that have the SHA-256 of what was proven when their month was archived. Refusals:
 * archive_incomplete, archive_store_unknown, duckdb_missing.
 */
import type { Environment } from '../config/environment.ts';
import type { Database } from '../database/database.ts';
import { lockImporters } from '../database/ledger-lock.ts';
import type { Transaction } from '../database/transaction.ts';
import { insertRecalled, readArchiveState, readStoredFiles } from './archive.sql.ts';
import { LINE_COLUMNS } from './parquet.ts';
import { copyRows } from './rows.ts';
import type { Take } from './store.ts';

/** Returns the state of the archive in which the database has all rows of these quotes. Safe to repeat. */
export async function recallQuotes(
  database: Database,
  environment: Environment,
  { partnerId, quoteIds }: { readonly partnerId: string; readonly quoteIds: readonly string[] },
): Promise<string> {
  // Only the owner may add rows to archived months.
  return database.asOwner(async (tx) => {
    const state = await readArchiveState(tx);
    const files = await readStoredFiles(tx, { partnerIds: [partnerId] });
    const ids = quoteIds.map((id) => `${partnerId}\t${id}\n`).join('');
    const writeIds = (take: Take) => take(Buffer.from(ids));
    const found = files.length > 0 && (await copyRows(tx, environment, files, { writeIds }));
    await requireState(tx, state);
    if (found) await insertRecalled(tx, LINE_COLUMNS);
    return state;
  });
}

/** While this transaction runs, no month is archived or brought back. Throws if one was since the state was read. */
export async function requireState(tx: Transaction, state: string): Promise<void> {
  await lockImporters(tx);
  if ((await readArchiveState(tx)) !== state) throw new Error('a month was archived or brought back meanwhile');
}
