/** Payment Links of the stand-in, and what a customer does who opens one. */
import type { Stripe } from 'stripe';
import { checkCharge } from './amounts.ts';
import { checkoutSession, paymentIntent } from './shapes.ts';
import { checkMetadata, found, page, type Route, type State, type StripeObject, StripeRefusal } from './state.ts';

export const paymentLinkRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: /^\/v1\/payment_links$/,
    request: 'payment_link_create',
    action: ({ state, params }) => create(state, params as unknown as Stripe.PaymentLinkCreateParams),
  },
  {
    method: 'GET',
    path: /^\/v1\/payment_links$/,
    request: 'payment_link_list',
    action: ({ state, params }) => {
      const { active } = params;
      const links = [...state.paymentLinks.values()];
      return page(
        links.filter((link) => active === undefined || link['active'] === active),
        params,
        '/v1/payment_links',
      );
    },
  },
  {
    method: 'GET',
    path: /^\/v1\/payment_links\/(\w+)$/,
    request: 'payment_link_retrieve',
    action: ({ state, id }) => found(state.paymentLinks, id, 'payment_link'),
  },
  {
    method: 'POST',
    path: /^\/v1\/payment_links\/(\w+)$/,
    request: 'payment_link_update',
    action: ({ state, id, params }) => {
      const link = found(state.paymentLinks, id, 'payment_link');
      checkMetadata(params['metadata']);
      Object.assign(link, params);
      return link;
    },
  },
];

function create(state: State, params: Stripe.PaymentLinkCreateParams): StripeObject {
  const [item, ...more] = params.line_items;
  if (item === undefined) throw new StripeRefusal(400, 'line_items is empty', { param: 'line_items' });
  for (const [index, each] of [item, ...more].entries()) {
    const param = `line_items[${index}][price_data]`;
    const price = each.price_data;
    if (price === undefined) throw new StripeRefusal(400, 'The stand-in knows inline prices only.', { param });
    if ((price.product === undefined) === (price.product_data === undefined)) {
      throw new StripeRefusal(400, 'One of product or product_data is required.', { param });
    }
    checkCharge(price.unit_amount, price.currency, `${param}[unit_amount]`);
    if (params.payment_method_types?.includes('us_bank_account') && price.currency !== 'usd') {
      const message = 'The payment method type `us_bank_account` takes usd only.';
      throw new StripeRefusal(400, message, { param: 'payment_method_types' });
    }
  }
  const limit = params.restrictions?.completed_sessions.limit;
  if (limit !== undefined && (!Number.isInteger(limit) || limit < 1)) {
    throw new StripeRefusal(400, 'Invalid limit', { param: 'restrictions[completed_sessions][limit]' });
  }
  if ((params.inactive_message?.length ?? 0) > 500) {
    throw new StripeRefusal(400, 'inactive_message is too long', { param: 'inactive_message' });
  }
  checkMetadata(params.metadata);
  checkMetadata(params.payment_intent_data?.metadata);
  const id = state.newId('plink');
  const link: StripeObject = {
    id,
    object: 'payment_link',
    active: true,
    livemode: false,
    url: `${state.url}/buy/${id.replace('plink_', 'test_')}`,
    currency: item.price_data?.currency,
    metadata: params.metadata ?? {},
    payment_method_types: params.payment_method_types ?? null,
    inactive_message: params.inactive_message ?? null,
    restrictions: limit === undefined ? null : { completed_sessions: { count: 0, limit } },
    payment_intent_data: params.payment_intent_data ?? null,
    submit_type: params.submit_type ?? 'auto',
    // Not shown by Stripe unless it is asked to: kept for those who look behind.
    line_items: params.line_items,
  };
  state.paymentLinks.set(id, link);
  return link;
}

type Completed = { completed_sessions: { count: number; limit: number } } | null;

/** A customer opens the link: that makes a session, unless the link is switched off or paid. */
export function visit(state: State, linkId: string): StripeObject | undefined {
  const link = found(state.paymentLinks, linkId, 'payment_link');
  const completed = (link['restrictions'] as Completed)?.completed_sessions;
  if (link['active'] !== true || (completed !== undefined && completed.count >= completed.limit)) return undefined;
  const id = state.newId('cs_test');
  const seconds = Math.floor(state.now().getTime() / 1000);
  const [item] = link['line_items'] as Stripe.PaymentLinkCreateParams['line_items'];
  const session = checkoutSession({
    ...{ id, object: 'checkout.session', livemode: false, mode: 'payment', payment_link: linkId, payment_intent: null },
    ...{ status: 'open', payment_status: 'unpaid', customer_details: null, url: `${state.url}/c/pay/${id}` },
    ...{ amount_total: item?.price_data?.unit_amount ?? null, currency: link['currency'] as string },
    ...{ metadata: link['metadata'] as Stripe.Metadata, created: seconds, expires_at: seconds + 24 * 3600 },
  });
  state.intentMetadata.set(id, link['metadata'] as Stripe.Metadata);
  state.sessions.set(id, session);
  return session;
}

/** The customer completes a session that is still open; false where it is not. A debit is `unpaid` for some days. */
export function complete(state: State, sessionId: string, paymentStatus: 'paid' | 'unpaid' = 'paid'): boolean {
  const session = found(state.sessions, sessionId, 'checkout_session');
  if (session['status'] !== 'open' || Number(session['expires_at']) <= state.now().getTime() / 1000) return false;
  const id = state.newId('pi');
  const amount = session['amount_total'] as number;
  const isPaid = paymentStatus === 'paid';
  const payment_intent = paymentIntent({
    ...{ id, object: 'payment_intent', client_secret: `${id}_secret_standin`, amount, livemode: false },
    ...{ currency: session['currency'] as string, amount_received: isPaid ? amount : 0, latest_charge: null },
    ...{ status: isPaid ? 'succeeded' : 'processing', created: Math.floor(state.now().getTime() / 1000) },
    ...{ metadata: state.intentMetadata.get(sessionId) ?? {}, next_action: null, on_behalf_of: null },
    application_fee_amount: null,
  });
  Object.assign(session, { status: 'complete', payment_status: paymentStatus, payment_intent });
  if (typeof session['payment_link'] !== 'string') return true;
  const link = found(state.paymentLinks, session['payment_link'], 'payment_link');
  const restrictions = link['restrictions'] as Completed;
  if (restrictions !== null) restrictions.completed_sessions.count += 1;
  return true;
}

/** What becomes of a debit that was ordered. */
export function settle(state: State, sessionId: string, how: 'paid' | 'failed'): void {
  const session = found(state.sessions, sessionId, 'checkout_session');
  const intent = session['payment_intent'] as { status: string };
  intent.status = how === 'paid' ? 'succeeded' : 'requires_payment_method';
  if (how === 'paid') session['payment_status'] = 'paid';
}
