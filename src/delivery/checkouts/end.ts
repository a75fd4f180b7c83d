/**
 * Ends a checkout, and records the outcome of its session at the processor. One that is ordered or paid is not ended,
 * because the processor's event will report its outcome.
 */
import { DateTime } from 'luxon';
import { Environment } from '#config/environment';
import { Database } from '#database/database';
import { failpoint } from '#failpoint';
import { KeySpent, PaymentLinks, RefusedByProcessor, Unavailable } from '#processors/processor';
import { Checkout, CheckoutEnding, insertEnding, insertSession, readLiveCheckouts } from './checkouts.sql.ts';

export type CheckoutCalls = Readonly<{
  environment: Environment;
  database: Database;
  links: { readonly processors: ReadonlyMap<string, PaymentLinks> };
}>;

/**
 * For a day, the processor certainly returns the same session for the same key. After that day, no one can pay a
 * session whose URL was never shown.
 */
const KEY_VALID_HOURS = 20;

export function callsOf({ links }: CheckoutCalls, { provider }: Pick<Checkout, 'provider'>) {
  const calls = links.processors.get(provider)?.checkouts;
  if (calls === undefined) throw new Unavailable(`the key of ${provider} is not set`);
  return calls;
}

/**
 * The state of the session: `expired` if this call ended it or it had ended. Throws Unavailable if the processor cannot
 * be reached, and then records nothing.
 */
export async function endCheckout(
  context: CheckoutCalls,
  checkout: Checkout,
  why: 'replaced' | 'canceled' | 'changed',
) {
  const providerId = checkout.provider_id ?? (await makeSession(context, checkout));
  // Without a session there is nothing to pay.
  if (providerId === undefined) return 'expired';
  const state = await callsOf(context, checkout).expire(providerId);
  failpoint('checkout.expired');
  const isOver = DateTime.fromISO(checkout.expires_at) <= context.environment.now();
  if (state === 'expired') await recordEnding(context, checkout, isOver ? 'expired' : why);
  if (state === 'failed') await recordEnding(context, checkout, 'failed');
  return state;
}

/**
 * Creates the session with the key that was recorded before, so a repeated request creates no second one. Returns its
 * id; undefined if none was made, with the reason recorded.
 */
export async function makeSession(context: CheckoutCalls, checkout: Checkout) {
  const { checkout_id: checkoutId, recorded_at, request, idempotency_key } = checkout;
  const age = context.environment.now().diff(DateTime.fromISO(recorded_at));
  if (age.as('hours') >= KEY_VALID_HOURS) {
    await recordEnding(context, checkout, 'not_made');
    return undefined;
  }
  try {
    const { providerId, url } = await callsOf(context, checkout).make(request, idempotency_key);
    failpoint('checkout.made');
    const now = context.environment.now().toISO();
    await context.database.transaction((tx) => insertSession(tx, { checkoutId, providerId, url, now }));
    failpoint('checkout.stored');
    return providerId;
  } catch (error) {
    if (!(error instanceof RefusedByProcessor || error instanceof KeySpent)) throw error;
    // If a failed request made a session anyway, no one knows its address.
    await recordEnding(context, checkout, error instanceof KeySpent ? 'not_made' : 'refused', error.message);
    return undefined;
  }
}

const recordEnding = (
  { database, environment }: CheckoutCalls,
  { checkout_id: checkoutId }: Checkout,
  why: CheckoutEnding,
  detail?: string,
) => database.transaction((tx) => insertEnding(tx, { checkoutId, why, detail, now: environment.now().toISO() }));

/**
 * Ends the sessions for a document whose balance has changed. Does not wait for an unreachable processor: a session
 * ends within the hour, and an overpayment until then is unapplied cash.
 */
export async function endChangedCheckouts(context: CheckoutCalls, documentId: number) {
  const live = await context.database.reading((tx) => readLiveCheckouts(tx, { documentIds: [documentId] }));
  for (const checkout of live) {
    try {
      await endCheckout(context, checkout, 'changed');
    } catch (error) {
      if (!(error instanceof Unavailable || error instanceof RefusedByProcessor)) throw error;
    }
  }
}
