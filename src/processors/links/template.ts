/**
 * Links by template: the URL of a payment page outside Reckoner, filled in and signed, so that the page can trust its
 * parameters. The signature is the last parameter: HMAC-SHA256, in hex, over the URL before the `&` or `?` of that
 * parameter. docs/settings.md shows how a page verifies the signature, and a test executes that code.
 */
import { createHmac } from 'node:crypto';
import { DateTime } from 'luxon';
import { z } from 'zod';
import { printedUrl } from './printed-url.ts';
import { LinkFacts, provider } from './provider.ts';

/** The values of these fields are percent-encoded. */
const LINK_FIELDS = ['number', 'partner_id', 'amount', 'currency', 'due_on', 'expires', 'token'] as const;

type LinkValues = Readonly<Record<(typeof LINK_FIELDS)[number], string>>;

const LINK_FIELD = /\{([^{}]*)\}/g;

const schema = z
  .strictObject({
    provider: z.literal('template'),
    printed_url: printedUrl,
    template: z
      .string()
      .max(1000)
      .regex(
        /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]*$/u,
        'must be one line without control characters',
      ),
    signature_parameter: z
      .string()
      .regex(/^[A-Za-z0-9_-]{1,40}$/, 'must be the name of a query parameter')
      .default('signature'),
    /** A link whose template contains {expires} is valid for this number of days after the due date. */
    expires_days: z.int().min(0).max(3660).optional(),
  })
  .check((context) => {
    const { template, signature_parameter, expires_days } = context.value;
    const complain = (path: string, message: string) =>
      context.issues.push({ code: 'custom', path: [path], message, input: context.value });
    const reason = templateProblem(template, signature_parameter);
    if (reason !== undefined) complain('template', reason);
    if (expires_days !== undefined && !template.includes('{expires}')) {
      complain('expires_days', 'needs {expires} in the template: without it a link does not expire');
    }
  });

export const template = provider('template', schema, (settings, { linkSecret: secret }) => ({
  url(token, facts) {
    if (secret === undefined) {
      return { kind: 'missing', what: 'settings.json prints signed links, but PAYMENT_LINK_SECRET is not set' };
    }
    const values = {
      number: facts.number,
      partner_id: facts.partnerId,
      amount: facts.amount.toString(),
      currency: facts.amount.currency,
      due_on: facts.dueOn,
      expires: expiryOf(facts, settings.expires_days ?? EXPIRES_DAYS),
      token,
    };
    const signatureParameter = settings.signature_parameter;
    return { kind: 'url', url: signedUrl({ template: settings.template, signatureParameter, secret }, values) };
  },
  missing:
    secret === undefined
      ? { variable: 'PAYMENT_LINK_SECRET', what: 'a secret: no payment link can be signed' }
      : undefined,
}));

/** By default, the payment page of a settled invoice is also kept for 90 days. */
const EXPIRES_DAYS = 90;

/** In seconds since 1970. The time is 00:00 UTC in every time zone, so that a document always has the same URL. */
const expiryOf = ({ expiresAfter }: LinkFacts, days: number) =>
  String(DateTime.fromISO(expiresAfter, { zone: 'utc' }).plus({ days }).toUnixInteger());

function templateProblem(text: string, signatureParameter: string) {
  const fields = [...text.matchAll(LINK_FIELD)].map((match) => match[1] as string);
  const unknown = fields.filter((field) => !(LINK_FIELDS as readonly string[]).includes(field));
  if (unknown.length > 0) {
    return `names {${unknown[0]}}; it may name ${LINK_FIELDS.map((field) => `{${field}}`).join(', ')}`;
  }
  if (!fields.includes('number') && !fields.includes('token')) {
    return 'must name {number} or {token}, so that each document has its own URL';
  }
  const filled = text.replace(LINK_FIELD, 'x');
  if (/[{}#]/.test(filled)) return 'must not contain {, } or # outside of its fields: the signature goes at the end';
  if (!URL.canParse(filled) || new URL(filled).protocol !== 'https:') return 'must be a URL that begins with https://';
  const origin = /^https:\/\/[^/?]*/i.exec(text)?.[0] ?? '';
  if (origin.includes('{')) return 'may name fields only after the host';
  if (new URL(filled).searchParams.has(signatureParameter)) {
    return `already contains the parameter ${signatureParameter}, which is for the signature`;
  }
  return undefined;
}

type SignedTemplate = Readonly<{
  template: string;
  signatureParameter: string;
  secret: string;
}>;

export function signedUrl({ template, signatureParameter, secret }: SignedTemplate, values: LinkValues) {
  const url = template.replace(LINK_FIELD, (_, field: string) => encodeURIComponent(values[field as keyof LinkValues]));
  const signature = createHmac('sha256', secret).update(url).digest('hex');
  return `${url}${url.includes('?') ? '&' : '?'}${signatureParameter}=${signature}`;
}
