/**
 * A document prints one permanent URL: our own page's, or the provider's. The link at the processor may change with the
 * balance (`links/sync.ts`).
 */
import { randomBytes } from 'node:crypto';
import { Environment } from '#config/environment';
import { Settings } from '#config/settings';
import { linksOf, printsOwnPage } from '#processors/links/providers';
import { PaymentLinks } from '#processors/processor';
import { PROCESSORS } from '#processors/processors';

type PaymentLink = Readonly<{
  provider: string;
  /** The unguessable part of the page's address. */
  token: string;
  url: string;
}>;

type PrintedUrl =
  | Readonly<{ kind: 'url'; url: string }>
  /** The URL is known only after the processor has created the link. */
  | { readonly kind: 'made' }
  | { readonly kind: 'nothing' }
  | Readonly<{ kind: 'missing'; what: string }>;

export type LinkProvider = Readonly<{
  /** `page`, or the provider whose URL is printed. */
  printedBy: string;
  /** The link under the current settings. The payment page's address contains the token. */
  printed: (token: string) => PrintedUrl;
  /** Whether the document would print the same link today. If not, only a new document can change it. */
  matches: (link: PaymentLink | null) => boolean;
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
  const ownPage = printsOwnPage(link);
  const printed = (token: string): PrintedUrl => {
    if (!ownPage && links?.missing !== undefined) {
      const { variable } = links.missing;
      return {
        kind: 'missing',
        what: `settings.json prints the links of ${link.provider}, but ${variable} is not set`,
      };
    }
    if (!ownPage) return { kind: links === undefined ? 'nothing' : 'made' };
    return publicUrl === ''
      ? { kind: 'missing', what: 'settings.json has no public_url for the payment link' }
      : { kind: 'url', url: `${publicUrl.replace(/\/+$/, '')}/pay/${token}` };
  };
  return {
    printedBy: ownPage ? 'page' : link.provider,
    printed,
    matches(kept) {
      const now = printed(kept?.token ?? '');
      if (now.kind === 'url') return now.url === kept?.url;
      return now.kind === 'made' ? kept?.provider === link.provider : kept === null;
    },
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
