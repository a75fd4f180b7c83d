/** Statements that check what is stored, of one month or of everything. */
import { prepared, queryOne, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';

/** What is asked for: one closed month, or everything. */
export interface Asked {
  readonly month: Month | null;
  /** The month closed before it; '' before the first, which bills the rows of all earlier ones too. */
  readonly after: Month | '';
}

/**
 * Asks a statement for its one row; `:month` and `:after` in it are what is asked for. It is prepared: over books that are
 * verified again and again, as tests do and a small sandbox, planning took most of the time.
 */
export function question<Row>(name: string, sql: string): (tx: Transaction, asked: Asked) => Promise<Row> {
  const statement = prepared(name, sql);
  return (tx, { month, after }) => queryOne<Row>(tx, statement, { month, after });
}
