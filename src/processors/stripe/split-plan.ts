/**
 * The processor requests by which a partner routes the service's share (service.md 7.2 to 7.5): for an accepted quote,
 * for a requote, and for a refund. Pure and without dependencies, so that a partner's program can import it:
 *
 *   import { planRefund, planSplit } from 'reckoner/splits';
 *
 * Amounts come in as decimal texts in major units and go out in the currency's smallest unit, exactly (7.2.1).
 */
import { smallestUnit } from './smallest-unit.ts';

/** What was accepted: of a quote its values, of a requote the incremental ones (7.2.2). */
export interface Accepted {
  readonly quote_id: string;
  readonly requote_id?: string | undefined;
  readonly enrollment_id?: string | null | undefined;
  readonly currency: string;
  readonly spotPrice: string;
  readonly partnerCut: string;
  readonly invoiceAmount: string;
}

/** How the partner routes, and who sells (7.3.1, 7.4.1). */
export interface Routing {
  readonly split: 'real_time' | 'sequential';
  readonly merchant_of_record: 'platform' | 'third_party';
  /** The service's account on the partner's platform: `acct_…`. */
  readonly connected_account_id: string;
}

export interface PlanOptions {
  /** Sequential only: the account of the operator or event host, who charges the customer (7.4.3). */
  readonly operator_account?: string | undefined;
  /** Sequential only: the platform's own fee in major units, taken from the charge together with the share. */
  readonly platform_fee?: string | undefined;
  /**
   * How a requote is routed in real time. `destination_charge`: a second payment like the first, which gives the
   * service exactly its share and leaves the platform Merchant of Record (7.2.1, 7.5). `as_documented`: 7.3.3 to the
   * letter, a charge on the service's own account with its share as *application fee*. That fee goes to the platform:
   * the service keeps the rest instead of its share, and becomes merchant of the charge. Reconciliation calls it
   * `misrouted`.
   */
  readonly requote_form?: 'destination_charge' | 'as_documented' | undefined;
}

type Metadata = Readonly<Record<string, string>>;

interface PaymentParams {
  readonly amount: number;
  readonly currency: string;
  readonly confirm: true;
  readonly transfer_data?: {
    readonly destination: string;
    readonly amount: number;
    /** Written to the payment on the service's account, whose metadata is otherwise empty. */
    readonly payment_data: { readonly metadata: Metadata };
  };
  readonly application_fee_amount?: number;
  readonly metadata: Metadata;
}

interface TransferParams {
  readonly amount: number;
  readonly currency: string;
  readonly destination: string;
  readonly transfer_group: string;
  readonly metadata: Metadata;
}

interface RefundParams {
  readonly amount: number;
  /** Pulls the service's share back in proportion (7.3.5). */
  readonly reverse_transfer?: true;
  readonly metadata: Metadata;
}

interface TransferReversalParams {
  readonly amount: number;
  readonly metadata: Metadata;
}

interface Headers {
  /** The same for every repetition, so that a request sent twice is done once. */
  readonly 'Idempotency-Key': string;
  /** On whose account the request is made; left out, on the platform's own. */
  readonly 'Stripe-Account'?: string;
}

/** One request, in the order in which the requests of a plan are made. */
export type ProcessorRequest =
  | {
      readonly does: 'payment';
      readonly method: 'POST';
      readonly path: '/v1/payment_intents';
      readonly headers: Headers;
      /** What only the checkout knows and must add. */
      readonly add: readonly ['payment_method'];
      readonly params: PaymentParams;
    }
  | {
      /** After the payment has succeeded, and its money is available on the platform. */
      readonly does: 'transfer';
      readonly method: 'POST';
      readonly path: '/v1/transfers';
      readonly headers: Headers;
      readonly params: TransferParams;
    }
  | {
      readonly does: 'refund';
      readonly method: 'POST';
      readonly path: '/v1/refunds';
      readonly headers: Headers;
      /** The payment of the acceptance: `pi_…`. */
      readonly add: readonly ['payment_intent'];
      readonly params: RefundParams;
    }
  | {
      /** By hand, since the operator's refund leaves the platform's transfer as it was (7.4.6). */
      readonly does: 'transfer_reversal';
      readonly method: 'POST';
      /** With the id of the acceptance's transfer, `tr_…`, in the place of `{transfer}`. */
      readonly path: '/v1/transfers/{transfer}/reversals';
      readonly headers: Headers;
      readonly params: TransferReversalParams;
    };

