/**
 * The setting `payment_link`: the processor that makes the links behind our own payment page, if any. A processor's
 * links are one entry in the list.
 */
import { z } from 'zod';
import { stripePaymentLinks } from '#processors/stripe/payment-link-provider';

const PROVIDERS = [stripePaymentLinks] as const;

/** `page` is our own page, with payment instructions but without a pay button. `none` prints no link. */
export const paymentLinkSchema = z.discriminatedUnion('provider', [
  z.strictObject({ provider: z.literal(['page', 'none']) }),
  PROVIDERS[0].schema,
]);
type PaymentLinkSettings = z.output<typeof paymentLinkSchema>;

/** The links of the processor in the settings; undefined if no processor makes links. */
export function linksOf(settings: PaymentLinkSettings, secrets: { readonly stripeKey: string | undefined }) {
  for (const { name, open } of PROVIDERS) if (settings.provider === name) return open(settings, secrets);
  return undefined;
}

export type ProcessorLinks = ReturnType<(typeof PROVIDERS)[number]['open']>;

export const printsOwnPage = (link: PaymentLinkSettings) =>
  link.provider === 'page' || ('printed_url' in link && link.printed_url === 'page');
