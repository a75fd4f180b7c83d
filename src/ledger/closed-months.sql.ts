/**
 * SQL of the two closes of months: the billing close decides the month of a ledger row, the books' close the date of
 * any other fact.
 */
import { query, queryOne, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';

/** A closed month, with the closed month before it; undefined if it is not closed. */
export async function readClosedMonth(tx: Transaction, month: Month): Promise<{ previous: Month | null } | undefined> {
  const rows = await query<{ previous: Month | null }>(tx, `SELECT previous FROM closed_months WHERE month = :month`, {
    month,
  });
  return rows[0];
}

/** The last month closed for billing; null before the first close. */
export async function readLastClosed(tx: Transaction): Promise<Month | null> {
  const { month } = await queryOne<{ month: Month | null }>(tx, `SELECT max(month) AS month FROM closed_months`);
  return month;
}

/** The last month whose books are closed; null while none are. */
export async function readLastClosedBooks(tx: Transaction): Promise<Month | null> {
  const { month } = await queryOne<{ month: Month | null }>(tx, `SELECT max(month) AS month FROM book_closes`);
  return month;
}
