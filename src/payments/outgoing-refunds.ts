/**
 * Matches recorded refunds to the bank's debit lines, whichever is known first. The journal moves the refund to the
 * bank account of the line.
 */
import { Transaction } from '#database/transaction';
import { Amount, daysApart } from '#values';
import { EqualSet, readEqualSets } from './bank-import/bank-lines.sql.ts';
import { PaymentContext } from './context.ts';
import { containsReference } from './duplicates.ts';
import {
  EqualDebit,
  insertRefundMatches,
  NewRefundMatch,
  OutgoingLine,
  RecordedRefund,
  readEqualDebits,
  readRefunds,
  readUnmatchedDebits,
} from './outgoing-refunds.sql.ts';
import { namePlausible } from './payer-names.ts';

/** A bank books a transfer within days of the order, but finance may record the refund weeks later. */
const WITHIN_DAYS = 30;

type MatchedRefund = Readonly<{
  refund: RecordedRefund;
  evidence: string;
}>;

/** A line that pays a refund, and the set of equal lines to which it belongs. */
export type HeldBy = Readonly<{ equal: EqualDebit; set: EqualSet<EqualDebit> }>;

/**
 * `paid`: the refund that each line pays. `held`: lines that may be duplicates of a line that pays a refund; they pay
 * none.
 */
type MatchedDebits = Readonly<{
  paid: ReadonlyMap<number, MatchedRefund>;
  held: ReadonlyMap<number, HeldBy>;
}>;

/**
 * Returns the refund that a debit pays. Currency and amount are equal, and the debit names the refund's reference or
 * partner. If several refunds match, the debit pays the oldest refund, provided that all of the refunds go to one
 * partner.
 *
 * If the payee is unknown, the amount is enough if the debit leaves the account that received the payment and no other
 * refund matches.
 *
 * `paidEquals` are possible duplicates of the debit that pay other refunds. The reference must not occur in any of
 * `paidEquals`.
 *
 * If the refund that a line paid was undone, the line may pay a different refund: a refund with the line's reference,
 * or a refund that was sent before the bank booked the line. Pure.
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

const referenceOf = (line: OutgoingLine, given: readonly string[], texts: readonly string[]) =>
  given.find((text) => mentions(line.texts, text)) ?? line.texts.find((text) => mentions(texts, text));

const mentions = (texts: readonly string[], reference: string) =>
  containsReference([...texts, ...texts.flatMap((text) => text.split(/[\s,;:()]+/))], reference);

/** The only refund of an amount to an unknown payer, if the debit leaves the account that received the payment. */
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

/**
 * Matches debits to recorded refunds that no line has paid yet. Each refund is paid once, and each debit pays at most
 * one refund, even if several files report the debit.
 */
export async function matchDebits(
  tx: Transaction,
  context: PaymentContext,
  lines: readonly OutgoingLine[],
): Promise<MatchedDebits> {
  const paid = new Map<number, MatchedRefund>();
  const held = new Map<number, HeldBy>();
  const rows: NewRefundMatch[] = [];
  const open = new Set(await readRefunds(tx, lines, { open: true }));
  const lineIds = lines.map((each) => each.bank_line_id);
  const sets = await readEqualSets(tx, lineIds, readEqualDebits);
  for (const line of lines) {
    const { bank_line_id } = line;
    const pays = ({ pays, bank_line_id: id }: EqualDebit) => pays !== null || paid.has(id);
    const holding = (sets.get(bank_line_id) ?? []).flatMap((set) =>
      set.rows.filter(pays).map((equal) => ({ equal, set })),
    );
    const paidEquals = holding.map(({ equal }) => equal);
    const found = refundOf(line, [...open], paidEquals);
    const [first] = holding;
    if (found === undefined) {
      if (first !== undefined) held.set(bank_line_id, first);
      continue;
    }
    const { refund, evidence } = found;
    open.delete(refund);
    paid.set(bank_line_id, found);
    const apart = [...new Set(paidEquals.map((each) => each.bank_line_id))];
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

export async function matchRecordedRefunds(
  tx: Transaction,
  context: PaymentContext,
  refund: { currency: string; amount: string },
) {
  await matchDebits(tx, context, await readUnmatchedDebits(tx, refund));
}
