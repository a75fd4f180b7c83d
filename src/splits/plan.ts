/**
 * The processor requests by which a partner routes the service's share (service.md 7.2 to 7.5): for an accepted quote,
 * for a requote, and for a refund. Pure and without dependencies, so that a partner's program can import it:
 *
 *   import { planSplit } from 'reckoner/splits';
 *
 * Amounts come in as decimal texts in major units and go out in the currency's smallest unit, exactly (7.2.1).
 */
import { smallestUnit } from '../smallest-unit.ts';

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
  if (routing.merchant_of_record === 'third_party') {
    throw new SplitImpossible(
      'third_party_real_time',
      'a real-time split needs the platform as Merchant of Record (7.3.1): use the sequential split',
    );
  }
  if (options.operator_account !== undefined || options.platform_fee !== undefined) {
    throw new SplitImpossible('operator_unused', 'a real-time split has neither an operator nor a platform fee');
  }
  const amount = unitsOf(accepted.spotPrice, accepted.currency);
  const share = unitsOf(accepted.invoiceAmount, accepted.currency);
  if (amount === 0) return [];
  const metadata = metadataOf(accepted);
  const payment = { amount, currency: accepted.currency.toLowerCase(), confirm: true, metadata } as const;
  if (accepted.requote_id !== undefined && options.requote_form === 'as_documented') {
    return [paymentRequest(accepted, { ...payment, application_fee_amount: share }, routing.connected_account_id)];
  }
  // A share of zero is no transfer: the processor refuses one of nothing.
  if (share === 0) return [paymentRequest(accepted, payment)];
  const transfer_data = { destination: routing.connected_account_id, amount: share, payment_data: { metadata } };
  return [paymentRequest(accepted, { ...payment, transfer_data })];
}

function sequential(accepted: Accepted, routing: Routing, options: PlanOptions): ProcessorRequest[] {
  const { operator_account: operator, platform_fee: fee = '0' } = options;
  if (operator === undefined) {
    throw new SplitImpossible(
      'operator_missing',
      "a sequential split is charged on the operator's account (7.4.3): name it",
    );
  }
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
    application_fee_amount,
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
function metadataOf({ quote_id, requote_id, enrollment_id }: Accepted): Metadata {
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
