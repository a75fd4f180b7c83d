/**
 * A document prints one permanent URL, our own page's. The link at the processor, to which the page leads, may change
 * with the balance (`links/sync.ts`).
 */
import { randomBytes } from 'node:crypto';
import { Environment } from '#config/environment';
import { Settings } from '#config/settings';
import { linksOf } from '#processors/links/providers';
import { PaymentLinks } from '#processors/processor';
import { PROCESSORS } from '#processors/processors';

export type LinkProvider = Readonly<{
  /** Why documents cannot have the link that the settings want; undefined if they can have it, or want none. */
  problem: string | undefined;
  /** The URL of the page with this token, under the current settings; undefined if no link is printed. */
  printed: (token: string) => string | undefined;
  /** The processor that makes links, and the payment methods; undefined if no links are wanted. */
  wanted: WantedLinks | undefined;
  /**
   * The processors that have a key. Links that these processors made earlier must be closed, whatever the settings are
   * now.
   */
  processors: ReadonlyMap<string, PaymentLinks>;
}>;

export type WantedLinks = Readonly<{
  provider: string;
  methods: readonly string[];
}>;

/** 192 random bits, as many as a session key has. */
export const newToken = () => randomBytes(24).toString('base64url');

export function linkProvider(settings: Settings, environment: Environment): LinkProvider {
  const { payment_link: link, public_url: publicUrl } = settings;
  const links = linksOf(link, environment);
  const wantsPage = link.provider !== 'none';
  const base = publicUrl.replace(/\/+$/, '');
  return {
    problem: wantsPage && base === '' ? 'settings.json has no public_url for the payment link' : undefined,
    printed: (token) => (wantsPage && base !== '' ? `${base}/pay/${token}` : undefined),
    wanted: links && { provider: link.provider, methods: links.methods },
    processors: new Map(
      PROCESSORS.flatMap(({ name, access, paymentLinks }): [string, PaymentLinks][] => {
        const own = access(environment);
        return own === undefined ? [] : [[name, paymentLinks.open(own)]];
      }),
    ),
  };
}

export const hasLinkWork = ({ wanted, processors }: Pick<LinkProvider, 'wanted' | 'processors'>) =>
  wanted !== undefined || processors.size > 0;
