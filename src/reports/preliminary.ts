/** Whether a report is final. A report can still change while the books of its month are open. */
import { Transaction } from '#database/transaction';
import { readLastClosedBooks } from '#ledger/closed-months.sql';
import { Month, monthName } from '#month';

export type BooksOfDay = Readonly<{
  preliminary: boolean;
  books_closed_to: Month | null;
}>;

export async function readBooksOfDay(tx: Transaction, day: string): Promise<BooksOfDay> {
  const last = await readLastClosedBooks(tx);
  return { preliminary: last === null || day.slice(0, 7) > last, books_closed_to: last };
}

/** The note on a preliminary report; empty for a final one. */
export function preliminaryNote({ preliminary, books_closed_to }: BooksOfDay) {
  if (!preliminary) return [];
  return [
    books_closed_to === null
      ? 'Preliminary: no books are closed yet.'
      : `Preliminary: the books are closed to ${monthName(books_closed_to)}.`,
  ];
}
