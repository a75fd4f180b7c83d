/**
 * The reconciliation of a month covers every quote that has a row on the month's statements. Each quote is considered
 * over its whole life, as known now. The reconciliation also covers every balance transaction of the month without a
 * quote.
 */

import { DateTime } from 'luxon';
import { Settings } from '#config/settings';
import { Transaction } from '#database/transaction';
import { Amount, compare, isZero, Month, monthInterval } from '#values';
import { NotPaidOut, PayoutState, readInBank, readNotPaidOut, readPayoutStates } from './payouts.sql.ts';
import {
  MatchedQuotes,
  NamedQuote,
  OtherBalanceTransactions,
  QuotePosition,
  readOtherBalanceTransactions,
  readPositions,
  readStatements,
  readUnmatchedBalanceTransactions,
  UnmatchedBalanceTransaction,
} from './reconcile.sql.ts';
import {
  AGES,
  Age,
  ageOf,
  daysSince,
  ExceptionStatus,
  isException,
  judgePayout,
  judgeQuote,
  LATE_AFTER_DAYS,
  PAID_OUT_WITHIN_DAYS,
  PayoutStatus,
  payoutNeedsWork,
} from './verdicts.ts';

/**
 * The state of a balance transaction without a quote. `unknown`: open. `returned`: a payment and its reversals add up
 * to zero. `closed`: finance closed it.
 */
type UnknownStatus = 'unknown' | 'returned' | 'closed';

/** Amounts are texts with all digits of the currency. */
export type ReconciliationException = Readonly<{
  status: ExceptionStatus | UnknownStatus;
  partner_id: string | null;
  quote_id: string | null;
  currency: string;
  expected: string;
  routed: string;
  transfers_reversed: string;
  billed: string;
  paid: string;
  /**
   * The expected amount, less the billed amount and less the part of `routed` that pays no invoice. Zero if no action
   * is needed.
   */
  open: string;
  since: string;
  age_days: number;
  age: Age;
  balance_transactions: readonly string[];
  other_accounts: readonly string[];
  /** The account is set for a balance transaction without a quote. */
  account: string | null;
  candidates: UnmatchedBalanceTransaction['candidates'];
  sent: Readonly<{ currency: string; amount: string }> | null;
  /** The quotes of the ledger with the `quote_id` of the balance transaction. */
  named: readonly NamedQuote[];
  reason: string | null;
}>;

type PartnerSums = Readonly<{
  partner_id: string;
  currency: string;
  /** The month's statement and its total; null while the month is open. */
  statement: string | null;
  stated: string | null;
  quotes: number;
  matched: number;
  awaited: number;
  exceptions: number;
  expected: string;
  /** The amount received, less reversed transfers. */
  routed: string;
  billed: string;
  paid: string;
  open: string;
  /** The part of `routed` that has reached the bank. Only payouts with known contents are considered. */
  in_bank: string;
}>;

type MonthPayout = Omit<PayoutState, 'failed' | 'bank_days_after' | 'contents_expected'> &
  Readonly<{
    status: PayoutStatus;
  }>;

export type Reconciliation = Readonly<{
  month: Month;
  as_of: string;
  partners: readonly PartnerSums[];
  exceptions: readonly ReconciliationException[];
  aging: Readonly<Record<Age, number>>;
  other_balance_transactions: readonly OtherBalanceTransactions[];
  payouts: readonly MonthPayout[];
  not_paid_out: readonly NotPaidOut[];
  /** Quotes that are not billed before finance has decided on the balance transactions that name them. */
  not_billable: readonly NotBillable[];
  open: number;
}>;

/** An amount that is not billed for only one reason: open balance transactions name the quote. */
export type NotBillable = Billable &
  Readonly<{
    balance_transactions: readonly Readonly<{
      account: string;
      id: string;
      currency: string;
      own_account: boolean;
    }>[];
  }>;

type Billable = Readonly<{
  partner_id: string;
  currency: string;
  quote_id: string;
  amount: string;
}>;

