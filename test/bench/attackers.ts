/**
 * The attackers of attack.ts, in a process of their own: each kind does one thing to a server of this machine with many
 * connections at once, from as many addresses of 127.0.0.0/8 as it is given, until its time or its count is over. Prints
 * how its requests were answered as JSON.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { setPriority } from 'node:os';

export interface Attack {
  readonly name: string;
  readonly url: string;
  readonly connections: number;
  readonly milliseconds: number;
  /** The most requests, of all connections together. */
  readonly most: number;
  /** How many addresses they come from. */
  readonly addresses: number;
  readonly facts: Facts;
}

/** What an attacker may know: a link that was in an e-mail, a token of a partner. */
export interface Facts {
  readonly link: string;
  readonly largeLink: string;
  readonly largeNumber: string;
  /** A partner's, and that of the partner with the large invoice. */
  readonly token: string;
  readonly partner: string;
  readonly largeToken: string;
  readonly large: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

export type Outcomes = Readonly<Record<string, number>>;

interface Asked {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
  /** Bytes that are read a second; all that come if absent. */
  readonly pace?: number;
}

const JSON_TYPE = { 'content-type': 'application/json' };
const as = ({ token, partner }: Pick<Facts, 'token' | 'partner'>) => ({
  authorization: `Bearer ${token}`,
  'x-service-partner-id': partner,
});
const exchange = (body: object): Asked => ({
  ...{ method: 'POST', path: '/api/oauth/token', headers: JSON_TYPE, body: JSON.stringify(body) },
});
const webhook = (body: Buffer, signature?: string): Asked => ({
  ...{ method: 'POST', path: '/webhooks/stripe', body },
  headers: { ...JSON_TYPE, ...(signature !== undefined && { 'stripe-signature': signature }) },
});
const MEBIBYTE = Buffer.alloc(1024 * 1024 - 64, 'a');
const NESTED = `{"policy_id":"ticket-protection","insured_amount":${'['.repeat(30_000)}${']'.repeat(30_000)}}`;
const FILE = `quote_id,transfer,payment,amount\n${Array.from({ length: 9_999 }, (_, nth) => `q-${nth},tr_${nth},py_${nth},7.00\n`).join('')}`;

/** A token with the header and claims of a real one, so that its signature is checked. */
function forged(token: string): string {
  const [header = '', claims = ''] = token.split('.');
  return `${header}.${claims}.${randomBytes(64).toString('base64url')}`;
}

/** One request after another on each connection. */
const REQUESTS: Readonly<Record<string, (facts: Facts) => Asked>> = {
  'rows by page': ({ largeLink }) => ({ path: `/pay/${largeLink}/rows.csv` }),
  'rows by API': ({ largeNumber, largeToken, large }) => ({
    path: `/api/v1/invoices/${largeNumber}/rows`,
    headers: as({ token: largeToken, partner: large }),
  }),
  'rows, slow readers': ({ largeLink }) => ({ path: `/pay/${largeLink}/rows.csv`, pace: 1_000 }),
  'pay pages': ({ link }) => ({ path: `/pay/${link}` }),
  'unknown links': () => ({ path: `/pay/${randomBytes(24).toString('base64url')}` }),
  'invoice PDFs': ({ link }) => ({ path: `/pay/${link}/invoice.pdf` }),
  readyz: () => ({ path: '/readyz' }),
  metrics: () => ({ path: '/metrics' }),
  'webhooks unsigned, 1 MB': () => webhook(MEBIBYTE),
  'webhooks signed wrongly, 1 MB': () => {
    const at = Math.floor(Date.now() / 1000);
    const v1 = createHmac('sha256', 'wrong').update(String(at)).digest('hex');
    return webhook(MEBIBYTE, `t=${at},v1=${v1}`);
  },
  'no such endpoint': () => ({ path: `/${randomBytes(6).toString('hex')}` }),
  'no such endpoint of the API': () => ({ path: `/api/${randomBytes(6).toString('hex')}` }),
  'forged tokens': ({ token }) => ({
    path: '/api/v1/invoices',
    headers: { authorization: `Bearer ${forged(token)}` },
  }),
  'wrong secrets': ({ clientId }) =>
    exchange({ client_id: clientId, client_secret: randomBytes(32).toString('base64url') }),
  'right secrets': ({ clientId, clientSecret }) => exchange({ client_id: clientId, client_secret: clientSecret }),
  'signing keys': () => ({ path: '/.well-known/jwks.json' }),
  'API description': () => ({ path: '/openapi.json' }),
  reference: () => ({ path: '/reference' }),
  'long lists': (facts) => ({ path: '/api/v1/events?limit=1000', headers: as(facts) }),
  'nested JSON, 60 kB': (facts) => ({
    ...{ method: 'POST', path: '/api/v1/quote', headers: { ...as(facts), ...JSON_TYPE }, body: NESTED },
  }),
  'settlement files, 10,000 lines': (facts) => ({
    ...{ method: 'POST', path: '/api/v1/settlement-files', body: FILE },
    headers: { ...as(facts), 'content-type': 'text/csv' },
  }),
};

/** Nothing for as long: how the server does by itself. */
const NOTHING = 'none';

/** Bytes that a connection begins with, and sends a little more of each second. */
const DRIPPED: Readonly<Record<string, { readonly first: string; readonly each: string }>> = {
  'idle connections': { first: '', each: '' },
  'slow headers': { first: 'GET /readyz HTTP/1.1\r\nHost: x\r\nX-A: ', each: 'a' },
  'slow bodies': {
    first:
      'POST /api/oauth/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n{',
    each: ' ',
  },
  'slow webhooks': {
    first: `POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nStripe-Signature: t=1,v1=${'0'.repeat(64)}\r\nContent-Length: 1000000\r\n\r\n{`,
    each: ' ',
  },
};

export const ATTACKS: readonly string[] = [NOTHING, ...Object.keys(REQUESTS), ...Object.keys(DRIPPED)];

const addressOf = (nth: number, addresses: number): string => {
  const place = nth % addresses;
  return `127.${1 + (place >> 16)}.${(place >> 8) & 255}.${1 + (place & 255)}`;
};

/** The status of the answer, or how the connection ended. */
function ask(url: string, asked: Asked, agent: Agent, localAddress: string): Promise<string> {
  return new Promise((resolve) => {
    const { method = 'GET', path, headers = {}, body, pace } = asked;
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const sent = request(
      `${url}${path}`,
      { method, agent, localAddress, headers: { ...headers, ...length } },
      (answer) => {
        answer.on('error', () => resolve(`${answer.statusCode} cut`)).on('end', () => resolve(`${answer.statusCode}`));
        if (pace === undefined) answer.resume();
        else {
          const reading = setInterval(() => void answer.read(Math.min(pace, answer.readableLength)), 1000);
          answer.on('close', () => clearInterval(reading));
        }
      },
    );
    sent.on('error', () => resolve('refused'));
    sent.end(body);
  });
}

async function askAgainAndAgain(attack: Attack, outcomes: Map<string, number>): Promise<void> {
  const make = REQUESTS[attack.name] as (facts: Facts) => Asked;
  const until = performance.now() + attack.milliseconds;
  let left = attack.most;
  await Promise.all(
    Array.from({ length: attack.connections }, async (_, nth) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      while (performance.now() < until && left > 0) {
        left -= 1;
        const asking = ask(attack.url, make(attack.facts), agent, addressOf(nth, attack.addresses));
        const over = new Promise<string>((resolve) =>
          setTimeout(() => resolve('under way'), Math.max(0, until - performance.now())).unref(),
        );
        const outcome = await Promise.race([asking, over]);
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      }
      agent.destroy();
    }),
  );
}

