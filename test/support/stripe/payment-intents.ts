/**
 * Payments of the stand-in: created, confirmed with or without 3-D Secure, declined, cancelled, and searched for as late
 * as Stripe's search is. Sources: Stripe's "Payment Intents", "Search" and "Rate limits", and its own error texts.
 */
import type { Stripe } from 'stripe';
import { arrival, credit, destination, fail, keep, objectsOf, own, refuse, seconds, tell } from './accounts.ts';
import { checkCharge } from './amounts.ts';
import { metadataOf, paid, send } from './connect.ts';
import { applicationFee, charge, paymentIntent } from './shapes.ts';
import { type Call, checkMetadata, found, type Route, type State, type StripeObject, StripeRefusal } from './state.ts';

/** Those of Stripe's test cards whose payment declines, and those whose customer has to do something first. */
const DECLINED = /chargeDeclined/;
const AUTHENTICATED = /authenticationRequired|threeDSecure/;

const SEARCH_IS_LATE_MILLISECONDS = 60_000;
const SEARCHES_A_SECOND = 20;

/** Since when a payment accepts the methods of the Dashboard, some of which redirect the customer. */
const AUTOMATIC_SINCE = '2023-08-16';
/** Since when a destination charge writes metadata to its transfer and to the payment that this makes. */
const TRANSFER_METADATA_SINCE = '2026-05-27';
const SEARCH_SINCE = '2020-08-27';

export const paymentIntentRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: /^\/v1\/payment_intents$/,
    request: 'payment_intent_create',
    action: (call) => create(call, call.params as unknown as Stripe.PaymentIntentCreateParams),
  },
  { method: 'GET', path: /^\/v1\/payment_intents\/search$/, request: 'payment_intent_search', action: search },
  {
    method: 'GET',
    path: /^\/v1\/payment_intents\/(\w+)$/,
    request: 'payment_intent_retrieve',
    action: (call) => {
      return expanded(call, own(call, call.id, 'payment_intent'));
    },
  },
  {
    method: 'POST',
    path: /^\/v1\/payment_intents\/(\w+)\/confirm$/,
    request: 'payment_intent_confirm',
    action: (call) => {
      const payment = own(call, call.id, 'payment_intent');
      if (!['requires_payment_method', 'requires_confirmation'].includes(String(payment['status']))) {
        const message = `You cannot confirm this PaymentIntent because it has a status of ${payment['status']}.`;
        throw fail(message, 'intent', 'payment_intent_unexpected_state', payment);
      }
      return expanded(call, confirm(call, payment, call.params as Stripe.PaymentIntentConfirmParams));
    },
  },
  {
    method: 'POST',
    path: /^\/v1\/payment_intents\/(\w+)\/cancel$/,
    request: 'payment_intent_cancel',
    action: (call) => {
      const payment = own(call, call.id, 'payment_intent');
      if (['succeeded', 'canceled', 'processing'].includes(String(payment['status']))) {
        const message = `You cannot cancel this PaymentIntent because it has a status of ${payment['status']}.`;
        throw fail(message, 'intent', 'payment_intent_unexpected_state', payment);
      }
      return change(call.state, payment, { status: 'canceled', next_action: null });
    },
  },
];

function expanded(call: Call, payment: StripeObject): StripeObject {
  const latest = call.state.connect.objects.get(String(payment['latest_charge'])) ?? null;
  const expand = (call.params as { expand?: readonly string[] }).expand ?? [];
  if (latest !== null && expand.includes('latest_charge.balance_transaction')) {
    return { ...payment, latest_charge: { ...latest, balance_transaction: arrival(call, latest) } };
  }
  return expand.includes('latest_charge') ? { ...payment, latest_charge: latest } : payment;
}

/** Changes a payment; search will find that, too, a minute later. */
function change({ connect, now }: State, payment: StripeObject, more: object): StripeObject {
  Object.assign(payment, more);
  const history = connect.history.get(payment.id) ?? [];
  history.push({ at: now().getTime(), payment: structuredClone(payment) });
  connect.history.set(payment.id, history);
  return payment;
}