export async function reconcileMonth(
  tx: Transaction,
  { settings, now }: { settings: Pick<Settings, 'time_zone'>; now: DateTime<true> },
  month: Month,
): Promise<Reconciliation & { readonly billable: readonly Billable[] }> {
  const { startsAt, endsAt } = monthInterval(month, settings.time_zone);
  const interval = { startsAt: startsAt.toUTC().toISO(), endsAt: endsAt.toUTC().toISO() };
  const { matched, others } = await readPositions(tx, { month, lateAfterDays: LATE_AFTER_DAYS });
  const judged = others.map((position) => ({ position, ...judgeQuote(position, now.toMillis()) }));
  const owed = owedOf(judged);
  const unmatched = await readUnmatchedBalanceTransactions(tx, {
    ...interval,
    quoteIds: owed.map((each) => each.quote_id),
  });
  const unknown = unmatched.filter((each) => each.of_month);
  const statements = await readStatements(tx, { month });
  const payouts = (await readPayoutStates(tx, interval)).map((state) => monthPayout(state, now));
  const notPaidOut = await readNotPaidOut(tx, { ...interval, afterDays: PAID_OUT_WITHIN_DAYS });
  const exceptions = [
    ...judged.flatMap((each) => quoteException(each, now)),
    ...unknown.map((balance_transaction) => unknownException(balance_transaction, now)),
  ];
  const open = exceptions.filter((each) => needsWork(each));
  const { billable, not_billable } = billableOf(
    owed,
    unmatched.filter((each) => each.names_asked),
  );
  return {
    month,
    as_of: now.toUTC().toISO(),
    partners: sumsByPartner(matched, judged, { statements, inBank: await readInBank(tx, month) }),
    exceptions,
    aging: Object.fromEntries(AGES.map((age) => [age, open.filter((each) => each.age === age).length])) as Record<
      Age,
      number
    >,
    other_balance_transactions: await readOtherBalanceTransactions(tx, interval),
    payouts,
    not_paid_out: notPaidOut.map(({ net, ...each }) => ({ ...each, net: Amount.of(net, each.currency).toString() })),
    not_billable,
    open: open.length + payouts.filter(({ status }) => payoutNeedsWork(status)).length + notPaidOut.length,
    billable,
  };
}

const owedOf = (judged: readonly JudgedQuote[]): Billable[] =>
  judged
    .filter(({ billable }) => billable.isPositive())
    .map(({ position: { partner_id, currency, quote_id }, billable }) => ({
      partner_id,
      currency,
      quote_id,
      amount: billable.toString(),
    }));

/**
 * Returns the billable amounts. If money for a quote arrived under a wrong name, the quote cannot be billed until
 * finance has decided.
 */
function billableOf(
  owed: readonly Billable[],
  naming: readonly UnmatchedBalanceTransaction[],
): { billable: Billable[]; not_billable: NotBillable[] } {
  const named = new Set(naming.map((each) => each.quote_id));
  return {
    billable: owed.filter((each) => !named.has(each.quote_id)),
    not_billable: owed
      .filter((each) => named.has(each.quote_id))
      .map((each) => ({
        ...each,
        balance_transactions: naming
          .filter(({ quote_id }) => quote_id === each.quote_id)
          .map(({ account, id, share_currency: currency, partners }) => {
            return { account, id, currency, own_account: partners.includes(each.partner_id) };
          }),
      })),
  };
}

function monthPayout(state: PayoutState, now: DateTime<true>): MonthPayout {
  const { failed: _, bank_days_after: __, contents_expected: ___, ...payout } = state;
  const amount = Amount.of(state.amount, state.currency).toString();
  return { ...payout, amount, status: judgePayout(state, now.toMillis()) };
}

export const needsWork = ({ status, open }: ReconciliationException) => status === 'unknown' || !isZero(open);

type JudgedQuote = ReturnType<typeof judgeQuote> &
  Readonly<{
    position: QuotePosition;
  }>;

/** How old something is, with the amounts and facts that most exceptions do not have. */
function exceptionSince(since: string, currency: string, now: DateTime<true>) {
  const none = Amount.zero(currency).toString();
  const days = daysSince(since, now.toMillis());
  return {
    ...{ currency, since, age_days: days, age: ageOf(days) },
    ...{ expected: none, routed: none, transfers_reversed: none, billed: none, paid: none, open: none },
    ...{ other_accounts: [], account: null, candidates: [], sent: null, named: [], reason: null },
  };
}

