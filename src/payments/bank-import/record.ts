import { Transaction } from '#database/transaction';
import { insertCreditApplications } from '#documents/placed-credit.sql';
import { BankLine } from '#payments/bank/statement';
import { PaymentContext, requestLinkChecks } from '#payments/context';
import { CONFIDENCE, Match } from '#payments/evidence';
import { bankIdentity, processorIdentity } from '#payments/identities';
import {
  insertApplications,
  insertPaymentSources,
  insertPayments,
  insertSuggestions,
  NewPayment,
  NewPaymentSource,
  NewSuggestion,
} from '#payments/insert.sql';
import { settle } from '#payments/payout-contents';
import {
  AccountPayout,
  insertPayouts,
  insertSettlements,
  NewSettlement,
  readWithProcessor,
} from '#payments/payouts.sql';
import { settleReportedPayouts } from '#payments/settle-payouts';
import { insertOutcomes, NewOutcome } from './bank-lines.sql.ts';
import { Decision, NewLine, PayoutDecision, PossibleDuplicate, SETTLE_BY_HAND } from './decide.ts';
import { ignoredLine, LineReport, paymentReport, plainReport } from './report.ts';

type PaymentDecision = Extract<Decision, { match: Match }>;
type PaymentIdOf = (each: NewLine) => number;
type LineRecords = Readonly<{
  sources: readonly NewPaymentSource[];
  outcomes: readonly NewOutcome[];
  report: LineReport;
}>;

/**
 * Records all credits but payouts, which are recorded after all credits of the file. Adds the payments to `paymentIds`,
 * by the ids of their lines.
 */
export async function recordCredits(
  tx: Transaction,
  context: PaymentContext,
  decisions: ReadonlyMap<NewLine, Decision>,
  paymentIds: Map<number, number>,
): Promise<LineReport[]> {
  const received = [...decisions].flatMap(([each, decision]) => ('match' in decision ? [{ each, decision }] : []));
  const ids = await insertPayments(
    tx,
    context,
    received.map(({ each, decision }) => newPayment(each, decision)),
  );
  for (const { each } of received) {
    paymentIds.set(each.id, ids.get(bankIdentity(each.account, each.identity)) as number);
  }
  const paymentIdOf: PaymentIdOf = ({ id }) => paymentIds.get(id) as number;
  const records = [...decisions].flatMap(([each, decision]) =>
    decision.kind === 'payout' ? [] : [recordsOf(each, decision, paymentIdOf)],
  );
  await insertPaymentSources(
    tx,
    context,
    records.flatMap(({ sources }) => sources),
  );
  await insertApplications(
    tx,
    context,
    received.flatMap(({ each, decision }) =>
      decision.match.applied.map((applied) => ({
        payment_id: paymentIdOf(each),
        document_id: applied.document.document_id,
        amount: applied.amount.toString(),
        applied_on: each.line.booked_on,
        confidence: applied.confidence,
        evidence: applied.evidence,
        small_difference: applied.small_difference?.toString(),
      })),
    ),
  );
  await insertCreditApplications(
    tx,
    context,
    received.flatMap(({ each, decision }) =>
      (decision.match.credit ?? []).map(({ credit, document, amount }) => ({
        credit_note_id: credit.document_id,
        invoice_id: document.document_id,
        amount: amount.toString(),
        applied_on: each.line.booked_on,
      })),
    ),
  );
  await insertSuggestions(
    tx,
    context,
    received.flatMap(({ each, decision }) => suggestionsOf(each, decision, paymentIdOf)),
  );
  await insertOutcomes(
    tx,
    context,
    records.flatMap(({ outcomes }) => outcomes),
  );
  await requestLinkChecks(
    tx,
    received.flatMap(({ decision }) => decision.match.applied.map((each) => each.document.document_id)),
  );
  return records.map(({ report }) => report);
}

// --- Payments ---

function recordsOf(each: NewLine, decision: Exclude<Decision, PayoutDecision>, paymentIdOf: PaymentIdOf): LineRecords {
  if (decision.kind === 'ignored') {
    const { outcome, report } = ignoredLine(each, decision.why, decision.needsReview);
    return { sources: [], outcomes: [outcome], report };
  }
  const source = bankSource(each, decision.kind === 'duplicate' ? decision.payment.payment_id : paymentIdOf(each));
  const { payment_id } = source;
  if (decision.kind === 'duplicate') {
    const reason = `payment ${payment_id} is already recorded: ${decision.evidence}`;
    const report = plainReport(each, 'duplicate', reason, { payment_id });
    return { sources: [source], outcomes: [{ bank_line_id: each.id, outcome: 'payment', payment_id, reason }], report };
  }
  const { match } = decision;
  if (decision.kind === 'link_payment') {
    const reference = decision.processorId;
    const identity = processorIdentity('', reference);
    // The outcome of the line is recorded with its payout.
    return {
      sources: [source, { identity, payment_id, source: 'processor', reference }],
      outcomes: [],
      report: paymentReport(each, payment_id, match),
    };
  }
  const sameAs = decision.possibleDuplicates.map((possible) => duplicateId(possible, paymentIdOf));
  return {
    sources: [source],
    outcomes: [{ bank_line_id: each.id, outcome: 'payment', payment_id, reason: match.why }],
    report: paymentReport(each, payment_id, match, sameAs),
  };
}

