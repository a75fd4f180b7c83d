/** Statements that check what is stored, of one month or of everything. */
import { sendWithin, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';

/** What is asked for: one closed month, or everything. */
export interface Asked {
  readonly month: Month | null;
  /** The month closed before it; '' before the first, which bills the rows of all earlier ones too. */
  readonly after: Month | '';
}

const PARAMETERS = ['month', 'after'] as const;

/**
 * Asks a statement for its one row; `:month` and `:after` in it are what is asked for. It is prepared: over books that are
 * verified again and again, as tests do and a small sandbox, planning took most of the time.
 */
export function prepared<Row>(name: string, sql: string): (tx: Transaction, asked: Asked) => Promise<Row> {
  const named = PARAMETERS.filter((parameter) => sql.includes(`:${parameter}`));
  const text = named.reduce((rest, parameter, index) => rest.replaceAll(`:${parameter}`, `$${index + 1}`), sql);
  return async (tx, asked) => {
    const values = named.map((parameter) => asked[parameter]);
    const [row] = await sendWithin(tx)<Row>({ name, text }, values);
    return row as Row;
  };
}
