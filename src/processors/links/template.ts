/**
 * Links by template: a URL of somebody else's payment page, filled in and signed, so that the page can trust what it
 * says. The signature is the last parameter: HMAC-SHA256, in hex, over everything before it and its `&` or `?`.
 */
import { createHmac } from 'node:crypto';
import type { LinkField } from '../../config/payment-link.ts';

export type LinkValues = Readonly<Record<LinkField, string>>;

export interface SignedTemplate {
  readonly template: string;
  readonly signatureParameter: string;
  readonly secret: string;
}

/** The same values give the same URL. */
export function signedUrl({ template, signatureParameter, secret }: SignedTemplate, values: LinkValues): string {
  const url = template.replace(/\{([^{}]*)\}/g, (_, field: string) => encodeURIComponent(values[field as LinkField]));
  const signature = createHmac('sha256', secret).update(url).digest('hex');
  return `${url}${url.includes('?') ? '&' : '?'}${signatureParameter}=${signature}`;
}
