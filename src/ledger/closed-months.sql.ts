/**
 * Reads the two closes of months. The billing close decides in which month a ledger row is billed. The close of the
 * books decides the earliest date of any other fact.
 */
import { query, queryingValue, Transaction } from '#database/transaction';
import { Month } from '#month';

/** The closed month that precedes the given month. Undefined if the given month is not closed. */
export async function readClosedMonth(tx: Transaction, month: Month) {
  const rows = await query<{ previous: Month | null }>(tx, `SELECT previous FROM closed_months WHERE month = :month`, {
    month,
  });
  return rows[0];
}

export const readLastClosed = queryingValue<Month | null>(`SELECT max(month) AS month FROM closed_months`);

export const readLastClosedBooks = queryingValue<Month | null>(`SELECT max(month) AS month FROM book_closes`);
