/** Checks of closed books: no later fact is dated in them, their balances have not moved, and their seals hold. */
import type { Transaction } from '../../database/transaction.ts';
import { recomputeBooks } from '../../seals/books.ts';
import { sealOf } from '../../seals/seal.ts';
import type { CheckContext, Difference, Finding } from '../checks.ts';
import { inMonth } from './query.ts';
import { differingLines } from './seals.ts';

/**
 * Every journal entry is dated on or after its event, in a month whose books were open when it was recorded. Facts are
 * numbered in the order of recording, so no clock decides which came first.
 */
export const ENTRIES_IN_OPEN_BOOKS = `inspected AS (
  SELECT f.*, (SELECT max(b.month) FROM book_closes b WHERE b.facts_to < f.fact_id) AS closed
  FROM dated_facts f WHERE ${inMonth(`to_char(f.entry_on, 'YYYY-MM')`)}
), differences AS (
  SELECT format('%s %s', name, id) AS subject,
         format('of %s is dated %s; the books were closed to %s when it was recorded', dated_on, entry_on,
                coalesce(closed, 'no month')) AS detail
  FROM inspected WHERE entry_on < dated_on OR to_char(entry_on, 'YYYY-MM') COLLATE "C" <= closed
)`;

/**
 * The balances stored for the end of a month are those of the month before and the postings between: so, month by month,
 * what the journal gives for the end of each closed month is what it gave when its books were closed.
 */
export const BALANCES_OF_CLOSED_BOOKS = `closes AS (
  SELECT month, previous FROM book_closes WHERE ${inMonth('month')}
), months AS MATERIALIZED (
  -- Grouped once, however many months are compared.
  SELECT month, account, currency, amount FROM journal_months
  WHERE month > :after AND month <= coalesce(:month::text, (SELECT max(month) FROM closes))
), posted AS (
  SELECT c.month, j.account, j.currency, j.amount AS journal, 0 AS stored
  FROM closes c JOIN months j ON j.month > coalesce(c.previous, '') AND j.month <= c.month
  UNION ALL
  SELECT c.month, b.account, b.currency, b.amount, 0 FROM closes c JOIN book_balances b ON b.month = c.previous
  UNION ALL
  SELECT c.month, b.account, b.currency, 0, b.amount FROM closes c JOIN book_balances b ON b.month = c.month
), inspected AS (
  SELECT month, account, currency, sum(journal) AS journal, sum(stored) AS stored
  FROM posted GROUP BY month, account, currency
), differences AS (
  SELECT format('%s at the end of %s', account, month) AS subject,
         format('was %s %s when the books were closed; the journal now gives %s', trim_scale(stored), currency,
                trim_scale(journal)) AS detail
  FROM inspected WHERE journal <> stored
)`;

/** Recomputes the record of closed books from the stored data and names its lines that differ. */
export async function findBrokenBooks(tx: Transaction, { month: only }: Pick<CheckContext, 'month'>): Promise<Finding> {
  const differences: Difference[] = [];
  let inspected = 0;
  for await (const { books, record } of recomputeBooks(tx, only)) {
    inspected += 1;
    const subject = `books of ${books.month}`;
    if (sealOf(books.record) !== books.seal) {
      differences.push({
        subject,
        detail: `have seal ${books.seal}, but their record hashes to ${sealOf(books.record)}`,
      });
    }
    differences.push(...differingLines(subject, books.record, record));
  }
  return { inspected, differences };
}
