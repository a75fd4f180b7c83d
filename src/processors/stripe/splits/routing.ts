import { Headers, SplitImpossible, STRIPE_VERSION } from './requests.ts';

/** The split, and the party that sells (7.3.1, 7.4.1). */
export type Routing = Readonly<{
  split: 'real_time' | 'sequential';
  merchant_of_record: 'platform' | 'third_party';
  /** The service's account on the partner's platform: `acct_…`. */
  connected_account_id: string;
  /**
   * The currencies in which the platform is paid out and has balances. Stripe converts payments in other currencies, so
   * a sequential share in such a currency can never be sent. If the currencies are omitted, the first transfer shows
   * whether the currency is possible.
   */
  settlement_currencies?: readonly string[] | null | undefined;
}>;

export type PlanOptions = Readonly<{
  /**
   * The account of the operator or event host who charges the customer, if a third party is Merchant of Record (7.4.3).
   */
  operator_account?: string | undefined;
  /** For an operator: the platform's own fee in major units, which is charged together with the share. */
  platform_fee?: string | number | undefined;
  /**
   * The return URL for payment methods that redirect the customer. If no URL is given, no method that redirects is
   * accepted.
   */
  return_url?: string | undefined;
  /**
   * How a requote is routed in real time.
   *
   * `destination_charge`: a second payment, made like the first payment. The service gets exactly its share, and the
   * platform remains Merchant of Record (7.2.1, 7.5).
   *
   * `as_documented`: literally as in 7.3.3, a charge on the service's own account with the share as *application fee*.
   * The fee goes to the platform. The service therefore keeps the remainder instead of its share, and is the merchant
   * of the charge. Reconciliation reports such a charge as `misrouted`.
   */
  requote_form?: 'destination_charge' | 'as_documented' | undefined;
}>;

/** Returns the account that charges the customer; undefined for the platform's own account. Throws SplitImpossible. */
export function chargingAccount(routing: Routing, options: PlanOptions) {
  const { operator_account, platform_fee } = options;
  if (routing.merchant_of_record === 'platform') {
    if (operator_account === undefined && platform_fee === undefined) return undefined;
    throw new SplitImpossible(
      'operator_unused',
      'with the platform as Merchant of Record there is neither an operator nor a platform fee: everything but our share stays with the platform',
    );
  }
  if (routing.split === 'real_time') {
    throw new SplitImpossible(
      'third_party_real_time',
      'a real-time split needs the platform as Merchant of Record (7.3.1): use the sequential split',
    );
  }
  if (operator_account !== undefined && operator_account !== '') return operator_account;
  throw new SplitImpossible(
    'operator_missing',
    "a sequential split for a third party is charged on the operator's account (7.4.3): name it",
  );
}

export const headersOf = (key: string, account?: string): Headers => ({
  'Idempotency-Key': key,
  'Stripe-Version': STRIPE_VERSION,
  ...(account === undefined ? {} : { 'Stripe-Account': account }),
});
