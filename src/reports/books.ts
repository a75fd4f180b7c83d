/**
 * The books of a month: whether they are closed, what keeps them from closing, and what they show at the month's end.
 */
import { type BankFeed, type BooksContext, type BooksRequest, bankFeedsAt, findObstacles } from '../close/books.ts';
import { query, type Transaction } from '../database/transaction.ts';
import { Amount } from '../money.ts';
import { lastDay, type Month } from '../month.ts';
import type { ExceptionKind } from '../payments/exceptions.sql.ts';
import { readUnappliedCash } from './open-items.ts';
import { readTrialBalance, type TrialBalance } from './trial-balance.ts';

export interface BooksReport {
  readonly month: Month;
  readonly status: 'open' | 'closed';
  readonly closed_at: string | null;
  readonly seal: string | null;
  readonly bank_feeds: readonly BankFeed[];
  /** Payment exceptions that arose by the end of the month, by kind. */
  readonly exceptions: Partial<Record<ExceptionKind, number>>;
  /** Unapplied cash at the end of the month. */
  readonly unapplied: readonly { readonly currency: string; readonly amount: string }[];
  /** Why a close would be refused now. */
  readonly obstacles: readonly { readonly code: string; readonly message: string }[];
  readonly trial_balance: TrialBalance;
}

/** Refusal: bank_account_unknown. */
export async function readBooksReport(
  tx: Transaction,
  context: Pick<BooksContext, 'environment' | 'settings'>,
  request: BooksRequest,
): Promise<BooksReport> {
  const { month } = request;
  const end = lastDay(month);
  const [closed] = await query<{ closed_at: string; seal: string }>(
    tx,
    `SELECT closed_at, seal FROM book_closes WHERE month = :month`,
    { month },
  );
  const exceptions = await query<{ kind: ExceptionKind; count: number }>(
    tx,
    `SELECT kind, count(*) AS count FROM payment_exceptions WHERE since <= :end::date GROUP BY kind ORDER BY kind`,
    { end },
  );
  const obstacles = await findObstacles(tx, context, request);
  return {
    month,
    status: closed === undefined ? 'open' : 'closed',
    closed_at: closed?.closed_at ?? null,
    seal: closed?.seal ?? null,
    bank_feeds: await bankFeedsAt(tx, context.settings, request),
    exceptions: Object.fromEntries(exceptions.map(({ kind, count }) => [kind, count])),
    unapplied: sumByCurrency(await readUnappliedCash(tx, end)),
    obstacles: obstacles.map(({ code, message }) => ({ code, message })),
    trial_balance: await readTrialBalance(tx, { asOf: end, today: end, detail: false }),
  };
}

function sumByCurrency(cash: readonly { currency: string; amount: string }[]): BooksReport['unapplied'] {
  const sums = new Map<string, Amount>();
  for (const { currency, amount } of cash) {
    sums.set(currency, (sums.get(currency) ?? Amount.zero(currency)).plus(Amount.of(amount, currency)));
  }
  return [...sums]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([currency, sum]) => ({ currency, amount: `${sum}` }));
}
