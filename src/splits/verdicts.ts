/**
 * Compares received with expected amounts, quote by quote, to the cent. Pure: SQL computes the sums, and the caller
 * passes the time.
 */
import { Amount } from '../money.ts';
import type { PayoutState } from './payouts.sql.ts';
import type { QuotePosition } from './reconcile.sql.ts';

/**
 * `awaited` is not an exception, because the share may still arrive. The others are:
 *   short, over      less or more was received than expected, without another explanation
 *   held             the ledger reversed a sale whose transfer is not reversed: we hold the share for the partner
 *   missing          nothing was received
 *   late             everything was received, but too long after its acceptance
 *   other_account    everything was received, but not on the account under which it was accepted
 *   misrouted        it was charged on our own account as documented in 7.3.3: we got the rest after the platform's fee
 *   reversed         the transfer was reversed; open until the ledger has it
 *   disputed         the same, by a dispute
 */
type QuoteStatus =
  | 'matched'
  | 'awaited'
  | 'short'
  | 'over'
  | 'held'
  | 'missing'
  | 'late'
  | 'other_account'
  | 'misrouted'
  | 'reversed'
  | 'disputed';

export type ExceptionStatus = Exclude<QuoteStatus, 'matched' | 'awaited'>;
export const isException = (status: QuoteStatus): status is ExceptionStatus =>
  status !== 'matched' && status !== 'awaited';

interface QuoteVerdict {
  readonly status: QuoteStatus;
  /** Expected and not billed; below zero if too much was received. */
  readonly open: Amount;
  /** The part that may be billed to the partner. Reversed transfers are excluded: the ledger reverses those. */
  readonly billable: Amount;
}

/** A transfer needs available balance, which takes some days (7.4). A share that takes longer than this is late. */
export const LATE_AFTER_DAYS = 7;

const DAY_MILLISECONDS = 24 * 3600 * 1000;

/** What happened to one quote. The tolerance is zero. */
export function judgeQuote(position: QuotePosition, now: number): QuoteVerdict {
  const amount = (text: string) => Amount.of(text, position.currency);
  const zero = Amount.zero(position.currency);
  const reversedTransfers = amount(position.transfers_reversed);
  const received = amount(position.received);
  const expected = amount(position.accepted).minus(amount(position.reversed));
  const billed = amount(position.billed);
  const paid = amount(position.paid);
  const open = expected.minus(received.minus(reversedTransfers).minus(paid)).minus(billed);
  // Reversed transfers that the ledger has not reversed yet.
  const beyondLedger = reversedTransfers.minus(amount(position.reversed));
  const unreversed = beyondLedger.isPositive() ? beyondLedger : zero;
  const owed = open.minus(unreversed);
  const old = now - Date.parse(position.last_accepted_at) > LATE_AFTER_DAYS * DAY_MILLISECONDS;
  return { status: statusOf(), open, billable: old && owed.isPositive() ? owed : zero };

  function statusOf(): QuoteStatus {
    if (position.misrouted) return 'misrouted';
    const takenBack = position.disputed ? 'disputed' : 'reversed';
    // Billing and later payments do not change what happened to the transfer.
    const difference = open.plus(billed).minus(paid);
    if (difference.isZero()) {
      if (reversedTransfers.isPositive()) return takenBack;
      if (position.other_accounts.length > 0) return 'other_account';
      return position.late ? 'late' : 'matched';
    }
    if (reversedTransfers.isPositive() && difference.equals(unreversed)) return takenBack;
    // Below zero if the ledger reversed more than the transfers did.
    if (difference.isNegative()) return difference.isLessThan(beyondLedger) ? 'over' : 'held';
    if (!old) return 'awaited';
    return received.isZero() ? 'missing' : 'short';
  }
}

/**
 * The status of a payout of one of our accounts. `failed`: a later payout has its money. `contents_unknown`: the
 * processor does not list its contents. `not_arrived`: the bank file covers later days but does not have it.
 */
export type PayoutStatus = 'arrived' | 'on_its_way' | 'not_arrived' | 'contents_unknown' | 'failed';

/** After this many days a payout must be in the bank and its contents must be known. */
const PAYOUT_LATE_AFTER_DAYS = 7;
/**
 * Money that a payout skips waits for the next one. Card money is available after some days, that of a debit after
 * more.
 */
export const PAID_OUT_WITHIN_DAYS = 14;

export function judgePayout(state: PayoutState, now: number): PayoutStatus {
  if (state.failed) return 'failed';
  const contents_unknown = state.balance_transactions === null && state.contents_expected;
  if (contents_unknown && now - Date.parse(state.occurred_at) > PAYOUT_LATE_AFTER_DAYS * DAY_MILLISECONDS)
    return 'contents_unknown';
  if (state.arrived_on !== null) return 'arrived';
  // Without bank files, it is unknown whether the payout arrived.
  return (state.bank_days_after ?? 0) > PAYOUT_LATE_AFTER_DAYS ? 'not_arrived' : 'on_its_way';
}

export const payoutNeedsWork = (status: PayoutStatus): boolean =>
  status === 'not_arrived' || status === 'contents_unknown';

export const AGES = ['0-30', '31-60', '61-90', 'over 90'] as const;
export type Age = (typeof AGES)[number];

/** The whole days since an instant. */
export const daysSince = (instant: string, now: number): number =>
  Math.max(0, Math.floor((now - Date.parse(instant)) / DAY_MILLISECONDS));

export const ageOf = (days: number): Age =>
  days <= 30 ? '0-30' : days <= 60 ? '31-60' : days <= 90 ? '61-90' : 'over 90';
