/**
 * Decides what each credit of a bank file is: a new payment, a payment already recorded, a payout of the processor, or
 * money that no partner paid. Pure.
 */
import { Amount } from '#money';
import { BankLine, placeOf } from '#payments/bank/statement';
import { Candidate, Finding, identify, mayBeSameLine, processorIds, ReportedPayment } from '#payments/duplicates';
import { Match } from '#payments/evidence';
import { match } from '#payments/match';
import { OpenItems } from '#payments/open-items';
import { refundOf } from '#payments/outgoing-refunds';
import { OutgoingLine, RecordedRefund } from '#payments/outgoing-refunds.sql';
import { namePlausible } from '#payments/payer-names';
import { feesPlausible, leftOn } from '#payments/payout-contents';
import { findCreditNotes } from '#payments/reference';
import { returnReason, withCode } from '#payments/reverse';
import { counted } from '#text';
import { EqualLineRow, EqualSet, EqualSets } from './bank-lines.sql.ts';
import { once } from './same-lines.ts';

export type NewLine = Readonly<{
  id: number;
  account: string;
  identity: string;
  line: BankLine;
}>;

export type Decision =
  | Readonly<{ kind: 'payment'; match: Match; possibleDuplicates: readonly PossibleDuplicate[] }>
  /**
   * A link payment that the bank reports before the processor does. `processorId` is the id in the processor's later
   * event.
   */
  | Readonly<{ kind: 'link_payment'; match: Match; processorId: string }>
  | Readonly<{ kind: 'duplicate'; payment: Candidate; evidence: string }>
  | PayoutDecision
  | Readonly<{ kind: 'ignored'; why: string; needsReview: boolean }>;

export type PayoutDecision = Readonly<{
  kind: 'payout';
  of: Candidate | undefined;
  /**
   * The part of the payment that the payout contains. If undefined, finance settles the payout, or the payout is
   * settled with the oldest payments.
   */
  gross: Amount | undefined;
  namesNone?: true;
  why: string;
}>;

/** A recorded payment, by id, or the payment of an earlier line in the same file. */
export type PossibleDuplicate = Readonly<{
  of: number | NewLine;
  evidence: string;
  /** Whether the bank states the payment again, with another amount. */
  corrects?: boolean;
}>;

type RecordedFacts = Readonly<{
  /** Payments with the amount of a line, or with a processor id that a line names. */
  candidates: readonly Candidate[];
  equalLines: EqualSets<EqualLineRow>;
  /** Recorded refunds with the amount of a line, which may be the return of a refund. */
  refunds: readonly RecordedRefund[];
  payoutNames: readonly string[];
  /** Whether a person decided that the payment of a line is recorded and not applied. */
  isLeftOpen: (line: NewLine) => boolean;
}>;

export const SETTLE_BY_HAND = 'settle it by hand';

/**
 * Returns the function that decides on the credits of a file, which must be given in order, because each payment reduces
 * the open items for the next line.
 */
export function decidingCredits(
  items: OpenItems,
  { candidates, equalLines, refunds, payoutNames, isLeftOpen }: RecordedFacts,
) {
  const current = new CurrentCandidates(candidates);
  const reachBank = (payment: Candidate) => current.put({ ...payment, reported_by_bank: true });
  // Lines in another file than their equal line are decided already.
  const named = new Set<number>();
  for (const sets of equalLines.values()) {
    for (const { in_other_file, rows } of sets) if (!in_other_file) for (const row of rows) named.add(row.bank_line_id);
  }
  const file: FileState = {
    ...{ items, current, refunds, payoutNames, equalLines },
    ...{ reportedIds: new Set(), earlier: new Map(), free: new Map() },
  };
  return (each: NewLine) => {
    const decided = decideEqualLine(each, file) ?? decideCredit(each, file);
    const held = isLeftOpen(each) ? 'left open by the person who imported the file' : each.line.held;
    const decision = 'match' in decided && held !== undefined ? leftOpen(decided, held) : decided;
    if (decision.kind === 'duplicate') reachBank(decision.payment);
    if (decision.kind === 'payout' && decision.of !== undefined && decision.gross !== undefined) reachBank(decision.of);
    if (decision.kind === 'link_payment') file.reportedIds.add(decision.processorId);
    if ('match' in decision) {
      items.apply(decision.match.applied);
      items.place(decision.match.credit ?? []);
      learnAccount(each, decision, items);
    }
    if (named.has(each.id)) file.earlier.set(each.id, { each, decision });
    return decision;
  };
}

