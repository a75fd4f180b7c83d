/**
 * Runs the checks, and defines their findings. The text of a check is the body of a WITH: `inspected` has a row for
 * each item inspected; `differences` has the subject and the detail of each item that is wrong. `:month` is null if
 * everything is checked; `:after` is the month closed before `:month`.
 */
import { prepared, queryOne, type Transaction } from '../../database/transaction.ts';
import type { Month } from '../../month.ts';

/** What is checked: one closed month, or everything. */
export interface CheckScope {
  readonly month: Month | null;
  /**
   * The month closed before the checked month; '' for the first month, which also bills the rows of all earlier months.
   */
  readonly after: Month | '';
}

/**
 * Returns a function that runs a statement and returns its one row; `:month` and `:after` are the scope. The statement
 * is prepared: for small books that are verified often, planning would take most of the time.
 */
export function checkQuery<Row>(name: string, sql: string): (tx: Transaction, scope: CheckScope) => Promise<Row> {
  const statement = prepared(name, sql);
  return (tx, { month, after }) => queryOne<Row>(tx, statement, { month, after });
}

/** An SQL condition: a column contains the month in scope. The condition is always true when everything is checked. */
export const inMonth = (column: string): string => `(:month::text IS NULL OR ${column} = :month)`;

/** The rows of a CTE of differences as one JSON value. */
export const listOf = (differences: string): string => `
  (SELECT coalesce(json_agg(json_build_object('subject', subject, 'detail', detail) ORDER BY subject), '[]')
   FROM ${differences})`;

/**
 * A column with the finding of one check, for a statement that runs several checks. The CTE `name` has the items
 * inspected; `name_differences` has the subject and detail of each item that is wrong.
 */
export const findingOf = (name: string): string => `
  json_build_object('inspected', (SELECT count(*) FROM ${name}), 'differences',
    ${listOf(`${name}_differences`)}) AS ${name}`;

/**
 * The rows that a closed month bills: rows that were posted after the previous month (`:after`), up to and including
 * this month.
 */
export const OF_MONTH = `(posted_month > :after AND posted_month <= :month)`;

export interface Difference {
  /** The item that is wrong, such as a row, a document or a series. */
  readonly subject: string;
  /** The actual value and the expected value. */
  readonly detail: string;
}

export interface Finding {
  readonly inspected: number;
  readonly differences: readonly Difference[];
  /** States what could not be compared here, and the remedy. */
  readonly note?: string;
}
