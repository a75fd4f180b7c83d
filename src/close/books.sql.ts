/** SQL of the books' close. */
import { execute, query, queryOne, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';
import type { ClosedBooks } from '../seals/books.ts';

export interface BooksState {
  /** The first and the last month closed for billing; null before the first close. */
  readonly first_closed: Month | null;
  readonly last_closed: Month | null;
  /** The last month whose books are closed. */
  readonly last_books: Month | null;
}

export function readBooksState(tx: Transaction): Promise<BooksState> {
  return queryOne(
    tx,
    `SELECT min(month) AS first_closed, max(month) AS last_closed, (SELECT max(month) FROM book_closes) AS last_books
     FROM closed_months`,
  );
}

/** How far each bank account is reported, by account. */
export function readBankFeeds(tx: Transaction): Promise<{ account: string; reported_to: string }[]> {
  return query(tx, `SELECT account, reported_to FROM bank_feeds ORDER BY account COLLATE "C"`);
}

type NewClose = Pick<ClosedBooks, 'month' | 'previous' | 'facts_to' | 'closed_at'>;

/** Stores the balances at the end of the month: those of the books closed before, and the postings since. */
export async function insertBookBalances(tx: Transaction, { month, previous }: NewClose): Promise<void> {
  await execute(
    tx,
    `INSERT INTO book_balances (month, control, account, currency, amount)
     SELECT :month, control, account, currency, trim_scale(sum(amount))
     FROM (SELECT control, account, currency, amount FROM book_balances WHERE month = :previous
           UNION ALL
           SELECT control, account, currency, amount FROM journal_months
           WHERE month > coalesce(:previous::text, '') AND month <= :month) AS posted
     GROUP BY control, account, currency HAVING sum(amount) <> 0 ORDER BY account COLLATE "C", currency`,
    { month, previous },
  );
}

export async function insertBookClose(
  tx: Transaction,
  close: NewClose & { readonly record: string; readonly seal: string; readonly eventId: number },
): Promise<void> {
  await execute(
    tx,
    `INSERT INTO book_closes (month, previous, facts_to, closed_at, event_id, record, seal)
     VALUES (:month, :previous, :facts_to::bigint, :closed_at::timestamptz, :eventId::bigint, :record, :seal)`,
    { ...close },
  );
}
