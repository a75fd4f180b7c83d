/**
 * Connect in the stand-in: payments on the platform and on connected accounts, application fees, transfers, refunds and
 * transfer reversals, with what each leaves on the balances. What moves on a connected account is told by its balance
 * transactions, as Stripe tells it there: without the platform's metadata, unless it was written there.
 */
import type { Stripe } from 'stripe';
import { checkCharge } from './amounts.ts';
import {
  type Call,
  checkMetadata,
  found,
  page,
  type Route,
  type State,
  type StripeObject,
  StripeRefusal,
} from './state.ts';

/** One whose card declines, and one whose customer has to do something first. */
const DECLINED = 'pm_card_visa_chargeDeclined';
const UNFINISHED = 'pm_card_authenticationRequired';

export const connectRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: /^\/v1\/payment_intents$/,
    request: 'payment_intent_create',
    act: (call) => pay(call, call.params as unknown as Stripe.PaymentIntentCreateParams),
  },
  {
    method: 'POST',
    path: /^\/v1\/payment_intents\/(\w+)\/confirm$/,
    request: 'payment_intent_confirm',
    act: (call) => {
      const intent = own(call, call.id, 'payment_intent');
      if (intent['status'] !== 'requires_payment_method') throw refuse('It can no longer be confirmed.', 'intent');
      return confirm(call, intent, String(call.params['payment_method']));
    },
  },
  { method: 'GET', path: /^\/v1\/payment_intents\/search$/, request: 'payment_intent_search', act: search },
  {
    method: 'POST',
    path: /^\/v1\/transfers$/,
    request: 'transfer_create',
    act: (call) => transfer(call, call.params as unknown as Stripe.TransferCreateParams),
  },
  {
    method: 'GET',
    path: /^\/v1\/transfers$/,
    request: 'transfer_list',
    act: (call) => listOf(call, 'transfer', ['transfer_group', 'destination'], '/v1/transfers'),
  },
  {
    method: 'POST',
    path: /^\/v1\/transfers\/(\w+)\/reversals$/,
    request: 'transfer_reversal_create',
    act: (call) => reverse(call, call.params as Stripe.TransferCreateReversalParams),
  },
  {
    method: 'GET',
    path: /^\/v1\/transfers\/(\w+)\/reversals$/,
    request: 'transfer_reversal_list',
    act: (call) => {
      const of = own(call, call.id, 'transfer');
      return page(
        objectsOf(call, 'transfer_reversal').filter((each) => each['transfer'] === of.id),
        call.params,
        '',
      );
    },
  },
  { method: 'POST', path: /^\/v1\/charges\/(\w+)$/, request: 'charge_update', act: updateCharge },
  {
    method: 'POST',
    path: /^\/v1\/refunds$/,
    request: 'refund_create',
    act: (call) => refund(call, call.params as Stripe.RefundCreateParams),
  },
  {
    method: 'GET',
    path: /^\/v1\/refunds$/,
    request: 'refund_list',
    act: (call) => listOf(call, 'refund', ['payment_intent'], '/v1/refunds'),
  },
];

const refuse = (message: string, param: string, code?: string) =>
  new StripeRefusal(400, message, code === undefined ? { param } : { param, code });

// --- Objects and balances ---------------------------------------------------------------------------------------------

function keep({ state, account }: Pick<Call, 'state' | 'account'>, object: StripeObject): StripeObject {
  state.connect.objects.set(object.id, object);
  state.connect.owners.set(object.id, account);
  return object;
}

/** An object of the account that the request is made on; another's is not there. */
function own({ state, account }: Call, id: string, what: string): StripeObject {
  const object = found(state.connect.objects, id, what);
  if (state.connect.owners.get(id) !== account) throw found(new Map(), id, what);
  return object;
}

const objectsOf = ({ state, account }: Call, what: string): StripeObject[] =>
  [...state.connect.objects.values()].filter(
    ({ id, object }) => object === what && state.connect.owners.get(id) === account,
  );

function listOf(call: Call, what: string, filters: readonly string[], url: string): object {
  const wanted = objectsOf(call, what).filter((each) =>
    filters.every((name) => call.params[name] === undefined || each[name] === call.params[name]),
  );
  return page(wanted, call.params, url);
}

const balanceKey = (account: string, currency: string): string => `${account}/${currency}`;
export const balanceOf = (state: State, account: string, currency = 'usd'): number =>
  state.connect.balances.get(balanceKey(account, currency)) ?? 0;

function credit(state: State, account: string, currency: string, amount: number): void {
  state.connect.balances.set(balanceKey(account, currency), balanceOf(state, account, currency) + amount);
}

/** The fees that were held back become available to the platform. */
export function releaseFees(state: State): void {
  for (const { currency, amount } of state.connect.heldFees.splice(0)) credit(state, '', currency, amount);
}

