/**
 * Sends one request to a partner's URL. In production only https and public addresses are allowed. Addresses are
 * checked when the name is resolved, so that no partner can make this program call a machine in the program's own
 * network. Redirects are not followed.
 */
import { LookupAddress, LookupOptions, lookup } from 'node:dns';
import http from 'node:http';
import https from 'node:https';
import { isIP, isIPv6, LookupFunction } from 'node:net';
import { addressList } from '#config/addresses';

/** The time limit for the connection and the whole answer. */
const TIMEOUT_MILLISECONDS = 10_000;
/** The limit up to which an answer is read. */
const LARGEST_ANSWER = 64 * 1024;

const isSpecial = addressList([
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
  ...['224.0.0.0/4', '240.0.0.0/4'],
  // Ranges within 2000::/3 that are not public, by IANA's registry of special-purpose addresses: protocol assignments
  // with Teredo, benchmarking and ORCHID; documentation; 6to4.
  ...['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
]);
const isUnicast = addressList(['2000::/3']);

/** Whether an address belongs to the public internet. An IPv4 address inside an IPv6 address is never public. */
export const isPublicAddress = (address: string) =>
  isIP(address) !== 0 && !isSpecial(address) && (!isIPv6(address) || isUnicast(address));

/**
 * The reason why a URL cannot be used; undefined for a usable URL. Names are checked again whenever they are resolved.
 */
export function urlProblem(url: string, onlyPublic: boolean): string | undefined {
  // A parser takes the first name of a path for the host of `https:///etc/passwd`.
  if (!/^[a-z]+:\/\/[^/\\]/i.test(url) || !URL.canParse(url))
    return 'is not a URL such as https://partner.example/events';
  const { protocol, hostname, username, password, hash } = new URL(url);
  if (protocol !== 'https:' && (onlyPublic || protocol !== 'http:')) return 'does not begin with https://';
  if (username !== '' || password !== '') return 'contains a user name or a password';
  if (hash !== '') return 'contains a fragment';
  if (url.length > 2000) return 'is longer than 2000 characters';
  const host = bare(hostname);
  if (!onlyPublic) return undefined;
  if (isIP(host) !== 0 ? !isPublicAddress(host) : /(^|\.)localhost\.?$/i.test(host)) return 'is not a public address';
  return undefined;
}

const bare = (hostname: string) => hostname.replace(/^\[|\]$/g, '');

type Resolve = (
  host: string,
  options: LookupOptions & { all: true },
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** Resolves a name for a connection. Fails if any of the name's addresses is not public. */
export function publicLookup(resolve: Resolve = lookup): LookupFunction {
  return (host, options, done) => {
    resolve(host, { ...options, all: true }, (error, addresses) => {
      if (error) return done(error, '');
      const wrong = addresses.find(({ address }) => !isPublicAddress(address));
      if (wrong) return done(new Error(`${host} resolves to ${wrong.address}, which is not a public address`), '');
      const [first] = addresses;
      if (first === undefined) return done(new Error(`${host} has no address`), '');
      return options.all ? done(null, addresses) : done(null, first.address, first.family);
    });
  };
}

export type Answer = Readonly<{
  status: number;
  retryAfter: number | undefined;
}>;

export type Poster = Readonly<{
  /** Sends a request; throws if no answer arrives. */
  post: (url: string, headers: Readonly<Record<string, string>>, body: string) => Promise<Answer>;
  close: () => void;
}>;

/** Keeps a connection to one partner open. */
export function openPoster(onlyPublic: boolean): Poster {
  const options = { keepAlive: true, maxSockets: 1, ...(onlyPublic && { lookup: publicLookup() }) };
  const agents = { 'https:': new https.Agent(options), 'http:': new http.Agent(options) };
  return {
    post(url, headers, body) {
      const problem = urlProblem(url, onlyPublic);
      if (problem !== undefined) return Promise.reject(new Error(`the URL ${problem}`));
      return request(url, { headers, agent: agents[new URL(url).protocol as keyof typeof agents] }, body);
    },
    close() {
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}

/** Converts a Retry-After header, which contains seconds or an HTTP date, to seconds. */
const secondsOf = (text: string) => (/^\d+$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1000);

function request(url: string, options: https.RequestOptions, body: string): Promise<Answer> {
  const { request: open } = url.startsWith('https:') ? https : http;
  return new Promise((resolve, reject) => {
    const timeout = setTimeout(
      () => sent.destroy(new Error(`no answer within ${TIMEOUT_MILLISECONDS / 1000} seconds`)),
      TIMEOUT_MILLISECONDS,
    );
    const length = Buffer.byteLength(body);
    const headers = { ...options.headers, 'content-type': 'application/json', 'content-length': length };
    const sent = open(url, { ...options, headers, method: 'POST' }, (answer) => {
      const seconds = secondsOf(answer.headers['retry-after'] ?? '');
      let read = 0;
      answer.on('data', (chunk: Buffer) => {
        read += chunk.length;
        if (read > LARGEST_ANSWER) answer.destroy();
      });
      // Only the status counts, so a body that ends early is not an error.
      answer.on('close', () => {
        clearTimeout(timeout);
        resolve({ status: answer.statusCode ?? 0, retryAfter: seconds > 0 ? seconds : undefined });
      });
      answer.on('error', () => {});
    });
    sent.on('error', (error) => {
      clearTimeout(timeout);
      reject(error);
    });
    sent.end(body);
  });
}
