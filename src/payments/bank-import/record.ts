/** Records what was decided for the credits of a bank file: payments, applications, suggestions and payouts. */
import type { BankLine } from '../bank/statement.ts';
import { enqueueDeliveries, type PaymentContext } from '../context.ts';
import type { Method } from '../enums.ts';
import { bankIdentity, processorIdentity } from '../identities.ts';
import {
  insertApplications,
  insertPaymentSources,
  insertPayments,
  insertSuggestions,
  type NewPayment,
  type NewPaymentSource,
  type NewSuggestion,
} from '../insert.sql.ts';
import { CONFIDENCE, type Match } from '../match.ts';
import { settle } from '../payout.ts';
import {
  type AccountPayout,
  insertPayouts,
  insertSettlements,
  type NewSettlement,
  readWithProcessor,
} from '../payouts.sql.ts';
import { settleReportedPayouts } from '../settle.ts';
import { insertOutcomes, type NewOutcome } from './bank-lines.sql.ts';
import { type Decision, type NewLine, type PayoutDecision, type PossibleDuplicate, SETTLE_BY_HAND } from './decide.ts';
import { type LineReport, paymentReport, plainReport } from './report.ts';

type PaymentDecision = Extract<Decision, { match: Match }>;
type PaymentIdOf = (each: NewLine) => number;
/** What one line leads to besides payments and payouts. */
interface LineRecords {
  readonly sources: readonly NewPaymentSource[];
  readonly outcomes: readonly NewOutcome[];
  readonly report: LineReport;
}

export async function recordCredits(
  context: PaymentContext,
  decisions: ReadonlyMap<NewLine, Decision>,
): Promise<Map<NewLine, LineReport>> {
  const received = [...decisions].flatMap(([each, decision]) => ('match' in decision ? [{ each, decision }] : []));
  const ids = await insertPayments(
    context,
    received.map(({ each, decision }) => newPayment(each, decision)),
  );
  const paymentIdOf: PaymentIdOf = ({ account, identity }) => ids.get(bankIdentity(account, identity)) as number;
  const records = [...decisions].flatMap(([each, decision]): [NewLine, LineRecords][] =>
    decision.kind === 'payout' ? [] : [[each, recordsOf(each, decision, paymentIdOf)]],
  );
  await insertPaymentSources(
    context,
    records.flatMap(([, { sources }]) => sources),
  );
  await insertApplications(
    context,
    received.flatMap(({ each, decision }) =>
      decision.match.applied.map((applied) => ({
        payment_id: paymentIdOf(each),
        document_id: applied.document.document_id,
        amount: applied.amount.toString(),
        applied_on: each.line.booked_on,
        confidence: applied.confidence,
        evidence: applied.evidence,
        small_difference: applied.small_difference?.toString() ?? null,
      })),
    ),
  );
  await insertSuggestions(
    context,
    received.flatMap(({ each, decision }) => suggestionsOf(each, decision, paymentIdOf)),
  );
  const payouts = await recordPayouts(context, decisions, paymentIdOf);
  await insertOutcomes(context, [...records.flatMap(([, { outcomes }]) => outcomes), ...payouts.outcomes]);
  await enqueueDeliveries(
    context,
    received.flatMap(({ decision }) => decision.match.applied.map((each) => each.document.document_id)),
  );
  return new Map([...records.map(([each, { report }]) => [each, report] as const), ...payouts.reports]);
}

// --- Payments ---------------------------------------------------------------------------------------------------------

