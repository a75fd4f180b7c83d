import { z } from 'zod';
import { stripePaymentLinks } from '#processors/stripe/payment-link-provider';
import { none } from './none.ts';
import { page } from './page.ts';
import { LinkSecrets, PaymentLinkProvider } from './provider.ts';
import { template } from './template.ts';

const PROVIDERS = [page, stripePaymentLinks, template, none] as const;

type SchemasOf<List extends readonly { readonly schema: unknown }[]> = {
  -readonly [K in keyof List]: List[K]['schema'];
};

const schemas = PROVIDERS.map(({ schema }) => schema) as unknown as SchemasOf<typeof PROVIDERS>;

export const paymentLinkSchema = z.discriminatedUnion('provider', schemas);
type PaymentLinkSettings = z.output<typeof paymentLinkSchema>;

export function openProvider(settings: PaymentLinkSettings, secrets: LinkSecrets) {
  const known = PROVIDERS as readonly unknown[] as readonly PaymentLinkProvider<z.ZodType<PaymentLinkSettings>>[];
  const found = known.find(({ name }) => name === settings.provider);
  if (found === undefined) throw new Error(`${settings.provider} is not a payment link provider`);
  return found.open(settings, secrets);
}

export const printsOwnPage = (link: PaymentLinkSettings) =>
  link.provider === 'page' || ('printed_url' in link && link.printed_url === 'page');