const seconds = (state: State): number => Math.floor(state.now().getTime() / 1000);

/** What moved on a connected account. */
function tell(
  state: State,
  account: string,
  moved: { type: string; amount: number; fee?: number; currency: string; source: StripeObject },
): void {
  const { type, amount, fee = 0, currency, source } = moved;
  const id = state.newId('txn');
  const created = seconds(state);
  state.balanceTransactions.set(id, {
    ...{ id, object: 'balance_transaction', type, currency, amount, fee, net: amount - fee, created, source },
  });
  state.connect.owners.set(id, account);
  credit(state, account, currency, amount - fee);
}

// --- Payments and transfers ---------------------------------------------------------------------------------------------

function pay(call: Call, params: Stripe.PaymentIntentCreateParams): StripeObject {
  const { state, account } = call;
  const { amount, currency, transfer_data: routed, application_fee_amount: fee, payment_method } = params;
  checkCharge(amount, currency, 'amount');
  checkMetadata(params.metadata);
  checkMetadata(routed?.payment_data?.metadata);
  if (params.confirm !== true) throw refuse('The stand-in confirms at once.', 'confirm');
  if (payment_method === undefined) throw refuse('You cannot confirm without a payment method.', 'payment_method');
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
  const intent = keep(call, {
    ...{ id: state.newId('pi'), object: 'payment_intent', amount, currency, livemode: false },
    ...{ metadata: params.metadata ?? {}, payment_method, latest_charge: null, status: 'requires_payment_method' },
    ...{ application_fee_amount: fee ?? null, transfer_data: routed ?? null, created: seconds(state) },
  });
  return confirm(call, intent, String(payment_method));
}

function confirm(call: Call, intent: StripeObject, payment_method: string): StripeObject {
  const { state, account } = call;
  const { amount, currency, metadata } = intent as unknown as { amount: number; currency: string; metadata: object };
  const fee = (intent['application_fee_amount'] as number | null) ?? undefined;
  const routed = (intent['transfer_data'] as Stripe.PaymentIntentCreateParams.TransferData | null) ?? undefined;
  if (payment_method === DECLINED) {
    throw new StripeRefusal(402, 'Your card was declined.', { type: 'card_error', code: 'card_declined' });
  }
  if (payment_method === UNFINISHED) {
    intent['status'] = 'requires_action';
    return intent;
  }
  const charge = keep(call, {
    ...{ id: state.newId('ch'), object: 'charge', amount, currency, livemode: false, metadata: { ...metadata } },
    ...{ payment_intent: intent.id, transfer: null, application_fee: null, amount_refunded: 0 },
  });
  if (fee !== undefined && account !== '') {
    charge['application_fee'] = keep(
      { state, account: '' },
      {
        ...{ id: state.newId('fee'), object: 'application_fee', amount: fee, currency, account, charge: charge.id },
      },
    ).id;
    if (state.connect.holdFees) state.connect.heldFees.push({ currency, amount: fee });
    else credit(state, '', currency, fee);
  }
  if (account === '') credit(state, '', currency, amount);
  else tell(state, account, { type: 'charge', amount, fee: fee ?? 0, currency, source: charge });
  if (routed !== undefined) {
    const sent = send(state, { amount: routed.amount ?? amount, currency, destination: routed.destination });
    sent.payment['metadata'] = routed.payment_data?.metadata ?? {};
    charge['transfer'] = sent.transfer.id;
  }
  Object.assign(intent, { status: 'succeeded', latest_charge: charge.id, amount_received: amount });
  return intent;
}

function destination(state: State, account: string, param: string): void {
  if (!state.connect.accounts.has(account)) {
    throw refuse(`No such destination: '${account}'`, param, 'resource_missing');
  }
}

/** From the platform to a connected account, on which it is a payment without metadata. */
function send(
  state: State,
  { amount, currency, destination: to, ...more }: { amount: number; currency: string; destination: string },
): { transfer: StripeObject; payment: StripeObject } {
  const id = state.newId('tr');
  const payment = keep(
    { state, account: to },
    {
      ...{ id: state.newId('py'), object: 'charge', amount, currency, livemode: false, metadata: {} },
      ...{ source_transfer: id, payment_intent: null },
    },
  );
  const made = keep(
    { state, account: '' },
    {
      ...{ id, object: 'transfer', amount, currency, destination: to, destination_payment: payment.id },
      ...{ amount_reversed: 0, reversed: false, metadata: {}, transfer_group: null, livemode: false, ...more },
    },
  );
  credit(state, '', currency, -amount);
  tell(state, to, { type: 'payment', amount, currency, source: payment });
  return { transfer: made, payment };
}

