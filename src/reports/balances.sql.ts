/** The journal's balances on any date. Three of these balances are compared with the open items. */
import { needRows } from '#archive/rows';
import { query, queryOne, Transaction } from '#database/transaction';
import { lastDay, Month, monthAfter } from '#month';
import { Scope } from '#people/scope';

/** The accounts that must agree with the open items. */
export const TIED_ACCOUNTS = {
  receivable: 'assets:receivable:billed',
  credit: 'liabilities:partner-credit',
  unapplied: 'liabilities:unapplied',
} as const;

export type Balance = Readonly<{
  /** The control account, for example `assets:receivable:billed`. */
  control: string;
  /** The control account and its subaccount for a partner, policy or bank account. */
  account: string;
  currency: string;
  /** Debits less credits. */
  amount: string;
}>;

/**
 * Postings that add up to the balances on a date. These are the balances of the last books that were closed by that
 * date, and the later postings. Closed books' balances never change, and `verify` compares them with the journal.
 * Ledger rows are summed by month, except in the month that contains the date. The SQL is for use inside a WITH.
 */
const POSTED = `posted AS (
  SELECT control, account, currency, amount FROM book_balances WHERE month = :books
  UNION ALL
  SELECT control, account, currency, amount FROM journal_of_row_months
  WHERE month > coalesce(:books::text, '') AND month < :divided
  UNION ALL
  SELECT control, account, currency, sum(amount) FROM journal_of_rows
  WHERE month = :divided AND entry_on <= :asOf::date
  GROUP BY control, account, currency
  UNION ALL
  SELECT control, account, currency, sum(amount) FROM journal_of_facts
  WHERE entry_on >= :openFrom::date AND entry_on <= :asOf::date
  GROUP BY control, account, currency
)`;

type UpTo = Readonly<{
  asOf: string;
  /** The month that contains the date. For the last day of a month, the next month. */
  divided: Month;
  /**
   * The last earlier month whose books are closed, and the first day after it. If no books are closed, `books` is null
   * and `openFrom` is the earliest date.
   */
  books: Month | null;
  openFrom: string;
}>;

// This is a separate statement, because PostgreSQL makes a better plan if it knows the dates.
async function upTo(tx: Transaction, asOf: string): Promise<UpTo> {
  const month = asOf.slice(0, 7) as Month;
  const divided = asOf === lastDay(month) ? monthAfter(month) : month;
  if (divided === month) await needRows(tx, { from: month, to: month });
  const { books } = await queryOne<{ books: Month | null }>(
    tx,
    `SELECT max(month) AS books FROM book_closes WHERE month < :divided`,
    { divided },
  );
  return { asOf, divided, books, openFrom: books === null ? '-infinity' : `${monthAfter(books)}-01` };
}

export async function readBalances(tx: Transaction, asOf: string): Promise<Balance[]> {
  return query(
    tx,
    `WITH ${POSTED}
     SELECT control, account, currency, sum(amount) AS amount FROM posted
     GROUP BY control, account, currency HAVING sum(amount) <> 0
     ORDER BY account COLLATE "C", currency`,
    { ...(await upTo(tx, asOf)) },
  );
}

/**
 * Balances of the three accounts by partner and currency. Each balance has the usual sign of its account. A negative
 * balance would therefore be an error.
 */
export type TiedBalance = Readonly<{
  partner_id: string | null;
  currency: string;
  receivable: string;
  credit: string;
  unapplied: string;
}>;

export async function readTiedBalances(tx: Transaction, asOf: string, scope: Scope = null): Promise<TiedBalance[]> {
  return query(
    tx,
    // Ledger rows are not posted to the three accounts, so the journal of the facts has all of their postings. The
    // subaccounts of the tied accounts are partners.
    `WITH posted AS (
       SELECT nullif(substr(account, length(control) + 2), '') AS partner_id, control, currency, amount
       FROM book_balances
       WHERE month = :books AND control IN (:receivable, :credit, :unapplied)
       UNION ALL
       -- The condition on both accounts of an entry excludes whole kinds of facts, in particular shares.
       SELECT p.partner_id, p.control, j.currency, p.amount
       FROM journal_entries j
       CROSS JOIN LATERAL (VALUES (j.debit, j.debit_partner, j.amount), (j.credit, j.credit_partner, -j.amount))
         AS p (control, partner_id, amount)
       WHERE j.entry_on >= :openFrom::date AND j.entry_on <= :asOf::date
         AND (j.debit IN (:receivable, :credit, :unapplied) OR j.credit IN (:receivable, :credit, :unapplied))
         AND p.control IN (:receivable, :credit, :unapplied)
     )
     SELECT partner_id, currency,
            coalesce(sum(amount) FILTER (WHERE control = :receivable), 0) AS receivable,
            coalesce(-sum(amount) FILTER (WHERE control = :credit), 0) AS credit,
            coalesce(-sum(amount) FILTER (WHERE control = :unapplied), 0) AS unapplied
     FROM posted WHERE :scope::text[] IS NULL OR partner_id = ANY (:scope::text[])
     GROUP BY partner_id, currency ORDER BY partner_id COLLATE "C" NULLS LAST, currency`,
    { ...(await upTo(tx, asOf)), ...TIED_ACCOUNTS, scope },
  );
}

/**
 * The default date of a report. On this date, everything that was recorded so far is included. The date is the latest
 * of three dates: today in the issuer's zone, the earliest postable date, and the entry date of the last fact. In a
 * sandbox, RECKONER_NOW may be earlier than recorded facts.
 */
export async function readPresentDay(tx: Transaction, today: string) {
  const [row] = await query<{ day: string }>(
    tx,
    `SELECT greatest(:today::date, earliest_postable_date(),
                     -- max() is not used, because PostgreSQL would plan the view twice, which takes 6 ms instead of 2.
                     (SELECT entry_on FROM entry_dates WHERE entry_on > :today::date
                      ORDER BY entry_on DESC LIMIT 1)) AS day`,
    { today },
  );
  return row?.day ?? today;
}
