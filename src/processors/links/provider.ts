/**
 * The port to payment link providers. A provider supplies the URL that a document prints, or to which our own payment
 * page leads. A provider is one file, and one entry in the list of `providers.ts`.
 */
import { z } from 'zod';
import { Amount } from '#money';

export type LinkFacts = Readonly<{
  number: string;
  partnerId: string;
  amount: Amount;
  dueOn: string;
  /** `YYYY-MM-DD`. A link may expire a number of days after this day. */
  expiresAfter: string;
}>;

export type ProviderUrl =
  | Readonly<{ kind: 'url'; url: string }>
  /** The URL is known only after the processor has created the link. */
  | { readonly kind: 'made' }
  | { readonly kind: 'nothing' }
  | Readonly<{ kind: 'missing'; what: string }>;

export type LinkSecrets = Readonly<{
  linkSecret: string | undefined;
  stripeKey: string | undefined;
}>;

export type OpenProvider = Readonly<{
  url: (token: string, facts: LinkFacts) => ProviderUrl;
  /** The payment methods of a processor's links. Undefined if links are created without a call to the processor. */
  methods?: readonly string[];
  /** A required environment variable that is missing, for `init --check`. */
  missing?: Readonly<{ variable: string; what: string }> | undefined;
  /** The amounts that a link can charge in a currency, as text for people. */
  limits?: (currency: string) => string;
  /**
   * The reason why a link for an ordinary amount in this currency cannot be created; undefined if it can be created.
   */
  currencyProblem?: (currency: string) => string | undefined;
}>;

export type PaymentLinkProvider<Schema extends z.ZodType> = Readonly<{
  name: string;
  /** The schema of `payment_link` in settings.json, with its own literal `provider`. */
  schema: Schema;
  open: (settings: z.output<Schema>, secrets: LinkSecrets) => OpenProvider;
}>;

export const provider = <Schema extends z.ZodType>(
  name: string,
  schema: Schema,
  open: PaymentLinkProvider<Schema>['open'],
): PaymentLinkProvider<Schema> => ({ name, schema, open });
