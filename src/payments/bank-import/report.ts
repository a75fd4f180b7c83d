/** What an import reports, line by line. */
import { Amount } from '../../money.ts';
import type { Match } from '../match.ts';
import type { NewLine } from './decide.ts';

export interface LineReport {
  readonly account: string;
  readonly position: number;
  readonly booked_on: string;
  readonly direction: 'credit' | 'debit';
  readonly amount: string;
  readonly currency: string;
  readonly payer: string | null;
  readonly bank_reference: string | null;
  /** `duplicate`: a payment that is recorded already. */
  readonly outcome: 'payment' | 'duplicate' | 'payout' | 'return' | 'ignored';
  readonly payment_id: number | null;
  readonly applied: readonly {
    number: string;
    amount: string;
    small_difference: string | null;
    confidence: string;
    why: string;
  }[];
  readonly suggested: readonly { number: string; amount: string; confidence: string; why: string }[];
  /** Payments that it may duplicate. */
  readonly same_as: readonly number[];
  readonly why: string;
  readonly needs_review: boolean;
}

/** A line that became no payment. */
export function plainReport(
  { line, account }: NewLine,
  outcome: LineReport['outcome'],
  why: string,
  rest: Partial<Pick<LineReport, 'payment_id' | 'needs_review'>> = {},
): LineReport {
  return {
    account,
    position: line.position,
    booked_on: line.booked_on,
    direction: line.direction,
    amount: line.amount.toString(),
    currency: line.amount.currency,
    payer: line.payer_name ?? null,
    bank_reference: line.bank_reference ?? null,
    outcome,
    payment_id: null,
    applied: [],
    suggested: [],
    same_as: [],
    why,
    needs_review: false,
    ...rest,
  };
}

/** A line that became a payment. What stays unapplied needs a review. */
export function paymentReport(
  each: NewLine,
  { paymentId, match, sameAs }: { paymentId: number; match: Match; sameAs: readonly number[] },
): LineReport {
  const applied = match.applied.reduce((sum, one) => sum.plus(one.amount), Amount.zero(each.line.amount.currency));
  return {
    ...plainReport(each, 'payment', match.why),
    payment_id: paymentId,
    applied: match.applied.map((one) => ({
      number: one.document.number,
      amount: one.amount.toString(),
      small_difference: one.small_difference?.toString() ?? null,
      confidence: one.confidence,
      why: one.evidence.why,
    })),
    suggested: match.suggested.map((one) => ({
      number: one.document.number,
      amount: one.amount.toString(),
      confidence: one.confidence,
      why: one.evidence.why,
    })),
    same_as: sameAs,
    needs_review: !applied.equals(each.line.amount),
  };
}

export function countOutcomes(reports: readonly LineReport[]): Readonly<Record<LineReport['outcome'], number>> {
  const outcomes = { payment: 0, duplicate: 0, payout: 0, return: 0, ignored: 0 };
  for (const { outcome } of reports) outcomes[outcome] += 1;
  return outcomes;
}