async function drip(attack: Attack, outcomes: Map<string, number>): Promise<void> {
  const { first, each } = DRIPPED[attack.name] as { first: string; each: string };
  const { hostname, port } = new URL(attack.url);
  const sockets = Array.from({ length: attack.connections }, (_, nth) => {
    const localAddress = addressOf(nth, attack.addresses);
    const socket = connect({ host: hostname, port: Number(port), localAddress }, () => socket.write(first));
    let outcome = 'open';
    socket
      .on('data', (data) => {
        outcome = data.toString('latin1').slice(9, 12);
      })
      .on('error', () => {})
      .on('close', () => {
        const how = outcome === 'open' ? 'closed' : outcome;
        outcomes.set(how, (outcomes.get(how) ?? 0) + 1);
      });
    return socket;
  });
  const dripping = setInterval(() => {
    for (const socket of sockets) if (socket.readyState === 'open' && each !== '') socket.write(each);
  }, 1000);
  await new Promise((resolve) => setTimeout(resolve, attack.milliseconds));
  clearInterval(dripping);
  outcomes.set('open', sockets.filter((socket) => !socket.destroyed && socket.readyState === 'open').length);
}

if (process.argv[2] !== undefined && process.argv[1]?.endsWith('attackers.js')) {
  const attack = JSON.parse(process.argv[2]) as Attack;
  const outcomes = new Map<string, number>();
  // They shall take the server's time, not the processor's: real ones are on other machines.
  setPriority(19);
  if (attack.name === NOTHING) await new Promise((resolve) => setTimeout(resolve, attack.milliseconds));
  else await (attack.name in DRIPPED ? drip : askAgainAndAgain)(attack, outcomes);
  process.stdout.write(JSON.stringify(Object.fromEntries([...outcomes].sort())), () => process.exit(0));
}
