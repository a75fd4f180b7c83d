/** What a plan has done, and why it cannot go on. */
import type { ProcessorRequest } from './requests.ts';

export interface Done {
  readonly does: ProcessorRequest['does'];
  /** The processor's: `pi_…`, `tr_…`, `re_…`, `trr_…`, `fr_…`. */
  readonly id: string;
  /** In the smallest unit. */
  readonly amount: number;
  readonly currency: string;
  /** It was there before. */
  readonly known: boolean;
  /** Of a transfer: the payment on the service's account says now of which quote it is; else the settlement file must. */
  readonly labelled?: boolean;
  /** Of a payment that routes our share by itself: that transfer, `tr_…`. Keep it for a dispute. */
  readonly transfer?: string;
  /** Of a payment on an operator's account: its application fee, `fee_…`. Keep it for a dispute. */
  readonly application_fee?: string;
}

/** A payment that the customer has not finished, with what Stripe.js needs to go on. */
export interface OpenPayment {
  readonly id: string;
  readonly status: string;
  readonly client_secret: string | null;
  /** As Stripe describes it: `PaymentIntent.next_action`. */
  readonly next_action: { readonly type: string } | null;
  /** The account that it is on; undefined: the platform's own. */
  readonly account: string | undefined;
}

/** What cannot go on now: `code` for programs, the message for people, and what is done already. */
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
