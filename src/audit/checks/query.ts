/**
 * Runs the checks, and defines their findings. The text of a check is the body of a WITH: `inspected` has a row for
 * each item inspected; `differences` has the subject and the detail of each item that is wrong. `:month` is null if
 * everything is checked.
 */
import { hash } from 'node:crypto';
import { prepared, queryOne, Transaction } from '#database/transaction';
import { reasonOf } from '#errors/refusals';
import { Month } from '#month';

/** What is checked: one closed month, or everything. */
export interface CheckScope {
  readonly month: Month | null;
}

/**
 * A check made by a query. `text` is the body of a WITH. The statement is prepared: for small books that are verified
 * often, planning would take most of the time.
 */
export function checkQuery(text: string): (tx: Transaction, scope: CheckScope) => Promise<Finding> {
  const statement = prepared(
    `verify_${hash('sha256', text).slice(0, 16)}`,
    `WITH ${text}
     SELECT (SELECT count(*) FROM inspected) AS inspected,
            (SELECT coalesce(json_agg(json_build_object('subject', subject, 'detail', detail) ORDER BY subject), '[]')
             FROM differences) AS differences`,
  );
  return (tx, { month }) => queryOne<Finding>(tx, statement, { month });
}

/** An SQL condition: a column contains the month in scope. The condition is always true when everything is checked. */
export const inMonth = (column: string) => `(:month::text IS NULL OR ${column} = :month)`;

export interface Difference {
  /** The item that is wrong, such as a row, a document or a series. */
  readonly subject: string;
  /** The actual value and the expected value. */
  readonly detail: string;
}

export type Finding = Readonly<{
  inspected: number;
  differences: readonly Difference[];
  /** States what could not be compared here, and the remedy. */
  note?: string;
}>;

/** The difference that reports a check or a rule that could not be run. */
export const unchecked = (name: string, error: unknown): Difference => ({
  subject: name,
  detail: `cannot be checked, the database is damaged: ${reasonOf(error)}`,
});
