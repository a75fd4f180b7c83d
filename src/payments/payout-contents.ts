/**
 * The contents of a processor's payout: the payments in it, and the fees. The processor pays out in order of receipt. A
 * payout therefore consists of the oldest payments, up to a certain one, less a plausible fee. Pure.
 */
import { Amount, minorDigits } from '#money';
import { ReversalKind } from './enums.ts';

export type TakenBack = Readonly<{
  amount: string;
  kind: ReversalKind;
  reversed_on: string;
  reinstated_on: string | null;
}>;

/**
 * Returns the part of a link payment that a payout on this day can contain: the amount received by then and not
 * reversed. Reversals as a mistake or duplicate leave nothing, because the processor never held that money.
 */
export function leftOn(
  payment: Readonly<{
    currency: string;
    amount: string;
    received_on: string;
    taken_back: readonly TakenBack[];
  }>,
  day: string,
) {
  const money = (text: string) => Amount.of(text, payment.currency);
  if (payment.received_on > day) return Amount.zero(payment.currency);
  return payment.taken_back
    .filter(
      ({ kind, reversed_on, reinstated_on }) =>
        kind === 'mistake' ||
        kind === 'duplicate' ||
        (reversed_on <= day && (reinstated_on === null || reinstated_on > day)),
    )
    .reduce((left, each) => left.minus(money(each.amount)), money(payment.amount));
}

export type WithProcessor = Readonly<{
  payment_id: number;
  /** The payment's amount after refunds and disputes. */
  amount: Amount;
}>;

type Settlement = Readonly<{
  payments: readonly WithProcessor[];
  gross: Amount;
  fees: Amount;
}>;

/**
 * The highest plausible fee of a processor: a percentage of the payments, plus an amount in major units for each
 * payment.
 */
const MOST_PERCENT = 4;
const MOST_PER_PAYMENT = 1;

/** Returns the oldest payments that make up a payout. Undefined unless exactly one choice of payments is plausible. */
export function settle(payout: Amount, oldestFirst: readonly WithProcessor[]): Settlement | undefined {
  const plausible: Settlement[] = [];
  let gross = Amount.zero(payout.currency);
  for (const [index, payment] of oldestFirst.entries()) {
    gross = gross.plus(payment.amount);
    const fees = gross.minus(payout);
    if (fees.isNegative()) continue;
    if (feesPlausible(fees, gross, index + 1))
      plausible.push({ payments: oldestFirst.slice(0, index + 1), gross, fees });
  }
  return plausible.length === 1 ? plausible[0] : undefined;
}

/**
 * Whether fees are plausible for a number of payments. The comparison uses hundredths of the minor unit, so nothing is
 * rounded.
 */
export function feesPlausible(fees: Amount, gross: Amount, payments: number) {
  const perMajor = 10n ** BigInt(minorDigits(gross.currency) as number);
  const most = gross.minorUnits() * BigInt(MOST_PERCENT) + BigInt(payments * MOST_PER_PAYMENT * 100) * perMajor;
  return !fees.isNegative() && fees.minorUnits() * 100n <= most;
}
