/** A payment that the processor refunded. */
import { Amount } from '../../money.ts';
import type { PaymentFact } from '../../processors/processor.ts';
import { remaining } from '../apply.ts';
import { processorIdentity } from '../identities.ts';
import { reverseAll } from '../reverse.ts';
import { type EventContext, type EventOutcome, paymentOf, type Waits, waitsForPayment } from './event.ts';
import { readRefunded } from './events.sql.ts';

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
