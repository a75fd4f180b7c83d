/**
 * The books of a month: whether they are closed, the obstacles to closing them, and their figures at the month's end.
 */

import { BankFeed, BooksRequest, bankFeedsAt, findObstacles } from '#close/books';
import { Transaction } from '#database/transaction';
import { CheckpointOf, readCheckpointsOf } from '#log/closing.sql';
import { ExceptionKind } from '#payments/exceptions.sql';
import { Installation } from '#people/audit-events';
import { Remedy } from '#remedy';
import { Amount, compare, lastDay, Month, sumsOf } from '#values';
import { readBankReconciliation } from './bank-reconciliation.ts';
import { countExceptions, readBookClose } from './books.sql.ts';
import { readUnappliedCash } from './open-items.sql.ts';
import { readTrialBalance, TrialBalance } from './trial-balance.ts';

export type BooksReport = Readonly<{
  month: Month;
  status: 'open' | 'closed';
  closed_at: string | null;
  /** The checkpoint that closes the books; null while they are open. */
  checkpoint: CheckpointOf | null;
  bank_feeds: readonly BankFeed[];
  /**
   * The balances of the banks at the end of the month, next to our own balances. Only for banks whose statements give
   * balances.
   */
  bank_balances: readonly Readonly<{
    account: string;
    currency: string;
    bank: string;
    books: string;
    difference: string;
    /** The account's balance before its first statement, which explains a part of the difference. */
    before_first_statement: string;
    /** Lines that the books do not have, and postings that no line shows (reports/bank-reconciliation.ts). */
    not_in_books: string;
    in_transit: string;
    withdrawn: string;
    unexplained: string;
  }>[];
  exceptions: Partial<Record<ExceptionKind, number>>;
  unapplied: readonly Readonly<{ currency: string; amount: string }>[];
  obstacles: readonly Readonly<{
    code: string;
    message: string;
    remedies: readonly Remedy[];
  }>[];
  trial_balance: TrialBalance;
}>;

export async function readBooksReport(
  tx: Transaction,
  context: Installation,
  request: BooksRequest,
): Promise<BooksReport> {
  const { month } = request;
  const end = lastDay(month);
  const [closed] = await readBookClose(tx, { month });
  const exceptions = await countExceptions(tx, { end });
  const obstacles = await findObstacles(tx, context, request);
  return {
    month,
    status: closed === undefined ? 'open' : 'closed',
    closed_at: closed?.closed_at ?? null,
    checkpoint: (await readCheckpointsOf(tx, 'books', [month])).get(month) ?? null,
    bank_feeds: await bankFeedsAt(tx, context.settings, request),
    bank_balances: await compareBankBalances(tx, end),
    exceptions: Object.fromEntries(exceptions.map(({ kind, count }) => [kind, count])),
    unapplied: sumByCurrency(await readUnappliedCash(tx, end)),
    obstacles: obstacles.map(({ code, message, remedies }) => ({ code, message, remedies })),
    trial_balance: await readTrialBalance(tx, { asOf: end, today: end, detail: false }),
  };
}

/** The accounts of the bank reconciliation whose banks state balances. */
async function compareBankBalances(tx: Transaction, end: string) {
  const { accounts } = await readBankReconciliation(tx, { on: end, today: end });
  return accounts
    .filter(({ balances_stated }) => balances_stated)
    .map(({ account, currency, bank, books, opening, not_in_books, in_transit, withdrawn, difference }) => ({
      ...{ account, currency, bank, books },
      difference: Amount.of(bank, currency).minus(Amount.of(books, currency)).toString(),
      ...{ before_first_statement: opening, not_in_books, in_transit, withdrawn, unexplained: difference },
    }));
}

function sumByCurrency(cash: readonly { currency: string; amount: string }[]) {
  return sumsOf(cash.map(({ currency, amount }) => Amount.of(amount, currency)))
    .map((sum) => ({ currency: sum.currency, amount: sum.toString() }))
    .sort((one, other) => compare(one.currency, other.currency));
}
