/**
 * How a check is asked. Each text of a check is the inside of a WITH: `inspected` has a row for each item inspected,
 * `differences` has the subject and the detail of each item that is wrong. `:month` is null for everything; `:after` is
 * the month closed before it.
 */
import { prepared, queryOne, type Transaction } from '../../database/transaction.ts';
import type { Month } from '../../month.ts';

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

/** Whether a column is the month that is asked for; all are where everything is. */
export const inMonth = (column: string): string => `(:month::text IS NULL OR ${column} = :month)`;

/** What a CTE of differences has, as one value. */
export const listOf = (differences: string): string => `
  (SELECT coalesce(json_agg(json_build_object('subject', subject, 'detail', detail) ORDER BY subject), '[]')
   FROM ${differences})`;

/**
 * What one of several checks in a statement found, as a column: the CTE `name` has what was looked at, and
 * `name_differences` a subject and a detail for each that is not as it must be.
 */
export const findingOf = (name: string): string => `
  json_build_object('inspected', (SELECT count(*) FROM ${name}), 'differences', ${listOf(`${name}_differences`)}) AS ${name}`;

/** The rows that a closed month bills: those posted after the month before it (`:after`) and up to it. */
export const OF_MONTH = `(posted_month > :after AND posted_month <= :month)`;
