/**
 * Records the debits of a bank file. Returned payments are reversed, and debits are matched to recorded refunds. Other
 * debits do not concern partners.
 */
import { Transaction } from '#database/transaction';
import { BankLine } from '#payments/bank/statement';
import { BANK_CHARGES } from '#payments/bank-booking';
import { insertBookings, NewBooking } from '#payments/bank-booking.sql';
import { PaymentContext } from '#payments/context';
import { Candidate, containsReference } from '#payments/duplicates';
import { bankIdentity } from '#payments/identities';
import { NewReversal } from '#payments/insert.sql';
import { HeldBy, matchDebits } from '#payments/outgoing-refunds';
import { RecordedRefund } from '#payments/outgoing-refunds.sql';
import { findReferences } from '#payments/reference';
import { ReversalResult, returnReason, reverseAll, whatIsOwedAgain, withCode } from '#payments/reverse';
import { Amount, daysApart, isZero } from '#values';
import { EqualLineRow, EqualSets, insertOutcomes, NewOutcome } from './bank-lines.sql.ts';
import { equalEvidence, NewLine, outgoingLine, referencesOf } from './decide.ts';
import { ignoredLine, LineReport, plainReport } from './report.ts';

/**
 * The longest time between a payment and its return: 60 days for an unauthorized debit, and the time that the bank
 * needs.
 */
const RETURNED_WITHIN_DAYS = 90;

const isReturn = ({ line }: NewLine) => line.reversal || line.return_code !== undefined;

/** The code of a BAI2 line, or the sub-family of an ISO 20022 line, such as CHRG of `ACMT/MDOP/CHRG`. */
const codeOf = ({ type }: BankLine) => type.split('/').at(-1) ?? '';

export type KnownPayments = Readonly<{
  candidates: readonly Candidate[];
  equalLines: EqualSets<EqualLineRow>;
  /** The places of the lines of this file that were the first to report a payment, by payment. */
  ownLines: ReadonlyMap<number, string>;
  /** The codes of the bank's own charges (setting `bank_charge_codes`). */
  chargeCodes: readonly string[];
}>;

/** Returns the function that records debits of a file, which must be given in order. */
export function recordingDebits({ ownLines, ...known }: KnownPayments) {
  const nameOf = paymentNames(ownLines);
  const decide = decidingDebits(known, nameOf);
  return (tx: Transaction, context: PaymentContext, debits: readonly NewLine[]) =>
    recordDebits(tx, context, new Map(debits.map((each) => [each, decide(each)])), nameOf);
}

async function recordDebits(
  tx: Transaction,
  context: PaymentContext,
  decisions: ReadonlyMap<NewLine, DebitDecision>,
  nameOf: (paymentId: number) => string,
): Promise<Map<NewLine, LineReport>> {
  const reversals = [...decisions].flatMap(([each, decision]) =>
    'reverses' in decision ? [newReversal(each, decision.reverses)] : [],
  );
  const reversed = await reverseAll(tx, context, reversals);
  const outgoing = [...decisions].flatMap(([each, decision]) => ('goesOut' in decision ? [outgoingLine(each)] : []));
  const { paid, held } = await matchDebits(tx, context, outgoing);
  const outcomes: NewOutcome[] = [];
  const bookings: NewBooking[] = [];
  const reports = new Map<NewLine, LineReport>();
  for (const [each, decision] of decisions) {
    const refund = paid.get(each.id);
    if (refund !== undefined) {
      const why = `${refundName(refund.refund)}: ${refund.evidence}`;
      outcomes.push({ bank_line_id: each.id, outcome: 'refund', reason: why });
      reports.set(each, plainReport(each, 'refund', why, { payment_id: refund.refund.payment_id ?? undefined }));
      continue;
    }
    if ('why' in decision) {
      const equal = held.get(each.id);
      const { charges } = decision;
      if (charges !== undefined && equal === undefined) {
        bookings.push({
          ...{ bank_line_id: each.id, previous: null, booked_to: BANK_CHARGES, reason: charges, later: false },
        });
        outcomes.push({ bank_line_id: each.id, outcome: 'ignored', reason: charges });
        reports.set(each, plainReport(each, 'booked', charges));
        continue;
      }
      const { outcome, report } =
        equal === undefined
          ? ignoredLine(each, decision.why, decision.needsReview)
          : ignoredLine(each, heldDebit(each, equal), true);
      outcomes.push(outcome);
      reports.set(each, report);
      continue;
    }
    const { payment_id } = decision.reverses;
    const { payment_reversal_id, reopened } = reversed.get(bankIdentity(each.account, each.identity)) as ReversalResult;
    const why = `${nameOf(payment_id)} is returned by the bank: ${reasonOf(each.line)}; ${whatIsOwedAgain(reopened)}`;
    outcomes.push({ bank_line_id: each.id, outcome: 'return', payment_reversal_id, reason: why });
    // A return makes a paid invoice open again, so finance must review the line.
    reports.set(each, plainReport(each, 'return', why, { payment_id, needs_review: true }));
  }
  await insertOutcomes(tx, context, outcomes);
  await insertBookings(tx, context, bookings);
  return reports;
}