function quoteException({ position, status, open }: JudgedQuote, now: DateTime<true>): ReconciliationException[] {
  if (!isException(status)) return [];
  const { partner_id, quote_id, currency, balance_transactions, other_accounts } = position;
  const texts = Object.entries(sumsOf(position)).map(([name, sum]) => [name, sum.toString()]);
  return [
    {
      ...exceptionSince(position.first_accepted_at, currency, now),
      ...(Object.fromEntries(texts) as Record<keyof ReturnType<typeof sumsOf>, string>),
      ...{ status, partner_id, quote_id, open: open.toString(), balance_transactions, other_accounts },
      transfers_reversed: Amount.of(position.transfers_reversed, currency).toString(),
    },
  ];
}

function unknownException(
  { currency, amount: unexplained, partners, ...found }: UnmatchedBalanceTransaction,
  now: DateTime<true>,
): ReconciliationException {
  const { ended, share_currency, share_amount, quote_id, account, candidates, named, reason } = found;
  const amount = Amount.of(unexplained, currency);
  const back = amount.negated();
  const [partner = null, ...others] = partners;
  return {
    ...exceptionSince(found.occurred_at, currency, now),
    ...{ status: ended ?? 'unknown', partner_id: others.length === 0 ? partner : null, quote_id },
    ...{ routed: amount.toString(), balance_transactions: [found.id], account, candidates, named, reason },
    ...(back.isPositive() && { transfers_reversed: back.toString() }),
    ...(ended === null && { open: back.toString() }),
    ...(share_currency !== currency && {
      sent: { currency: share_currency, amount: Amount.of(share_amount, share_currency).toString() },
    }),
  };
}

type Sums = Pick<
  QuotePosition,
  'currency' | 'accepted' | 'reversed' | 'received' | 'transfers_reversed' | 'billed' | 'paid'
>;

function sumsOf({ currency, ...sums }: Sums) {
  const amount = (text: string) => Amount.of(text, currency);
  return {
    expected: amount(sums.accepted).minus(amount(sums.reversed)),
    routed: amount(sums.received).minus(amount(sums.transfers_reversed)),
    billed: amount(sums.billed),
    paid: amount(sums.paid),
  };
}

function sumsByPartner(
  matched: readonly MatchedQuotes[],
  judged: readonly JudgedQuote[],
  {
    statements,
    inBank,
  }: {
    statements: Awaited<ReturnType<typeof readStatements>>;
    inBank: Awaited<ReturnType<typeof readInBank>>;
  },
) {
  const gathered = new Map<string, PartnerSums>();
  const add = (partner_id: string, sums: Sums, counts: { quotes: number; matched: number; awaited: number }) => {
    const { currency } = sums;
    const { expected, routed, billed, paid } = sumsOf(sums);
    const key = `${partner_id} ${currency}`;
    const before = gathered.get(key);
    const plus = (text: string | undefined, more: Amount) =>
      Amount.of(text ?? '0', currency)
        .plus(more)
        .toString();
    const statement = statements.find((each) => each.partner_id === partner_id && each.currency === currency);
    gathered.set(key, {
      partner_id,
      currency,
      statement: statement?.number ?? null,
      stated: statement === undefined ? null : Amount.of(statement.invoice_amount, currency).toString(),
      quotes: (before?.quotes ?? 0) + counts.quotes,
      matched: (before?.matched ?? 0) + counts.matched,
      awaited: (before?.awaited ?? 0) + counts.awaited,
      exceptions: (before?.exceptions ?? 0) + counts.quotes - counts.matched - counts.awaited,
      expected: plus(before?.expected, expected),
      routed: plus(before?.routed, routed),
      billed: plus(before?.billed, billed),
      paid: plus(before?.paid, paid),
      in_bank: Amount.of(
        inBank.find((each) => each.partner_id === partner_id && each.currency === currency)?.amount ?? '0',
        currency,
      ).toString(),
      open: plus(before?.open, expected.minus(routed).plus(paid).minus(billed)),
    });
  };
  // These quotes are as expected, so they were never billed as missing.
  for (const each of matched)
    add(each.partner_id, { ...each, paid: '0' }, { quotes: each.quotes, matched: each.quotes, awaited: 0 });
  for (const { position, status } of judged) {
    const counts = { quotes: 1, matched: Number(status === 'matched'), awaited: Number(status === 'awaited') };
    add(position.partner_id, position, counts);
  }
  return [...gathered.values()].sort(
    (one, other) => compare(one.partner_id, other.partner_id) || compare(one.currency, other.currency),
  );
}
