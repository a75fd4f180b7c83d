/** How a partner routes the service's share, who sells, and which account charges. */
import { type Headers, SplitImpossible, STRIPE_VERSION } from './requests.ts';

/** How the partner routes, and who sells (7.3.1, 7.4.1). */
export interface Routing {
  readonly split: 'real_time' | 'sequential';
  readonly merchant_of_record: 'platform' | 'third_party';
  /** The service's account on the partner's platform: `acct_…`. */
  readonly connected_account_id: string;
  /**
   * The currencies in which the platform is paid out. It has balances only in these. Stripe converts payments in other
   * currencies, and a sequential share in those can never be sent. If omitted, the first transfer shows whether it can.
   */
  readonly settlement_currencies?: readonly string[] | null | undefined;
}

export interface PlanOptions {
  /**
   * If a third party is Merchant of Record: the account of the operator or event host, who charges the customer
   * (7.4.3).
   */
  readonly operator_account?: string | undefined;
  /** With an operator: the platform's own fee in major units, taken from the charge together with the share. */
  readonly platform_fee?: string | number | undefined;
  /** The return URL for payment methods that redirect the customer. If omitted, no such method is accepted. */
  readonly return_url?: string | undefined;
  /**
   * How a requote is routed in real time. `destination_charge`: a second payment like the first, which gives the
   * service exactly its share and leaves the platform Merchant of Record (7.2.1, 7.5). `as_documented`: 7.3.3
   * literally, a charge on the service's own account with its share as *application fee*. That fee goes to the
   * platform, so the service keeps the rest instead of its share, and becomes the merchant of the charge.
   * Reconciliation reports it as `misrouted`.
   */
  readonly requote_form?: 'destination_charge' | 'as_documented' | undefined;
}

/** The account that charges the customer; undefined for the platform's own. Throws SplitImpossible. */
export function chargingAccount(routing: Routing, options: PlanOptions): string | undefined {
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
