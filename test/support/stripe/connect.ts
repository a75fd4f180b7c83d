/**
 * Connect in the stand-in: application fees, transfers, refunds, disputes and transfer reversals, with what each leaves on
 * the balances. What moves on a connected account is told by its balance transactions, as Stripe tells it there: without
 * the platform's metadata, unless it was written there.
 */
import type { Stripe } from 'stripe';
import {
  arrival,
  credit,
  destination,
  fail,
  has,
  keep,
  listOf,
  objectsOf,
  own,
  refuse,
  seconds,
  tell,
} from './accounts.ts';
import { charge, dispute, feeRefund, refund, transfer, transferReversal } from './shapes.ts';
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
    action: (call) => makeTransfer(call, call.params as unknown as Stripe.TransferCreateParams),
  },
  {
    method: 'GET',
    path: /^\/v1\/transfers$/,
    request: 'transfer_list',
    action: (call) => listOf(call, 'transfer', ['transfer_group', 'destination'], '/v1/transfers'),
  },
  {
    method: 'POST',
    path: /^\/v1\/transfers\/(\w+)\/reversals$/,
    request: 'transfer_reversal_create',
    action: (call) => reverse(call, call.params as Stripe.TransferCreateReversalParams),
  },
  {
    method: 'GET',
    path: /^\/v1\/transfers\/(\w+)\/reversals$/,
    request: 'transfer_reversal_list',
    action: (call) => {
      const of = own(call, call.id, 'transfer');
      return page(
        objectsOf(call, 'transfer_reversal').filter((each) => each['transfer'] === of.id),
        call.params,
        '',
      );
    },
  },
  { method: 'POST', path: /^\/v1\/charges\/(\w+)$/, request: 'charge_update', action: updateCharge },
  {
    method: 'POST',
    path: /^\/v1\/refunds$/,
    request: 'refund_create',
    action: (call) => makeRefund(call, call.params as Stripe.RefundCreateParams),
  },
  {
    method: 'GET',
    path: /^\/v1\/application_fees\/(\w+)$/,
    request: 'application_fee_retrieve',
    action: (call) => {
      const fee = own(call, call.id, 'application_fee');
      const { expand = [] } = call.params as Stripe.ApplicationFeeRetrieveParams;
      return expand.includes('balance_transaction') ? { ...fee, balance_transaction: arrival(call, fee) } : fee;
    },
  },
  {
    method: 'POST',
    path: /^\/v1\/application_fees\/(\w+)\/refunds$/,
    request: 'application_fee_refund_create',
    action: (call) => {
      const { metadata, amount } = call.params as Stripe.ApplicationFeeCreateRefundParams;
      checkMetadata(metadata);
      const fee = own(call, call.id, 'application_fee');
      return refundFee(call.state, fee, amount ?? leftOf(fee, 'amount_refunded'), metadataOf(metadata));
    },
  },
  {
    method: 'GET',
    path: /^\/v1\/application_fees\/(\w+)\/refunds$/,
    request: 'application_fee_refund_list',
    action: (call) => {
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
    action: (call) => listOf(call, 'refund', ['payment_intent'], '/v1/refunds'),
  },
];

/** What every charge has that came about. */
export const paid = (state: State, { id, amount, currency }: Record<'id' | 'currency', string> & { amount: number }) =>
  ({
    ...{ id, object: 'charge', amount, amount_captured: amount, amount_refunded: 0, currency, created: seconds(state) },
    ...{ paid: true, captured: true, status: 'succeeded', livemode: false, metadata: {} },
    ...{ application_fee: null, application_fee_amount: null, on_behalf_of: null, source_transfer: null },
    billing_details: { address: null, email: null, name: null, phone: null, tax_id: null },
  }) satisfies Partial<Stripe.Charge>;

/** An empty text takes all metadata away. */
export const metadataOf = (given: Stripe.Emptyable<Stripe.MetadataParam> | undefined): Stripe.Metadata =>
  given === '' ? {} : ((given ?? {}) as Stripe.Metadata);

// --- Transfers -----------------------------------------------------------------------------------------------------------

