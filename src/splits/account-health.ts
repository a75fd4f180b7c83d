/** The state of the connected accounts: how far each account was read, and the open items of the latest statements. */
import { DateTime } from 'luxon';
import { raiseWorkMemory, Transaction } from '#database/transaction';
import { Month } from '#month';
import { AccountCursor, readAccountCursors } from './accounts.sql.ts';
import { countUnmatchedBalanceTransactions } from './match.sql.ts';
import { readNotPaidOut, readPayoutStates } from './payouts.sql.ts';
import { readStatementMonths, readUnevenPositions } from './reconcile.sql.ts';
import {
  isException,
  judgePayout,
  judgeQuote,
  LATE_AFTER_DAYS,
  PAID_OUT_WITHIN_DAYS,
  payoutNeedsWork,
} from './verdicts.ts';

/** How many of the latest months with statements are checked. Late transfers arrive within this time. */
export const RECONCILED_MONTHS = 3;

const PAYOUT_DAYS = 92;

/** An account that was not read for this long needs attention. The daily job reads every account. */
export const STALE_HOURS = 48;

export type AccountHealth = Readonly<{
  accounts: readonly Omit<AccountCursor, 'sold'>[];
  /** Accounts with expected quotes that were not read at the processor for STALE_HOURS. */
  stale: readonly string[];
  open: Readonly<Record<Month, number>>;
  unknown: number;
  /**
   * Payouts of the last PAYOUT_DAYS that have not reached the bank or whose contents are unknown, and transactions that
   * payouts skipped.
   */
  payouts: number;
}>;

/** Reads how far each account was read. This is the fast part of `readAccountHealth`: no quotes are read. */
export async function readAccountReadings(
  tx: Transaction,
  now: DateTime<true>,
): Promise<Pick<AccountHealth, 'accounts' | 'stale'>> {
  const cursors = await readAccountCursors(tx, now.toISO());
  const since = now.minus({ hours: STALE_HOURS }).toMillis();
  return {
    accounts: cursors.map(({ sold: _, ...account }) => account),
    stale: cursors
      .filter(({ balance_transactions_from, sold, read_to }) => {
        const old = read_to === null || Date.parse(read_to) < since;
        return balance_transactions_from === 'processor' && sold && old;
      })
      .map(({ account }) => account),
  };
}

export async function readAccountHealth(tx: Transaction, now: DateTime<true>): Promise<AccountHealth> {
  const readings = await readAccountReadings(tx, now);
  if (readings.accounts.length === 0) return { ...readings, open: {}, unknown: 0, payouts: 0 };
  return {
    ...readings,
    open: await countOpenQuotes(tx, now, await readStatementMonths(tx, { months: RECONCILED_MONTHS })),
    unknown: await countUnmatchedBalanceTransactions(tx),
    payouts: await countOpenPayouts(tx, now),
  };
}

/**
 * Counts the quotes on the statements of these months that are not as expected and need action. The earliest month is
 * first.
 */
export async function countOpenQuotes(tx: Transaction, now: DateTime<true>, months: readonly Month[]) {
  await raiseWorkMemory(tx);
  const { positions, statements } = await readUnevenPositions(tx, { months, lateAfterDays: LATE_AFTER_DAYS });
  const keyOf = ({ partner_id, quote_id }: { partner_id: string; quote_id: string }) => `${partner_id} ${quote_id}`;
  const positionsOf = new Map<string, number>();
  for (const position of positions) {
    const key = keyOf(position);
    if (isException(judgeQuote(position, now.toMillis()).status)) positionsOf.set(key, (positionsOf.get(key) ?? 0) + 1);
  }
  const open: Record<Month, number> = {};
  for (const { month, ...quote } of statements) {
    const count = positionsOf.get(keyOf(quote)) ?? 0;
    if (count > 0) open[month] = (open[month] ?? 0) + count;
  }
  return open;
}

async function countOpenPayouts(tx: Transaction, now: DateTime<true>) {
  const lately = { startsAt: now.minus({ days: PAYOUT_DAYS }).toISO(), endsAt: null };
  const payouts = await readPayoutStates(tx, lately);
  const passedOver = await readNotPaidOut(tx, { ...lately, afterDays: PAID_OUT_WITHIN_DAYS });
  return payouts.filter((each) => payoutNeedsWork(judgePayout(each, now.toMillis()))).length + passedOver.length;
}
