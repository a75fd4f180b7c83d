/** The port to payment link providers. A link is printed on the invoice, so it must stay good for as long as that. */
import { randomBytes } from 'node:crypto';
import type { Settings } from '../config.ts';

export interface PaymentLink {
  readonly provider: string;
  /** The unguessable name of the invoice's payment page. */
  readonly token: string;
  readonly url: string;
}

export interface LinkProvider {
  readonly name: string;
  /** Makes the link for one document; undefined where a setting that it needs is missing. */
  readonly create: () => Promise<PaymentLink | undefined>;
}

/** Our own page at `public_url`/pay/<token>: 192 random bits, as much as a session key. */
function pageProvider(settings: Settings): LinkProvider {
  return {
    name: 'page',
    async create() {
      if (settings.public_url === '') return undefined;
      const token = randomBytes(24).toString('base64url');
      return { provider: 'page', token, url: `${settings.public_url.replace(/\/+$/, '')}/pay/${token}` };
    },
  };
}

export function linkProvider(settings: Settings): LinkProvider {
  return pageProvider(settings);
}
