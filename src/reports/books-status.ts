/**
 * The books in the status: the month up to which they are closed, the open months, and the months that the job should
 * have closed.
 */

import { readBooksState } from '../close/books.sql.ts';
import { booksDueOn, dueBooks, findObstacles, openBooks } from '../close/books.ts';
import { Transaction } from '../database/transaction.ts';
import { DueBooks } from '../findings/months.ts';
import { Month } from '../month.ts';
import { Installation } from '../people/audit-events.ts';

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
