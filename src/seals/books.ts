/**
 * The seal of a month's books: the SHA-256 of a record of the entries dated in the month, the balance of every account
 * at the end of the month, and the books closed before (docs/auditors.md). The next seal of a month covers this seal as
 * a fact.
 */
import type { Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';
import { type ClosedBooks, copyBookBalances, copyBookEntries, readClosedBooks, readStated } from './books.sql.ts';
import { hashCopy, instant, sealOf } from './seal.ts';

/** The version in the first line of a record of closed books. */
const BOOKS_FORM = 1;

/** The record of a month's books, from its stored balances and the current entries. */
export async function writeBooksRecord(
  tx: Transaction,
  close: Pick<ClosedBooks, 'month' | 'previous' | 'facts_to' | 'closed_at'>,
): Promise<{ record: string; seal: string }> {
  const { month, previous, facts_to, closed_at } = close;
  const stated = await readStated(tx, close);
  const entries = await hashCopy(tx, copyBookEntries(previous, month));
  const accounts = await hashCopy(tx, copyBookBalances(month));
  const record = [
    `reckoner books ${BOOKS_FORM}`,
    `installation ${stated.installation_id} ${stated.environment}`,
    `month ${month}`,
    `previous ${previous === null ? 'none' : `${previous} ${stated.previous_seal}`}`,
    `sealed_after ${stated.sealed_month} ${stated.sealed}`,
    `closed_at ${instant(closed_at)}`,
    `facts_to ${facts_to}`,
    `entries ${entries.rows} ${entries.sha256}`,
    `accounts ${accounts.rows} ${accounts.sha256}`,
    `we_are ${stated.we_are}`,
    ...stated.balances.map(({ control, currency, amount }) => `balance ${control} ${currency} ${amount}`),
  ]
    .map((line) => `${line}\n`)
    .join('');
  return { record, seal: sealOf(record) };
}

/** The sealed books of a month, and their record recomputed from current data. */
interface RecomputedBooks {
  readonly books: ClosedBooks;
  readonly record: string;
}

/** Recomputes the records of all closed books, or the record of one month. */
export async function* recomputeBooks(tx: Transaction, only: Month | null): AsyncGenerator<RecomputedBooks> {
  for (const books of await readClosedBooks(tx)) {
    if (only !== null && books.month !== only) continue;
    const { record } = await writeBooksRecord(tx, books);
    yield { books, record };
  }
}
