/**
 * Ends a checkout, after reading and recording the outcome of its session at the processor. A checkout that was ordered
 * or paid there is not ended: the processor's event reports its outcome.
 */
import { DateTime } from 'luxon';
import type { Environment } from '../../config/environment.ts';
import type { Database } from '../../database/database.ts';
import { failpoint } from '../../failpoint.ts';
import {
  type CheckoutState,
  KeySpent,
  type PaymentLinks,
  RefusedByProcessor,
  Unavailable,
} from '../../processors/processor.ts';
import { type Checkout, type CheckoutEnding, insertEnding, insertSession, readLiveCheckouts } from './checkouts.sql.ts';

export interface CheckoutCalls {
  readonly environment: Environment;
  readonly database: Database;
  readonly links: { readonly processors: ReadonlyMap<string, PaymentLinks> };
}

/**
 * For a day, a key is certain to return the same session. A session whose URL was not given out by then cannot be paid
 * any more.
 */
const KEY_VALID_HOURS = 20;

export function callsOf({ links }: CheckoutCalls, { provider }: Pick<Checkout, 'provider'>): PaymentLinks['checkouts'] {
  const calls = links.processors.get(provider)?.checkouts;
  if (calls === undefined) throw new Unavailable(`the key of ${provider} is not set`);
  return calls;
}

/**
 * Returns the state of the session: `expired` if it is ended now or was before. Throws Unavailable if the processor
 * cannot be reached: nothing is recorded then.
 */
export async function endCheckout(
  context: CheckoutCalls,
  checkout: Checkout,
  why: 'replaced' | 'canceled' | 'changed',
): Promise<CheckoutState> {
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
 * Creates the session with the key that was recorded before. If an answer was lost, the repeated request creates no
 * second session. Returns its id; undefined if there is none, which is recorded with its reason.
 */
export async function makeSession(context: CheckoutCalls, checkout: Checkout): Promise<string | undefined> {
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
): Promise<void> =>
  database.transaction((tx) => insertEnding(tx, { checkoutId, why, detail, now: environment.now().toISO() }));

/**
 * Ends the sessions for a document whose balance has changed. Nothing waits for an unreachable processor: a session
 * ends by itself within the hour, and any overpayment until then is unapplied cash.
 */
export async function endChangedCheckouts(context: CheckoutCalls, documentId: number): Promise<void> {
  const live = await context.database.reading((tx) => readLiveCheckouts(tx, [documentId]));
  for (const checkout of live) {
    try {
      await endCheckout(context, checkout, 'changed');
    } catch (error) {
      if (!(error instanceof Unavailable || error instanceof RefusedByProcessor)) throw error;
    }
  }
}
