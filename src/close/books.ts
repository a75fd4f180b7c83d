/**
 * Closes the books of a month, which is the second of its two closes. After this close, no facts are dated in the
 * month, and the trial balance of the month is stored. For ledger rows, the billing close decides instead (`close.ts`).
 * Refusals: month_not_closed, before_first_month, month_not_ended, earlier_books_open, bank_feed_behind, bank_feed_gap,
 * possible_duplicates_open, taxed_documents_void, bank_account_unknown.
 */
import { Settings } from '#config/settings';
import { atOneInstant, todayOf } from '#config/today';
import { Database } from '#database/database';
import { readClosingTime } from '#database/fitness';
import { lockLedgerWhole } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { Refusal, refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { checkpointBooks } from '#log/checkpoint';
import { readLastNumber } from '#log/checkpoints.sql';
import { lastDay, Month, monthAfter, monthInterval, monthsBetween } from '#month';
import { settleWeAre } from '#partners/presentation';
import { ActorContext, Installation, recordEvent } from '#people/audit-events';
import {
  BooksState,
  insertBookBalances,
  insertBookClose,
  insertBookOpenItems,
  ReportedAccount,
  readBankFeeds,
  readBankGaps,
  readBooksState,
  readClosedWithout,
  readPossibleDuplicates,
  readTaxedVoids,
} from './books.sql.ts';

export type BooksRequest = Readonly<{
  month: Month;
  /** Bank accounts that no longer report, with the reason. The accounts named in the settings are added. */
  without?: Without;
}>;

export type Without = Readonly<{
  accounts: readonly string[];
  reason: string;
}>;

export type BankFeed = Omit<ReportedAccount, 'currencies'> &
  Readonly<{
    complete: boolean;
    /** Why the account no longer reports; null while files of the account are expected. */
    ended: string | null;
  }>;

/** The bank accounts that ever reported. Refuses an account that is named as one of them, and is not. */
export async function readReported(tx: Transaction, without?: Without): Promise<ReportedAccount[]> {
  const feeds = await readBankFeeds(tx);
  const known = feeds.map(({ account }) => account);
  const account = without?.accounts.find((each) => !known.includes(each));
  if (account !== undefined) throw refuse('bank_account_unknown', { account, known });
  return feeds;
}

export async function bankFeedsAt(tx: Transaction, settings: Settings, request: BooksRequest): Promise<BankFeed[]> {
  const feeds = await readReported(tx, request.without);
  const ended = new Map(Object.entries(settings.ended_bank_accounts));
  // Closed books keep the reasons that were recorded at their close.
  for (const { account, reason } of await readClosedWithout(tx, { month: request.month })) ended.set(account, reason);
  for (const account of request.without?.accounts ?? []) ended.set(account, request.without?.reason ?? '');
  const end = lastDay(request.month);
  return feeds.map(({ account, reported_to, balances_stated }) => ({
    account,
    reported_to,
    balances_stated,
    complete: reported_to >= end,
    ended: ended.get(account) ?? null,
  }));
}

/** The obstacles to closing a month's books now, the most basic first. The list is empty if the books are closed. */
export async function findObstacles(tx: Transaction, { environment, settings }: Installation, request: BooksRequest) {
  const { month } = request;
  const state = await readBooksState(tx);
  if (state.first_closed !== null && month < state.first_closed) {
    return [refuse('before_first_month', { month, first: state.first_closed })];
  }
  if (booksAreClosed(state, month)) return [];
  const obstacles: Refusal[] = [];
  const { endsAt } = monthInterval(month, settings.time_zone);
  if ((await readClosingTime(tx, environment)) < endsAt) {
    obstacles.push(refuse('month_not_ended', { month, time_zone: settings.time_zone, ends_at: endsAt.toISO() }));
  }
  if (state.last_closed === null || month > state.last_closed) obstacles.push(refuse('month_not_closed', { month }));
  const next = nextBooks(state);
  if (next !== null && next < month) obstacles.push(refuse('earlier_books_open', { month, open: next }));
  const behind = (await bankFeedsAt(tx, settings, request)).filter(
    ({ complete, ended }) => !complete && ended === null,
  );
  if (behind.length > 0) {
    const accounts = behind.map(({ account, reported_to }) => ({ account, reported_to }));
    obstacles.push(refuse('bank_feed_behind', { month, ends_on: lastDay(month), accounts }));
  }
  const gaps = await readBankGaps(tx, { day: lastDay(month) });
  if (gaps.length > 0) obstacles.push(refuse('bank_feed_gap', { month, gaps }));
  // Until finance decides, the books count each possible duplicate as a separate payment.
  const payments = await readPossibleDuplicates(tx, { day: lastDay(month) });
  if (payments.length > 0) obstacles.push(refuse('possible_duplicates_open', { month, payments }));
  // The replacement of such a document would enter its tax in a later month.
  const documents = await readTaxedVoids(tx, { month });
  if (documents.length > 0) obstacles.push(refuse('taxed_documents_void', { month, documents }));
  return obstacles;
}

/**
 * Closes the books of a month and returns whether this call closed them. Facts are recorded under the ledger's lock. A
 * fact is therefore either recorded before the close and counted in it, or dated in a later month.
 */
export async function closeBooks(tx: Transaction, given: ActorContext, request: BooksRequest) {
  const { month } = request;
  await lockLedgerWhole(tx);
  const context = atOneInstant(given);
  failpoint('books.locked');
  await settleWeAre(tx, context.settings);
  const state = await readBooksState(tx);
  const [obstacle] = await findObstacles(tx, context, request);
  if (obstacle !== undefined) throw obstacle;
  if (booksAreClosed(state, month)) return false;
  const feeds = await bankFeedsAt(tx, context.settings, request);
  const now = context.environment.now().toISO();
  const eventId = await recordEvent(tx, context.actor, {
    action: 'books.close',
    subject: month,
    details: {
      bank_feeds: feeds
        .filter(({ complete }) => complete)
        .map(({ account, reported_to }) => ({ account, reported_to })),
      without: feeds
        .filter(({ complete }) => !complete)
        .map(({ account, reported_to, ended }) => ({ account, reported_to, reason: ended })),
    },
    now,
  });
  const close = { month, previous: state.last_books, facts_to: await readLastNumber(tx), closed_at: now };
  await insertBookBalances(tx, close);
  await insertBookOpenItems(tx, close);
  await insertBookClose(tx, { ...close, eventId });
  await checkpointBooks(tx, context, { month, now });
  failpoint('books.recorded');
  return true;
}

export async function runCloseBooks(database: Database, context: ActorContext, request: BooksRequest) {
  const closed = await database.transaction((tx) => closeBooks(tx, context, request));
  failpoint('books.committed');
  return closed;
}

const booksAreClosed = ({ last_books }: BooksState, month: Month) => last_books !== null && month <= last_books;

const nextBooks = ({ last_books, first_closed }: BooksState) =>
  last_books === null ? first_closed : monthAfter(last_books);

export function openBooks(state: BooksState) {
  const next = nextBooks(state);
  return next === null || state.last_closed === null ? [] : monthsBetween(next, state.last_closed);
}

/** The day on which the job closes the books of a month, `YYYY-MM-DD`; null if the settings name no day. */
export function booksDueOn(month: Month, { books_close_day: day }: Settings) {
  return day === null ? null : `${monthAfter(month)}-${String(day).padStart(2, '0')}`;
}

export function dueBooks(state: BooksState, context: Installation) {
  const today = todayOf(context);
  return openBooks(state).filter((month) => (booksDueOn(month, context.settings) ?? '9999') <= today);
}

/** Closes the books that are due, oldest first. The function stops at the first refusal. */
export async function closeDueBooks(
  database: Database,
  context: ActorContext,
  onClosed: (month: Month) => void,
  permitted: (month: Month) => Database = () => database,
) {
  for (const month of await database.reading(async (tx) => dueBooks(await readBooksState(tx), context))) {
    try {
      await runCloseBooks(permitted(month), context, { month });
    } catch (error) {
      if (error instanceof Refusal) return error;
      throw error;
    }
    onClosed(month);
  }
  return undefined;
}
