/**
 * Rate limits: requests by client or network, which each process counts for itself, and wrong secrets at the token exchange
 * by network and by client of a network, counted for all servers in the database. A right secret is never refused: it has
 * 256 random bits, so that nobody guesses it however often he tries. Refusal: rate_limited.
 */
import { isIPv6 } from 'node:net';
import { DateTime } from 'luxon';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { refuse } from '../errors/refusals.ts';
import { IDENTIFIER } from '../partners/file.ts';
import { countFailures } from './queries.ts';
import type { Service } from './shared.ts';

/** What is left of a limit, as the RateLimit headers of an answer tell it. */
export interface Allowance {
  readonly limit: number;
  readonly remaining: number;
  /** Seconds until all of it is available again. */
  readonly reset: number;
}

/** The headers of draft-ietf-httpapi-ratelimit-headers-07. */
export const rateHeaders = ({ limit, remaining, reset }: Allowance): Record<string, string> => ({
  'RateLimit-Limit': String(limit),
  'RateLimit-Remaining': String(remaining),
  'RateLimit-Reset': String(reset),
});

export interface Limits {
  /** Counts a request of a client, or of an address while the client is unknown. */
  readonly request: (key: string) => Promise<Allowance>;
  /** Counts a wrong secret, and refuses when there were too many: of the client from this network, or from the network. */
  readonly failedExchange: (clientId: string, address: string) => Promise<void>;
}

/** Several clients with old secrets may share a network. */
const FAILURES = { ofClient: 10, ofNetwork: 100, minutes: 15 };

export function openLimits(
  { database, environment }: Pick<Service, 'database' | 'environment'>,
  requestsPerMinute: number,
): Limits {
  const requests = new RateLimiterMemory({ points: requestsPerMinute, duration: 60 });
  return {
    async request(key) {
      const counted = await requests.consume(networkOf(key)).catch((thrown: unknown) => {
        throw thrown instanceof RateLimiterRes ? limited(thrown.msBeforeNext, requestsPerMinute) : thrown;
      });
      const { remainingPoints: remaining, msBeforeNext } = counted;
      return { limit: requestsPerMinute, remaining, reset: seconds(msBeforeNext) };
    },
    async failedExchange(clientId, address) {
      const network = networkOf(address);
      const ofClient = `${network} ${clientId}`;
      // What can be no client's name is no client's failure.
      const keys = IDENTIFIER.test(clientId) ? [network, ofClient].sort() : [network];
      const now = environment.now();
      const endsAt = now.plus({ minutes: FAILURES.minutes }).toISO();
      const counts = await database.transaction((tx) => countFailures(tx, { keys, now: now.toISO(), endsAt }));
      for (const { key, failures, ends_at } of counts) {
        const most = key === ofClient ? FAILURES.ofClient : FAILURES.ofNetwork;
        if (failures > most) throw limited(DateTime.fromISO(ends_at).diff(now).toMillis(), most);
      }
    },
  };
}

/**
 * Who counts as one caller: an IPv4 address, or the /64 of an IPv6 address, which is what one subscriber has. Anything else,
 * such as a client, is given as it is.
 */
export function networkOf(key: string): string {
  const plain = key.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.toLowerCase().split('::');
  const groups = (text: string | undefined) => (text === undefined || text === '' ? [] : text.split(':'));
  const first = groups(head);
  const missing = tail === undefined ? 0 : 8 - first.length - groups(tail).length;
  const all = [...first, ...Array<string>(Math.max(0, missing)).fill('0'), ...groups(tail)];
  return `${all
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`;
}

const seconds = (milliseconds: number) => Math.max(1, Math.ceil(milliseconds / 1000));

const limited = (milliseconds: number, limit: number) =>
  refuse('rate_limited', { retry_after: seconds(milliseconds), limit });
