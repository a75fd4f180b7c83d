/**
 * Rate limits: requests by client or address, and failures of the token exchange by address and by client at an address.
 * Each process counts for itself. Refusal: rate_limited.
 */
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { refuse } from '../errors/refusals.ts';

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
  /** Refuses after too many failures, even with the correct secret. */
  readonly beforeExchange: (clientId: string, address: string) => Promise<void>;
  readonly failedExchange: (clientId: string, address: string) => Promise<void>;
  readonly succeededExchange: (clientId: string, address: string) => Promise<void>;
}

/** Per 15 minutes. Several clients with old secrets may share an address. */
const FAILURES = { ofClient: 10, ofAddress: 100, seconds: 15 * 60 };

export function openLimits(requestsPerMinute: number): Limits {
  const requests = new RateLimiterMemory({ points: requestsPerMinute, duration: 60 });
  const ofClient = new RateLimiterMemory({ points: FAILURES.ofClient, duration: FAILURES.seconds });
  const ofAddress = new RateLimiterMemory({ points: FAILURES.ofAddress, duration: FAILURES.seconds });
  const pair = (clientId: string, address: string) => `${address} ${clientId.slice(0, 128)}`;
  return {
    async request(key) {
      const counted = await requests.consume(key).catch((thrown: unknown) => {
        throw thrown instanceof RateLimiterRes ? limited(thrown.msBeforeNext, requestsPerMinute) : thrown;
      });
      const { remainingPoints: remaining, msBeforeNext } = counted;
      return { limit: requestsPerMinute, remaining, reset: seconds(msBeforeNext) };
    },
    async beforeExchange(clientId, address) {
      const counts = [
        { counted: await ofClient.get(pair(clientId, address)), most: FAILURES.ofClient },
        { counted: await ofAddress.get(address), most: FAILURES.ofAddress },
      ];
      for (const { counted, most } of counts) {
        if (counted !== null && counted.consumedPoints >= most) throw limited(counted.msBeforeNext, most);
      }
    },
    async failedExchange(clientId, address) {
      await Promise.all([ofClient.penalty(pair(clientId, address)), ofAddress.penalty(address)]);
    },
    async succeededExchange(clientId, address) {
      await ofClient.delete(pair(clientId, address));
    },
  };
}

const seconds = (milliseconds: number) => Math.max(1, Math.ceil(milliseconds / 1000));

const limited = (milliseconds: number, limit: number) =>
  refuse('rate_limited', { retry_after: seconds(milliseconds), limit });
