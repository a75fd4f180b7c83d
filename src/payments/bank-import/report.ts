import { Amount, sumsOf } from '#money';
import { Match, Suggestion } from '#payments/evidence';
import { List, ListOf, PackedList } from '#reading/packed-list';
import { NewOutcome } from './bank-lines.sql.ts';
import { NewLine } from './decide.ts';

type LineDocument = Readonly<{
  number: string;
  amount: string;
  confidence: string;
  why: string;
}>;

export type LineReport = Readonly<{
  account: string;
  position: number;
  /** The number of the part, if the entry has several. */
  part: number | null;
  booked_on: string;
  direction: 'credit' | 'debit';
  amount: string;
  currency: string;
  payer: string | null;
  bank_reference: string | null;
  /**
   * `duplicate`: the payment was already recorded. `refund`: the line pays a recorded refund. `booked`: bank charges.
   * `shown`: the file only shows the line, because a statement books it.
   */
  outcome: 'payment' | 'duplicate' | 'payout' | 'return' | 'refund' | 'booked' | 'ignored' | 'shown';
  payment_id: number | null;
  applied: readonly (LineDocument & { readonly small_difference: string | null })[];
  /** Credit that the remittance deducts and that is applied with the payment. */
  credit: readonly Readonly<{ credit_note: string; number: string; amount: string }>[];
  suggested: readonly LineDocument[];
  same_as: readonly number[];
  why: string;
  needs_review: boolean;
  remark: boolean;
}>;

export function plainReport(
  { line, account }: Pick<NewLine, 'line' | 'account'>,
  outcome: LineReport['outcome'],
  why: string,
  { payment_id, needs_review = false }: { payment_id?: number | undefined; needs_review?: boolean } = {},
): LineReport {
  return {
    account,
    position: line.position,
    part: line.part ?? null,
    booked_on: line.booked_on,
    direction: line.direction,
    amount: line.amount.toString(),
    currency: line.amount.currency,
    payer: line.payer_name ?? null,
    bank_reference: line.bank_reference ?? null,
    outcome,
    payment_id: payment_id ?? null,
    applied: [],
    credit: [],
    suggested: [],
    same_as: [],
    why,
    needs_review,
    remark: false,
  };
}

export function ignoredLine(
  each: NewLine,
  why: string,
  needs_review: boolean,
): { outcome: NewOutcome; report: LineReport } {
  const outcome: NewOutcome = { bank_line_id: each.id, outcome: 'ignored', needs_review, reason: why };
  return { outcome, report: plainReport(each, 'ignored', why, { needs_review }) };
}

export function paymentReport(
  each: NewLine,
  payment_id: number,
  { applied, credit = [], suggested, why, remark = false }: Match,
  sameAs: readonly number[] = [],
): LineReport {
  const total = Amount.sum(each.line.amount.currency, applied, ({ amount }) => amount);
  const shown = ({ document: { number }, amount, confidence, evidence }: Suggestion) => ({
    ...{ number, amount: amount.toString(), confidence, why: evidence.why },
  });
  return {
    ...plainReport(each, 'payment', why, { payment_id, needs_review: !total.equals(each.line.amount) }),
    applied: applied.map((one) => ({ ...shown(one), small_difference: one.small_difference?.toString() ?? null })),
    credit: credit.map((one) => ({
      ...{ credit_note: one.credit.number, number: one.document.number, amount: one.amount.toString() },
    })),
    suggested: suggested.map(shown),
    same_as: sameAs,
    remark,
  };
}

/** The reports of a file, in the order of its lines. Few reports are an array. */
export type LineReports = List<LineReport> &
  Readonly<{ map: <Other>(convert: (report: LineReport) => Other) => List<Other> }>;

const MOST_IN_AN_ARRAY = 1000;

/** Collects the reports of several kinds of lines, each kind in the order of its lines. */
export class ReportCollection<Kind extends string> {
  private readonly kinds = new Map<Kind, PackedList<LineReport>>();

  add(kind: Kind, report: LineReport) {
    const those = this.kinds.get(kind) ?? new PackedList();
    this.kinds.set(kind, those);
    those.push(report);
  }

  of(kind: Kind): Iterable<LineReport> {
    return this.kinds.get(kind) ?? [];
  }

  /** `order` has the kind of each line. */
  inOrder(order: readonly Kind[]): LineReports {
    const { kinds } = this;
    const all = new ListOf(order.length, function* () {
      const next = new Map([...kinds].map(([kind, reports]) => [kind, reports[Symbol.iterator]()]));
      for (const kind of order) yield next.get(kind)?.next().value as LineReport;
    });
    return all.length > MOST_IN_AN_ARRAY ? all : [...all];
  }
}

export function sumBankCharges(reports: Iterable<LineReport>): Readonly<Record<string, string>> {
  const charges: Amount[] = [];
  for (const { currency, applied } of reports) {
    for (const { small_difference: given } of applied) if (given !== null) charges.push(Amount.of(given, currency));
  }
  return Object.fromEntries(sumsOf(charges).map((sum) => [sum.currency, sum.toString()]));
}

export function countOutcomes(reports: Iterable<LineReport>): Readonly<Record<LineReport['outcome'], number>> {
  const outcomes = { payment: 0, duplicate: 0, payout: 0, return: 0, refund: 0, booked: 0, ignored: 0, shown: 0 };
  for (const { outcome } of reports) outcomes[outcome] += 1;
  return outcomes;
}
