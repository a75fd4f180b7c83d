import { querying } from '#database/transaction';
import { Month } from '#month';
import { ExceptionKind } from '#payments/exceptions.sql';

export type HandOff = Readonly<{
  month: Month;
  /** The format of the export; null if the month was not exported. */
  format: string | null;
  /** `outdated` means that the month was exported before its books were closed, and that it has changed since then. */
  state: 'missing' | 'preliminary' | 'outdated' | 'final';
}>;

/**
 * The hand-offs to do: months that are not exported, and months that were exported too early. The months that need an
 * export are the last one with closed books, and every month since the first exported one.
 */
export const readUnfinishedHandOffs = querying<HandOff>(`
  SELECT month, NULL AS format, 'missing' AS state FROM gl_unexported_months
  WHERE month = (SELECT max(month) FROM book_closes) OR month > (SELECT min(month) FROM gl_export_states)
  UNION ALL
  SELECT month, format, state FROM gl_export_states WHERE state = 'outdated'
  ORDER BY month, format`);

export const readHandOffs = querying<HandOff, { month: Month }>(`
  SELECT month, format, state FROM gl_export_states WHERE month = :month
  UNION ALL
  SELECT month, NULL, 'missing' FROM gl_unexported_months WHERE month = :month
  ORDER BY format`);

export const countExceptions = querying<{ kind: ExceptionKind; count: number }, { end: string }>(
  `SELECT kind, count(*) AS count FROM payment_exceptions WHERE since <= :end::date GROUP BY kind ORDER BY kind`,
);

export const readBookClose = querying<{ closed_at: string }, { month: Month }>(
  `SELECT closed_at FROM book_closes WHERE month = :month`,
);
