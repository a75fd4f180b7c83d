/** Refunds by the processor, and disputes by payers. */
import { Transaction } from '#database/transaction';
import { parseExactJson } from '#json';
import { Amount } from '#money';
import { money, remaining, smaller } from '#payments/apply';
import { PaymentContext } from '#payments/context';
import { processorIdentity } from '#payments/identities';
import { PaymentState } from '#payments/payments.sql';
import { reinstate, reverseAll } from '#payments/reverse';
import { PaymentFact } from '#processors/processor';
import { PROCESSOR } from '#processors/processors';
import { EventContext, EventOutcome, PendingEvent, waitsForPayment } from './event.ts';
import {
  insertDispute,
  insertDisputeOutcome,
  paymentOf,
  readDispute,
  readEventsOf,
  readRefunds,
} from './events.sql.ts';

type Dispute = Extract<PaymentFact, { kind: 'disputed' }>;

/**
 * Records a dispute, which is opened and then decided. A late event never reopens a decided dispute. A lost dispute is
 * won if an appeal succeeds.
 */
export async function recordDispute(
  tx: Transaction,
  context: EventContext,
  fact: Dispute,
): Promise<EventOutcome | PendingEvent> {
  const { account, on } = context;
  const payment = await paymentOf(tx, context, fact.ids);
  if (payment === undefined) return waitsForPayment(fact.ids[0]);
  const { payment_id } = payment;
  const nothing = (reason: string): EventOutcome => ({ outcome: 'nothing', payment_id, reason });
  const foreign = inOtherCurrency('dispute', fact.amount, payment);
  if (foreign !== undefined) return foreign;
  const identity = processorIdentity(account, fact.dispute);
  const before = await readDispute(tx, { identity });
  const isAppealed = before?.outcome === 'lost' && fact.state === 'won';
  if (before?.outcome && !isAppealed) return nothing(`dispute ${fact.dispute} is ${before.outcome}`);
  const payments = await context.open();
  const disputeId =
    before?.dispute_id ??
    (await insertDispute(tx, payments, {
      identity,
      paymentId: payment_id,
      amount: fact.amount.toString(),
      reason: fact.reason,
      on,
    }));
  // An open dispute withdraws the money, and a lost dispute leaves it withdrawn. An inquiry does not withdraw money.
  const withdraws = (fact.state === 'open' || fact.state === 'lost') && before?.payment_reversal_id == null;
  if (withdraws) await withdraw(tx, payments, { identity, payment, fact, on });
  const decided = fact.state === 'won' || fact.state === 'lost' || fact.state === 'closed' ? fact.state : undefined;
  if (decided !== undefined) {
    await insertDisputeOutcome(tx, { ...payments, disputeId, outcome: decided, on });
    if (decided !== 'lost' && before?.payment_reversal_id != null && !before.reinstated) {
      await reinstate(tx, payments, before.payment_reversal_id, on);
    }
  }
  if (before !== undefined && !withdraws && decided === undefined) {
    return nothing(`dispute ${fact.dispute} is already recorded`);
  }
  return { outcome: 'effect', payment_id, reason: `dispute ${fact.dispute} of payment ${payment_id} is ${fact.state}` };
}

function inOtherCurrency(
  what: string,
  { currency }: Amount,
  payment: Pick<PaymentState, 'payment_id' | 'currency'>,
): EventOutcome | undefined {
  if (currency === payment.currency) return undefined;
  const reason = `the ${what} is in ${currency}, the payment in ${payment.currency}`;
  return { outcome: 'manual_review', payment_id: payment.payment_id, reason };
}

/** A dispute withdraws at most the amount that was not refunded. */
async function withdraw(
  tx: Transaction,
  payments: PaymentContext,
  { identity, payment, fact, on }: { identity: string; payment: PaymentState; fact: Dispute; on: string },
) {
  const amount = smaller(fact.amount, remaining(payment));
  if (!amount.isPositive()) return;
  await reverseAll(tx, payments, [
    {
      identity,
      payment_id: payment.payment_id,
      amount: amount.toString(),
      kind: 'disputed',
      code: fact.reason,
      reason: `disputed by the payer: ${fact.reason}`,
      reversed_on: on,
    },
  ]);
}

// --- Refunds ---

type Refund = Extract<PaymentFact, { kind: 'refunded' | 'refund_undone' }>;

/** `at` is a time in milliseconds. */
type RefundReport = Readonly<{
  at: number;
  fact: Refund;
}>;

/**
 * Records a refund. The refunded amount of a payment is computed from all of its events, which may arrive in any order.
 * If it exceeds the recorded refunds, the excess is reversed. If it is smaller because a refund failed, the payment is
 * reinstated.
 */
