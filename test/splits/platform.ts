/** A partner's platform at the stand-in: its client, its accounts, a clock to move, and what customers were charged. */
import Stripe from 'stripe';
import {
  type DescribedRequest,
  type Done,
  executeRequests,
  type Given,
  SplitUnfinished,
} from '../../src/processors/stripe/splits/execute.ts';
import type { ProcessorRequest, Routing } from '../../src/processors/stripe/splits/plan.ts';
import { balanceOf } from '../support/stripe/accounts.ts';
import { type StripeStandIn, startStripe } from '../support/stripe/stand-in.ts';

export const REAL: Routing = { split: 'real_time', merchant_of_record: 'platform', connected_account_id: 'acct_us' };
export const SEQUENTIAL: Routing = { ...REAL, split: 'sequential', merchant_of_record: 'third_party' };
export const CONTROLLED: Routing = { ...REAL, split: 'sequential' };
export const HOST = { operator_account: 'acct_host', platform_fee: '1.00' };
export const CARD = { payment_method: 'pm_card_visa' };

export const ACCEPTED = {
  ...{ quote_id: 'q-1', enrollment_id: 'e-1', currency: 'USD', accepted_at: '2026-07-15T12:00:00Z' },
  ...{ spotPrice: '10.00', partnerCut: '3.00', invoiceAmount: '7.00' },
};

export interface Platform {
  readonly standIn: StripeStandIn;
  readonly stripe: Stripe;
  now: Date;
  readonly later: (seconds: number) => void;
  readonly run: (
    requests: readonly (ProcessorRequest | DescribedRequest)[],
    given?: Given,
    stripe?: Stripe,
  ) => Promise<Done[]>;
  /** What it cannot go on with. */
  readonly unfinished: (work: Promise<Done[]>) => Promise<SplitUnfinished>;
  /** Of the operator, the platform and the service. */
  readonly balances: () => number[];
  readonly objects: (what: string) => Record<string, unknown>[];
  readonly client: (config?: Stripe.StripeConfig) => Stripe;
  readonly startOver: () => void;
}

export async function openPlatform(): Promise<Platform> {
  const standIn = await startStripe({ now: () => platform.now });
  const { hostname: host, port } = new URL(standIn.url);
  const client = (config: Stripe.StripeConfig = {}) =>
    new Stripe('sk_test_platform', {
      ...{ protocol: 'http', host, port, telemetry: false, maxNetworkRetries: 0, ...config },
    });
  const stripe = client();
  const platform: Platform = {
    ...{ standIn, stripe, client, now: new Date('2026-07-15T12:00:10Z') },
    later(seconds) {
      platform.now = new Date(platform.now.getTime() + seconds * 1000);
    },
    run: (requests, given = CARD, by = stripe) => executeRequests(by, requests, given, { now: () => platform.now }),
    async unfinished(work) {
      const error = await work.catch((thrown: unknown) => thrown);
      if (error instanceof SplitUnfinished) return error;
      throw new Error('it did not stop with SplitUnfinished', { cause: error });
    },
    balances: () => ['acct_host', '', 'acct_us'].map((account) => balanceOf(standIn.state, account)),
    objects: (what) => [...standIn.state.connect.objects.values()].filter(({ object }) => object === what),
    startOver() {
      standIn.startOver();
      platform.now = new Date('2026-07-15T12:00:10Z');
      for (const account of ['acct_us', 'acct_host']) standIn.state.connect.accounts.add(account);
      standIn.state.connect.keys.set('sk_test_us', 'acct_us');
    },
  };
  platform.startOver();
  return platform;
}
