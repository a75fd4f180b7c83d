import { z } from 'zod';
import { Amount } from '#money';
import { printedUrl } from '#processors/links/printed-url';
import { provider } from '#processors/links/provider';
import { methodsFor, stripeAmount, stripeLimits } from './amounts.ts';

const schema = z.strictObject({
  provider: z.literal('stripe'),
  printed_url: printedUrl,
  methods: z
    .array(z.string().regex(/^[a-z0-9_]+$/, 'must be a Stripe payment method, such as us_bank_account'))
    .min(1, 'must name at least one payment method')
    .refine((methods) => new Set(methods).size === methods.length, 'names a method twice')
    .default(['us_bank_account', 'card']),
});

/** A nominal amount that is valid in every currency. */
const NOMINAL = '10000';

export const stripePaymentLinks = provider('stripe', schema, ({ methods }, { stripeKey }) => ({
  url: () =>
    stripeKey === undefined
      ? { kind: 'missing', what: 'settings.json prints the links of stripe, but STRIPE_SECRET_KEY is not set' }
      : { kind: 'made' },
  methods,
  missing:
    stripeKey === undefined ? { variable: 'STRIPE_SECRET_KEY', what: 'a key: no payment link can be made' } : undefined,
  limits: stripeLimits,
  currencyProblem(currency) {
    const nominal = stripeAmount(Amount.of(NOMINAL, currency));
    if ('reason' in nominal) return `a payment link: ${nominal.reason}`;
    if (methodsFor(methods, currency).length > 0) return undefined;
    return `a payment method: none of ${methods.join(', ')} can pay in ${currency}`;
  },
}));