export async function recordRefund(
  tx: Transaction,
  context: EventContext,
  fact: Refund,
): Promise<EventOutcome | PendingEvent> {
  const { event, on } = context;
  const state = await paymentOf(tx, context, fact.ids);
  if (state === undefined) return waitsForPayment(fact.ids[0]);
  const { payment_id } = state;
  const nothing = (reason: string): EventOutcome => ({ outcome: 'nothing', payment_id, reason });
  const foreign = inOtherCurrency('refund', fact.kind === 'refunded' ? fact.total : fact.amount, state);
  if (foreign !== undefined) return foreign;
  const now: RefundReport = { at: Date.parse(event.created), fact };
  const { told, erasedUntil } = await readTold(tx, payment_id);
  if (now.at < erasedUntil) return nothing('later events are already recorded');
  const recorded = await readRefunds(tx, { paymentId: payment_id });
  const sum = (refunds: typeof recorded) => Amount.sum(state.currency, refunds, (each) => money(each.amount, state));
  const byProcessor = recorded.filter(({ identity }) => /^processor\|.*\|refunded\|/.test(identity));
  // If no event has a total, the data of the events was erased. In that case, the refunded amount is the amount of the
  // recorded refunds, less a failed refund in this event.
  const before = refundedBy(told) ?? sum(byProcessor);
  const isKnown = told.some((each) => isSameRefund(each.fact, fact));
  const refunded =
    refundedBy([...told, now]) ?? (fact.kind === 'refunded' || isKnown ? before : orNothing(before.minus(fact.amount)));
  const identity = processorIdentity(context.account, `${payment_id}|refunded|${event.id}`);
  const reverse = async (amount: Amount) =>
    reverseAll(tx, await context.open(), [
      {
        ...{ identity, payment_id, amount: amount.toString(), kind: 'refunded' as const, reversed_on: on },
        reason: `refunded by the processor, ${refunded.forPeople()} in total`,
      },
    ]);

  const more = refunded.minus(sum(recorded));
  if (more.isPositive()) {
    const left = remaining(state);
    if (more.minus(left).isPositive()) {
      return { waits: `only ${left.forPeople()} of payment ${payment_id} is left to refund ${more.forPeople()}` };
    }
    await reverse(more);
    return { outcome: 'effect', payment_id, reason: `${more.forPeople()} of payment ${payment_id} was refunded` };
  }
  const less = smaller(before.minus(refunded), more.negated());
  if (!less.isPositive()) return nothing(`refunds of ${refunded.forPeople()} in total are already recorded`);
  const back = smaller(less, sum(byProcessor));
  if (!back.isPositive()) {
    const reason = `a refund of ${less.forPeople()} entered by hand failed: record the money as a payment again`;
    return { outcome: 'manual_review', payment_id, reason };
  }
  let undone = Amount.zero(state.currency);
  for (const each of byProcessor) {
    if (!undone.isLessThan(back)) break;
    await reinstate(tx, await context.open(), each.payment_reversal_id, on);
    undone = undone.plus(money(each.amount, state));
  }
  if (back.isLessThan(undone)) await reverse(undone.minus(back));
  return {
    ...{ outcome: 'effect', payment_id },
    reason: `a refund failed: ${back.forPeople()} of payment ${payment_id} counts as paid again`,
  };
}

async function readTold(tx: Transaction, paymentId: number): Promise<{ told: RefundReport[]; erasedUntil: number }> {
  let erasedUntil = Number.NEGATIVE_INFINITY;
  const told: RefundReport[] = [];
  for (const { type, created, payload } of await readEventsOf(tx, { paymentId })) {
    const at = Date.parse(created);
    if (payload === null) erasedUntil = Math.max(erasedUntil, at);
    else {
      const { data } = parseExactJson(payload) as { data: { object: unknown } };
      const reading = PROCESSOR.events.read(type, data.object);
      for (const fact of 'facts' in reading ? reading.facts : []) {
        if (fact.kind === 'refunded' || fact.kind === 'refund_undone') told.push({ at, fact });
      }
    }
  }
  return { told: told.filter(({ at }) => at >= erasedUntil), erasedUntil };
}

const isSameRefund = (one: Refund, other: Refund) =>
  one.kind === 'refund_undone' && other.kind === 'refund_undone' && one.refund === other.refund;

/**
 * Returns the refunded amount: the latest total of the charge, less later failures. Events of the same second have no
 * known order, so the largest total is used. The largest total includes a refund that was made and failed in that
 * second. The result is undefined if no event has a total.
 */
function refundedBy(told: readonly RefundReport[]) {
  const totals = told.flatMap(({ at, fact }) => (fact.kind === 'refunded' ? [{ at, total: fact.total }] : []));
  const latest = Math.max(...totals.map(({ at }) => at));
  const [first, ...others] = totals.filter(({ at }) => at === latest);
  if (first === undefined) return undefined;
  const largest = others.reduce((most, { total }) => (most.isLessThan(total) ? total : most), first.total);
  const failures = new Map<string, { at: number; made: number; amount: Amount }>();
  for (const { at, fact } of told) {
    if (fact.kind !== 'refund_undone' || (failures.get(fact.refund)?.at ?? at) < at) continue;
    failures.set(fact.refund, { at, made: Date.parse(fact.made_at), amount: fact.amount });
  }
  const failedSince = [...failures.values()].filter(
    ({ at, made }) => made === latest || (made < latest && latest < at),
  );
  return orNothing(failedSince.reduce((left, { amount }) => left.minus(amount), largest));
}

const orNothing = (amount: Amount) => (amount.isNegative() ? Amount.zero(amount.currency) : amount);
