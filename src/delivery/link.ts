/**
 * The port to payment link providers. A document prints one URL for good: that of our own page, which never goes stale,
 * or the provider's. What stands behind it may change with the balance; `links/sync.ts` sees to that.
 */
import { randomBytes } from 'node:crypto';
import type { Environment } from '../config/environment.ts';
import { type PaymentLinkSettings, printsOwnPage } from '../config/payment-link.ts';
import type { Settings } from '../config/settings.ts';
import type { Amount } from '../money.ts';
import { signedUrl } from '../processors/links/template.ts';
import { openStripeLinks, type StripeLinks } from '../processors/stripe/payment-links.ts';

export interface PaymentLink {
  readonly provider: string;
  /** The unguessable name of the invoice's payment page. */
  readonly token: string;
  readonly url: string;
}

/** What a link is for. */
export interface LinkFacts {
  readonly number: string;
  readonly partnerId: string;
  readonly amount: Amount;
  readonly dueOn: string;
}

/** What a document prints: a URL at once, the URL of the link that Stripe makes, nothing, or not yet for a reason. */
export type PrintedUrl =
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'stripe' }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'lacks'; readonly what: string };

export interface LinkProvider {
  readonly name: PaymentLinkSettings['provider'];
  /** What a document would print under the present settings, its page named by that token. */
  readonly printed: (token: string, facts: LinkFacts) => PrintedUrl;
  /** Whether a link that was printed would be printed alike today: else a new document is needed to change it. */
  readonly matches: (link: PaymentLink | null, facts: LinkFacts) => boolean;
  /** The URL behind our page's button that needs no call to make; undefined where there is none. */
  readonly behindPage: (token: string, facts: LinkFacts) => string | undefined;
  /** Links that Stripe is to make, by which methods; undefined where it is to make none. */
  readonly stripe: { readonly methods: readonly string[] } | undefined;
  /** Stripe, wherever a key is at hand: links that it made before must be switched off under any settings. */
  readonly stripeLinks: StripeLinks | undefined;
}

/** 192 random bits, as much as a session key. */
export const newToken = (): string => randomBytes(24).toString('base64url');

export function linkProvider(settings: Settings, environment: Environment): LinkProvider {
  const { payment_link: link } = settings;
  const behindPage: LinkProvider['behindPage'] = (token, facts) => {
    if (link.provider !== 'template' || environment.linkSecret === undefined) return undefined;
    return signedUrl(
      { template: link.template, signatureParameter: link.signature_parameter, secret: environment.linkSecret },
      {
        number: facts.number,
        partner_id: facts.partnerId,
        amount: facts.amount.toString(),
        currency: facts.amount.currency,
        due_on: facts.dueOn,
        token,
      },
    );
  };
  const printed: LinkProvider['printed'] = (token, facts) => {
    if (printsOwnPage(link)) {
      return settings.public_url === ''
        ? { kind: 'lacks', what: 'settings.json has no public_url for the payment link' }
        : { kind: 'url', url: `${settings.public_url.replace(/\/+$/, '')}/pay/${token}` };
    }
    if (link.provider === 'stripe') {
      return environment.stripeKey === undefined
        ? { kind: 'lacks', what: 'settings.json prints the links of stripe, and STRIPE_SECRET_KEY is not set' }
        : { kind: 'stripe' };
    }
    if (link.provider === 'template') {
      const url = behindPage(token, facts);
      return url === undefined
        ? { kind: 'lacks', what: 'settings.json prints signed links, and PAYMENT_LINK_SECRET is not set' }
        : { kind: 'url', url };
    }
    return { kind: 'nothing' };
  };
  const { stripeKey: key, stripeBase: base } = environment;
  return {
    name: link.provider,
    printed,
    matches(kept, facts) {
      const now = printed(kept?.token ?? '', facts);
      if (now.kind === 'url') return now.url === kept?.url;
      return now.kind === 'stripe' ? kept?.provider === 'stripe' : kept === null;
    },
    behindPage,
    stripe: link.provider === 'stripe' ? { methods: link.methods } : undefined,
    stripeLinks: key === undefined ? undefined : openStripeLinks({ key, base }),
  };
}
