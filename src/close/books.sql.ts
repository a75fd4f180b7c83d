import { execute, executing, querying, queryingColumn, queryingOne, Transaction } from '#database/transaction';
import { lastDay, Month } from '#month';

export type BooksState = Readonly<{
  first_closed: Month | null;
  last_closed: Month | null;
  last_books: Month | null;
}>;

export const readBooksState = queryingOne<BooksState>(`
  SELECT min(month) AS first_closed, max(month) AS last_closed, (SELECT max(month) FROM book_closes) AS last_books
  FROM closed_months`);

export type ReportedAccount = Readonly<{
  account: string;
  /** The date, `YYYY-MM-DD`. */
  reported_to: string;
  /** Whether the account's files state balances. If the files state no balances, a missing file cannot be detected. */
  balances_stated: boolean;
  currencies: readonly string[];
}>;

export const readBankFeeds = querying<ReportedAccount>(
  `SELECT account, reported_to, balances_stated, currencies FROM bank_feeds ORDER BY account COLLATE "C"`,
);

/** The bank accounts that the close of a month's books did not wait for, with the reasons. */
export const readClosedWithout = querying<{ account: string; reason: string }, { month: Month }>(`
  SELECT w.account, coalesce(w.reason, '') AS reason
  FROM book_closes c JOIN audit_events e USING (event_id)
  CROSS JOIN LATERAL json_to_recordset((e.details ->> 'without')::json) AS w (account text, reason text)
  WHERE c.month = :month`);

type BankGap = Readonly<{
  account: string;
  /** The id of the gap's exception, such as `bank-statement-7`. */
  exception: string;
  reason: string;
}>;

/** The unexplained gaps and disagreements of bank statements that may have begun by the given day. */
export const readBankGaps = querying<BankGap, { day: string }>(`
  SELECT account, exception, reason FROM bank_statement_breaks WHERE gap_from <= :day::date
  ORDER BY account COLLATE "C", first_on, bank_statement_id`);

/** The possible duplicates among payments received by the given day, as `payment-7`. */
export const readPossibleDuplicates = queryingColumn<string, { day: string }>(`
  SELECT 'payment-' || payment_id AS exception FROM possible_duplicates
  WHERE received_on <= :day::date ORDER BY received_on, exception`);

/** The taxed documents that are void without a replacement, and whose tax the void took out of a month's books. */
export const readTaxedVoids = querying<{ number: string; month: Month }, { month: Month }>(`
  SELECT d.number, d.month FROM documents d JOIN tax_days t USING (document_id)
  WHERE to_char(t.untaxed_on, 'YYYY-MM') = :month
    AND d.purpose = 'month' AND d.document_id IN (SELECT document_id FROM document_taxes)
    AND NOT EXISTS (SELECT FROM documents later WHERE later.replaces = d.document_id)
  ORDER BY d.document_id`);

type NewClose = Readonly<{
  month: Month;
  /** The month that was closed before this month. */
  previous: Month | null;
  /** The number of the last fact before the close. */
  facts_to: number;
  closed_at: string;
}>;

/**
 * Stores the balances at the end of the month: the balances of the previous closed books plus the postings after them.
 */
export const insertBookBalances = executing<NewClose>(`
  INSERT INTO book_balances (month, control, account, currency, amount)
  SELECT :month, control, account, currency, trim_scale(sum(amount))
  FROM (SELECT control, account, currency, amount FROM book_balances WHERE month = :previous
        UNION ALL
        SELECT control, account, currency, amount FROM journal_months
        WHERE month > coalesce(:previous::text, '') AND month <= :month) AS posted
  GROUP BY control, account, currency HAVING sum(amount) <> 0 ORDER BY account COLLATE "C", currency`);

/** Stores the items that are open at the end of the month: see `book_open_documents`. */
export async function insertBookOpenItems(tx: Transaction, { month }: Pick<NewClose, 'month'>) {
  const given = { month, asOf: lastDay(month) };
  await execute(
    tx,
    `INSERT INTO book_open_documents (month, document_id, balance)
     SELECT :month, document_id, balance FROM open_items(:asOf::date) ORDER BY document_id`,
    given,
  );
  await execute(
    tx,
    `INSERT INTO book_unapplied_cash (month, payment_id, partner_id, amount)
     SELECT :month, payment_id, partner_id, amount FROM unapplied_cash(:asOf::date) ORDER BY payment_id, partner_id`,
    given,
  );
}

export const insertBookClose = executing<NewClose & { readonly eventId: number }>(`
  INSERT INTO book_closes (month, previous, facts_to, closed_at, event_id)
  VALUES (:month, :previous, :facts_to::bigint, :closed_at::timestamptz, :eventId::bigint)`);
