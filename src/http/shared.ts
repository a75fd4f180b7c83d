import { IncomingMessage } from 'node:http';
import { FastifyInstance, FastifyRequest } from 'fastify';
import { addressList } from '#config/addresses';
import { publicAddress, Settings } from '#config/settings';
import { Publisher } from '#partner-events/publish';
import { Acceptances } from '#quotes/acceptances';
import { RoutedAcceptance } from '#splits/accepted';
import { ClientUses } from './client-uses.ts';
import { KeyStore } from './keys.ts';
import { Limits } from './limits.ts';
import { Metrics } from './metrics.ts';
import { RowStreams } from './row-streams.ts';
import { SecurityLog } from './security-log.ts';
import { Service } from './service.ts';
import { TokenIssuer } from './tokens.ts';

export type ServerOptions = Service &
  Readonly<{
    /** The pages for people, which belong to higher layers. */
    addPages?: ((app: FastifyInstance, shared: Shared) => void) | undefined;
  }>;

export type Shared = ServerOptions &
  Readonly<{
    keys: KeyStore;
    tokens: TokenIssuer;
    limits: Limits;
    clientUses: ClientUses;
    metrics: Metrics;
    security: SecurityLog;
    rowStreams: RowStreams;
    /** In batches of calls that arrive at the same time, with their splits planned. */
    acceptances: Acceptances<RoutedAcceptance>;
    events: Publisher;
  }>;

/** The public URL of this service, and the issuer of its tokens. */
export const issuerOf = ({ settings }: Pick<Service, 'settings'>) => publicAddress(settings);

/** Added by proxies and content delivery networks. */
const OF_PROXY =
  /^(forwarded|via|x-(forwarded|original|envoy|azure|amzn|proxyuser)-.*|(.*-)?(client|real|connecting|user)-ip)$/;

export const hasProxyHeader = ({ headers }: Pick<IncomingMessage, 'headers'>) =>
  Object.keys(headers).some((name) => OF_PROXY.test(name));

/** Whether a request came through a proxy that the settings do not name, and so has the proxy's address. */
export function unknownProxies({ http }: Settings): (request: FastifyRequest) => boolean {
  const isNamed = addressList(http.trust_proxy);
  return ({ raw }) => hasProxyHeader(raw) && !isNamed(raw.socket.remoteAddress ?? '');
}
