/**
 * Stripe's objects by its published types: `npm run types` refuses a field that Stripe does not have, a value that it never
 * has, and an object without a field that the program reads or that every such object has.
 */
import type { Stripe } from 'stripe';
import type { StripeObject } from './state.ts';

type Common = 'id' | 'object' | 'amount' | 'currency';

const shaped =
  <Shape, Read extends keyof Shape>() =>
  <Given extends Pick<Shape, Read> & Partial<Shape>>(
    object: Given & Record<Exclude<keyof Given, keyof Shape>, never>,
  ): StripeObject =>
    object as unknown as StripeObject;

export const balanceTransaction = shaped<
  Stripe.BalanceTransaction,
  | Common
  | ('available_on' | 'created' | 'description' | 'exchange_rate' | 'fee' | 'fee_details' | 'net')
  | ('reporting_category' | 'source' | 'status' | 'type')
>();
export const charge = shaped<
  Stripe.Charge,
  | Common
  | (
      | 'amount_captured'
      | 'amount_refunded'
      | 'application_fee'
      | 'application_fee_amount'
      | 'billing_details'
      | 'captured'
    )
  | ('created' | 'livemode' | 'metadata' | 'on_behalf_of' | 'paid' | 'payment_intent' | 'source_transfer' | 'status')
>();
export const refund = shaped<
  Stripe.Refund,
  | Common
  | ('charge' | 'created' | 'metadata' | 'payment_intent' | 'source_transfer_reversal' | 'status' | 'transfer_reversal')
>();
export const transfer = shaped<
  Stripe.Transfer,
  | Common
  | ('amount_reversed' | 'created' | 'destination' | 'destination_payment' | 'livemode' | 'metadata' | 'reversed')
  | ('source_transaction' | 'transfer_group')
>();
export const transferReversal = shaped<
  Stripe.TransferReversal,
  Common | 'created' | 'destination_payment_refund' | 'metadata' | 'transfer'
>();
export const applicationFee = shaped<
  Stripe.ApplicationFee,
  Common | 'account' | 'amount_refunded' | 'balance_transaction' | 'charge' | 'created' | 'livemode'
>();
export const feeRefund = shaped<Stripe.FeeRefund, Common | 'created' | 'fee' | 'metadata'>();
export const dispute = shaped<
  Stripe.Dispute,
  Common | 'charge' | 'created' | 'livemode' | 'metadata' | 'payment_intent' | 'reason' | 'status'
>();
export const payout = shaped<Stripe.Payout, Common | 'arrival_date' | 'created' | 'livemode' | 'status'>();
export const paymentIntent = shaped<
  Stripe.PaymentIntent,
  | Common
  | ('amount_received' | 'application_fee_amount' | 'client_secret' | 'created' | 'latest_charge' | 'livemode')
  | ('metadata' | 'next_action' | 'on_behalf_of' | 'status')
>();
export const checkoutSession = shaped<
  Stripe.Checkout.Session,
  | ('amount_total' | 'created' | 'currency' | 'customer_details' | 'expires_at' | 'id' | 'livemode' | 'metadata')
  | ('mode' | 'object' | 'payment_intent' | 'payment_link' | 'payment_status' | 'status' | 'url')
>();
