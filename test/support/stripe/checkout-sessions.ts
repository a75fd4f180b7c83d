/** Checkout Sessions of the stand-in. They are made by our own requests, and by customers who open a payment link. */
import type { Stripe } from 'stripe';
import { checkCharge } from './amounts.ts';
import { metadataOf } from './connect.ts';
import { checkoutSession } from './shapes.ts';
import { checkMetadata, found, page, type Route, type State, type StripeObject, StripeRefusal } from './state.ts';

export const checkoutSessionRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: /^\/v1\/checkout\/sessions$/,
    request: 'checkout_session_create',
    action: ({ state, params }) => shown(create(state, params as Stripe.Checkout.SessionCreateParams), params),
  },
  {
    method: 'GET',
    path: /^\/v1\/checkout\/sessions$/,
    request: 'checkout_session_list',
    action: ({ state, params }) => {
      const wanted = sessions(state).filter((session) =>
        ['payment_link', 'status'].every((field) => params[field] === undefined || params[field] === session[field]),
      );
      const shownOnes = wanted.map((each) => shown(each, {}));
      return page(shownOnes, params, '/v1/checkout/sessions');
    },
  },
  {
    method: 'GET',
    path: /^\/v1\/checkout\/sessions\/(\w+)$/,
    request: 'checkout_session_retrieve',
    action: ({ state, id, params }) => {
      sessions(state);
      return shown(found(state.sessions, id, 'checkout_session'), params);
    },
  },
  {
    method: 'POST',
    path: /^\/v1\/checkout\/sessions\/(\w+)\/expire$/,
    request: 'checkout_session_expire',
    action: ({ state, id }) => {
      sessions(state);
      const session = found(state.sessions, id, 'checkout_session');
      if (session['status'] !== 'open') {
        throw new StripeRefusal(400, 'Only Checkout Sessions with a status in ["open"] can be expired.');
      }
      session['status'] = 'expired';
      return shown(session, {});
    },
  },
];

/** The payment intent is an id unless it is asked for; the page's address is there while the session is open. */
function shown(session: StripeObject, { expand = [] }: { expand?: readonly string[] }): StripeObject {
  const { payment_intent: intent, ...rest } = session;
  const id = (intent as StripeObject | null | undefined)?.id ?? null;
  return {
    ...rest,
    url: session['status'] === 'open' ? (session['url'] ?? null) : null,
    payment_intent: expand.includes('payment_intent') ? (intent ?? null) : id,
  } as StripeObject;
}

const [SHORTEST, LONGEST] = [30 * 60, 24 * 3600];

function create(state: State, params: Stripe.Checkout.SessionCreateParams): StripeObject {
  if (params.mode !== 'payment') throw new StripeRefusal(400, 'The stand-in knows payments only.', { param: 'mode' });
  const { line_items: items = [], success_url, cancel_url, expires_at, metadata } = params;
  if (success_url === undefined)
    throw new StripeRefusal(400, 'You must provide `success_url`.', { param: 'success_url' });
  for (const [param, url] of Object.entries({ success_url, cancel_url })) {
    if (url !== undefined && !URL.canParse(url)) throw new StripeRefusal(400, 'Not a valid URL', { param });
  }
  if (items.length === 0) throw new StripeRefusal(400, 'line_items is empty', { param: 'line_items' });
  if (items.length > 100) throw new StripeRefusal(400, 'At most 100 line items.', { param: 'line_items' });
  const seconds = Math.floor(state.now().getTime() / 1000);
  const end = expires_at ?? seconds + LONGEST;
  // The clocks of both need not agree to the second.
  if (end < seconds + SHORTEST - 1 || end > seconds + LONGEST + 1) {
    throw new StripeRefusal(400, 'The `expires_at` timestamp must be 30 minutes to 24 hours away.', {
      param: 'expires_at',
    });
  }
  checkMetadata(metadata);
  checkMetadata(params.payment_intent_data?.metadata);
  const { amount_total, currency } = totalOf(items, params);
  const id = state.newId('cs_test');
  const session = checkoutSession({
    ...{ id, object: 'checkout.session', livemode: false, mode: 'payment', payment_link: null, payment_intent: null },
    ...{ status: 'open', payment_status: 'unpaid', customer_details: null },
    ...{ amount_total, currency, metadata: metadataOf(metadata), success_url, cancel_url: cancel_url ?? null },
    ...{ url: `${state.url}/c/pay/${id}`, created: seconds, expires_at: end },
  });
  state.intentMetadata.set(id, metadataOf(params.payment_intent_data?.metadata ?? metadata));
  state.sessions.set(id, session);
  return session;
}

function totalOf(
  items: readonly Stripe.Checkout.SessionCreateParams.LineItem[],
  { allowed_payment_method_types: methods }: Stripe.Checkout.SessionCreateParams,
): { amount_total: number; currency: string } {
  let total = 0;
  const currency = items[0]?.price_data?.currency ?? '';
  for (const [index, { price_data: price, quantity }] of items.entries()) {
    const param = `line_items[${index}][price_data]`;
    if (price === undefined) throw new StripeRefusal(400, 'The stand-in knows inline prices only.', { param });
    if ((price.product === undefined) === (price.product_data === undefined)) {
      throw new StripeRefusal(400, 'One of product or product_data is required.', { param });
    }
    if (price.currency !== currency) throw new StripeRefusal(400, 'All prices must be of one currency.', { param });
    if (!Number.isInteger(price.unit_amount) || (price.unit_amount ?? -1) < 0) {
      throw new StripeRefusal(400, 'Invalid integer', { param: `${param}[unit_amount]` });
    }
    total += (price.unit_amount ?? 0) * (quantity ?? 1);
  }
  checkCharge(total, currency, 'line_items');
  // It filters: only where nothing is left is it refused.
  if (methods?.every((method) => method === 'us_bank_account') && currency !== 'usd') {
    throw new StripeRefusal(400, 'No payment method is left.', { param: 'allowed_payment_method_types' });
  }
  return { amount_total: total, currency };
}

/** All sessions; those that lived for a day are expired by now. */
function sessions(state: State): StripeObject[] {
  const seconds = state.now().getTime() / 1000;
  for (const session of state.sessions.values()) {
    if (session['status'] === 'open' && Number(session['expires_at']) <= seconds) session['status'] = 'expired';
  }
  return [...state.sessions.values()];
}
