/** Plans the requests for a refund by the Merchant of Record (service.md 7.5), or for the money of a lost dispute. */
import { Accepted, currencyOf, Decimal, identifier, metadataOf, unitsOf } from './accepted.ts';
import { ProcessorRequest, SplitImpossible } from './requests.ts';
import { chargingAccount, headersOf, PlanOptions, Routing } from './routing.ts';

type Ids = Pick<Accepted, 'quote_id' | 'requote_id' | 'enrollment_id' | 'currency'>;

/**
 * The refund of one acceptance by the Merchant of Record, as price and share. The API's answer to a reversal can be
 * passed unchanged, with amounts at or below zero. Amounts above zero are accepted too.
 */
export type Refunded = Ids &
  Readonly<{
    /** Identifies this refund among the refunds of the quote. A repeated refund is made only once. */
    reversal_id: string;
    spotPrice: Decimal;
    invoiceAmount: Decimal;
  }>;

export type LostDispute = Ids &
  Readonly<{
    /** Stripe's id of the dispute: `dp_…` or `du_…`. */
    dispute_id: string;
    /** Our share of the disputed payment, less its earlier refunds. */
    invoiceAmount: Decimal;
  }>;

/**
 * Plans a refund, which the Merchant of Record makes (7.5). In a real-time split, the processor reverses the share in
 * proportion to the price and rounds it. The amount that the processor reports as reversed is therefore the valid one.
 * In a sequential split, the platform first reverses its transfer itself. An operator's refund then returns the
 * application fee in proportion: our share and the platform's own fee. Throws SplitImpossible.
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
  // The reversal comes first, because the reversal may be refused and a refund cannot be undone.
  return [reversalOf(key, share, metadata), refund];
}

/**
 * Plans the return of our share after a lost dispute, to the account that Stripe debited. A platform's transfer is
 * reversed. An operator also gets the share of the application fee back. Throws SplitImpossible.
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

const isBelowZero = (amount: Decimal) => String(amount).startsWith('-');

const withoutSign = (amount: Decimal) => String(amount).replace(/^-/, '');

const reversalOf = (key: string, amount: number, metadata: Readonly<Record<string, string>>): ProcessorRequest => ({
  ...{ does: 'transfer_reversal', method: 'POST', path: '/v1/transfers/{transfer}/reversals' },
  headers: headersOf(`${key}:transfer_reversal`),
  params: { amount, metadata },
});
