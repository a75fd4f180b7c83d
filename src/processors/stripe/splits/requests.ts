/** The requests of a partner's platform to Stripe, as written in plans and made by `executeRequests`. */

import type { Metadata } from './client.ts';

/**
 * The API version of every request. In this and later versions, a destination charge writes metadata to its transfer
 * and to the payment on the service's account, and a payment may refuse methods that redirect the customer.
 */
export const STRIPE_VERSION = '2026-05-27.dahlia';

export type Headers = {
  /** The same for every retry, so that a request sent twice is done once. */
  readonly 'Idempotency-Key': string;
  readonly 'Stripe-Version': typeof STRIPE_VERSION;
  /** The account on which the request is made; if omitted, the platform's own. */
  readonly 'Stripe-Account'?: string;
};

interface Params {
  /** In the smallest unit. */
  readonly amount: number;
  readonly metadata: Metadata;
}

interface PaymentParams extends Params {
  readonly currency: string;
  readonly confirm: true;
  /**
   * Excludes methods that redirect the customer, unless the plan has a `return_url`. Stripe requires one of the two.
   */
  readonly automatic_payment_methods: { readonly enabled: true; readonly allow_redirects?: 'never' };
  readonly return_url?: string;
  readonly transfer_data?: {
    readonly destination: string;
    readonly amount: number;
    /** Written to the transfer. */
    readonly metadata: Metadata;
    /** Written to the payment on the service's account, whose metadata is otherwise empty. */
    readonly payment_data: { readonly metadata: Metadata };
  };
  readonly application_fee_amount?: number;
  readonly transfer_group?: string;
}

interface TransferParams extends Params {
  readonly currency: string;
  readonly destination: string;
  readonly transfer_group: string;
}

interface RefundParams extends Params {
  /** Pulls the service's share back in proportion (7.3.5). */
  readonly reverse_transfer?: true;
  /** Gives the application fee back to the operator in proportion: the share and the platform's own fee. */
  readonly refund_application_fee?: true;
}

interface Made {
  readonly method: 'POST';
  readonly headers: Headers;
}

interface ByAcceptance extends Made {
  /**
   * The earliest time of the request, ISO 8601. If the request may be older than its idempotency key, its object is
   * searched for first.
   */
  readonly accepted_at?: string;
}

/** One request; those of a plan are made in order. */
export type ProcessorRequest =
  | (ByAcceptance & {
      readonly does: 'payment';
      readonly path: '/v1/payment_intents';
      /** The checkout must add a payment method on the account of the request. */
      readonly add: readonly ['payment_method'];
      readonly params: PaymentParams;
    })
  | (ByAcceptance & {
      /** Made after the payment has succeeded and its money is available on the platform. */
      readonly does: 'transfer';
      readonly path: '/v1/transfers';
      readonly params: TransferParams;
    })
  | (Made & {
      readonly does: 'refund';
      readonly path: '/v1/refunds';
      /** The payment of the acceptance: `pi_…`. */
      readonly add: readonly ['payment_intent'];
      readonly params: RefundParams;
    })
  | (Made & {
      /** Made explicitly, since neither an operator's refund nor a lost dispute reverses the transfer (7.4.6). */
      readonly does: 'transfer_reversal';
      /** The path, with the id of the acceptance's transfer, `tr_…`, in place of `{transfer}`. */
      readonly path: '/v1/transfers/{transfer}/reversals';
      readonly params: Params;
    })
  | (Made & {
      /** Made after a dispute that the operator lost. A refund returns the fee automatically. */
      readonly does: 'fee_refund';
      /** The path, with the id of the acceptance's application fee, `fee_…`, in place of `{application_fee}`. */
      readonly path: '/v1/application_fees/{application_fee}/refunds';
      readonly params: Params;
    });

/** The account of a request; undefined for the platform's own. */
export const accountOf = ({ headers }: Pick<ProcessorRequest, 'headers'>): string | undefined =>
  headers['Stripe-Account'];

/** Why a plan can't be made, for programs. */
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

/** A plan that can't be made: `code` for programs, the message for people. */
export class SplitImpossible extends Error {
  override readonly name = 'SplitImpossible';
  readonly code: (typeof SPLIT_PROBLEMS)[number];

  constructor(code: SplitImpossible['code'], message: string) {
    super(message);
    this.code = code;
  }
}
