/**
 * Creates indexes after the rows during a restore: sorting a million keys takes a third of the time of inserting them
 * one by one.
 */
import { quoted } from './backup.ts';
import { execute, query, Transaction } from './transaction.ts';

/** The table that has by far the most rows. No trigger queries single rows of this table while rows are inserted. */
const LARGEST = 'ledger_rows';

/**
 * Fills a table. The largest table is filled without indexes, except the indexes of constraints: foreign keys refer to
 * the primary key. Recreating a unique index checks all rows, and a duplicate makes the transaction fail.
 */
export async function fillTable(tx: Transaction, table: string, fill: () => Promise<unknown>) {
  const indexes =
    table === LARGEST
      ? await query<{ name: string; definition: string }>(
          tx,
          `SELECT c.relname AS name, pg_get_indexdef(c.oid) AS definition
           FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
           WHERE i.indrelid = to_regclass(:table) AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = c.oid)
           ORDER BY c.relname COLLATE "C"`,
          { table },
        )
      : [];
  for (const { name } of indexes) await execute(tx, `DROP INDEX ${quoted(name)}`);
  await fill();
  for (const { definition } of indexes) await execute(tx, definition);
}
