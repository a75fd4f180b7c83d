/**
 * The port to payment link providers. It supplies the link that a document prints, and what is behind our own payment
 * page. A provider is one file, and one line of the list in `providers.ts`.
 */
import type { z } from 'zod';
import type { Amount } from '../../money.ts';

/** What a link is for. */
export interface LinkFacts {
  readonly number: string;
  readonly partnerId: string;
  readonly amount: Amount;
  readonly dueOn: string;
  /** `YYYY-MM-DD`. If a link expires, it does so some days after this day. */
  readonly expiresAfter: string;
}

/** The provider's URL of a document's link. */
export type ProviderUrl =
  | { readonly kind: 'url'; readonly url: string }
  /** The processor of that name makes the link, and its URL is known only then. */
  | { readonly kind: 'made' }
  | { readonly kind: 'nothing' }
  /** What a setting or an environment variable must supply first. */
  | { readonly kind: 'missing'; readonly what: string };

/** The secrets from the environment that a provider may need. */
export interface LinkSecrets {
  /** PAYMENT_LINK_SECRET. */
  readonly linkSecret: string | undefined;
  /** STRIPE_SECRET_KEY. */
  readonly stripeKey: string | undefined;
}

/** A provider with its settings. */
export interface OpenProvider {
  readonly url: (token: string, facts: LinkFacts) => ProviderUrl;
  /** The payment methods of a processor's links; undefined if the provider makes links without a call. */
  readonly methods?: readonly string[];
  /** A required variable of the environment that is missing, for `init --check`. */
  readonly missing?: { readonly variable: string; readonly what: string } | undefined;
  /** The amounts of a currency that a link can charge, as text for people. */
  readonly limits?: (currency: string) => string;
  /** What is missing for links of an ordinary amount in a currency; undefined if nothing is. */
  readonly currencyProblem?: (currency: string) => string | undefined;
}

export interface PaymentLinkProvider<Schema extends z.ZodType> {
  readonly name: string;
  /** The schema of `payment_link` in settings.json, with its own literal `provider`. */
  readonly schema: Schema;
  readonly open: (settings: z.output<Schema>, secrets: LinkSecrets) => OpenProvider;
}

export const provider = <Schema extends z.ZodType>(
  name: string,
  schema: Schema,
  open: PaymentLinkProvider<Schema>['open'],
): PaymentLinkProvider<Schema> => ({ name, schema, open });
