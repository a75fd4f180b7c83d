/** SQL of the seals of books: the content of their records, and the COPY of what they cover. */
import { query, queryOne, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';

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

/** Further content of the record: the previous seals, and the trial balance by control account. */
export function readStated(
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

/** The COPY of the entries dated in a month. The first month includes everything before it. */
export const copyBookEntries = (previous: Month | null, month: Month): string =>
  `COPY (SELECT fact, fact_id, to_char(entry_on, 'YYYY-MM-DD') AS entry_on, to_char(dated_on, 'YYYY-MM-DD') AS dated_on,
                debit || coalesce(':' || nullif(debit_detail, ''), '') AS debit,
                credit || coalesce(':' || nullif(credit_detail, ''), '') AS credit,
                currency, trim_scale(amount) AS amount, document, reference
         FROM journal_entries
         WHERE to_char(entry_on, 'YYYY-MM') COLLATE "C" > '${previous ?? ''}'
           AND to_char(entry_on, 'YYYY-MM') COLLATE "C" <= '${month}'
         ORDER BY entry_on, fact COLLATE "C", fact_id) TO STDOUT (FORMAT text, HEADER)`;
