/** Which payment link a document carries: our own page, Stripe, a URL template or none. */
import { z } from 'zod';
import { line } from './validation.ts';

/** What a link template may name, each percent-encoded where it stands. */
export const LINK_FIELDS = ['number', 'partner_id', 'amount', 'currency', 'due_on', 'token'] as const;
export type LinkField = (typeof LINK_FIELDS)[number];

const LINK_FIELD = /\{([^{}]*)\}/g;

/** Why a text is no link template, or undefined where it is one. */
function templateProblem(text: string, signatureParameter: string): string | undefined {
  const fields = [...text.matchAll(LINK_FIELD)].map((match) => match[1] as string);
  const unknown = fields.filter((field) => !(LINK_FIELDS as readonly string[]).includes(field));
  if (unknown.length > 0) {
    return `names {${unknown[0]}}; it may name ${LINK_FIELDS.map((field) => `{${field}}`).join(', ')}`;
  }
  if (!fields.includes('number') && !fields.includes('token')) {
    return 'must name {number} or {token}, so that each document has a URL of its own';
  }
  const filled = text.replace(LINK_FIELD, 'x');
  if (/[{}#]/.test(filled)) return 'may not hold {, } or # outside of its fields: the signature goes at the end';
  if (!URL.canParse(filled) || new URL(filled).protocol !== 'https:') return 'must be a URL that begins with https://';
  const origin = /^https:\/\/[^/?]*/i.exec(text)?.[0] ?? '';
  if (origin.includes('{')) return 'may name fields only after the host';
  if (new URL(filled).searchParams.has(signatureParameter)) {
    return `holds the parameter ${signatureParameter} already, where the signature goes`;
  }
  return undefined;
}

/** Which URL the document prints: our own page's, with the provider behind it, or the provider's own. */
const printedUrl = z.enum(['page', 'provider']).default('page');

export const paymentLinkSchema = z.discriminatedUnion('provider', [
  // Our own page, with instructions and without a button that pays.
  z.strictObject({ provider: z.literal('page') }),
  z.strictObject({
    provider: z.literal('stripe'),
    printed_url: printedUrl,
    methods: z
      .array(z.string().regex(/^[a-z0-9_]+$/, 'must be a payment method as Stripe calls it, such as us_bank_account'))
      .min(1, 'must name at least one payment method')
      .refine((methods) => new Set(methods).size === methods.length, 'names a method twice')
      .default(['us_bank_account', 'card']),
  }),
  z
    .strictObject({
      provider: z.literal('template'),
      printed_url: printedUrl,
      template: line(1000),
      signature_parameter: z
        .string()
        .regex(/^[A-Za-z0-9_-]{1,40}$/, 'must be the name of a query parameter')
        .default('signature'),
    })
    .check((context) => {
      const reason = templateProblem(context.value.template, context.value.signature_parameter);
      if (reason !== undefined) {
        context.issues.push({ code: 'custom', path: ['template'], message: reason, input: context.value.template });
      }
    }),
  // Documents with instructions only.
  z.strictObject({ provider: z.literal('none') }),
]);
export type PaymentLinkSettings = z.output<typeof paymentLinkSchema>;

/** Whether documents print the URL of our own page. */
export const printsOwnPage = (link: PaymentLinkSettings): boolean =>
  link.provider === 'page' || (link.provider !== 'none' && link.printed_url === 'page');
