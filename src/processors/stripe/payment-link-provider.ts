import { z } from 'zod';
import { Amount } from '#money';
import { methodsFor, stripeAmount, stripeLimits } from './amounts.ts';

const schema = z.strictObject({
  provider: z.literal('stripe'),
  /** Whether a document prints the URL of our own page, which leads to the provider, or the provider's URL. */
  printed_url: z.enum(['page', 'provider']).default('page'),
  methods: z
    .array(z.string().regex(/^[a-z0-9_]+$/, 'must be a Stripe payment method, such as us_bank_account'))
    .min(1, 'must name at least one payment method')
    .refine((methods) => new Set(methods).size === methods.length, 'names a method twice')
    .default(['us_bank_account', 'card']),
});

/** A nominal amount that is valid in every currency. */
const NOMINAL = '10000';

export const stripePaymentLinks = {
  name: 'stripe',
  schema,
  open: ({ methods }: z.output<typeof schema>, { stripeKey }: { readonly stripeKey: string | undefined }) => ({
    methods,
    /** A required environment variable that is missing, for `init --check`. */
    missing:
      stripeKey === undefined
        ? { variable: 'STRIPE_SECRET_KEY', what: 'a key: no payment link can be made' }
        : undefined,
    /** The amounts that a link can charge in a currency, as text for people. */
    limits: stripeLimits,
    /** Why a link for an ordinary amount in this currency cannot be created; undefined if it can be created. */
    currencyProblem(currency: string) {
      const nominal = stripeAmount(Amount.of(NOMINAL, currency));
      if ('reason' in nominal) return `a payment link: ${nominal.reason}`;
      if (methodsFor(methods, currency).length > 0) return undefined;
      return `a payment method: none of ${methods.join(', ')} can pay in ${currency}`;
    },
  }),
} as const;
