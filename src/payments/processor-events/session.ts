/**
 * Records reports on a session before its money arrives: ordered, failed, expired. A payment link does not expire,
 * because its sessions can be opened again.
 */
import { Transaction } from '#database/transaction';
import { insertEnding } from '#delivery/checkouts/checkouts.sql';
import { requestLinkChecks } from '#payments/context';
import { SessionProgress } from '#processors/processor';
import { PROCESSOR } from '#processors/processors';
import { EventContext, EventOutcome } from './event.ts';
import {
  insertCheckoutOrder,
  insertLinkOrder,
  insertLinkOutcome,
  readDocumentsOfCheckout,
  readOwnCheckout,
  readOwnLink,
} from './events.sql.ts';

/** Returns the result of an event that does not affect the books. Sessions that are not ours are ignored. */
export async function recordProgress(
  tx: Transaction,
  context: EventContext,
  { id, link, state }: SessionProgress,
  reason: string,
): Promise<EventOutcome> {
  const { on } = context;
  const own = await readOwnCheckout(tx, PROCESSOR.name, { session: id });
  if (own !== undefined) {
    const { checkout_id: checkoutId } = own;
    const payments = await context.open();
    if (state === 'ordered') await insertCheckoutOrder(tx, { ...payments, checkoutId, on });
    else await insertEnding(tx, { checkoutId, why: state, now: payments.now });
    // The invoices' own links are closed while a debit is in progress, and created again if the debit fails.
    await requestLinkChecks(tx, await readDocumentsOfCheckout(tx, { checkoutId }));
  }
  const ownLink = link === undefined ? undefined : await readOwnLink(tx, { provider: PROCESSOR.name, id: link });
  if (ownLink !== undefined && state !== 'expired') {
    const payments = await context.open();
    if (state === 'ordered') await insertLinkOrder(tx, { ...payments, ...ownLink, on });
    else await insertLinkOutcome(tx, { ...payments, ...ownLink, outcome: 'failed' });
    await requestLinkChecks(tx, [ownLink.document_id]);
  }
  return { outcome: 'nothing', payment_id: null, reason };
}