function recordsOf(each: NewLine, decision: Exclude<Decision, PayoutDecision>, paymentIdOf: PaymentIdOf): LineRecords {
  switch (decision.kind) {
    case 'payment': {
      const paymentId = paymentIdOf(each);
      const sameAs = decision.possibleDuplicates.map((possible) => duplicateId(possible, paymentIdOf));
      return {
        sources: [bankSource(each, paymentId)],
        outcomes: [newOutcome(each, 'payment', decision.match.why, { payment_id: paymentId })],
        report: paymentReport(each, { paymentId, match: decision.match, sameAs }),
      };
    }
    case 'link_payment': {
      const paymentId = paymentIdOf(each);
      const { processorId } = decision;
      const processorSource: NewPaymentSource = {
        identity: processorIdentity('', processorId),
        payment_id: paymentId,
        source: 'processor',
        reference: processorId,
        bank_line_id: null,
      };
      return {
        sources: [bankSource(each, paymentId), processorSource],
        // The line's outcome is its payout.
        outcomes: [],
        report: paymentReport(each, { paymentId, match: decision.match, sameAs: [] }),
      };
    }
    case 'duplicate': {
      const { payment_id } = decision.payment;
      const why = `payment ${payment_id} is recorded already: ${decision.evidence}`;
      return {
        sources: [bankSource(each, payment_id)],
        outcomes: [newOutcome(each, 'payment', why, { payment_id })],
        report: plainReport(each, 'duplicate', why, { payment_id }),
      };
    }
    case 'ignored': {
      const { why, needsReview: needs_review } = decision;
      return {
        sources: [],
        outcomes: [newOutcome(each, 'ignored', why, { needs_review })],
        report: plainReport(each, 'ignored', why, { needs_review }),
      };
    }
  }
}

const duplicateId = ({ of }: PossibleDuplicate, paymentIdOf: PaymentIdOf): number =>
  typeof of === 'number' ? of : paymentIdOf(of);

function newPayment(each: NewLine, decision: PaymentDecision): NewPayment {
  const { line, account, identity } = each;
  const isLink = decision.kind === 'link_payment';
  return {
    identity: bankIdentity(account, identity),
    source: 'bank',
    partner_id: decision.match.partner_id ?? null,
    currency: line.amount.currency,
    amount: line.amount.toString(),
    method: isLink ? 'link' : methodOf(line),
    account,
    received_on: line.booked_on,
    reference: isLink ? decision.processorId : referenceOf(each),
    payer_name: line.payer_name ?? null,
    payer_account: line.payer_account ?? null,
  };
}

const referenceOf = ({ id, line }: NewLine): string =>
  line.bank_reference ?? line.references[0]?.text.slice(0, 140) ?? `line ${id}`;

/** By the format's code: BAI2 142/165/169 ACH, 195/208 wires; ISO 20022 by instruments. */
function methodOf({ type, text }: BankLine): Method {
  const written = `${type} ${text}`.toUpperCase();
  if (/^(142|143|164|165|166|168|169)\b/.test(type) || /\bACH\b/.test(written)) return 'ach';
  if (/^(191|195|196|206|208|212|213)\b/.test(type) || /\bWIRE\b|FEDWIRE|RCDT|SWIFT/.test(written)) return 'wire';
  return 'other';
}

const bankSource = (each: NewLine, paymentId: number): NewPaymentSource => ({
  identity: bankIdentity(each.account, each.identity),
  payment_id: paymentId,
  source: 'bank',
  reference: referenceOf(each),
  bank_line_id: each.id,
});

export function newOutcome(
  each: NewLine,
  outcome: NewOutcome['outcome'],
  reason: string,
  rest: Partial<Pick<NewOutcome, 'payment_id' | 'payout_id' | 'payment_reversal_id' | 'needs_review'>> = {},
): NewOutcome {
  return {
    bank_line_id: each.id,
    outcome,
    payment_id: null,
    payout_id: null,
    payment_reversal_id: null,
    needs_review: false,
    reason,
    ...rest,
  };
}

function suggestionsOf(each: NewLine, decision: PaymentDecision, paymentIdOf: PaymentIdOf): NewSuggestion[] {
  const possible = decision.kind === 'payment' ? decision.possibleDuplicates : [];
  const payment_id = paymentIdOf(each);
  return [
    ...possible.map((duplicate) => ({
      payment_id,
      document_id: null,
      same_as: duplicateId(duplicate, paymentIdOf),
      amount: each.line.amount.toString(),
      confidence: CONFIDENCE.possible_duplicate,
      evidence: { why: duplicate.evidence },
    })),
    ...decision.match.suggested.map((suggested) => ({
      payment_id,
      document_id: suggested.document.document_id,
      same_as: null,
      amount: suggested.amount.toString(),
      confidence: suggested.confidence,
      evidence: suggested.evidence,
    })),
  ];
}