export interface SplitPlan {
  readonly quote_id: string;
  readonly requote_id: string | null;
  readonly split: Routing['split'];
  readonly currency: string;
  /** What reaches the service, in major units: the invoiceAmount. */
  readonly share: string;
  /** Empty where nothing was charged. */
  readonly requests: readonly ProcessorRequest[];
}

/** A plan that can't be made: `code` for programs, the message for people. */
export class SplitImpossible extends Error {
  override readonly name = 'SplitImpossible';
  readonly code:
    | 'third_party_real_time'
    | 'operator_missing'
    | 'operator_unused'
    | 'amount_inexpressible'
    | 'fee_too_large';

  constructor(code: SplitImpossible['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/** The requests for one acceptance. Throws SplitImpossible. */
export function planSplit(accepted: Accepted, routing: Routing, options: PlanOptions = {}): SplitPlan {
  const requests =
    routing.split === 'real_time' ? realTime(accepted, routing, options) : sequential(accepted, routing, options);
  return {
    quote_id: accepted.quote_id,
    requote_id: accepted.requote_id ?? null,
    split: routing.split,
    currency: accepted.currency,
    share: accepted.invoiceAmount,
    requests,
  };
}

function realTime(accepted: Accepted, routing: Routing, options: PlanOptions): ProcessorRequest[] {
  if (routing.merchant_of_record === 'third_party') throw thirdParty();
  if (options.operator_account !== undefined || options.platform_fee !== undefined) {
    throw new SplitImpossible('operator_unused', 'a real-time split has neither an operator nor a platform fee');
  }
  const amount = unitsOf(accepted.spotPrice, accepted.currency);
  const share = unitsOf(accepted.invoiceAmount, accepted.currency);
  if (amount === 0) return [];
  const metadata = metadataOf(accepted);
  const payment = { amount, currency: accepted.currency.toLowerCase(), confirm: true, metadata } as const;
  if (accepted.requote_id !== undefined && options.requote_form === 'as_documented') {
    return [paymentRequest(accepted, { ...payment, ...feeOf(share) }, routing.connected_account_id)];
  }
  // A share of zero is no transfer: the processor refuses one of nothing.
  if (share === 0) return [paymentRequest(accepted, payment)];
  const transfer_data = { destination: routing.connected_account_id, amount: share, payment_data: { metadata } };
  return [paymentRequest(accepted, { ...payment, transfer_data })];
}

function sequential(accepted: Accepted, routing: Routing, options: PlanOptions): ProcessorRequest[] {
  const { operator_account: operator, platform_fee: fee = '0' } = options;
  if (operator === undefined) throw operatorMissing();
  const { currency } = accepted;
  const amount = unitsOf(accepted.spotPrice, currency);
  const share = unitsOf(accepted.invoiceAmount, currency);
  const application_fee_amount = share + unitsOf(fee, currency);
  if (application_fee_amount > amount) {
    throw new SplitImpossible(
      'fee_too_large',
      `the share of ${accepted.invoiceAmount} and a platform fee of ${fee} are more than the charge of ${accepted.spotPrice} ${currency}`,
    );
  }
  if (amount === 0) return [];
  const metadata = metadataOf(accepted);
  const payment = {
    amount,
    currency: currency.toLowerCase(),
    confirm: true,
    ...feeOf(application_fee_amount),
    metadata,
  } as const;
  const requests = [paymentRequest(accepted, payment, operator)];
  if (share === 0) return requests;
  return [
    ...requests,
    {
      does: 'transfer',
      method: 'POST',
      path: '/v1/transfers',
      headers: { 'Idempotency-Key': `${keyOf(accepted)}:transfer` },
      params: {
        amount: share,
        currency: currency.toLowerCase(),
        destination: routing.connected_account_id,
        transfer_group: accepted.quote_id,
        metadata,
      },
    },
  ];
}

/** The processor takes no fee of nothing: then there is none. */
const feeOf = (units: number): { application_fee_amount?: number } =>
  units === 0 ? {} : { application_fee_amount: units };

/** What the Merchant of Record gives back of one acceptance: amounts above zero, of the price and of the share. */
export interface Refunded extends Pick<Accepted, 'quote_id' | 'requote_id' | 'enrollment_id' | 'currency'> {
  /** Names this refund among others of the quote: the same refund asked for twice is made once. */
  readonly reversal_id: string;
  readonly spotPrice: string;
  readonly invoiceAmount: string;
}

/**
 * The requests for a refund, which the Merchant of Record makes (7.5). In real time the processor pulls the share back
 * in proportion to the price and rounds by itself, so the amount that it reports as reversed counts. In sequence
 * the operator refunds, and the platform reverses its transfer by hand. Throws SplitImpossible.
 */
export function planRefund(refunded: Refunded, routing: Routing, options: PlanOptions = {}): ProcessorRequest[] {
  const amount = unitsOf(refunded.spotPrice, refunded.currency);
  const share = unitsOf(refunded.invoiceAmount, refunded.currency);
  const metadata = { ...metadataOf(refunded), reversal_id: refunded.reversal_id };
  const key = `reversal:${refunded.reversal_id}`;
  const refund = (params: RefundParams, account?: string): ProcessorRequest => ({
    does: 'refund',
    method: 'POST',
    path: '/v1/refunds',
    headers: {
      'Idempotency-Key': `${key}:refund`,
      ...(account === undefined ? {} : { 'Stripe-Account': account }),
    },
    add: ['payment_intent'],
    params,
  });
  if (amount === 0) return [];
  if (routing.split === 'real_time') {
    if (routing.merchant_of_record === 'third_party') throw thirdParty();
    return [refund({ amount, ...(share === 0 ? {} : { reverse_transfer: true }), metadata })];
  }
  if (options.operator_account === undefined) throw operatorMissing();
  const requests = [refund({ amount, metadata }, options.operator_account)];
  if (share === 0) return requests;
  return [
    ...requests,
    {
      does: 'transfer_reversal',
      method: 'POST',
      path: '/v1/transfers/{transfer}/reversals',
      headers: { 'Idempotency-Key': `${key}:transfer_reversal` },
      params: { amount: share, metadata },
    },
  ];
}

const thirdParty = (): SplitImpossible =>
  new SplitImpossible(
    'third_party_real_time',
    'a real-time split needs the platform as Merchant of Record (7.3.1): use the sequential split',
  );

const operatorMissing = (): SplitImpossible =>
  new SplitImpossible('operator_missing', "a sequential split is charged on the operator's account (7.4.3): name it");

function paymentRequest(accepted: Accepted, params: PaymentParams, account?: string): ProcessorRequest {
  return {
    does: 'payment',
    method: 'POST',
    path: '/v1/payment_intents',
    headers: {
      'Idempotency-Key': `${keyOf(accepted)}:payment`,
      ...(account === undefined ? {} : { 'Stripe-Account': account }),
    },
    add: ['payment_method'],
    params,
  };
}

/** An identifier has at most 128 characters, an idempotency key 255. */
const keyOf = ({ quote_id, requote_id }: Accepted): string =>
  requote_id === undefined ? `quote:${quote_id}` : `requote:${requote_id}`;

/** What reconciliation finds the quote by (7.3.6, 7.4.7). */
function metadataOf({
  quote_id,
  requote_id,
  enrollment_id,
}: Pick<Accepted, 'quote_id' | 'requote_id' | 'enrollment_id'>): Metadata {
  return {
    quote_id,
    ...(requote_id === undefined ? {} : { requote_id }),
    ...(enrollment_id === undefined || enrollment_id === null ? {} : { enrollment_id }),
  };
}

function unitsOf(amount: string, currency: string): number {
  const unit = smallestUnit(amount, currency);
  if ('reason' in unit) throw new SplitImpossible('amount_inexpressible', unit.reason);
  return unit.units;
}
