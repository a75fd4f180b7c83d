/** SQL of the journal in a pack. */
import { execute, query, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';
import type { JournalEntry, Posting } from './journal-formats.ts';

type Line = Omit<JournalEntry, 'postings'> & { month: Month; account: string } & Omit<Posting, 'detail'>;

export type Sum = { control: string; account: string; currency: string; amount: string };

/** The balances of all accounts before a month, except zero balances. */
export function readOpening(tx: Transaction, from: Month): Promise<Sum[]> {
  return query(
    tx,
    `SELECT control, account, currency, sum(amount)::text AS amount FROM journal_months WHERE month < :from
     GROUP BY control, account, currency HAVING sum(amount) <> 0
     ORDER BY account COLLATE "C", currency`,
    { from },
  );
}

const READ_AT_ONCE = 3000;

/** The postings of the journal in order and in batches, in constant memory. */
export async function* readLines(tx: Transaction, from: Month, to: Month): AsyncGenerator<Line[]> {
  await execute(
    tx,
    `DECLARE journal_lines NO SCROLL CURSOR FOR
     SELECT month, entry_on, dated_on, fact, fact_id, control, account, currency, amount::text AS amount, document,
       reference
     FROM journal WHERE month BETWEEN '${from}' AND '${to}'
     ORDER BY month COLLATE "C", entry_on, fact COLLATE "C", fact_id, amount DESC, account COLLATE "C"`,
  );
  for (;;) {
    const lines = await query<Line>(tx, `FETCH ${READ_AT_ONCE} FROM journal_lines`);
    if (lines.length === 0) break;
    yield lines;
  }
  await execute(tx, 'CLOSE journal_lines');
}

/** The accounts of the journal up to a month. */
export const readAccounts = (tx: Transaction, to: Month): Promise<Sum[]> =>
  query(tx, `SELECT DISTINCT control, account, currency, '0' AS amount FROM journal_months WHERE month <= :to`, { to });
