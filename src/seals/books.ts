/**
 * The seal of a month's books: the SHA-256 of a record that binds the entries dated in the month, the balance of every
 * account at its end and the books closed before (docs/auditors.md). The next seal of a month covers it as a fact.
 */
import { query, queryOne, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';
import { hashCopy, instant, sealOf } from './seal.ts';

/** The version in the first line of a record of closed books. */
const BOOKS_FORM = 1;

export interface ClosedBooks {
  readonly month: Month;
  readonly previous: Month | null;
  /** The number of the last fact before the close. */
  readonly facts_to: number;
  readonly closed_at: string;
  readonly record: string;
  /** SHA-256 of the record. */
  readonly seal: string;
}

/** Closed books in order. */
export function readClosedBooks(tx: Transaction): Promise<ClosedBooks[]> {
  return query(tx, `SELECT month, previous, facts_to, closed_at, record, seal FROM book_closes ORDER BY month`);
}

/** The record of a month's books, from the balances stored for it and the entries as they are now. */
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

/** What the record states besides: the seals that it follows, and the trial balance by control account. */
function readStated(
  tx: Transaction,
  { month, previous, facts_to }: Pick<ClosedBooks, 'month' | 'previous' | 'facts_to'>,
): Promise<{
  readonly installation_id: string;
  readonly environment: string;
  readonly previous_seal: string | null;
  readonly we_are: string;
  readonly sealed_month: Month;
  readonly sealed: string;
  readonly balances: readonly { control: string; currency: string; amount: string }[];
}> {
  return queryOne(
    tx,
    `SELECT i.installation_id, i.environment,
            (SELECT seal FROM book_closes WHERE month = :previous) AS previous_seal,
            (SELECT we_are FROM presentation) AS we_are,
            s.month AS sealed_month, s.seal AS sealed, coalesce(b.balances, '[]') AS balances
     FROM installation i
     LEFT JOIN LATERAL (
       SELECT month, seal FROM seals WHERE facts_to <= :facts_to::bigint ORDER BY month DESC LIMIT 1) AS s ON true
     CROSS JOIN LATERAL (
       SELECT json_agg(c ORDER BY c.control COLLATE "C", c.currency COLLATE "C") AS balances
       FROM (SELECT control, currency, trim_scale(sum(amount))::text AS amount FROM book_balances
             WHERE month = :month GROUP BY control, currency HAVING sum(amount) <> 0) AS c) AS b`,
    { month, previous, facts_to },
  );
}

/** The COPY of the balances that were stored when a month's books closed. */
export const copyBookBalances = (month: Month): string =>
  `COPY (SELECT control, account, currency, trim_scale(amount) AS amount FROM book_balances WHERE month = '${month}'
         ORDER BY account COLLATE "C", currency COLLATE "C") TO STDOUT (FORMAT text, HEADER)`;

/** The COPY of the entries dated in a month. Those of the first month include all before it. */
export const copyBookEntries = (previous: Month | null, month: Month): string =>
  `COPY (SELECT fact, fact_id, to_char(entry_on, 'YYYY-MM-DD') AS entry_on, to_char(dated_on, 'YYYY-MM-DD') AS dated_on,
                debit || coalesce(':' || nullif(debit_detail, ''), '') AS debit,
                credit || coalesce(':' || nullif(credit_detail, ''), '') AS credit,
                currency, trim_scale(amount) AS amount, document, reference
         FROM journal_entries
         WHERE to_char(entry_on, 'YYYY-MM') COLLATE "C" > '${previous ?? ''}'
           AND to_char(entry_on, 'YYYY-MM') COLLATE "C" <= '${month}'
         ORDER BY entry_on, fact COLLATE "C", fact_id) TO STDOUT (FORMAT text, HEADER)`;

/** Books as they were sealed, and their record recomputed from the data as it is now. */
interface RecomputedBooks {
  readonly books: ClosedBooks;
  readonly record: string;
}

/** Recomputes the record of all closed books, or of one month. */
export async function* recomputeBooks(tx: Transaction, only: Month | null): AsyncGenerator<RecomputedBooks> {
  for (const books of await readClosedBooks(tx)) {
    if (only !== null && books.month !== only) continue;
    const { record } = await writeBooksRecord(tx, books);
    yield { books, record };
  }
}
