/**
 * The requests by which the Merchant of Record refunds a sale (service.md 7.5), or the platform returns what a dispute
 * took.
 */
import { type Accepted, currencyOf, type Decimal, identifier, metadataOf, unitsOf } from './accepted.ts';
import { type ProcessorRequest, SplitImpossible } from './requests.ts';
import { chargingAccount, headersOf, type PlanOptions, type Routing } from './routing.ts';

type Ids = Pick<Accepted, 'quote_id' | 'requote_id' | 'enrollment_id' | 'currency'>;

/**
 * The refund of one acceptance by the Merchant of Record, in price and share. It may be the API's answer to a reversal,
 * unchanged, with amounts at or below zero. Amounts above zero are accepted too.
 */
export interface Refunded extends Ids {
  /** Identifies this refund among those of the quote. If the same refund is requested twice, it is made once. */
  readonly reversal_id: string;
  readonly spotPrice: Decimal;
  readonly invoiceAmount: Decimal;
}

/** A dispute that the Merchant of Record lost. */
export interface LostDispute extends Ids {
  /** Stripe's id of the dispute: `dp_…` or `du_…`. */
  readonly dispute_id: string;
  /** The rest of our share of the disputed payment, after earlier refunds. */
  readonly invoiceAmount: Decimal;
}

/**
 * The requests for a refund, which the Merchant of Record makes (7.5). In a real-time split, the processor pulls the
 * share back in proportion to the price and does its own rounding, so the amount that it reports as reversed counts. In
 * a sequential split, the platform first reverses its transfer by hand, and an operator's refund gives the application
 * fee back in proportion: our share and the platform's own fee. Throws SplitImpossible.
 */
export function planRefund(refunded: Refunded, routing: Routing, options: PlanOptions = {}): ProcessorRequest[] {
  const operator = chargingAccount(routing, options);
  const currency = currencyOf(refunded.currency);
  const amount = unitsOf(withoutSign(refunded.spotPrice), currency);
  const share = unitsOf(withoutSign(refunded.invoiceAmount), currency);
  if (amount > 0 && share > 0 && isBelowZero(refunded.spotPrice) !== isBelowZero(refunded.invoiceAmount)) {
    const message = `${refunded.spotPrice} and ${refunded.invoiceAmount} ${currency} must both be below zero or both above zero`;
    throw new SplitImpossible('parts_differ', message);
  }
  if (share > amount) {
    const message = `the share of ${refunded.invoiceAmount} is more than the refund of ${refunded.spotPrice} ${currency}`;
    throw new SplitImpossible('share_too_large', message);
  }
  const reversal_id = identifier('reversal_id', refunded.reversal_id);
  const metadata = { ...metadataOf(refunded), reversal_id };
  const key = `reversal:${reversal_id}`;
  if (amount === 0) return [];
  const hasFee = operator !== undefined && share + unitsOf(options.platform_fee ?? 0, currency) > 0;
  const withRefund = {
    ...(routing.split === 'real_time' && share > 0 ? ({ reverse_transfer: true } as const) : {}),
    ...(hasFee ? ({ refund_application_fee: true } as const) : {}),
  };
  const refund: ProcessorRequest = {
    ...{ does: 'refund', method: 'POST', path: '/v1/refunds', headers: headersOf(`${key}:refund`, operator) },
    add: ['payment_intent'],
    params: { amount, ...withRefund, metadata },
  };
  if (routing.split === 'real_time' || share === 0) return [refund];
  // The reversal comes first: it may be refused, while a refund cannot be undone.
  return [reversalOf(key, share, metadata), refund];
}

/**
 * The requests after a lost dispute, which return our share to the account that Stripe debited. That is the platform,
 * whose transfer is reversed, or the operator, who also gets the share of the application fee back. Throws
 * SplitImpossible.
 */
export function planDispute(lost: LostDispute, routing: Routing, options: PlanOptions = {}): ProcessorRequest[] {
  const operator = chargingAccount(routing, options);
  const share = unitsOf(lost.invoiceAmount, currencyOf(lost.currency));
  if (share === 0) return [];
  const dispute_id = identifier('dispute_id', lost.dispute_id);
  const metadata = { ...metadataOf(lost), dispute_id };
  const key = `dispute:${dispute_id}`;
  const reversal = reversalOf(key, share, metadata);
  if (operator === undefined) return [reversal];
  return [
    reversal,
    {
      ...{ does: 'fee_refund', method: 'POST', path: '/v1/application_fees/{application_fee}/refunds' },
      headers: headersOf(`${key}:fee_refund`),
      params: { amount: share, metadata },
    },
  ];
}

const isBelowZero = (amount: Decimal): boolean => String(amount).startsWith('-');

const withoutSign = (amount: Decimal): string => String(amount).replace(/^-/, '');

const reversalOf = (key: string, amount: number, metadata: Readonly<Record<string, string>>): ProcessorRequest => ({
  ...{ does: 'transfer_reversal', method: 'POST', path: '/v1/transfers/{transfer}/reversals' },
  headers: headersOf(`${key}:transfer_reversal`),
  params: { amount, metadata },
});
