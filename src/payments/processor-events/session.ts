/** What the processor says of the session of a checkout before its money is there: ordered, failed, expired. */
import { insertEnding } from '../../delivery/checkouts/queries.ts';
import type { SessionProgress } from '../../processors/processor.ts';
import { PROCESSOR } from '../../processors/processors.ts';
import type { EventContext, EventOutcome } from './event.ts';
import { insertCheckoutOrder, readOwnCheckout } from './events.sql.ts';

/** Gives the reason of an outcome without an effect on the books. A session that we did not make is left alone. */
export async function recordProgress(
  context: EventContext,
  { id, state }: SessionProgress,
  reason: string,
): Promise<EventOutcome> {
  const { tx, on } = context;
  const own = await readOwnCheckout(tx, PROCESSOR.name, { session: id });
  if (own !== undefined) {
    const { checkout_id: checkoutId } = own;
    const payments = await context.open();
    if (state === 'ordered') await insertCheckoutOrder(payments, { checkoutId, on });
    else await insertEnding(tx, { checkoutId, why: state, now: payments.now });
  }
  return { outcome: 'nothing', payment_id: null, reason };
}
