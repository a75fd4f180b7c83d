/**
 * The books in the status: the month up to which they are closed, the open months, and the months that the job should
 * have closed.
 */

import { booksDueOn, dueBooks, findObstacles, openBooks } from '#close/books';
import { readBooksState } from '#close/books.sql';
import { Transaction } from '#database/transaction';
import { DueBooks } from '#findings/months';
import { Month } from '#month';
import { Installation } from '#people/audit-events';

export type BooksStatus = Readonly<{
  closed_to: Month | null;
  open: readonly Month[];
  due: readonly DueBooks[];
}>;

export async function readBooksStatus(tx: Transaction, context: Installation): Promise<BooksStatus> {
  const state = await readBooksState(tx);
  const due: DueBooks[] = [];
  for (const month of dueBooks(state, context)) {
    const found = await findObstacles(tx, context, { month });
    const obstacles = found.filter(({ code }) => code !== 'earlier_books_open');
    due.push({
      month,
      due_on: booksDueOn(month, context.settings) ?? '',
      obstacles: obstacles.map(({ message }) => message),
      codes: obstacles.map(({ code }) => code),
      remedies: obstacles.map((each) => each.remedies),
    });
  }
  return { closed_to: state.last_books, open: openBooks(state), due };
}