/** From the platform to a connected account, on which it is a payment without metadata. */
export function send(
  state: State,
  {
    amount,
    currency,
    destination: to,
    ...more
  }: { amount: number; currency: string; destination: string } & Pick<
    Partial<Stripe.Transfer>,
    'metadata' | 'source_transaction' | 'transfer_group'
  >,
): { transfer: StripeObject; payment: StripeObject } {
  const id = state.newId('tr');
  const created = seconds(state);
  const payment = keep(
    { state, account: to },
    charge({ ...paid(state, { id: state.newId('py'), amount, currency }), payment_intent: null, source_transfer: id }),
  );
  const made = keep(
    { state, account: '' },
    transfer({
      ...{ id, object: 'transfer', amount, currency, created, destination: to, destination_payment: payment.id },
      ...{ amount_reversed: 0, reversed: false, livemode: false, source_transaction: null },
      ...{ metadata: {}, transfer_group: null, ...more },
    }),
  );
  credit(state, '', currency, -amount);
  tell(state, to, { type: 'payment', amount, currency, source: payment });
  return { transfer: made, payment };
}

function makeTransfer({ state }: Call, params: Stripe.TransferCreateParams): StripeObject {
  const { amount, currency, destination: to, transfer_group = null } = params;
  const metadata = metadataOf(params.metadata);
  if (amount === undefined || !Number.isInteger(amount) || amount < 1) throw refuse('Invalid amount', 'amount');
  checkMetadata(metadata);
  destination(state, to, 'destination');
  if (!has(state, '', { amount, currency, converts: false })) {
    throw fail('You have insufficient available funds in your Stripe account.', 'amount', 'balance_insufficient');
  }
  return send(state, { amount, currency, destination: to, transfer_group, metadata }).transfer;
}

function updateCharge(call: Call): StripeObject {
  if (call.state.connect.readOnly.has(call.account)) {
    throw new StripeRefusal(403, 'This key may not write to that account.', { code: 'account_invalid' });
  }
  const of = own(call, call.id, 'charge');
  checkMetadata(call.params['metadata']);
  Object.assign(of['metadata'] as object, call.params['metadata']);
  return of;
}

// --- Giving back ------------------------------------------------------------------------------------------------------

function makeRefund(call: Call, params: Stripe.RefundCreateParams): StripeObject {
  const { state, account } = call;
  checkMetadata(params.metadata);
  const intent = own(call, String(params.payment_intent), 'payment_intent');
  const of = own(call, String(intent['latest_charge']), 'charge');
  const whole = of['amount'] as number;
  const refunded = of['amount_refunded'] as number;
  const amount = params.amount ?? whole - refunded;
  if (refunded === whole) throw fail('Charge has already been refunded.', 'charge', 'charge_already_refunded');
  if (amount < 1 || amount > whole - refunded) throw fail('Refund amount is greater than what is left.', 'amount');
  if (params.reverse_transfer === true && of['transfer'] === undefined) {
    throw fail('The charge has no transfer to reverse.', 'reverse_transfer');
  }
  const fee = state.connect.objects.get(String(of['application_fee']));
  if (params.refund_application_fee === true && fee === undefined) {
    const message = `Attempting to refund_application_fee on ${of.id}, but it has no application fee`;
    throw fail(message, 'refund_application_fee');
  }
  const currency = String(of['currency']);
  const asked = {
    ...{ id: state.newId('re'), object: 'refund', amount, currency, created: seconds(state), charge: of.id },
    ...{ payment_intent: intent.id, metadata: metadataOf(params.metadata), source_transfer_reversal: null },
  } satisfies Partial<Stripe.Refund>;
  if (state.connect.failRefunds) {
    const why = { status: 'failed', failure_reason: 'expired_or_canceled_card' };
    return keep(call, refund({ ...asked, ...why, transfer_reversal: null }));
  }
  of['amount_refunded'] = refunded + amount;
  let transfer_reversal: string | null = null;
  if (params.reverse_transfer === true) {
    // In proportion, and rounded so that a refund of the whole reverses the whole.
    const sent = found(state.connect.objects, String(of['transfer']), 'transfer');
    const due =
      Math.round(((sent['amount'] as number) * (refunded + amount)) / whole) - (sent['amount_reversed'] as number);
    if (due > 0) transfer_reversal = pullBack(state, sent, due, {}).id;
  }
  const made = keep(call, refund({ ...asked, status: 'succeeded', transfer_reversal }));
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
  const of = found(state.connect.objects, String(made['charge']), 'charge');
  made['status'] = 'failed';
  of['amount_refunded'] = (of['amount_refunded'] as number) - (made['amount'] as number);
  credit(state, '', String(made['currency']), made['amount'] as number);
}