function create(call: Call, params: Stripe.PaymentIntentCreateParams): StripeObject {
  const { state } = call;
  const { amount, currency, transfer_data, application_fee_amount, automatic_payment_methods, payment_method } = params;
  checkCharge(amount, currency, 'amount');
  checkMetadata(params.metadata);
  checkRouting(call, params);
  if (params.return_url !== undefined && params.confirm !== true) {
    throw refuse('return_url may only be given with confirm=true.', 'return_url');
  }
  const automatic = automatic_payment_methods ?? (call.version >= AUTOMATIC_SINCE ? { enabled: true } : null);
  const id = state.newId('pi');
  const payment = paymentIntent({
    ...{ id, object: 'payment_intent', client_secret: `${id}_secret_standin`, amount, currency, amount_received: 0 },
    ...{ created: seconds(state), livemode: false, latest_charge: null, next_action: null, on_behalf_of: null },
    ...{ metadata: metadataOf(params.metadata), payment_method: payment_method ?? null },
    status: payment_method === undefined ? 'requires_payment_method' : 'requires_confirmation',
    ...{ application_fee_amount: application_fee_amount ?? null, automatic_payment_methods: automatic },
    transfer_data: (transfer_data ?? null) as Stripe.PaymentIntent.TransferData | null,
    ...{ customer: params.customer ?? null, transfer_group: params.transfer_group ?? null },
  });
  if (params.confirm === true) checkConfirm(call, payment, params);
  change(state, keep(call, payment), {});
  return params.confirm === true ? confirm(call, payment, params) : payment;
}

function checkRouting({ state, account, version }: Call, params: Stripe.PaymentIntentCreateParams): void {
  const { amount, transfer_data: routed, application_fee_amount: fee } = params;
  checkMetadata(routed?.metadata);
  checkMetadata(routed?.payment_data?.metadata);
  for (const name of ['metadata', 'payment_data'] as const) {
    if (routed?.[name] !== undefined && version < TRANSFER_METADATA_SINCE) {
      const param = `transfer_data[${name}]`;
      throw refuse(`Received unknown parameter: ${param}`, param, 'parameter_unknown');
    }
  }
  if (routed !== undefined && account !== '') throw refuse('transfer_data is for the platform.', 'transfer_data');
  if (routed !== undefined) destination(state, routed.destination, 'transfer_data[destination]');
  if (routed?.amount !== undefined && fee !== undefined) {
    throw refuse('transfer_data[amount] and application_fee_amount exclude each other.', 'application_fee_amount');
  }
  if (routed?.amount !== undefined && (routed.amount < 1 || routed.amount > amount)) {
    throw refuse('The transfer must be positive, and not exceed the amount.', 'transfer_data[amount]');
  }
  if (fee !== undefined && account === '' && routed === undefined) {
    throw refuse('Application fees need a connected account.', 'application_fee_amount');
  }
  if (fee !== undefined && (fee < 1 || fee > amount)) {
    throw refuse('The fee must be positive, and not exceed the amount.', 'application_fee_amount');
  }
}

type Confirmed = Pick<Stripe.PaymentIntentConfirmParams, 'payment_method' | 'return_url'>;

/** What a server must say with a confirmation; returns what the payment method does. */
function checkConfirm({ state, account }: Call, payment: StripeObject, { payment_method, return_url }: Confirmed) {
  const automatic = payment['automatic_payment_methods'] as { enabled: boolean; allow_redirects?: string } | null;
  if (automatic?.enabled === true && automatic.allow_redirects !== 'never' && return_url === undefined) {
    const message =
      'This PaymentIntent is configured to accept payment methods enabled in your Dashboard. Because some of these ' +
      "payment methods might redirect your customer off of your page, you must provide a `return_url`. If you don't " +
      'want to accept redirect-based payment methods, set `automatic_payment_methods[enabled]` to `true` and ' +
      '`automatic_payment_methods[allow_redirects]` to `never` when creating Setup Intents and Payment Intents.';
    throw refuse(message, 'return_url');
  }
  const id = payment_method ?? (payment['payment_method'] as string | null);
  if (id === null || id === '') throw refuse('You cannot confirm without a payment method.', 'payment_method');
  if (id.startsWith('pm_card_')) return id;
  const method = state.connect.paymentMethods.get(id);
  if (method?.account === account) {
    if (method.customer === undefined || method.customer === payment['customer']) return method.like;
    const message = 'The provided PaymentMethod is attached to a Customer: include the Customer in the request.';
    throw fail(message, 'customer');
  }
  if (method?.account === '') {
    const message =
      'OAuth key or Stripe-Account header was used but API request was provided with a platform-owned payment method ID.';
    throw fail(
      `${message} Please ensure that the provided payment method matches the specified account.`,
      'payment_method',
    );
  }
  throw fail(`No such PaymentMethod: '${id}'`, 'payment_method', 'resource_missing');
}

function confirm(call: Call, payment: StripeObject, params: Confirmed): StripeObject {
  const like = checkConfirm(call, payment, params);
  const payment_method = params.payment_method ?? payment['payment_method'];
  if (DECLINED.test(like)) throw decline(call.state, payment);
  if (AUTHENTICATED.test(like)) {
    const { return_url } = params;
    const url = `https://hooks.stripe.test/3d_secure_2/${payment.id}`;
    const next_action =
      return_url === undefined
        ? { type: 'use_stripe_sdk', use_stripe_sdk: { type: 'three_d_secure_redirect', stripe_js: url } }
        : { type: 'redirect_to_url', redirect_to_url: { url, return_url } };
    return change(call.state, payment, { status: 'requires_action', payment_method, next_action });
  }
  return settle(call, payment, payment_method);
}

