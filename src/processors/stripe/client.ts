import Stripe from 'stripe';
import { ProcessorAccess } from '#processors/processor';

/** Loads the `stripe` package on demand, because most commands never call a processor. */
export async function openStripe(
  { key, base }: ProcessorAccess,
  { maxNetworkRetries, timeout }: { maxNetworkRetries: number; timeout: number },
) {
  const { default: StripeClient } = await import('stripe');
  const url = base === undefined ? undefined : new URL(base);
  return new StripeClient(key, {
    maxNetworkRetries,
    timeout,
    telemetry: false,
    ...(url === undefined
      ? {}
      : { protocol: url.protocol === 'http:' ? 'http' : 'https', host: url.hostname, port: url.port || undefined }),
  } as Stripe.StripeConfig);
}

/**
 * Removes the rejected key from Stripe's message. Stripe masks most of the key, but no part of a key may reach a log.
 */
export const withoutKey = (message: string) => message.replace(/\b[sr]k_(test|live)_\S+/g, '(key)');