function transfer({ state }: Call, params: Stripe.TransferCreateParams): StripeObject {
  const { amount, currency, destination: to, transfer_group = null, metadata } = params;
  if (amount === undefined || !Number.isInteger(amount) || amount < 1) throw refuse('Invalid amount', 'amount');
  checkMetadata(metadata);
  destination(state, to, 'destination');
  if (balanceOf(state, '', currency) < amount) {
    throw refuse('You have insufficient available funds in your Stripe account.', 'amount', 'balance_insufficient');
  }
  const { transfer: made } = send(state, { amount, currency, destination: to });
  return Object.assign(made, { transfer_group, metadata: metadata ?? {} });
}

function updateCharge(call: Call): StripeObject {
  if (call.state.connect.readOnly.has(call.account)) {
    throw new StripeRefusal(403, 'This key may not write to that account.', { code: 'account_invalid' });
  }
  const charge = own(call, call.id, 'charge');
  checkMetadata(call.params['metadata']);
  Object.assign(charge['metadata'] as object, call.params['metadata']);
  return charge;
}

function search(call: Call): object {
  const wanted = /^metadata\['quote_id'\]:'([^']*)'$/.exec(String(call.params['query']))?.[1];
  if (wanted === undefined) throw refuse('The stand-in searches for metadata quote_id only.', 'query');
  const data = objectsOf(call, 'payment_intent').filter(
    (each) => (each['metadata'] as Record<string, string>)['quote_id'] === wanted,
  );
  return { object: 'search_result', url: '/v1/payment_intents/search', has_more: false, next_page: null, data };
}

// --- Recording back ------------------------------------------------------------------------------------------------------

function refund(call: Call, params: Stripe.RefundCreateParams): StripeObject {
  const { state, account } = call;
  checkMetadata(params.metadata);
  const intent = own(call, String(params.payment_intent), 'payment_intent');
  const charge = own(call, String(intent['latest_charge']), 'charge');
  const whole = charge['amount'] as number;
  const refunded = charge['amount_refunded'] as number;
  const amount = params.amount ?? whole - refunded;
  if (refunded === whole) throw refuse('Charge has already been refunded.', 'charge', 'charge_already_refunded');
  if (amount < 1 || amount > whole - refunded) throw refuse('Refund amount is greater than what is left.', 'amount');
  if (params.reverse_transfer === true && charge['transfer'] === null) {
    throw refuse('The charge has no transfer to reverse.', 'reverse_transfer');
  }
  charge['amount_refunded'] = refunded + amount;
  const currency = String(charge['currency']);
  if (params.reverse_transfer === true) {
    // In proportion, and rounded so that a refund of the whole reverses the whole.
    const of = found(state.connect.objects, String(charge['transfer']), 'transfer');
    const due =
      Math.round(((of['amount'] as number) * (refunded + amount)) / whole) - (of['amount_reversed'] as number);
    if (due > 0) pullBack(state, of, due, {});
  }
  const made = keep(call, {
    ...{ id: state.newId('re'), object: 'refund', amount, currency, status: 'succeeded', charge: charge.id },
    ...{ payment_intent: intent.id, metadata: params.metadata ?? {} },
  });
  if (account === '') credit(state, '', currency, -amount);
  else tell(state, account, { type: 'refund', amount: -amount, currency, source: made });
  return made;
}

function reverse(call: Call, params: Stripe.TransferCreateReversalParams): StripeObject {
  checkMetadata(params.metadata);
  const of = own(call, call.id, 'transfer');
  const left = (of['amount'] as number) - (of['amount_reversed'] as number);
  const amount = params.amount ?? left;
  if (amount < 1 || amount > left) throw refuse('The reversal is more than what is left of the transfer.', 'amount');
  return pullBack(call.state, of, amount, params.metadata === '' ? {} : (params.metadata ?? {}));
}

/** From the connected account back to the platform; there it is a refund of its payment. */
function pullBack(state: State, of: StripeObject, amount: number, metadata: object): StripeObject {
  const currency = String(of['currency']);
  const to = String(of['destination']);
  const id = state.newId('trr');
  const refunded: StripeObject = {
    ...{ id: state.newId('pyr'), object: 'refund', amount, currency, charge: of['destination_payment'], metadata: {} },
    source_transfer_reversal: id,
  };
  of['amount_reversed'] = (of['amount_reversed'] as number) + amount;
  credit(state, '', currency, amount);
  tell(state, to, { type: 'payment_refund', amount: -amount, currency, source: refunded });
  return keep(
    { state, account: '' },
    {
      id,
      object: 'transfer_reversal',
      amount,
      currency,
      transfer: of.id,
      destination_payment_refund: refunded.id,
      metadata,
    },
  );
}