function decline(state: State, payment: StripeObject): StripeRefusal {
  const last_payment_error = { type: 'card_error', code: 'card_declined', message: 'Your card was declined.' };
  change(state, payment, {
    ...{ status: 'requires_payment_method', payment_method: null, next_action: null, last_payment_error },
  });
  return new StripeRefusal(402, 'Your card was declined.', {
    ...{ type: 'card_error', code: 'card_declined', decline_code: 'generic_decline' },
    payment_intent: structuredClone(payment),
  });
}

/** The customer ends what 3-D Secure asks for, in the checkout. */
export function authenticate(state: State, id: string, passes = true): StripeObject {
  const payment = found(state.connect.objects, id, 'payment_intent');
  if (payment['status'] !== 'requires_action') throw new Error(`${id} asks its customer for nothing`);
  if (!passes) {
    decline(state, payment);
    return payment;
  }
  const account = state.connect.owners.get(id) ?? '';
  return settle({ state, account }, payment, payment['payment_method']);
}

/** The money moves: charge, application fee, transfer. */
function settle(call: Pick<Call, 'state' | 'account'>, payment: StripeObject, payment_method: unknown): StripeObject {
  const { state, account } = call;
  const { amount, currency, metadata } = payment as unknown as {
    amount: number;
    currency: string;
    metadata: Stripe.Metadata;
  };
  const fee = (payment['application_fee_amount'] as number | null) ?? undefined;
  const routed = (payment['transfer_data'] as Stripe.PaymentIntentCreateParams.TransferData | null) ?? undefined;
  const made = keep(
    call,
    charge({
      ...paid(state, { id: state.newId('ch'), amount, currency }),
      ...{ metadata: { ...metadata }, payment_intent: payment.id, application_fee_amount: fee ?? null },
      transfer_group: payment['transfer_group'] as string | null,
    }),
  );
  if (fee !== undefined && account !== '') {
    const taken = applicationFee({
      ...{ id: state.newId('fee'), object: 'application_fee', amount: fee, amount_refunded: 0, currency, account },
      ...{ charge: made.id, created: seconds(state), livemode: false, balance_transaction: null },
    });
    made['application_fee'] = keep({ state, account: '' }, taken).id;
    if (state.connect.holdFees) state.connect.heldFees.push({ currency, amount: fee });
    else credit(state, '', currency, fee);
  }
  // What is held back of the platform's own payments becomes available with the fees.
  if (account === '' && state.connect.holdFees && routed === undefined) {
    state.connect.heldFees.push({ currency, amount });
  } else if (account === '') credit(state, '', currency, amount);
  else tell(state, account, { type: 'charge', amount, fee: fee ?? 0, currency, source: made });
  if (routed !== undefined) {
    const { amount: share = amount, destination: to, metadata: own } = routed;
    const named = { metadata: metadataOf(own), source_transaction: made.id };
    const sent = send(state, { amount: share, currency, destination: to, ...named });
    sent.payment['metadata'] = metadataOf(routed.payment_data?.metadata);
    made['transfer'] = sent.transfer.id;
  }
  return change(state, payment, {
    ...{ status: 'succeeded', payment_method, next_action: null, latest_charge: made.id, amount_received: amount },
  });
}

function search(call: Call): object {
  const { state, params, version } = call;
  const now = state.now().getTime();
  if (version < SEARCH_SINCE) throw refuse('Search needs a newer API version.', 'query');
  const recent = state.connect.searches.filter((at) => at > now - 1000);
  if (recent.length >= SEARCHES_A_SECOND) throw new StripeRefusal(429, 'Too many requests.', { code: 'rate_limit' });
  state.connect.searches = [...recent, now];
  const wanted = /^metadata\['quote_id'\]:'([^']*)'$/.exec(String(params['query']))?.[1];
  if (wanted === undefined) throw refuse('The stand-in searches for metadata quote_id only.', 'query');
  const data = objectsOf(call, 'payment_intent')
    .map(
      ({ id }) => state.connect.history.get(id)?.findLast(({ at }) => at <= now - SEARCH_IS_LATE_MILLISECONDS)?.payment,
    )
    .filter((each) => each !== undefined && (each['metadata'] as Record<string, string>)['quote_id'] === wanted);
  return { object: 'search_result', url: '/v1/payment_intents/search', has_more: false, next_page: null, data };
}
