/**
 * Compares the received amount of each quote with the expected amount, to the cent. The functions are pure: SQL
 * computes the sums, and the caller supplies the time.
 */
import { Amount } from '#money';
import { PayoutState } from './payouts.sql.ts';
import { QuotePosition } from './reconcile.sql.ts';

/**
 * All statuses except `matched` and `awaited` are exceptions. An `awaited` share may still arrive.
 *
 * - `short`, `over`: less or more than expected was received, without another explanation.
 * - `held`: the ledger reversed a sale whose transfer is not reversed. We hold the share for the partner.
 * - `missing`: no amount was received.
 * - `late`: the whole amount was received, but too long after its acceptance.
 * - `other_account`: the whole amount was received, but not on the account of the acceptance.
 * - `misrouted`: charged on our own account (7.3.3). We received the remainder after the platform's fee.
 * - `reversed`: the transfer was reversed. Open until the ledger has the reversal.
 * - `disputed`: the transfer was reversed by a dispute. Open until the ledger has the reversal.
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

type QuoteVerdict = Readonly<{
  status: QuoteStatus;
  /** The amount that was expected and not billed. Below zero if too much was received. */
  open: Amount;
  /**
   * The amount that may be billed to the partner. Reversed transfers are not billed, because the ledger reverses their
   * sales.
   */
  billable: Amount;
}>;

/**
 * A transfer needs available balance, and balance becomes available only after some days (7.4). A share that arrives
 * after this time is late.
 */
export const LATE_AFTER_DAYS = 7;

const DAY_MILLISECONDS = 24 * 3600 * 1000;

/** Returns the status of a quote, with a tolerance of zero. */
export function judgeQuote(position: QuotePosition, now: number): QuoteVerdict {
  const amount = (text: string) => Amount.of(text, position.currency);
  const zero = Amount.zero(position.currency);
  const reversedTransfers = amount(position.transfers_reversed);
  const received = amount(position.received);
  const expected = amount(position.accepted).minus(amount(position.reversed));
  const billed = amount(position.billed);
  const paid = amount(position.paid);
  const open = expected.minus(received.minus(reversedTransfers).minus(paid)).minus(billed);
  // The amount of reversed transfers that the ledger has not reversed yet.
  const beyondLedger = reversedTransfers.minus(amount(position.reversed));
  const unreversed = beyondLedger.isPositive() ? beyondLedger : zero;
  const owed = open.minus(unreversed);
  const old = now - Date.parse(position.last_accepted_at) > LATE_AFTER_DAYS * DAY_MILLISECONDS;
  return { status: statusOf(), open, billable: old && owed.isPositive() ? owed : zero };

  function statusOf(): QuoteStatus {
    if (position.misrouted) return 'misrouted';
    const takenBack = position.disputed ? 'disputed' : 'reversed';
    // The status of the transfer does not depend on billing and on later payments.
    const difference = open.plus(billed).minus(paid);
    if (difference.isZero()) {
      if (reversedTransfers.isPositive()) return takenBack;
      if (position.other_accounts.length > 0) return 'other_account';
      return position.late ? 'late' : 'matched';
    }
    if (reversedTransfers.isPositive() && difference.equals(unreversed)) return takenBack;
    // A negative `beyondLedger` is the amount that the ledger reversed and the transfers did not.
    if (difference.isNegative()) return difference.isLessThan(beyondLedger) ? 'over' : 'held';
    if (!old) return 'awaited';
    return received.isZero() ? 'missing' : 'short';
  }
}

/**
 * The status of a payout of one of our accounts. `failed`: the payout failed, and a later payout contains its money.
 * `contents_unknown`: the processor does not list its contents. `not_arrived`: the bank file covers later days but does
 * not contain the payout.
 */
export type PayoutStatus = 'arrived' | 'on_its_way' | 'not_arrived' | 'contents_unknown' | 'failed';

/** After this time, a payout must be in the bank, and its contents must be known. */
const PAYOUT_LATE_AFTER_DAYS = 7;
/**
 * Money that one payout skips is in a later payout. Money from cards is available after some days, money from debits
 * after more days.
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

export const payoutNeedsWork = (status: PayoutStatus) => status === 'not_arrived' || status === 'contents_unknown';

export const AGES = ['0-30', '31-60', '61-90', 'over 90'] as const;
export type Age = (typeof AGES)[number];

export const daysSince = (instant: string, now: number) =>
  Math.max(0, Math.floor((now - Date.parse(instant)) / DAY_MILLISECONDS));

export const ageOf = (days: number): Age =>
  days <= 30 ? '0-30' : days <= 60 ? '31-60' : days <= 90 ? '61-90' : 'over 90';
