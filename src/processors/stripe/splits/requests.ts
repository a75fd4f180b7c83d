/** The requests of a partner's platform to Stripe. `executeRequests` makes the requests of a plan. */

import { Metadata } from './client.ts';

/**
 * The API version of every request. From this version on, a destination charge writes metadata to its transfer and to
 * the payment on the service's account, and a payment can exclude methods that redirect the customer.
 */
export const STRIPE_VERSION = '2026-05-27.dahlia';

export type Headers = Readonly<{
  /** The key is the same for every retry, so that a repeated request has no second effect. */
  'Idempotency-Key': string;
  'Stripe-Version': typeof STRIPE_VERSION;
  /** The account on which the request is made. Default: the platform's own account. */
  'Stripe-Account'?: string;
}>;

type Params = Readonly<{
  /** The amount in the currency's smallest unit. */
  amount: number;
  metadata: Metadata;
}>;

type PaymentParams = Params &
  Readonly<{
    currency: string;
    confirm: true;
    /** Excludes methods that redirect the customer. Stripe requires either `allow_redirects` or a `return_url`. */
    automatic_payment_methods: Readonly<{ enabled: true; allow_redirects?: 'never' }>;
    return_url?: string;
    transfer_data?: Readonly<{
      destination: string;
      amount: number;
      /** Stripe writes this metadata to the transfer. */
      metadata: Metadata;
      /** Stripe writes this metadata to the payment on the service's account, whose metadata is otherwise empty. */
      payment_data: { readonly metadata: Metadata };
    }>;
    application_fee_amount?: number;
    transfer_group?: string;
  }>;

type TransferParams = Params &
  Readonly<{
    currency: string;
    destination: string;
    transfer_group: string;
  }>;

type RefundParams = Params &
  Readonly<{
    /** Reverses the service's share in proportion to the refund (7.3.5). */
    reverse_transfer?: true;
    /** Returns the application fee to the operator in proportion: the share and the platform's own fee. */
    refund_application_fee?: true;
  }>;

type Made = Readonly<{
  method: 'POST';
  headers: Headers;
}>;

type ByAcceptance = Made &
  Readonly<{
    /**
     * The earliest time of the request, ISO 8601. If the idempotency key may have expired, the object is searched for
     * first.
     */
    accepted_at?: string;
  }>;

export type ProcessorRequest =
  | (ByAcceptance &
      Readonly<{
        does: 'payment';
        path: '/v1/payment_intents';
        /** The checkout must add a payment method on the account that the request uses. */
        add: readonly ['payment_method'];
        params: PaymentParams;
      }>)
  | (ByAcceptance &
      Readonly<{
        /** A transfer is made after the payment has succeeded and its money is available on the platform. */
        does: 'transfer';
        path: '/v1/transfers';
        params: TransferParams;
      }>)
  | (Made &
      Readonly<{
        does: 'refund';
        path: '/v1/refunds';
        /** The payment of the acceptance: `pi_…`. */
        add: readonly ['payment_intent'];
        params: RefundParams;
      }>)
  | (Made &
      Readonly<{
        /**
         * A transfer reversal is needed because neither an operator's refund nor a lost dispute reverses the transfer
         * (7.4.6).
         */
        does: 'transfer_reversal';
        /** `{transfer}` stands for the id of the acceptance's transfer, `tr_…`. */
        path: '/v1/transfers/{transfer}/reversals';
        params: Params;
      }>)
  | (Made &
      Readonly<{
        /**
         * A fee refund is made after a dispute that the operator lost. A refund of the payment returns the fee
         * automatically.
         */
        does: 'fee_refund';
        /** `{application_fee}` stands for the id of the acceptance's application fee, `fee_…`. */
        path: '/v1/application_fees/{application_fee}/refunds';
        params: Params;
      }>);

/** Returns the account of a request; undefined for the platform's own account. */
export const accountOf = ({ headers }: Pick<ProcessorRequest, 'headers'>) => headers['Stripe-Account'];

export const SPLIT_PROBLEMS = [
  'third_party_real_time',
  'operator_missing',
  'operator_unused',
  'identifier_invalid',
  'currency_unknown',
  'amount_inexpressible',
  'amount_too_small',
  'currency_not_held',
  'share_too_large',
  'parts_differ',
  'fee_too_large',
] as const;

/** The error for a plan that cannot be made. `code` is for programs, and the message is for people. */
export class SplitImpossible extends Error {
  override readonly name = 'SplitImpossible';
  readonly code: (typeof SPLIT_PROBLEMS)[number];

  constructor(code: SplitImpossible['code'], message: string) {
    super(message);
    this.code = code;
  }
}
