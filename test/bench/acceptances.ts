/**
 * Acceptances a second over HTTP on 16 connections, with their 99th percentile, beside the floor: the same ledger INSERT
 * by a bare pg loop on 16 connections, in the same run. `reckoner serve` runs as a process of its own on a fresh embedded
 * database; this process is the client of both, in turns, so that what else the machine does meets both alike.
 *
 *   npm run --silent build && npx tsc -p test/bench && node dist/test/bench/acceptances.js
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import { acquireEmbeddedServer } from '../../src/database/embedded.ts';
import { isProgram, type Measured, measured, median } from './measured.ts';

export interface AcceptancesOptions {
  /** Acceptances in each of the rounds. */
  readonly acceptances?: number;
  readonly rounds?: number;
  /** Where a line is written for each round. */
  readonly progress?: (line: string) => void;
}

export interface MeasuredAcceptances extends Measured {
  /** Milliseconds within which 99 of 100 acceptances were answered, median of the rounds. */
  readonly p99: number;
}

const CONNECTIONS = 16;
const PARTNER = 'p-1';
const POLICY = 'ticket-protection';

/** Measures and cleans up after itself; needs the compiled program beside it. */
export async function measureAcceptances(options: AcceptancesOptions = {}): Promise<MeasuredAcceptances> {
  const { acceptances = 3000, rounds = 5, progress = () => {} } = options;
  const home = mkdtempSync(join(tmpdir(), 'reckoner-bench-acceptances-'));
  const env: NodeJS.ProcessEnv = { ...process.env, RECKONER_HOME: home };
  for (const name of ['DATABASE_URL', 'RECKONER_ENVIRONMENT', 'RECKONER_NOW', 'RECKONER_FAILPOINT']) delete env[name];
  let serving: ChildProcess | undefined;
  let release = async () => {};
  const connections: pg.Client[] = [];
  try {
    const credentials = await settleIn(home, env);
    const database = await acquireEmbeddedServer(join(home, 'postgres'));
    release = () => database.release();
    for (let index = 0; index < CONNECTIONS; index += 1) {
      const client = new pg.Client(database.connection);
      await client.connect();
      connections.push(client);
    }
    await fill(connections[0] as pg.Client, credentials);
    const served = await serve(home, env);
    serving = served.child;
    const token = await tokenFor(served, credentials);
    const callers = await Promise.all(Array.from({ length: CONNECTIONS }, () => openCaller(served, token)));
    const accept = async (id: string, worker: number): Promise<void> => {
      const status = await (callers[worker] as Caller)(`/api/v1/quote/${id}/accept`);
      if (status !== 200) throw new Error(`the acceptance of ${id} was answered ${status}`);
    };
    const insert = async (id: string, worker: number): Promise<void> => {
      await (connections[worker] as pg.Client).query(
        `INSERT INTO ledger_rows (
           partner_id, posted_month, kind, quote_id, enrollment_id, policy_id, currency, accepted_at, spot_price,
           partner_cut, invoice_amount, time_zone, month, arrangement, recorded_at, event_id)
         VALUES ('${PARTNER}', to_char(now(), 'YYYY-MM'), 'quote_accepted', $1, $2, '${POLICY}', 'USD', now(), 21.25,
                 6.38, 14.87, 'America/New_York', to_char(now(), 'YYYY-MM'), 'invoicing', now(), 1)`,
        [id, `e-${id}`],
      );
    };
    const [first] = connections;
    if (first === undefined) throw new Error('there is no connection');
    const ours: Round[] = [];
    const floor: Round[] = [];
    // The first round warms both up and does not count.
    for (let round = 0; round <= rounds; round += 1) {
      // Quotes as the API makes them, in one statement.
      await first.query(QUOTES, [credentials.client_id, `q-${round}-`, acceptances]);
      // Neither meets the pages that the other, or this, has left to be written.
      await first.query('CHECKPOINT');
      const accepting = await timed(acceptances, (nth, worker) => accept(`q-${round}-${nth}`, worker));
      await first.query('CHECKPOINT');
      const inserting = await timed(acceptances, (nth, worker) => insert(`bare-${round}-${nth}`, worker));
      if (round === 0) continue;
      ours.push(accepting);
      floor.push(inserting);
      progress(`round ${round}: ${line(accepting)}; bare insert ${line(inserting)}`);
    }
    const { rows } = await first.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM quote_acceptances a JOIN ledger_rows USING (partner_id, posted_month, entry_id)`,
    );
    const expected = (1 + rounds) * acceptances;
    if (rows[0]?.count !== BEFORE + expected)
      throw new Error(`${rows[0]?.count} acceptances are recorded, not ${BEFORE + expected}`);
    const perSecond = (each: readonly Round[]) => median(each.map((round) => round.perSecond));
    const figures = { ours: perSecond(ours), floor: perSecond(floor) };
    return {
      ...measured({ measure: 'acceptances', ...figures, unit: 'acceptances/s' }, { atLeast: 0.5 }),
      p99: Math.round(median(ours.map((round) => round.p99)) * 10) / 10,
    };
  } finally {
    if (serving !== undefined && serving.exitCode === null) {
      serving.kill('SIGTERM');
      await once(serving, 'exit');
    }
    await Promise.all(connections.map((client) => client.end()));
    await release();
    rmSync(home, { recursive: true, force: true });
  }
}

// --- Timing -------------------------------------------------------------------------------------------------------------

interface Round {
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p99: number;
}

const line = ({ perSecond, p99 }: Round): string => `${Math.round(perSecond)}/s, p99 ${p99.toFixed(1)} ms`;

/** So many actions on all connections, each beginning the next when its last is answered. */
async function timed(count: number, work: (nth: number, worker: number) => Promise<void>): Promise<Round> {
  const took: number[] = [];
  let next = 0;
  const began = performance.now();
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async (_, worker) => {
      while (next < count) {
        const nth = next;
        next += 1;
        const at = performance.now();
        await work(nth, worker);
        took.push(performance.now() - at);
      }
    }),
  );
  const seconds = (performance.now() - began) / 1000;
  took.sort((one, other) => one - other);
  return { perSecond: count / seconds, p99: took[Math.ceil(count * 0.99) - 1] ?? Number.NaN };
}

// --- The program ----------------------------------------------------------------------------------------------------------

const PROGRAM = fileURLToPath(new URL('../../src/cli/reckoner.js', import.meta.url));

interface Credentials {
  readonly client_id: string;
  readonly client_secret: string;
}

/** A home with one priced partner and a client, whose requests are not limited: that is what a limit is for. */
async function settleIn(home: string, env: NodeJS.ProcessEnv): Promise<Credentials> {
  const run = async (...args: string[]) =>
    (await promisify(execFile)(process.execPath, [PROGRAM, ...args], { env })).stdout;
  await run('init');
  const partners = [
    {
      partner_id: PARTNER,
      name: 'Harbour Lights Ticketing',
      address: { line1: '1 Quay Street', city: 'Portland', region: 'ME', postal_code: '04101', country: 'US' },
      invoicing_contact: { name: 'Accounts Payable', email: 'ap@partner.example' },
      currency: 'USD',
      time_zone: 'America/New_York',
      policies: [
        {
          policy_id: POLICY,
          name: 'Ticket Protection',
          kind: 'insurance',
          partner_cut_rate: '0.30',
          price: { rate: '0.085', minimum: '2.00' },
        },
      ],
    },
  ];
  writeFileSync(join(home, 'partners.json'), JSON.stringify(partners));
  await run('partner', 'import', join(home, 'partners.json'));
  const file = join(home, 'settings.json');
  const settings = JSON.parse(readFileSync(file, 'utf8')) as { http?: object };
  writeFileSync(file, JSON.stringify({ ...settings, http: { ...settings.http, requests_per_minute: 10_000_000 } }));
  return JSON.parse(await run('--json', 'client', 'create', PARTNER)) as Credentials;
}

/** How many quotes were accepted in a month before. */
const BEFORE = 100_000;

const QUOTES = `INSERT INTO quotes
  SELECT $2::text || n, '${PARTNER}', $1::text, '${POLICY}', 'USD', 250, 0.085, 2, 0.30, 21.25, 6.38, 14.87, now()
  FROM generate_series(0, $3::int - 1) AS n`;

/**
 * A ledger in use: what was accepted before, and statistics as autovacuum leaves them. Without any, for the first minute of
 * an empty database, PostgreSQL checks foreign keys by plans that were made for no rows, and reads all of a partner's.
 */
async function fill(client: pg.Client, { client_id: clientId }: Credentials): Promise<void> {
  await client.query(QUOTES, [clientId, 'before-', BEFORE]);
  await client.query(
    `WITH added AS (
       INSERT INTO ledger_rows (
         partner_id, posted_month, kind, quote_id, enrollment_id, policy_id, currency, accepted_at, spot_price,
         partner_cut, invoice_amount, time_zone, month, arrangement, recorded_at, event_id)
       SELECT partner_id, '2026-01', 'quote_accepted', quote_id, 'e-' || quote_id, policy_id, currency,
              '2026-01-15T12:00:00Z', spot_price, partner_cut, invoice_amount, 'America/New_York', '2026-01',
              'invoicing', now(), 1
       FROM quotes
       RETURNING partner_id, posted_month, entry_id, quote_id
     )
     INSERT INTO quote_acceptances (quote_id, partner_id, client_id, posted_month, entry_id)
     SELECT quote_id, partner_id, $1, posted_month, entry_id FROM added`,
    [clientId],
  );
  await client.query('VACUUM ANALYZE');
}

interface Address {
  readonly host: string;
  readonly port: number;
}

async function serve(home: string, env: NodeJS.ProcessEnv): Promise<Address & { child: ChildProcess }> {
  // Its log goes where a service's log goes, into a file.
  const log = openSync(join(home, 'serve.log'), 'a');
  const child = spawn(process.execPath, [PROGRAM, '--json', 'serve', '--port', '0'], {
    env,
    stdio: ['ignore', 'pipe', log],
  });
  const said = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  const { hostname, port } = new URL((JSON.parse(said[0].toString()) as { listening: string }).listening);
  return { child, host: hostname, port: Number(port) };
}

async function tokenFor({ host, port }: Address, credentials: Credentials): Promise<string> {
  const { client_id, client_secret } = credentials;
  const answer = await fetch(`http://${host}:${port}/api/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_id, client_secret }),
  });
  return ((await answer.json()) as { access_token: string }).access_token;
}

