/**
 * Matches refunds recorded by finance to the bank's debit lines, whichever comes first. The line shows the bank
 * account, and the journal moves the refund there.
 */
import type { Transaction } from '../database/transaction.ts';
import { Amount } from '../money.ts';
import { daysApart } from '../month.ts';
import type { PaymentContext } from './context.ts';
import { containsReference } from './duplicates.ts';
import {
  type EqualDebit,
  insertRefundMatches,
  type NewRefundMatch,
  type OutgoingLine,
  type RecordedRefund,
  readEqualDebits,
  readRefunds,
  readUnmatchedDebits,
} from './outgoing-refunds.sql.ts';
import { namePlausible } from './payer-names.ts';

/** A bank books a transfer within days of the order, but finance may record the refund late. */
const WITHIN_DAYS = 30;

interface MatchedRefund {
  readonly refund: RecordedRefund;
  /** The reason, as a clause. */
  readonly evidence: string;
}

/** Lines with the refunds they pay. Possible duplicates of lines that pay a refund are listed too, but pay none. */
interface MatchedDebits {
  readonly paid: ReadonlyMap<number, MatchedRefund>;
  readonly held: ReadonlyMap<number, EqualDebit>;
}

/**
 * The refund that a debit pays. It has the debit's amount and currency, and the debit names its reference or its
 * partner. If several such refunds go to one partner, the oldest is paid; if they go to several partners, none is. If
 * the payee is unknown, the amount suffices, provided that the debit leaves the account that received the payment and
 * this is the only such refund. `paidEquals` are possible duplicates of the debit that pay other refunds. If there are
 * any, only a reference that none of them has counts. If the refund that a line paid was undone, the line may pay a
 * different one: one whose reference it has, or one sent before the bank booked the line. A later refund is other
 * money. Pure.
 */
export function refundOf(
  line: OutgoingLine,
  refunds: readonly RecordedRefund[],
  paidEquals: readonly Pick<EqualDebit, 'texts'>[] = [],
): MatchedRefund | undefined {
  const amount = Amount.of(line.amount, line.currency);
  const possible = refunds.filter(
    (each) =>
      each.currency === line.currency &&
      Amount.of(each.amount, each.currency).equals(amount) &&
      daysApart(each.refunded_on, line.booked_on) <= WITHIN_DAYS &&
      (!line.freed || each.refunded_on <= line.booked_on || referenceOf(line, each.texts, each.texts) !== undefined),
  );
  const byReference = possible.flatMap((refund) => {
    const found = referenceOf(line, [refund.document ?? '', ...refund.texts], refund.texts);
    const known = found === undefined || paidEquals.some(({ texts }) => mentions(texts, found));
    return known ? [] : [{ refund, evidence: `both have ${found}` }];
  });
  const byNameAlone = paidEquals.length === 0 ? possible.flatMap((refund) => byName(line, refund)) : [];
  const named = byReference.length > 0 ? byReference : byNameAlone;
  if (named.length === 0 && paidEquals.length === 0) return byAmount(line, possible);
  const [first] = named;
  return named.every(({ refund }) => refund.partner_id === first?.refund.partner_id) ? first : undefined;
}

/**
 * What a line and a refund have in common: one of `given` occurs in the line, or a text of the line occurs in `texts`.
 */
const referenceOf = (line: OutgoingLine, given: readonly string[], texts: readonly string[]): string | undefined =>
  given.find((text) => mentions(line.texts, text)) ?? line.texts.find((text) => mentions(texts, text));

/** Whether one of these texts is a reference, contains it, or has it as a word, as a reason that mentions `OUT-77`. */
const mentions = (texts: readonly string[], reference: string): boolean =>
  containsReference([...texts, ...texts.flatMap((text) => text.split(/[\s,;:()]+/))], reference);

/** The only refund of an amount, to an unknown payer, from the account that received it. */
function byAmount(line: OutgoingLine, possible: readonly RecordedRefund[]): MatchedRefund | undefined {
  const [refund, ...others] = possible;
  const isUnknown = refund?.partner_id === null && refund.received_by === line.account;
  if (!isUnknown || others.length > 0 || line.freed) return undefined;
  return { refund, evidence: 'the only refund of this amount, from the account that received the payment' };
}

function byName({ texts, payee }: OutgoingLine, refund: RecordedRefund): MatchedRefund[] {
  const { payee: name } = refund;
  const written = [...(payee === null ? [] : [payee]), ...texts].join(' ');
  if (name === null || !namePlausible(name, written)) return [];
  return [{ refund, evidence: `the same amount, and the line names ${name}` }];
}

/** Rows grouped by bank line, in order. */
export function byLine<Row extends { readonly bank_line_id: number }>(rows: readonly Row[]): Map<number, Row[]> {
  const found = new Map<number, Row[]>();
  for (const row of rows) {
    const own = found.get(row.bank_line_id);
    if (own === undefined) found.set(row.bank_line_id, [row]);
    else own.push(row);
  }
  return found;
}

/**
 * Matches debits to the recorded refunds that no line has paid yet. Each refund is paid once, and each debit pays once,
 * however many files report it.
 */
export async function matchDebits(
  tx: Transaction,
  context: PaymentContext,
  lines: readonly OutgoingLine[],
): Promise<MatchedDebits> {
  const paid = new Map<number, MatchedRefund>();
  const held = new Map<number, EqualDebit>();
  const rows: NewRefundMatch[] = [];
  const open = new Set(await readRefunds(tx, lines, { open: true }));
  const equals = byLine(
    await readEqualDebits(
      tx,
      lines.map((each) => each.bank_line_id),
    ),
  );
  for (const line of lines) {
    const { bank_line_id } = line;
    const paidEquals = (equals.get(bank_line_id) ?? []).filter(
      (each) => each.pays !== null || paid.has(each.equal_line_id),
    );
    const found = refundOf(line, [...open], paidEquals);
    const [first] = paidEquals;
    if (found === undefined) {
      if (first !== undefined) held.set(bank_line_id, first);
      continue;
    }
    const { refund, evidence } = found;
    open.delete(refund);
    paid.set(bank_line_id, found);
    const apart = paidEquals.map((each) => each.equal_line_id);
    rows.push({
      bank_line_id,
      credit_refund_id: refund.credit_refund_id,
      payment_reversal_id: refund.payment_reversal_id,
      evidence: { why: evidence, ...(apart.length > 0 && { apart_from: apart }) },
    });
  }
  await insertRefundMatches(tx, context, rows);
  return { paid, held };
}

/** Matches the refunds that were just recorded to debits that the bank has reported before. */
export async function matchRecordedRefunds(
  tx: Transaction,
  context: PaymentContext,
  refund: { currency: string; amount: string },
): Promise<void> {
  await matchDebits(tx, context, await readUnmatchedDebits(tx, refund));
}
