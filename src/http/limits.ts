/**
 * Rate limits. Requests are limited by client or network, separately for each kind; wrong secrets by network, and by
 * client within a network. All servers of a database share the counts. Requests are counted in shared-counts.ts, wrong
 * secrets and requests for links in the database at once. A valid secret is never refused: its 256 random bits cannot
 * be guessed.
 */
import { isIPv6 } from 'node:net';
import { FastifyRequest } from 'fastify';
import { DateTime } from 'luxon';
import { reasonOf, refuse } from '#errors/refusals';
import { IDENTIFIER } from '#partners/file';
import { addCounts, BY_GIVEN_TIME } from './server.sql.ts';
import { Service } from './service.ts';
import { SharedCounts } from './shared-counts.ts';

type Allowance = Readonly<{
  limit: number;
  remaining: number;
  /** Seconds until the full limit is available again. */
  reset: number;
}>;

export const rateHeaders = ({ limit, remaining, reset }: Allowance): Record<string, string> => ({
  'RateLimit-Limit': String(limit),
  'RateLimit-Remaining': String(remaining),
  'RateLimit-Reset': String(reset),
});

/** A `call` with a valid token counts for its client, any other request for its network. */
type RequestKind = 'call' | 'exchange' | 'page' | 'console' | 'other';

export type Limits = Readonly<{
  /** Counts a request. `key` is the client, or the address if the client is unknown. */
  request: (kind: RequestKind, key: string) => Allowance;
  /** Counts a wrong secret. Refuses the network, or the client within it, after too many. */
  failedExchange: (clientId: string, address: string) => Promise<void>;
  /** Counts a failed sign-in with a link, passkey or provider. Refuses a network with too many failed sign-ins. */
  failedSignIn: (address: string) => Promise<void>;
  /** Refuses the page or network after too many. */
  askedForLink: (page: string, address: string) => Promise<void>;
  /** Refuses a network with too many invalid signatures. */
  webhook: (address: string) => void;
  badSignature: (address: string) => void;
  close: () => void;
}>;

/** Counts a request of a public route against the caller's address. */
export const countOther = (limits: Limits) => async (request: FastifyRequest) =>
  void limits.request('other', request.ip);

/** Several clients with old secrets may share a network. */
const FAILURES = { ofClient: 10, ofNetwork: 100, minutes: 15 };
/** In place of a client id in the counts of failed sign-ins. No client has this name. */
export const SIGN_IN = 'sign-in';
/** Each sends an e-mail to a partner. */
const ASKED_LINKS = { ofPage: 3, ofNetwork: 20, minutes: 15 };
const BAD_SIGNATURES_PER_MINUTE = 60;
/** Refused networks and clients kept in memory, whose further wrong secrets cause no database writes. */
const MOST_REFUSED = 10_000;

type LimitOptions = Readonly<{
  requestsPerMinute: number;
  /** Called with the first refusal of each minute. */
  onLimited?: (kind: string, key: string) => void;
}>;

export function openLimits(
  { database, environment, log }: Pick<Service, 'database' | 'environment' | 'log'>,
  { requestsPerMinute, onLimited }: LimitOptions,
): Limits {
  const counts = new SharedCounts(database, (error) =>
    log.warn(
      { reason: reasonOf(error) },
      'request counts not shared: each server applies the limits by itself ' + 'for now',
    ),
  );
  const told = new Map<string, number>();
  const tellOnce = (kind: string, key: string, milliseconds: number) => {
    const now = performance.now();
    if ((told.get(`${kind} ${key}`) ?? 0) > now) return;
    if (told.size >= MOST_REFUSED) told.clear();
    told.set(`${kind} ${key}`, now + milliseconds);
    onLimited?.(kind, key);
  };
  const count = (kind: string, key: string, most: number): Allowance => {
    const { count: used, millisecondsLeft } = counts.add(`${kind} ${key}`, most);
    if (used > most) {
      tellOnce(kind, key, millisecondsLeft);
      throw limited(millisecondsLeft, most);
    }
    return { limit: most, remaining: most - used, reset: seconds(millisecondsLeft) };
  };
  const failedExchange = failuresOf({ database, environment }, onLimited);
  return {
    request: (kind, key) => count(kind, networkOf(key), requestsPerMinute),
    failedExchange,
    failedSignIn: (address) => failedExchange(SIGN_IN, address),
    async askedForLink(page, address) {
      const { ofPage, ofNetwork, minutes } = ASKED_LINKS;
      const most = { [`link page ${page}`]: ofPage, [`link ${networkOf(address)}`]: ofNetwork };
      const over = await countAtOnce({ database, environment }, most, minutes);
      if (over === undefined) return;
      tellOnce('link', networkOf(address), over.milliseconds);
      throw limited(over.milliseconds, over.most);
    },
    webhook(address) {
      const { used, millisecondsLeft } = counts.peek(`signature ${networkOf(address)}`);
      if (used < BAD_SIGNATURES_PER_MINUTE) return;
      tellOnce('signature', networkOf(address), millisecondsLeft);
      throw limited(millisecondsLeft, BAD_SIGNATURES_PER_MINUTE);
    },
    badSignature: (address) => void counts.add(`signature ${networkOf(address)}`, BAD_SIGNATURES_PER_MINUTE),
    close: () => counts.close(),
  };
}

type Counting = Pick<Service, 'database' | 'environment'>;

/** Counts each of these keys in the database. Returns a count that exceeds the most that its key may have. */
async function countAtOnce(
  { database, environment }: Counting,
  mostOf: Readonly<Record<string, number>>,
  minutes: number,
) {
  const keys = Object.keys(mostOf);
  const now = environment.now().toISO();
  const counted = keys.map((key) => BY_GIVEN_TIME + key);
  const added = { keys: counted, requests: keys.map(() => 1), seconds: minutes * 60, now };
  const counts = await database.transaction((tx) => addCounts(tx, added));
  return counts
    .map((count) => ({ ...count, key: count.key.slice(BY_GIVEN_TIME.length) }))
    .map((count) => ({ ...count, most: mostOf[count.key] as number }))
    .find(({ requests, most }) => requests > most);
}

function failuresOf(counting: Counting, onLimited: LimitOptions['onLimited']): Limits['failedExchange'] {
  const refused = new Map<string, Readonly<{ until: DateTime; most: number }>>();
  return async (clientId, address) => {
    const network = networkOf(address);
    const now = counting.environment.now();
    const most = {
      [network]: FAILURES.ofNetwork,
      // No client can have another id, so then only the network counts.
      ...(IDENTIFIER.test(clientId) && { [`${network} ${clientId}`]: FAILURES.ofClient }),
    };
    const already = Object.keys(most).flatMap((key) => refused.get(key) ?? []);
    for (const { until, most } of already) if (until > now) throw limited(until.diff(now).toMillis(), most);
    const over = await countAtOnce(counting, most, FAILURES.minutes);
    if (over === undefined) return;
    if (refused.size >= MOST_REFUSED) refused.clear();
    refused.set(over.key, { until: now.plus(over.milliseconds), most: over.most });
    onLimited?.('secret', over.key);
    throw limited(over.milliseconds, over.most);
  };
}

/**
 * An IPv4 address itself, or the /64 of an IPv6 address, which belongs to one subscriber. Other keys, such as a client
 * id, stay unchanged.
 */
export function networkOf(key: string) {
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
