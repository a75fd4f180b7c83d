import { ProcessorRequest } from './requests.ts';

export type Done = Readonly<{
  does: ProcessorRequest['does'];
  /** The processor's id: `pi_…`, `tr_…`, `re_…`, `trr_…`, `fr_…`. */
  id: string;
  /** The amount in the currency's smallest unit. */
  amount: number;
  currency: string;
  known: boolean;
  /**
   * For a transfer: whether the payment on the service's account names its quote. If the payment does not name the
   * quote, the settlement file must name it.
   */
  labelled?: boolean;
  /** For a payment that routes our share automatically: its transfer, `tr_…`. Keep this id for a dispute. */
  transfer?: string;
  /** For a payment on an operator's account: its application fee, `fee_…`. Keep this id for a dispute. */
  application_fee?: string;
}>;

/** A payment that the customer has not finished, with the values that Stripe.js needs to continue. */
export type OpenPayment = Readonly<{
  id: string;
  status: string;
  client_secret: string | null;
  next_action: { readonly type: string } | null;
  /** The payment's account; undefined for the platform's own account. */
  account: string | undefined;
}>;

/**
 * The error for a plan that cannot continue now. `code` is for programs, the message for people, and `done` lists the
 * finished requests.
 */
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
  /** For the code `payment_unpaid`: the payment that is still open. */
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
