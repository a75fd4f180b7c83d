import Stripe from 'stripe';
import { Amount } from '#money';
import { CheckoutOrder, CheckoutState, Checkouts, MadeLink, RefusedByProcessor } from '#processors/processor';
import { StripeAmount, stripeAmount } from './amounts.ts';
import { StripeCalls } from './calls.ts';
import { smallestUnit } from './splits/smallest-unit.ts';

/** Stripe accepts 100 line items, and recommends no more than a few dozen. */
export const MOST_INVOICES = 50;
/**
 * Stripe accepts 30 minutes to 24 hours. An hour is enough to pay. A longer time is risky: if an invoice's amount
 * changes, the open session still charges the old amount.
 */
export const OPEN_MINUTES = 60;

/** The minimum charge applies only to the sum of the invoices. */
export function checkoutUnits(amounts: readonly Amount[]): { readonly units: readonly number[] } | { reason: string } {
  const [first, ...rest] = amounts;
  if (first === undefined) return { reason: 'no invoice is chosen' };
  const total: StripeAmount = stripeAmount(rest.reduce((sum, each) => sum.plus(each), first));
  if ('reason' in total) return total;
  const units: number[] = [];
  for (const each of amounts) {
    const unit = smallestUnit(each.toString(), each.currency);
    if ('reason' in unit) return unit;
    units.push(unit.units);
  }
  return { units };
}

export function checkoutRequest(order: CheckoutOrder): Stripe.Checkout.SessionCreateParams {
  const { installation, reference, partnerId, currency, lines } = order;
  const metadata = { installation, checkout: reference, partner_id: partnerId };
  const names = lines.map(({ number }) => number);
  const more = names.length > 3 ? ` and ${names.length - 3} more` : '';
  return {
    mode: 'payment',
    line_items: lines.map(({ number, unitAmount }) => ({
      quantity: 1,
      price_data: {
        currency: currency.toLowerCase(),
        unit_amount: unitAmount,
        product_data: { name: `Invoice ${number}` },
      },
    })),
    // Stripe shows only payment methods that are enabled in the account's Dashboard. Since the API version 2026-09-30,
    // `allowed_payment_method_types` restricts the methods further.
    allowed_payment_method_types: [...order.methods],
    // An invoice is paid in its own currency, whatever currency the account's setting names.
    adaptive_pricing: { enabled: false },
    submit_type: 'pay',
    success_url: order.backTo,
    cancel_url: order.backTo,
    expires_at: Math.floor(order.expiresAt.getTime() / 1000),
    metadata,
    payment_intent_data: { description: `Invoices ${names.slice(0, 3).join(', ')}${more}`, metadata },
  };
}

export class StripeCheckouts implements Checkouts {
  private readonly stripe: StripeCalls;

  constructor(stripe: StripeCalls) {
    this.stripe = stripe;
  }

  async make(request: object, idempotencyKey: string): Promise<MadeLink> {
    const { id, url } = await this.stripe.call((client) =>
      client.checkout.sessions.create(request as Stripe.Checkout.SessionCreateParams, { idempotencyKey }),
    );
    if (url === null) throw new RefusedByProcessor('Stripe: the session has no page');
    return { providerId: id, url };
  }

  async state(providerId: string): Promise<CheckoutState> {
    const session = await this.stripe.ask((client) =>
      client.checkout.sessions.retrieve(providerId, { expand: ['payment_intent'] }),
    );
    return stateOf(session);
  }

  async expire(providerId: string): Promise<CheckoutState> {
    try {
      await this.stripe.ask((client) => client.checkout.sessions.expire(providerId));
      return 'expired';
    } catch (error) {
      // If Stripe refuses this call, the session was paid or has expired, because an open session can be ended.
      if (!(error instanceof RefusedByProcessor)) throw error;
      const state = await this.state(providerId);
      if (state === 'open') throw error;
      return state;
    }
  }
}

/**
 * The session of an ordered debit and the session of a failed debit are both complete and unpaid. Only the payment
 * intent shows whether the debit failed.
 */
function stateOf({ status, payment_status, payment_intent }: Stripe.Checkout.Session) {
  if (status === 'open') return 'open';
  if (status === 'expired') return 'expired';
  if (payment_status !== 'unpaid') return 'paid';
  const intent = typeof payment_intent === 'object' ? payment_intent?.status : undefined;
  if (intent === 'succeeded') return 'paid';
  return intent === 'requires_payment_method' || intent === 'canceled' ? 'failed' : 'ordered';
}
