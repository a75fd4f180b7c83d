/**
 * Connect in the stand-in: application fees, transfers, refunds, disputes and transfer reversals, with what each leaves on
 * the balances. What moves on a connected account is told by its balance transactions, as Stripe tells it there: without
 * the platform's metadata, unless it was written there.
 */
import type { Stripe } from 'stripe';
import { balanceOf, credit, destination, fail, keep, listOf, objectsOf, own, refuse, tell } from './accounts.ts';
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

export const connectRoutes: readonly Route[] = [
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
    method: 'POST',
    path: /^\/v1\/application_fees\/(\w+)\/refunds$/,
    request: 'application_fee_refund_create',
    act: (call) => {
      const { metadata, amount } = call.params as Stripe.ApplicationFeeCreateRefundParams;
      checkMetadata(metadata);
      const fee = own(call, call.id, 'application_fee');
      return refundFee(call.state, fee, amount ?? leftOf(fee, 'amount_refunded'), metadata ?? {});
    },
  },
  {
    method: 'GET',
    path: /^\/v1\/application_fees\/(\w+)\/refunds$/,
    request: 'application_fee_refund_list',
    act: (call) => {
      const fee = own(call, call.id, 'application_fee');
      return page(
        objectsOf(call, 'fee_refund').filter((each) => each['fee'] === fee.id),
        call.params,
        '',
      );
    },
  },
  {
    method: 'GET',
    path: /^\/v1\/refunds$/,
    request: 'refund_list',
    act: (call) => listOf(call, 'refund', ['payment_intent'], '/v1/refunds'),
  },
];

// --- Transfers -----------------------------------------------------------------------------------------------------------

/** From the platform to a connected account, on which it is a payment without metadata. */
export function send(
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
    throw fail('You have insufficient available funds in your Stripe account.', 'amount', 'balance_insufficient');
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

// --- Giving back ------------------------------------------------------------------------------------------------------

function refund(call: Call, params: Stripe.RefundCreateParams): StripeObject {
  const { state, account } = call;
  checkMetadata(params.metadata);
  const intent = own(call, String(params.payment_intent), 'payment_intent');
  const charge = own(call, String(intent['latest_charge']), 'charge');
  const whole = charge['amount'] as number;
  const refunded = charge['amount_refunded'] as number;
  const amount = params.amount ?? whole - refunded;
  if (refunded === whole) throw fail('Charge has already been refunded.', 'charge', 'charge_already_refunded');
  if (amount < 1 || amount > whole - refunded) throw fail('Refund amount is greater than what is left.', 'amount');
  if (params.reverse_transfer === true && charge['transfer'] === null) {
    throw fail('The charge has no transfer to reverse.', 'reverse_transfer');
  }
  const fee = state.connect.objects.get(String(charge['application_fee']));
  if (params.refund_application_fee === true && fee === undefined) {
    const message = `Attempting to refund_application_fee on ${charge.id}, but it has no application fee`;
    throw fail(message, 'refund_application_fee');
  }
  const currency = String(charge['currency']);
  const named = { charge: charge.id, payment_intent: intent.id, metadata: params.metadata ?? {} };
  if (state.connect.failRefunds) {
    const failed = { status: 'failed', failure_reason: 'expired_or_canceled_card', ...named };
    return keep(call, { id: state.newId('re'), object: 'refund', amount, currency, ...failed });
  }
  charge['amount_refunded'] = refunded + amount;
  if (params.reverse_transfer === true) {
    // In proportion, and rounded so that a refund of the whole reverses the whole.
    const of = found(state.connect.objects, String(charge['transfer']), 'transfer');
    const due =
      Math.round(((of['amount'] as number) * (refunded + amount)) / whole) - (of['amount_reversed'] as number);
    if (due > 0) pullBack(state, of, due, {});
  }
  const made = keep(call, {
    ...{ id: state.newId('re'), object: 'refund', amount, currency, status: 'succeeded', ...named },
  });
  if (account === '') credit(state, '', currency, -amount);
  else tell(state, account, { type: 'refund', amount: -amount, currency, source: made });
  if (params.refund_application_fee === true && fee !== undefined) {
    // In proportion, too.
    const due =
      Math.round(((fee['amount'] as number) * (refunded + amount)) / whole) - (fee['amount_refunded'] as number);
    if (due > 0) refundFee(state, fee, due, {});
  }
  return made;
}

/** The bank returns a refund of the platform's own, days later: Stripe puts the money back. */
export function failRefund(state: State, id: string): void {
  const made = found(state.connect.objects, id, 'refund');
  const charge = found(state.connect.objects, String(made['charge']), 'charge');
  made['status'] = 'failed';
  charge['amount_refunded'] = (charge['amount_refunded'] as number) - (made['amount'] as number);
  credit(state, '', String(made['currency']), made['amount'] as number);
}

function reverse(call: Call, params: Stripe.TransferCreateReversalParams): StripeObject {
  checkMetadata(params.metadata);
  const of = own(call, call.id, 'transfer');
  const left = leftOf(of, 'amount_reversed');
  const amount = params.amount ?? left;
  if (amount < 1 || amount > left) throw fail('The reversal is more than what is left of the transfer.', 'amount');
  return pullBack(call.state, of, amount, params.metadata === '' ? {} : (params.metadata ?? {}));
}

const leftOf = (object: StripeObject, taken: string): number =>
  (object['amount'] as number) - (object[taken] as number);

/** From the platform back to the account that the fee was taken from. */
function refundFee(state: State, fee: StripeObject, amount: number, metadata: object | string): StripeObject {
  if (amount < 1 || amount > leftOf(fee, 'amount_refunded')) {
    throw fail('The refund is more than what is left of the application fee.', 'amount');
  }
  const currency = String(fee['currency']);
  fee['amount_refunded'] = (fee['amount_refunded'] as number) + amount;
  credit(state, '', currency, -amount);
  const more = { amount, currency, fee: fee.id, metadata: metadata === '' ? {} : metadata };
  const made = keep({ state, account: '' }, { id: state.newId('fr'), object: 'fee_refund', ...more });
  tell(state, String(fee['account']), { type: 'application_fee_refund', amount, currency, source: made });
  return made;
}

/** The bank takes a payment back for the customer, and the merchant loses the dispute. */
export function loseDispute(state: State, id: string): StripeObject {
  const payment = found(state.connect.objects, id, 'payment_intent');
  const account = state.connect.owners.get(id) ?? '';
  const { amount, currency } = payment as unknown as { amount: number; currency: string };
  const more = { amount, currency, payment_intent: id, charge: payment['latest_charge'], status: 'lost' };
  const made = keep({ state, account }, { id: state.newId('dp'), object: 'dispute', ...more });
  if (account === '') credit(state, '', currency, -amount);
  else tell(state, account, { type: 'adjustment', amount: -amount, currency, source: made });
  return made;
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
