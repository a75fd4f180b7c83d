/**
 * Refunds as they leave the bank: a refund that finance has recorded is matched to the bank's debit line, whichever comes
 * first. Then its bank account is known. The journal moves it there.
 */
import { Amount } from '../money.ts';
import { daysApart } from '../month.ts';
import type { PaymentContext } from './context.ts';
import { containsReference } from './duplicates.ts';
import {
  insertRefundMatches,
  type OutgoingLine,
  type RecordedRefund,
  readOpenRefunds,
  readUnmatchedDebits,
} from './outgoing-refunds.sql.ts';
import { namePlausible } from './payer-names.ts';

/** A transfer is booked within days of its order, but finance may record it late. */
const WITHIN_DAYS = 30;

export interface MatchedRefund {
  readonly refund: RecordedRefund;
  /** Why, as a clause. */
  readonly evidence: string;
}

/**
 * The refund that a debit pays: of its amount and currency, with its reference, or else to its partner by name. Of several
 * to one partner it is the oldest; where partners differ, none. Pure.
 */
export function refundOf(line: OutgoingLine, refunds: readonly RecordedRefund[]): MatchedRefund | undefined {
  const amount = Amount.of(line.amount, line.currency);
  const possible = refunds.filter(
    (each) =>
      each.currency === line.currency &&
      Amount.of(each.amount, each.currency).equals(amount) &&
      daysApart(each.refunded_on, line.booked_on) <= WITHIN_DAYS,
  );
  const evidenceOf = (refund: RecordedRefund): string | undefined => {
    const given = [refund.document ?? '', ...refund.texts].find((text) => mentions(line.texts, text));
    const found = given ?? line.texts.find((text) => mentions(refund.texts, text));
    return found === undefined ? undefined : `both have ${found}`;
  };
  const byReference = possible.flatMap((refund) => {
    const evidence = evidenceOf(refund);
    return evidence === undefined ? [] : [{ refund, evidence }];
  });
  const named = byReference.length > 0 ? byReference : possible.flatMap((refund) => byName(line, refund));
  const [first] = named;
  return named.every(({ refund }) => refund.partner_id === first?.refund.partner_id) ? first : undefined;
}

/** Whether one of these texts is a reference, contains it, or has it as a word: a reason mentions `OUT-77`. */
const mentions = (texts: readonly string[], reference: string): boolean =>
  containsReference([...texts, ...texts.flatMap((text) => text.split(/[\s,;:()]+/))], reference);

function byName({ texts, payee }: OutgoingLine, refund: RecordedRefund): MatchedRefund[] {
  const { payee: name } = refund;
  const written = [...(payee === null ? [] : [payee]), ...texts].join(' ');
  if (name === null || !namePlausible(name, written)) return [];
  return [{ refund, evidence: `the same amount, and the line names ${name}` }];
}

/** Matches debits to the recorded refunds that no line has paid yet. Each refund is paid once. */
export async function matchDebits(
  context: PaymentContext,
  lines: readonly OutgoingLine[],
): Promise<Map<number, MatchedRefund>> {
  const matched = new Map<number, MatchedRefund>();
  const open = new Set(await readOpenRefunds(context.tx, lines));
  for (const line of lines) {
    const found = refundOf(line, [...open]);
    if (found === undefined) continue;
    open.delete(found.refund);
    matched.set(line.bank_line_id, found);
  }
  await insertRefundMatches(
    context,
    [...matched].map(([bank_line_id, { refund, evidence }]) => ({
      bank_line_id,
      credit_refund_id: refund.credit_refund_id,
      payment_reversal_id: refund.payment_reversal_id,
      evidence: { why: evidence },
    })),
  );
  return matched;
}

/** Matches the refunds that were just recorded to debits that the bank has reported before. */
export async function matchRecordedRefunds(
  context: PaymentContext,
  refund: { currency: string; amount: string },
): Promise<void> {
  await matchDebits(context, await readUnmatchedDebits(context.tx, refund));
}