/** The payment with nothing applied. What would have been applied is suggested. */
const leftOpen = <Decided extends Decision & { readonly match: Match }>(decided: Decided, why: string): Decided => {
  const { applied, credit: _, suggested, ...match } = decided.match;
  return { ...decided, match: { ...match, applied: [], suggested: [...applied, ...suggested], why } };
};

function learnAccount({ line }: NewLine, decision: Decision, items: OpenItems) {
  if (decision.kind !== 'payment' || decision.match.applied.length === 0) return;
  const { partner_id } = decision.match;
  if (partner_id !== undefined) items.learn(line, partner_id);
}

type FileState = Pick<RecordedFacts, 'refunds' | 'payoutNames' | 'equalLines'> &
  Readonly<{
    items: OpenItems;
    current: CurrentCandidates;
    /** The equal lines that no line of this file has been found to be. */
    free: Map<EqualSet<EqualLineRow>, EqualLineRow[]>;
    /** Processor ids that an earlier line of this file reported before the processor did. */
    reportedIds: Set<string>;
    /** The decided lines that a later line may report again. */
    earlier: Map<number, Readonly<{ each: NewLine; decision: Decision }>>;
  }>;

/**
 * The payments that the next line may report, after the decisions on the previous lines.
 *
 * A payment that already has a bank line is compared with only two kinds of lines: those with its processor id, and
 * those that equal its bank line in another file. Otherwise, each line would be compared with all earlier payments of
 * its amount.
 */
class CurrentCandidates {
  private readonly all = new Map<number, Candidate>();
  private readonly waiting = new Set<number>();
  private readonly byProcessorId = new Map<string, number[]>();

  constructor(candidates: readonly Candidate[]) {
    for (const each of candidates) {
      this.put(each);
      for (const id of processorIds(each.references)) {
        this.byProcessorId.set(id, [...(this.byProcessorId.get(id) ?? []), each.payment_id]);
      }
    }
  }

  put(candidate: Candidate) {
    const { payment_id, reported_by_bank, paid_out } = candidate;
    this.all.set(payment_id, candidate);
    if (reported_by_bank || paid_out) this.waiting.delete(payment_id);
    else this.waiting.add(payment_id);
  }

  get(paymentId: number) {
    return this.all.get(paymentId);
  }

  of({ references, inOtherFiles = new Map() }: ReportedPayment): Candidate[] {
    const named = processorIds(references).flatMap((id) => this.byProcessorId.get(id) ?? []);
    const ids = new Set([...this.waiting, ...named, ...inOtherFiles.keys()]);
    return [...ids].sort((one, other) => one - other).flatMap((id) => this.all.get(id) ?? []);
  }
}

/**
 * Decides on a line that may report an earlier line again. A payout or a returned payment is not recorded again. Two
 * equal lines of different accounts may come from one account with two names. This rule precedes the rules for
 * payments, because an equal line is stronger evidence. Undefined if no earlier line may be the same line.
 */
function decideEqualLine(
  { id, account, line }: NewLine,
  { equalLines, earlier: decided, items }: FileState,
): Decision | undefined {
  const possible: PossibleDuplicate[] = [];
  const equals = (equalLines.get(id) ?? []).flatMap((set) =>
    (isDecidedByOne(set) ? notPaid(set) : set.rows).map((equal) => ({ equal, set })),
  );
  for (const { equal, set } of equals) {
    if (equal.bank_line_id >= id) continue;
    const earlier = decided.get(equal.bank_line_id);
    const decision = earlier?.decision;
    const evidence = equalEvidence(account, equal, set);
    if (equal.outcome === 'payout' || decision?.kind === 'payout' || decision?.kind === 'link_payment') {
      return { kind: 'ignored', why: `possible duplicate of a payout: ${evidence}; not recorded`, needsReview: true };
    }
    if (equal.sent_back) {
      const name = `payment ${equal.payment_id}, which was sent back`;
      const otherwise = 'not recorded. If it is another payment, enter it by hand';
      return { kind: 'ignored', why: `possible duplicate of ${name}: ${evidence}; ${otherwise}`, needsReview: true };
    }
    const corrects = equal.corrected !== null;
    if (equal.payment_id !== null) possible.push({ of: equal.payment_id, evidence, corrects });
    else if (corrects) return { kind: 'ignored', why: `${evidence}; not recorded`, needsReview: true };
    else if (decision?.kind === 'duplicate') possible.push({ of: decision.payment.payment_id, evidence });
    else if (decision?.kind === 'payment') possible.push({ of: (earlier as { each: NewLine }).each, evidence });
  }
  return possible.length === 0 ? undefined : heldPayment(match(line, items), possible);
}