/** A payment of the same file is named by its line, because its id differs between a preview and the import. */
const paymentNames = (ownLines: KnownPayments['ownLines']) => (paymentId: number) => {
  const place = ownLines.get(paymentId);
  return place === undefined ? `payment ${paymentId}` : `the payment of line ${place}`;
};

type DebitDecision =
  | { readonly reverses: Candidate }
  /** The reason why the line is not a return. `goesOut`: the line is an ordinary debit, which may pay a refund. */
  | Readonly<{
      why: string;
      needsReview: boolean;
      goesOut?: true;
      /** The reason why the line is certainly the bank's own charges. */
      charges?: string;
    }>;

function heldDebit({ account }: NewLine, { equal, set }: HeldBy) {
  const evidence = equalEvidence(account, equal, set);
  const pays = equal.pays === null ? 'a refund' : `the refund of ${equal.pays}`;
  return `possible duplicate of the debit that pays ${pays}: ${evidence}; not matched. If it pays a different refund, record that refund with its reference`;
}

const refundName = ({ document, payment_id, refunded_on }: RecordedRefund) =>
  `pays the refund of ${document ?? `payment ${payment_id}`} of ${refunded_on}`;

/** Returns the function that decides which payment a debit reverses. Each payment is returned at most once. */
function decidingDebits(
  { candidates, equalLines, chargeCodes }: Omit<KnownPayments, 'ownLines'>,
  nameOf: (paymentId: number) => string,
) {
  const left = new Map<string, Map<number, Candidate>>();
  for (const each of candidates) {
    const key = Amount.of(each.amount, each.currency).forPeople();
    left.set(key, (left.get(key) ?? new Map()).set(each.payment_id, each));
  }
  const withAmountOf = ({ amount }: BankLine) => [...(left.get(amount.forPeople())?.values() ?? [])];
  const returns = new Set<number>();
  const decide = (each: NewLine): DebitDecision => {
    if (each.line.held !== undefined) return { why: `${each.line.held}: not recorded`, needsReview: true };
    /** The evidence of the first equal line that is so. */
    const find = (is: (equal: EqualLineRow) => boolean) => {
      for (const set of equalLines.get(each.id) ?? []) {
        const equal = set.rows.find((row) => row.bank_line_id < each.id && is(row));
        if (equal !== undefined) return equalEvidence(each.account, equal, set);
      }
      return undefined;
    };
    if (chargeCodes.includes(codeOf(each.line))) {
      const equal = find(() => true);
      if (equal === undefined) {
        const charges = `bank charges, by the code ${codeOf(each.line)}`;
        return { why: charges, needsReview: false, goesOut: true, charges };
      }
      return { why: `possible duplicate of bank charges: ${equal}; not booked`, needsReview: true };
    }
    const corrected = find((one) => one.corrected !== null);
    if (corrected !== undefined) return { why: `${corrected}; not recorded`, needsReview: true };
    if (!isReturn(each)) {
      const doubt = whyPerhapsReturn(each.line, withAmountOf(each.line), nameOf);
      const why = doubt ?? 'an outgoing payment that is not one of our refunds';
      return { why, needsReview: doubt !== undefined, goesOut: true };
    }
    const equal = find((one) => one.outcome === 'return' || returns.has(one.bank_line_id));
    if (equal !== undefined) {
      const why = `possible duplicate of a return: ${equal}; nothing is reversed`;
      return { why, needsReview: true };
    }
    const payment = returnedPayment(each.line, withAmountOf(each.line));
    if (payment !== undefined) return { reverses: payment };
    const why = `looks like a return (${reasonOf(each.line)}), but its payment is not certain: reverse the payment that was returned`;
    return { why, needsReview: true };
  };
  return (each: NewLine) => {
    const decision = decide(each);
    if ('reverses' in decision) {
      left.get(each.line.amount.forPeople())?.delete(decision.reverses.payment_id);
      returns.add(each.id);
    }
    return decision;
  };
}

