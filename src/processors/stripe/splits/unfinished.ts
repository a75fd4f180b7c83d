/** What a plan has done, and why it cannot continue. */
import type { ProcessorRequest } from './requests.ts';

export interface Done {
  readonly does: ProcessorRequest['does'];
  /** The processor's id: `pi_…`, `tr_…`, `re_…`, `trr_…`, `fr_…`. */
  readonly id: string;
  /** In the smallest unit. */
  readonly amount: number;
  readonly currency: string;
  /** Whether it existed before. */
  readonly known: boolean;
  /**
   * For a transfer: whether the payment on the service's account now names its quote. If not, the settlement file must.
   */
  readonly labelled?: boolean;
  /**
   * For a payment that routes our share automatically: the transfer that it made, `tr_…`. Keep this id for a dispute.
   */
  readonly transfer?: string;
  /** For a payment on an operator's account: its application fee, `fee_…`. Keep this id for a dispute. */
  readonly application_fee?: string;
}

/** A payment that the customer has not finished, with what Stripe.js needs to continue. */
export interface OpenPayment {
  readonly id: string;
  readonly status: string;
  readonly client_secret: string | null;
  /** Stripe's `PaymentIntent.next_action`. */
  readonly next_action: { readonly type: string } | null;
  /** The payment's account; undefined for the platform's own. */
  readonly account: string | undefined;
}

/** A plan that cannot continue now: `code` for programs, the message for people, and what is already done. */
export class SplitUnfinished extends Error {
  override readonly name = 'SplitUnfinished';
  readonly code:
    | 'input_missing'
    | 'payment_unpaid'
    | 'request_differs'
    | 'balance_insufficient'
    | 'currency_not_held'
    | 'share_not_available'
    | 'refund_failed'
    | 'keys_spent';
  readonly done: readonly Done[];
  /** With `payment_unpaid`: the payment. */
  readonly payment: OpenPayment | undefined;

  constructor(
    code: SplitUnfinished['code'],
    message: string,
    more: { done?: readonly Done[]; payment?: OpenPayment; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause });
    this.code = code;
    this.done = more.done ?? [];
    this.payment = more.payment;
  }
}
