/**
 * A document prints one permanent URL: our own page's, or the provider's. The link at the processor may change with the
 * balance (`links/sync.ts`).
 */
import { randomBytes } from 'node:crypto';
import { Environment } from '#config/environment';
import { Settings } from '#config/settings';
import { LinkFacts, ProviderUrl } from '#processors/links/provider';
import { openProvider, printsOwnPage } from '#processors/links/providers';
import { PaymentLinks } from '#processors/processor';
import { PROCESSORS } from '#processors/processors';

export type { LinkFacts };

type PaymentLink = Readonly<{
  provider: string;
  /** The unguessable part of the page's address. */
  token: string;
  url: string;
}>;

export type LinkProvider = Readonly<{
  /** `page`, or the provider whose URL is printed. */
  printedBy: string;
  /** The link under the current settings. The payment page's address contains the token. */
  printed: (token: string, facts: LinkFacts) => ProviderUrl;
  /** Whether the document would print the same link today. If not, only a new document can change it. */
  matches: (link: PaymentLink | null, facts: LinkFacts) => boolean;
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
  const provider = openProvider(link, environment);
  const { linkSecretBefore: linkSecret } = environment;
  const before = linkSecret === undefined ? undefined : openProvider(link, { ...environment, linkSecret });
  const ownPage = printsOwnPage(link);
  const printed = (token: string, facts: LinkFacts, by = provider): ProviderUrl => {
    if (!ownPage) return by.url(token, facts);
    return publicUrl === ''
      ? { kind: 'missing', what: 'settings.json has no public_url for the payment link' }
      : { kind: 'url', url: `${publicUrl.replace(/\/+$/, '')}/pay/${token}` };
  };
  return {
    printedBy: ownPage ? 'page' : link.provider,
    printed,
    matches(kept, facts) {
      const now = printed(kept?.token ?? '', facts);
      if (now.kind === 'url') {
        // The page still accepts links that the previous secret signed.
        const urls = [provider, before].map((by) => by && printed(kept?.token ?? '', facts, by));
        return urls.some((each) => each?.kind === 'url' && each.url === kept?.url);
      }
      return now.kind === 'made' ? kept?.provider === link.provider : kept === null;
    },
    wanted: provider.methods === undefined ? undefined : { provider: link.provider, methods: provider.methods },
    processors: new Map(
      PROCESSORS.flatMap(({ name, access, paymentLinks }): [string, PaymentLinks][] => {
        const own = access(environment);
        return own === undefined ? [] : [[name, paymentLinks.open(own)]];
      }),
    ),
  };
}

/** The URL that our page's button opens without a call to the processor. */
export function urlBehindPage(
  { payment_link: link }: Pick<Settings, 'payment_link'>,
  environment: Environment,
  token: string,
  facts: LinkFacts,
) {
  const url = openProvider(link, environment).url(token, facts);
  return url.kind === 'url' ? url.url : undefined;
}

export const hasLinkWork = ({ wanted, processors }: Pick<LinkProvider, 'wanted' | 'processors'>) =>
  wanted !== undefined || processors.size > 0;