/** A set in another file may have many lines. Only a payout or a returned payment among them decides. */
const isDecidedByOne = ({ in_other_file, rows }: EqualSet<EqualLineRow>) =>
  in_other_file && rows[0]?.corrected === null;

const notPaid = once(({ rows }: EqualSet<EqualLineRow>) =>
  rows.filter(({ outcome, sent_back }) => outcome === 'payout' || sent_back).slice(0, 1),
);

/** Says why a line on `account` may be a recorded line of a set. */
export function equalEvidence(
  account: string,
  equal: Pick<EqualLineRow, 'account' | 'file' | 'bank_reference'> & Partial<EqualLineRow>,
  { in_other_file, rows }: EqualSet<unknown>,
) {
  const { bank_reference, file, corrected = null } = equal;
  if (corrected !== null) {
    const line = bank_reference === null ? 'this line' : `the reference ${bank_reference}`;
    return `${file} has ${line} with the amount ${corrected}, and the bank states it again with another amount`;
  }
  if (!in_other_file) return `a line of account ${equal.account} has the same reference, day and amount`;
  const reference = bank_reference === null ? 'no reference' : `reference ${bank_reference}`;
  const others = rows.length === 1 ? '' : ` (and ${counted(rows.length - 1)} more)`;
  if (equal.account === account)
    return `${file} has a line of the same account, day and amount, with ${reference}${others}`;
  return `${file} has a line of the same day and amount, with ${reference}${others}, of account ${equal.account}, which may be the same account`;
}

/**
 * Finds the payment in other files that a line may report again, in each set of equal lines: one that no earlier line
 * of this file may report, if there is one. Otherwise, each of n lines would be a possible duplicate of each of n
 * payments.
 */
function paymentsInOtherFiles({ id, account }: NewLine, reported: ReportedPayment, file: FileState) {
  const found = new Map<number, string>();
  const maySame = ({ payment_id }: EqualLineRow) => {
    const payment = file.current.get(payment_id ?? 0);
    return payment !== undefined && mayBeSameLine(reported, payment);
  };
  for (const set of (file.equalLines.get(id) ?? []).filter(isDecidedByOne)) {
    const free = file.free.get(set) ?? [...set.rows];
    file.free.set(set, free);
    const at = free.findIndex(maySame);
    const equal = at < 0 ? set.rows.find(maySame) : free.splice(at, 1)[0];
    if (equal?.payment_id != null) found.set(equal.payment_id, equalEvidence(account, equal, set));
  }
  return found;
}

/**
 * Money that comes back to us is not a payment. Such money may be one of our refunds that came back, so finance
 * decides.
 */
function decideReversedDebit(each: NewLine, refunds: readonly RecordedRefund[]): Decision {
  const { line } = each;
  const found = refundOf(outgoingLine(each), refunds);
  const [credit] = findCreditNotes(line.references);
  const note = found === undefined ? credit?.number : found.refund.document;
  const record = 'record that it was returned';
  const because =
    line.return_code === undefined ? '' : ` (${withCode(line.return_code, returnReason(line.return_code))})`;
  const what =
    found === undefined
      ? `reverses an earlier debit${because}: not a payment. If a refund${note === undefined ? '' : ` of ${note}`} came back, ${record}`
      : note === null
        ? `the refund of payment ${found.refund.payment_id} came back${because}: ${found.evidence}. Enter it as a payment by hand`
        : `the refund of ${note} came back${because}: ${found.evidence}. ${record}`;
  return { kind: 'ignored', why: what, needsReview: true };
}

/** Describes a debit, or a credit that reverses a debit, for the comparison with refunds. */
export const outgoingLine = ({ id, account, line }: NewLine): OutgoingLine => ({
  bank_line_id: id,
  account,
  booked_on: line.booked_on,
  currency: line.amount.currency,
  amount: line.amount.toString(),
  texts: [...referencesOf(line), line.text],
  payee: line.payer_name ?? null,
  freed: false,
});