function reverse(call: Call, params: Stripe.TransferCreateReversalParams): StripeObject {
  checkMetadata(params.metadata);
  const of = own(call, call.id, 'transfer');
  const left = leftOf(of, 'amount_reversed');
  const amount = params.amount ?? left;
  if (amount < 1 || amount > left) throw fail('The reversal is more than what is left of the transfer.', 'amount');
  // The transfer of a destination charge is reversed whatever is left, another only from what is available.
  const [to, currency] = [String(of['destination']), String(of['currency'])];
  if (of['source_transaction'] === null && !has(call.state, to, { amount, currency, converts: true })) {
    const message = 'The connected account does not have enough available balance to reverse this transfer.';
    throw fail(message, 'amount', 'balance_insufficient');
  }
  return pullBack(call.state, of, amount, metadataOf(params.metadata));
}

const leftOf = (object: StripeObject, taken: string): number =>
  (object['amount'] as number) - (object[taken] as number);

/** From the platform back to the account that the fee was taken from. */
function refundFee(state: State, fee: StripeObject, amount: number, metadata: Stripe.Metadata): StripeObject {
  if (amount < 1 || amount > leftOf(fee, 'amount_refunded')) {
    throw fail('The refund is more than what is left of the application fee.', 'amount');
  }
  const currency = String(fee['currency']);
  fee['amount_refunded'] = (fee['amount_refunded'] as number) + amount;
  credit(state, '', currency, -amount);
  const named = { id: state.newId('fr'), object: 'fee_refund', created: seconds(state), fee: fee.id } as const;
  const made = keep({ state, account: '' }, feeRefund({ ...named, amount, currency, metadata }));
  tell(state, String(fee['account']), { type: 'application_fee_refund', amount, currency, source: made });
  return made;
}

/** The bank takes a payment back for the customer, and the merchant loses the dispute. */
export function loseDispute(state: State, id: string): StripeObject {
  const payment = found(state.connect.objects, id, 'payment_intent');
  const account = state.connect.owners.get(id) ?? '';
  const { amount, currency } = payment as unknown as { amount: number; currency: string };
  const made = keep(
    { state, account },
    dispute({
      ...{ id: state.newId('dp'), object: 'dispute', amount, currency, created: seconds(state), livemode: false },
      ...{ charge: String(payment['latest_charge']), payment_intent: id, reason: 'fraudulent', status: 'lost' },
      metadata: {},
    }),
  );
  if (account === '') credit(state, '', currency, -amount);
  else tell(state, account, { type: 'adjustment', amount: -amount, currency, source: made });
  return made;
}

/** From the connected account back to the platform; there it is a refund of its payment. */
function pullBack(state: State, of: StripeObject, amount: number, metadata: Stripe.Metadata): StripeObject {
  const currency = String(of['currency']);
  const id = state.newId('trr');
  const moved = { amount, currency, created: seconds(state) };
  const refunded = refund({
    ...{ id: state.newId('pyr'), object: 'refund', ...moved, charge: String(of['destination_payment']) },
    ...{
      payment_intent: null,
      metadata: {},
      status: 'succeeded',
      source_transfer_reversal: id,
      transfer_reversal: null,
    },
  });
  of['amount_reversed'] = (of['amount_reversed'] as number) + amount;
  of['reversed'] = of['amount_reversed'] === of['amount'];
  credit(state, '', currency, amount);
  tell(state, String(of['destination']), { type: 'payment_refund', amount: -amount, currency, source: refunded });
  return keep(
    { state, account: '' },
    transferReversal({
      ...{ id, object: 'transfer_reversal', ...moved, transfer: of.id },
      ...{ destination_payment_refund: refunded.id, metadata },
    }),
  );
}