const reasonOf = ({ return_code }: BankLine) => withCode(return_code, returnReason(return_code));

const newReversal = ({ id, account, identity, line }: NewLine, payment: Candidate): NewReversal => ({
  identity: bankIdentity(account, identity),
  payment_id: payment.payment_id,
  amount: line.amount.toString(),
  kind: 'returned',
  code: line.return_code,
  reason: returnReason(line.return_code),
  bank_line_id: id,
  reversed_on: line.booked_on,
});

const RETURN_WORDS =
  /\b(?:RETURN(?:ED|S)?|RTN|NSF|REVERS(?:AL|ED)|CHARGE(?:D)? ?BACK|DISHONOU?RED|UNAUTHORI[SZ]ED|RECALL(?:ED)?)\b/i;
const FEE_WORDS = /\b(?:FEES?|CHARGES?)\b(?! ?BACK)/i;

/**
 * Returns the reason why a debit may be a return that the bank does not mark as a return. Undefined if its words,
 * amount and numbers do not suggest a return.
 */
function whyPerhapsReturn(line: BankLine, candidates: readonly Candidate[], nameOf: (paymentId: number) => string) {
  const payment = returnedPayment(line, candidates);
  const id = payment?.payment_id;
  if (id !== undefined) {
    return `has the amount and a reference of ${nameOf(id)}: if the bank returned that payment, reverse it as returned; if this is a refund, record the refund`;
  }
  const [equal, ...others] = returnable(line, candidates);
  if (equal !== undefined) {
    const first = nameOf(equal.payment_id);
    const of = others.length === 0 ? first : `${others.length + 1} payments, the first of them ${first}`;
    return `has the amount of ${of}: if the bank returned a payment, reverse it as returned; if this is a refund, record the refund`;
  }
  const [named] = findReferences(line.references).references.filter((each) => each.guess === undefined);
  const isWorded = RETURN_WORDS.test(line.text) && !FEE_WORDS.test(line.text);
  if (named === undefined && !isWorded) return undefined;
  const of = named === undefined ? '' : ` for ${named.number}`;
  return `${isWorded ? 'looks like' : 'may be'} a return${of}, but its payment is not certain: if this is a return, reverse it as returned`;
}

/** `candidates` have the amount of the line. */
const returnable = (line: BankLine, candidates: readonly Candidate[]) =>
  candidates.filter(
    (each) =>
      isZero(each.reversed) &&
      each.received_on <= line.booked_on &&
      daysApart(each.received_on, line.booked_on) <= RETURNED_WITHIN_DAYS,
  );

/** Returns the only payment with the amount of a return that shares a reference or a named document with the return. */
function returnedPayment(line: BankLine, candidates: readonly Candidate[]) {
  const texts = referencesOf(line);
  const numbers = findReferences(line.references)
    .references.filter((each) => each.guess === undefined)
    .map((each) => each.number);
  const found = returnable(line, candidates).filter(
    (each) =>
      each.documents.some((number) => numbers.includes(number)) ||
      each.references.some((known) => containsReference(texts, known)),
  );
  return found.length === 1 ? found[0] : undefined;
}
