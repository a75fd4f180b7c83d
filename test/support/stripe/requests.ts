/** The parameters of Stripe's requests that the stand-in knows, by the types that Stripe publishes. */
import type { Stripe } from 'stripe';

export interface Requests {
  payment_link_create: Stripe.PaymentLinkCreateParams;
  payment_link_retrieve: Stripe.PaymentLinkRetrieveParams;
  payment_link_update: Stripe.PaymentLinkUpdateParams;
  payment_link_list: Stripe.PaymentLinkListParams;
  checkout_session_create: Stripe.Checkout.SessionCreateParams;
  checkout_session_retrieve: Stripe.Checkout.SessionRetrieveParams;
  checkout_session_list: Stripe.Checkout.SessionListParams;
  balance_transaction_list: Stripe.BalanceTransactionListParams;
  payment_intent_create: Stripe.PaymentIntentCreateParams;
  payment_intent_retrieve: Stripe.PaymentIntentRetrieveParams;
  payment_intent_cancel: Stripe.PaymentIntentCancelParams;
  application_fee_retrieve: Stripe.ApplicationFeeRetrieveParams;
  application_fee_refund_create: Stripe.ApplicationFeeCreateRefundParams;
  application_fee_refund_list: Stripe.ApplicationFeeListRefundsParams;
  payment_intent_confirm: Stripe.PaymentIntentConfirmParams;
  payment_intent_search: Stripe.PaymentIntentSearchParams;
  transfer_create: Stripe.TransferCreateParams;
  transfer_list: Stripe.TransferListParams;
  transfer_reversal_create: Stripe.TransferCreateReversalParams;
  transfer_reversal_list: Stripe.TransferListReversalsParams;
  charge_update: Stripe.ChargeUpdateParams;
  refund_create: Stripe.RefundCreateParams;
  refund_list: Stripe.RefundListParams;
  checkout_session_expire: Stripe.Checkout.SessionExpireParams;
}

export type RequestName = keyof Requests;
