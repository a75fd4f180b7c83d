/** Whether a report is final: while the books of its day's month are open, it can still change. */
import type { Transaction } from '../database/transaction.ts';
import { readLastClosedBooks } from '../ledger/closed-months.sql.ts';
import { type Month, monthName } from '../month.ts';

/** How final a report of a day is. */
export interface BooksOfDay {
  /** Whether the books of the day's month are open, so the report can still change. */
  readonly preliminary: boolean;
  /** The last month whose books are closed. */
  readonly books_closed_to: Month | null;
}

export async function readBooksOfDay(tx: Transaction, day: string): Promise<BooksOfDay> {
  const last = await readLastClosedBooks(tx);
  return { preliminary: last === null || day.slice(0, 7) > last, books_closed_to: last };
}

/** The note on a preliminary report; none if it is final. */
export function preliminaryNote({ preliminary, books_closed_to }: BooksOfDay): string[] {
  if (!preliminary) return [];
  return [
    books_closed_to === null
      ? 'Preliminary: no books are closed yet.'
      : `Preliminary: the books are closed to ${monthName(books_closed_to)}.`,
  ];
}