function decideCredit(each: NewLine, file: FileState): Decision {
  const { line } = each;
  if (line.reversal) return decideReversedDebit(each, file.refunds);
  const { items, current, reportedIds, payoutNames } = file;
  const facts = reportedBy(line, items);
  const reported: ReportedPayment = { ...facts, inOtherFiles: paymentsInOtherFiles(each, facts, file) };
  const identity = identify(reported, current.of(reported));
  if (identity.verdict === 'same') return decideKnown(line, identity.of);
  const ids = processorIds(reported.references);
  if (ids.some((id) => reportedIds.has(id))) return unexpectedPayout(undefined, 'the payment of an earlier line');
  const processor = payoutNames.find((name) => namePlausible(name, `${line.payer_name ?? ''} ${line.text}`));
  if (processor !== undefined && ids.length === 0 && items.partnerOfAccount(line.payer_account) === undefined) {
    const why = `a payout of the processor: the line names ${processor}`;
    return { kind: 'payout', of: undefined, gross: undefined, namesNone: true, why };
  }
  const [processorId] = ids;
  if (processorId !== undefined) return { kind: 'link_payment', match: match(line, items), processorId };
  const possible = identity.verdict === 'new' ? [] : identity.of;
  return heldPayment(
    match(line, items),
    possible.map(({ payment, evidence }) => ({ of: payment.payment_id, evidence })),
  );
}

function decideKnown(line: BankLine, { payment, rule, evidence }: Finding<Candidate>): Decision {
  const name = `payment ${payment.payment_id}`;
  if (rule === 'known_processor_id') return unexpectedPayout(payment, name);
  if (rule === 'link_payment_paid_out') return payoutOf(payment, line, `pays out ${name} of the processor`);
  if (payment.method === 'link') return payoutOf(payment, line, `pays out ${name} of the processor: ${evidence}`);
  return { kind: 'duplicate', payment, evidence };
}

/** A payout contains the amount that remains of the payment on the day of the payout, less a plausible fee. */
function payoutOf(payment: Candidate, line: BankLine, why: string): Decision {
  const left = leftOn(payment, line.booked_on);
  if (feesPlausible(left.minus(line.amount), left, 1)) return { kind: 'payout', of: payment, gross: left, why };
  const unsettled = `names payment ${payment.payment_id}, which had ${left.forPeople()} left on ${line.booked_on}: ${SETTLE_BY_HAND}`;
  return { kind: 'payout', of: payment, gross: undefined, why: unsettled };
}

const unexpectedPayout = (of: Candidate | undefined, name: string): Decision => ({
  kind: 'payout',
  of,
  gross: undefined,
  why: `names ${name}, which is not a link payment waiting for its payout: ${SETTLE_BY_HAND}`,
});

/** A possible duplicate is not applied. The documents that the payment would have paid are suggested. */
function heldPayment(found: Match, possibleDuplicates: readonly PossibleDuplicate[]): Decision {
  if (possibleDuplicates.length === 0) return { kind: 'payment', match: found, possibleDuplicates };
  const of = (each: PossibleDuplicate) =>
    typeof each.of === 'number' ? `payment ${each.of}` : `the payment of line ${placeOf(each.of.line)}`;
  const why = possibleDuplicates.map((each) => `possible duplicate of ${of(each)}: ${each.evidence}`).join('; ');
  const rest = found.applied.length > 0 ? 'nothing is applied' : found.why;
  const held = {
    ...found,
    applied: [],
    credit: [],
    suggested: [...found.applied, ...found.suggested],
    why: `${why}; ${rest}`,
  };
  return { kind: 'payment', match: held, possibleDuplicates };
}

function reportedBy(line: BankLine, items: OpenItems): ReportedPayment {
  const documents = items
    .references(line.references)
    .references.filter((each) => each.guess === undefined)
    .flatMap((each) => items.byNumber(each.number) ?? []);
  const account = items.partnerOfAccount(line.payer_account);
  return {
    source: 'bank',
    amount: line.amount,
    on: line.booked_on,
    references: referencesOf(line),
    documents: documents.map((each) => each.number),
    partners: [...documents.map((each) => each.partner_id), ...(account === undefined ? [] : [account])],
    partnersByName: items.partnersNamedIn(`${line.payer_name ?? ''} ${line.text}`),
  };
}

export const referencesOf = (line: BankLine) => [
  ...(line.bank_reference === undefined ? [] : [line.bank_reference]),
  ...line.references.map((each) => each.text),
];