// --- Payouts ----------------------------------------------------------------------------------------------------------

interface PayoutRecords {
  readonly outcomes: NewOutcome[];
  readonly reports: Map<NewLine, LineReport>;
}

async function recordPayouts(
  context: PaymentContext,
  decisions: ReadonlyMap<NewLine, Decision>,
  paymentIdOf: PaymentIdOf,
): Promise<PayoutRecords> {
  const found = [...decisions].flatMap(([each, decision]) =>
    decision.kind === 'payout' || decision.kind === 'link_payment' ? [{ each, decision }] : [],
  );
  const payoutIds = await insertPayouts(
    context,
    found.map(({ each }) => each.id),
  );
  const settlements: NewSettlement[] = [];
  const outcomes: NewOutcome[] = [];
  const reports = new Map<NewLine, LineReport>();
  const unsettled: { each: NewLine; payoutId: number; report: LineReport }[] = [];
  for (const { each, decision } of found) {
    const payoutId = payoutIds.get(each.id) as number;
    const { amount } = each.line;
    const isLink = decision.kind === 'link_payment';
    const gross = isLink ? amount : decision.gross;
    const paymentId = isLink ? paymentIdOf(each) : decision.of?.payment_id;
    const why = isLink ? `brings one payment of the processor, ${decision.processorId}` : decision.why;
    outcomes.push(newOutcome(each, 'payout', why, { payout_id: payoutId }));
    if (gross !== undefined) {
      settlements.push({
        payout_id: payoutId,
        gross: gross.toString(),
        fees: gross.minus(amount).toString(),
        why,
        payments: [{ payment_id: paymentId as number, amount: gross.toString() }],
      });
    }
    // A link payment is reported as a payment.
    if (isLink) continue;
    const report = plainReport(each, 'payout', why, {
      payment_id: paymentId ?? null,
      needs_review: gross === undefined,
    });
    reports.set(each, report);
    if (decision.namesNone) unsettled.push({ each, payoutId, report });
  }
  await insertSettlements(context, settlements);
  const accountPayouts = unsettled.length > 0 ? await settleReportedPayouts(context) : [];
  for (const { each, payoutId, report } of unsettled) {
    const possible = accountPayouts.filter((one) => one.payout_id === payoutId);
    const result = possible.length > 0 ? whichPayout(possible) : await settleWithOldest(context, payoutId, each.line);
    reports.set(each, { ...report, why: `${report.why}; ${result.why}`, needs_review: !result.settled });
  }
  return { outcomes, reports };
}

interface Settled {
  readonly settled: boolean;
  readonly why: string;
}

/** What may be a payout of a connected account is never settled with link payments. */
function whichPayout(possible: readonly AccountPayout[]): Settled {
  const names = possible.map(({ payout, account }) => `${payout ?? 'a payout'} of ${account}`).join(' or ');
  return possible.some(({ certain }) => certain)
    ? { settled: true, why: `it is ${names}` }
    : { settled: false, why: `it may be ${names}: ${SETTLE_BY_HAND} --account` };
}

/** Settles a payout that names no payment with the oldest payments that it can consist of. */
async function settleWithOldest(context: PaymentContext, payoutId: number, line: BankLine): Promise<Settled> {
  const waiting = await readWithProcessor(context.tx, line.amount.currency, line.booked_on);
  const found = settle(line.amount, waiting);
  if (found === undefined) return { settled: false, why: `its payments are not certain: ${SETTLE_BY_HAND}` };
  const { payments, gross, fees } = found;
  const oldest = payments.length === 1 ? 'oldest link payment' : `${payments.length} oldest link payments`;
  const why = `the ${oldest}, less ${fees.forPeople()} of fees`;
  await insertSettlements(context, [
    {
      payout_id: payoutId,
      gross: gross.toString(),
      fees: fees.toString(),
      why,
      payments: payments.map((each) => ({ payment_id: each.payment_id, amount: each.amount.toString() })),
    },
  ]);
  return { settled: true, why };
}
