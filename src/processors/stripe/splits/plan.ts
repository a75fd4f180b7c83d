/**
 * Plans the processor requests by which a partner routes the service's share (service.md 7.2 to 7.5) of an accepted
 * quote or requote. The functions are pure and have no dependencies, so that a partner's program can import this
 * module:
 *
 * import { planDispute, planRefund, planSplit } from '@reckoner/splits';
 *
 * Decimals in major units are converted exactly to the currency's smallest unit (7.2.1).
 */
import { Accepted, AcceptedRequote, Checked, checkAccepted, currencyOf, Decimal, unitsOf } from './accepted.ts';
import { ProcessorRequest, SplitImpossible } from './requests.ts';
import { chargingAccount, headersOf, PlanOptions, Routing } from './routing.ts';
import { leastCharge } from './smallest-unit.ts';

export type { Accepted, AcceptedRequote, Decimal } from './accepted.ts';
export { type LostDispute, planDispute, planRefund, type Refunded } from './give-back.ts';
export { accountOf, type ProcessorRequest, SPLIT_PROBLEMS, SplitImpossible, STRIPE_VERSION } from './requests.ts';
export type { PlanOptions, Routing } from './routing.ts';

export type SplitPlan = Readonly<{
  quote_id: string;
  requote_id: string | null;
  split: Routing['split'];
  currency: string;
  /** The service's share (`invoiceAmount`) in major units. */
  share: string;
  /** The list is empty if nothing was charged. */
  requests: readonly ProcessorRequest[];
}>;

/** Throws SplitImpossible. */
export function planSplit(
  accepted: Accepted | AcceptedRequote,
  routing: Routing,
  options: PlanOptions = {},
): SplitPlan {
  const account = chargingAccount(routing, options);
  const checked = checkAccepted(accepted);
  const { quote_id, requote_id = null, currency, share } = checked;
  const requests = () =>
    routing.split === 'real_time'
      ? realTime(checked, routing, options)
      : sequential(checked, routing, options, account);
  return {
    ...{ quote_id, requote_id, split: routing.split, currency, share },
    requests: isCharged(checked) ? requests() : [],
  };
}

/**
 * Whether the price is above zero, so that a payment is needed. Throws SplitImpossible if Stripe refuses the amount.
 */
function isCharged({ price, priceUnits, currency }: Checked) {
  const least = leastCharge(currency);
  if (priceUnits === 0 || least === undefined || priceUnits >= unitsOf(least, currency)) return priceUnits > 0;
  throw new SplitImpossible(
    'amount_too_small',
    `${price} ${currency} is below Stripe's minimum charge of ${least} ${currency}, so it cannot be split: ` +
      'our share of it stays owed, and we invoice it',
  );
}

function realTime(checked: Checked, routing: Routing, options: PlanOptions): ProcessorRequest[] {
  const { requote_id, metadata, shareUnits } = checked;
  const { connected_account_id: destination } = routing;
  if (requote_id !== undefined && options.requote_form === 'as_documented') {
    return [paymentRequest(checked, options, feeOf(shareUnits), destination)];
  }
  // The processor refuses a transfer of zero.
  if (shareUnits === 0) return [paymentRequest(checked, options, {})];
  const transfer_data = { destination, amount: shareUnits, metadata, payment_data: { metadata } };
  return [paymentRequest(checked, options, { transfer_data })];
}

/**
 * The payment is made on the operator's account with an application fee, or on the platform's own account. The transfer
 * of the share follows.
 */
function sequential(
  checked: Checked,
  routing: Routing,
  options: PlanOptions,
  operator: string | undefined,
): ProcessorRequest[] {
  const { quote_id, currency, metadata, shareUnits } = checked;
  const held = routing.settlement_currencies?.map(currencyOf);
  if (shareUnits > 0 && held?.includes(currency) === false) {
    const message = `the platform holds ${held.join(', ')} and no ${currency}, so it cannot send a share in ${currency}`;
    throw new SplitImpossible('currency_not_held', message);
  }
  const payment =
    operator === undefined
      ? paymentRequest(checked, options, { transfer_group: quote_id })
      : paymentRequest(checked, options, feeOf(operatorsFee(checked, options.platform_fee ?? 0)), operator);
  if (shareUnits === 0) return [payment];
  return [
    payment,
    {
      ...{ does: 'transfer', method: 'POST', path: '/v1/transfers', ...sinceOf(checked) },
      headers: headersOf(`${keyOf(checked)}:transfer`),
      params: {
        ...{ amount: shareUnits, currency: currency.toLowerCase() },
        ...{ destination: routing.connected_account_id, transfer_group: quote_id, metadata },
      },
    },
  ];
}

function operatorsFee({ price, share, priceUnits, shareUnits, currency }: Checked, platformFee: Decimal) {
  const fee = shareUnits + unitsOf(platformFee, currency);
  if (fee <= priceUnits) return fee;
  throw new SplitImpossible(
    'fee_too_large',
    `the share of ${share} and a platform fee of ${platformFee} are more than the charge of ${price} ${currency}`,
  );
}

/** The processor refuses a fee of zero. */
const feeOf = (units: number): { application_fee_amount?: number } =>
  units === 0 ? {} : { application_fee_amount: units };

type PaymentRequest = Extract<ProcessorRequest, { does: 'payment' }>;

function paymentRequest(
  checked: Checked,
  { return_url }: PlanOptions,
  routed: Pick<PaymentRequest['params'], 'transfer_data' | 'application_fee_amount' | 'transfer_group'>,
  account?: string,
): PaymentRequest {
  const { priceUnits: amount, currency, metadata } = checked;
  const redirecting =
    return_url === undefined
      ? ({ automatic_payment_methods: { enabled: true, allow_redirects: 'never' } } as const)
      : ({ automatic_payment_methods: { enabled: true }, return_url } as const);
  return {
    ...{ does: 'payment', method: 'POST', path: '/v1/payment_intents', ...sinceOf(checked) },
    headers: headersOf(`${keyOf(checked)}:payment`, account),
    add: ['payment_method'],
    params: { amount, currency: currency.toLowerCase(), confirm: true, ...redirecting, ...routed, metadata },
  };
}

const sinceOf = ({ accepted_at }: Checked): { accepted_at?: string } =>
  accepted_at === undefined ? {} : { accepted_at };

/** An identifier has at most 128 characters, an idempotency key 255. */
const keyOf = ({ quote_id, requote_id }: Checked) =>
  requote_id === undefined ? `quote:${quote_id}` : `requote:${requote_id}`;
