/** Payments that the processor refunded, or that their payers disputed. */
import { Amount } from '../../money.ts';
import type { PaymentFact } from '../../processors/processor.ts';
import { remaining, smaller } from '../apply.ts';
import type { PaymentContext } from '../context.ts';
import { processorIdentity } from '../identities.ts';
import type { PaymentState } from '../queries.ts';
import { reinstate, reverseAll } from '../reverse.ts';
import { type EventContext, type EventOutcome, paymentOf, type Waits, waitsForPayment } from './event.ts';
import { insertDispute, insertDisputeOutcome, readDispute, readRefunded } from './events.sql.ts';

type Dispute = Extract<PaymentFact, { kind: 'disputed' }>;

/** A dispute is opened, then decided. A late event never reopens it. */
export async function recordDispute(context: EventContext, fact: Dispute): Promise<EventOutcome | Waits> {
  const { account, on } = context;
  const payment = await paymentOf(context, fact.ids);
  if (payment === undefined) return waitsForPayment(fact.ids[0]);
  const { payment_id } = payment;
  const nothing = (reason: string): EventOutcome => ({ outcome: 'nothing', payment_id, reason });
  if (fact.amount.currency !== payment.currency) {
    const reason = `the dispute is in ${fact.amount.currency}, the payment in ${payment.currency}`;
    return { outcome: 'manual_review', payment_id, reason };
  }
  const identity = processorIdentity(account, fact.dispute);
  const before = await readDispute(context.tx, identity);
  if (before?.outcome) return nothing(`dispute ${fact.dispute} is ${before.outcome}`);
  const payments = await context.open();
  const disputeId =
    before?.dispute_id ??
    (await insertDispute(payments, {
      identity,
      paymentId: payment_id,
      amount: fact.amount.toString(),
      reason: fact.reason,
      on,
    }));
  // An open dispute withdraws the money and a lost one keeps it; an inquiry withdraws nothing.
  const withdraws = (fact.state === 'open' || fact.state === 'lost') && before?.payment_reversal_id == null;
  if (withdraws) await withdraw(payments, { identity, payment, fact, on });
  const decided = fact.state === 'won' || fact.state === 'lost' || fact.state === 'closed' ? fact.state : undefined;
  if (decided !== undefined) {
    await insertDisputeOutcome(payments, { disputeId, outcome: decided, on });
    if (decided !== 'lost' && before?.payment_reversal_id != null && !before.reinstated) {
      await reinstate(payments, before.payment_reversal_id, on);
    }
  }
  if (before !== undefined && !withdraws && decided === undefined) {
    return nothing(`dispute ${fact.dispute} is recorded already`);
  }
  return { outcome: 'effect', payment_id, reason: `dispute ${fact.dispute} of payment ${payment_id} is ${fact.state}` };
}

/** Withdraws at most what is left after refunds. */
async function withdraw(
  payments: PaymentContext,
  { identity, payment, fact, on }: { identity: string; payment: PaymentState; fact: Dispute; on: string },
): Promise<void> {
  const amount = smaller(fact.amount, remaining(payment));
  if (!amount.isPositive()) return;
  await reverseAll(payments, [
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

// --- Refunds ---------------------------------------------------------------------------------------------------------

/** Each event states the total refunded so far: what exceeds the recorded refunds is new, in whichever order events come. */
export async function recordRefund(
  context: EventContext,
  { ids, charge, total }: Extract<PaymentFact, { kind: 'refunded' }>,
): Promise<EventOutcome | Waits> {
  const { tx, account, on } = context;
  const state = await paymentOf(context, ids);
  if (state === undefined) return waitsForPayment(ids[0]);
  const { payment_id } = state;
  const more = total.minus(Amount.of(await readRefunded(tx, payment_id), state.currency));
  if (!more.isPositive()) {
    return { outcome: 'nothing', payment_id, reason: `the refund of ${total.forPeople()} is recorded already` };
  }
  const left = remaining(state);
  if (more.minus(left).isPositive()) {
    return { waits: `only ${left.forPeople()} of payment ${payment_id} is left to refund ${more.forPeople()}` };
  }
  await reverseAll(await context.open(), [
    {
      identity: processorIdentity(account, `${charge}|refunded|${total.toString()}`),
      payment_id,
      amount: more.toString(),
      kind: 'refunded',
      reason: `refunded by the processor, ${total.forPeople()} in total`,
      reversed_on: on,
    },
  ]);
  return { outcome: 'effect', payment_id, reason: `${more.forPeople()} of payment ${payment_id} was refunded` };
}