const duplicateId = ({ of }: PossibleDuplicate, paymentIdOf: PaymentIdOf) =>
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
    method: isLink ? 'link' : line.method,
    account,
    received_on: line.booked_on,
    reference: isLink ? decision.processorId : referenceOf(each),
    payer_name: line.payer_name,
    payer_account: line.payer_account,
  };
}

const referenceOf = ({ id, line }: NewLine) =>
  line.bank_reference ?? line.references[0]?.text.slice(0, 140) ?? `line ${id}`;

const bankSource = (each: NewLine, paymentId: number): NewPaymentSource => ({
  identity: bankIdentity(each.account, each.identity),
  payment_id: paymentId,
  source: 'bank',
  reference: referenceOf(each),
  bank_line_id: each.id,
});

function suggestionsOf(each: NewLine, decision: PaymentDecision, paymentIdOf: PaymentIdOf): NewSuggestion[] {
  const possible = decision.kind === 'payment' ? decision.possibleDuplicates : [];
  const payment_id = paymentIdOf(each);
  return [
    ...possible.map((duplicate) => ({
      payment_id,
      same_as: duplicateId(duplicate, paymentIdOf),
      amount: each.line.amount.toString(),
      confidence: CONFIDENCE.possible_duplicate,
      evidence: { why: duplicate.evidence, ...(duplicate.corrects && { corrects: true as const }) },
    })),
    ...decision.match.suggested.map(({ document: { document_id }, amount, confidence, evidence }) => ({
      ...{ payment_id, document_id, amount: amount.toString(), confidence, evidence },
    })),
  ];
}

// --- Payouts ---

export type PaidOut = Readonly<{
  each: NewLine;
  decision: Extract<Decision, { kind: 'payout' | 'link_payment' }>;
}>;

export async function recordPayouts(
  tx: Transaction,
  context: PaymentContext,
  found: readonly PaidOut[],
  paymentIds: ReadonlyMap<number, number>,
): Promise<LineReport[]> {
  const payoutIds = await insertPayouts(
    tx,
    context,
    found.map(({ each }) => each.id),
  );
  const settlements: NewSettlement[] = [];
  const outcomes: NewOutcome[] = [];
  const reports = new Map<NewLine, LineReport>();
  const unsettled: { each: NewLine; payout_id: number; report: LineReport }[] = [];
  for (const { each, decision } of found) {
    const payout_id = payoutIds.get(each.id) as number;
    const { amount } = each.line;
    const isLink = decision.kind === 'link_payment';
    const gross = isLink ? amount : decision.gross;
    const payment_id = isLink ? paymentIds.get(each.id) : decision.of?.payment_id;
    const why = isLink ? `contains one payment of the processor, ${decision.processorId}` : decision.why;
    outcomes.push({ bank_line_id: each.id, outcome: 'payout', payout_id, reason: why });
    if (gross !== undefined && payment_id !== undefined) {
      const fees = gross.minus(amount).toString();
      const payments = [{ payment_id, amount: gross.toString() }];
      settlements.push({ payout_id, gross: gross.toString(), fees, why, payments });
    }
    // A link payment is reported as a payment, not as a payout.
    if (isLink) continue;
    const report = plainReport(each, 'payout', why, { payment_id, needs_review: gross === undefined });
    reports.set(each, report);
    if (decision.namesNone) unsettled.push({ each, payout_id, report });
  }
  await insertSettlements(tx, context, settlements);
  const accountPayouts = unsettled.length > 0 ? await settleReportedPayouts(tx, context) : [];
  for (const { each, payout_id, report } of unsettled) {
    const possible = accountPayouts.filter((one) => one.payout_id === payout_id);
    const result =
      possible.length > 0 ? whichPayout(possible) : await settleWithOldest(tx, context, payout_id, each.line);
    reports.set(each, { ...report, why: `${report.why}; ${result.why}`, needs_review: !result.settled });
  }
  await insertOutcomes(tx, context, outcomes);
  return [...reports.values()];
}

type Settlement = Readonly<{
  settled: boolean;
  why: string;
}>;

/** A payout that may come from a connected account is never settled with link payments. */
function whichPayout(possible: readonly AccountPayout[]): Settlement {
  const names = possible.map(({ payout, account }) => `${payout ?? 'a payout'} of ${account}`).join(' or ');
  return possible.some(({ certain }) => certain)
    ? { settled: true, why: `it is ${names}` }
    : { settled: false, why: `it may be ${names}: ${SETTLE_BY_HAND}, by its account` };
}

async function settleWithOldest(
  tx: Transaction,
  context: PaymentContext,
  payout_id: number,
  line: BankLine,
): Promise<Settlement> {
  const waiting = await readWithProcessor(tx, line.amount.currency, line.booked_on);
  const found = settle(line.amount, waiting);
  if (found === undefined) return { settled: false, why: `its payments are not certain: ${SETTLE_BY_HAND}` };
  const oldest = found.payments.length === 1 ? 'oldest link payment' : `${found.payments.length} oldest link payments`;
  const why = `the ${oldest}, less ${found.fees.forPeople()} of fees`;
  const payments = found.payments.map(({ payment_id, amount }) => ({ payment_id, amount: amount.toString() }));
  const [gross, fees] = [found.gross.toString(), found.fees.toString()];
  await insertSettlements(tx, context, [{ payout_id, gross, fees, why, payments }]);
  return { settled: true, why };
}