/** Asks for a path on a connection of its own and gives the answer's status. */
type Caller = (path: string) => Promise<number>;

/** Bare sockets: a client library would take from the machine what is to be measured of the server. */
async function openCaller({ host, port }: Address, token: string): Promise<Caller> {
  const socket: Socket = connect({ host, port, noDelay: true });
  await once(socket, 'connect');
  let received = '';
  let waiting: { resolve: (status: number) => void; reject: (error: Error) => void } | undefined;
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1');
    const end = received.indexOf('\r\n\r\n');
    if (end === -1) return;
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(received)?.[1]);
    if (received.length < end + 4 + length) return;
    const status = Number(received.slice(9, 12));
    received = received.slice(end + 4 + length);
    waiting?.resolve(status);
  });
  socket.on('error', (error) => waiting?.reject(error));
  socket.on('close', () => waiting?.reject(new Error('the server closed the connection')));
  const rest = ` HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\nX-Service-Partner-Id: ${PARTNER}\r\nAccept: application/json\r\n\r\n`;
  return (path) =>
    new Promise((resolve, reject) => {
      waiting = { resolve, reject };
      socket.write(`GET ${path}${rest}`);
    });
}

if (isProgram(import.meta.url)) {
  const figures = await measureAcceptances({ progress: (text) => process.stderr.write(`${text}\n`) });
  process.stdout.write(`${JSON.stringify(figures, null, 2)}\n`);
}
