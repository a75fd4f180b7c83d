/**
 * What attacks over HTTP do to others: while each kind of attackers.ts is under way, how long `/healthz` takes on the port
 * that is attacked and on the management port, how long acceptances of another partner take, and how much memory the server has. `reckoner serve` runs on a fresh embedded database with one
 * invoice of many rows; nothing outside this machine is asked.
 *
 *   npm run --silent build && npx tsc -p test/bench
 *   node dist/test/bench/attack.js [--rows 100000] [--seconds 5] [--heap 512] [--only 'pay pages']… [--json]
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import pg from 'pg';
import { table } from '../../src/cli/output.ts';
import { acquireEmbeddedServer } from '../../src/database/embedded.ts';
import { ATTACKS, type Attack, type Facts, type Outcomes } from './attackers.ts';

const PROGRAM = fileURLToPath(new URL('../../src/cli/reckoner.js', import.meta.url));
const ATTACKERS = fileURLToPath(new URL('./attackers.js', import.meta.url));

const CONNECTIONS: Readonly<Record<string, number>> = {
  none: 0,
  'rows by page': 12,
  'rows by API': 12,
  'rows, slow readers': 32,
  metrics: 32,
  'webhooks unsigned, 1 MB': 16,
  'webhooks signed wrongly, 1 MB': 16,
  'long lists': 16,
  'settlement files, 10,000 lines': 8,
  'idle connections': 4_000,
  'slow headers': 3_000,
  'slow bodies': 3_000,
  'slow webhooks': 1_000,
};
const USUAL_CONNECTIONS = 64;
const ADDRESSES = 50;
const MOST_REQUESTS = 50_000;
/** Of an honest caller: one asks for /healthz, four accept. */
const PAUSE_MS = 20;
const ACCEPTING = 4;

interface Latency {
  readonly p50: number;
  readonly p99: number;
  readonly worst: number;
  readonly failed: number;
}

interface Measured {
  readonly attack: string;
  readonly connections: number;
  readonly health: Latency;
  /** `/healthz` of the management port. */
  readonly management: Latency;
  /** Of a server that does nothing and is not attacked: what this machine itself takes. */
  readonly floor: Latency;
  readonly accepting: Latency;
  /** Resident memory of the server at its largest so far, in MiB. */
  readonly mebibytes: number;
  readonly outcomes: Outcomes;
}

interface Bench {
  readonly url: string;
  readonly management: string;
  readonly pid: number;
  /** The address of the server that is not attacked. */
  readonly floor: string;
  readonly facts: Facts;
  readonly quotes: Iterator<string>;
  readonly seconds: number;
}

const options = parseArgs({
  options: {
    rows: { type: 'string', default: '100000' },
    seconds: { type: 'string', default: '5' },
    heap: { type: 'string', default: '512' },
    only: { type: 'string', multiple: true, default: [...ATTACKS] },
    json: { type: 'boolean', default: false },
  },
}).values;

const note = (text: string): void => void process.stderr.write(`${text}\n`);

// --- The ledger that is attacked --------------------------------------------------------------------------------------

const PARTNER = 'p-1';
const LARGE = 'p-large';
const POLICY = 'ticket-protection';
const partner = (partner_id: string) => ({
  ...{ partner_id, name: `Harbour Lights ${partner_id}`, currency: 'USD', time_zone: 'America/New_York' },
  address: { line1: '1 Quay Street', city: 'Portland', region: 'ME', postal_code: '04101', country: 'US' },
  invoicing_contact: { name: 'Accounts Payable', email: 'ap@partner.example' },
  policies: [
    {
      ...{ policy_id: POLICY, name: 'Ticket Protection', kind: 'insurance', partner_cut_rate: '0.30' },
      price: { rate: '0.085', minimum: '2.00' },
    },
  ],
});

async function writeRows(file: string, rows: number): Promise<void> {
  const out = createWriteStream(file);
  const row = (id: string, nth: number) =>
    `{"kind":"quote_accepted","partner_id":"${id}","quote_id":"${id}-${nth}","enrollment_id":"en-${nth}",` +
    `"policy_id":"${POLICY}","currency":"USD","accepted_at":"2026-07-10T12:00:00Z","spotPrice":"21.25",` +
    `"partnerCut":"6.38","invoiceAmount":"14.87"}\n`;
  out.write(row(PARTNER, 0));
  for (let nth = 0; nth < rows; nth += 1) if (!out.write(row(LARGE, nth))) await once(out, 'drain');
  out.end();
  await finished(out);
}

interface Credentials {
  readonly client_id: string;
  readonly client_secret: string;
}

async function settleIn(home: string, env: NodeJS.ProcessEnv): Promise<Record<'own' | 'large', Credentials>> {
  const past = { ...env, RECKONER_NOW: '2026-08-02T12:00:00Z' };
  const run = async (...args: string[]) =>
    (await promisify(execFile)(process.execPath, [PROGRAM, ...args], { env: past, maxBuffer: 2 ** 26 })).stdout;
  await run('init');
  const files = { partners: join(home, 'partners.json'), rows: join(home, 'rows.ndjson') };
  writeFileSync(files.partners, JSON.stringify([partner(PARTNER), partner(LARGE)]));
  await writeRows(files.rows, Number(options.rows));
  await run('partner', 'import', files.partners);
  await run('ledger', 'import', files.rows);
  await run('close', '2026-07');
  await run('deliver');
  const create = async (id: string) => JSON.parse(await run('--json', 'client', 'create', id)) as Credentials;
  return { own: await create(PARTNER), large: await create(LARGE) };
}

const QUOTES = `INSERT INTO quotes (
    quote_id, partner_id, client_id, policy_id, currency, insured_amount, price_rate, price_minimum, partner_cut_rate, spot_price,
    partner_cut, invoice_amount, quoted_at)
  SELECT 'attack-' || n, '${PARTNER}', $1::text, '${POLICY}', 'USD', 250, 0.085, 2, 0.30, 21.25, 6.38, 14.87, now()
  FROM generate_series(1, 200000) AS n`;

function* quoteIds(): Generator<string> {
  for (let nth = 1; ; nth += 1) yield `attack-${nth}`;
}

async function factsOf(client: pg.Client, credentials: Credentials) {
  await client.query(QUOTES, [credentials.client_id]);
  await client.query('VACUUM ANALYZE');
  const { rows } = await client.query<{ partner_id: string; number: string; token: string }>(
    `SELECT partner_id, number, token FROM documents JOIN payment_links USING (document_id)`,
  );
  const of = (id: string) => rows.find((row) => row.partner_id === id) ?? { number: '', token: '' };
  const [own, large] = [of(PARTNER), of(LARGE)];
  return {
    ...{ link: own.token, largeLink: large.token, largeNumber: large.number, partner: PARTNER, large: LARGE },
    ...{ clientId: credentials.client_id, clientSecret: credentials.client_secret },
  };
}

interface Serving {
  readonly child: ChildProcess;
  readonly url: string;
  readonly management: string;
}

async function serve(home: string, env: NodeJS.ProcessEnv): Promise<Serving> {
  const log = openSync(join(home, 'serve.log'), 'a');
  const heap = `--max-old-space-size=${options.heap}`;
  const child = spawn(process.execPath, [heap, PROGRAM, '--json', 'serve', '--port', '0', '--management-port', '0'], {
    env: { ...env, STRIPE_WEBHOOK_SECRET: 'whsec_attacked' },
    stdio: ['ignore', 'pipe', log],
  });
  const [said] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  const { listening, management } = JSON.parse(said.toString()) as { listening: string; management: string };
  return { child, url: listening, management };
}

const IDLE = `const server = require('node:http').createServer((_, answer) => answer.end('{}'));
server.listen(0, '127.0.0.1', () => process.stdout.write('http://127.0.0.1:' + server.address().port));`;

async function tokenFor(url: string, { client_id, client_secret }: Credentials) {
  const answer = await fetch(`${url}/api/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_id, client_secret }),
  });
  return ((await answer.json()) as { access_token: string }).access_token;
}

// --- Others meanwhile ---------------------------------------------------------------------------------------------------

/** The status of a request on a connection that stays open. */
function get(agent: Agent, url: string, headers: Readonly<Record<string, string>> = {}): Promise<number> {
  return new Promise((resolve) => {
    const sent = request(url, { agent, headers: { ...headers }, timeout: 30_000 }, (answer) => {
      answer
        .resume()
        .on('end', () => resolve(answer.statusCode ?? 0))
        .on('error', () => resolve(0));
    });
    sent.on('timeout', () => sent.destroy()).on('error', () => resolve(0));
    sent.end();
  });
}

/** How long each of these took, one after another with pauses, until told to stop. */
async function sample(until: () => boolean, work: () => Promise<number>): Promise<{ took: number[]; failed: number }> {
  const took: number[] = [];
  let failed = 0;
  while (!until()) {
    const began = performance.now();
    const status = await work();
    took.push(performance.now() - began);
    if (status !== 200) failed += 1;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  return { took, failed };
}

function latencyOf(samples: readonly { took: readonly number[]; failed: number }[]): Latency {
  const took = samples.flatMap((each) => each.took).sort((one, other) => one - other);
  const at = (share: number) => Math.round((took[Math.ceil(took.length * share) - 1] ?? Number.NaN) * 10) / 10;
  return { p50: at(0.5), p99: at(0.99), worst: at(1), failed: samples.reduce((sum, each) => sum + each.failed, 0) };
}

function memoryOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Math.round(Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) / 1024);
}

async function measure(bench: Bench, name: string): Promise<Measured> {
  const connections = CONNECTIONS[name] ?? USUAL_CONNECTIONS;
  const milliseconds = bench.seconds * 1000;
  const attack: Attack = {
    ...{ name, url: bench.url, connections, milliseconds, facts: bench.facts },
    ...{ most: MOST_REQUESTS, addresses: ADDRESSES },
  };
  let over = false;
  const attacking = promisify(execFile)(process.execPath, [ATTACKERS, JSON.stringify(attack)]);
  // Attackers need a moment to begin.
  await new Promise((resolve) => setTimeout(resolve, 300));
  const agent = new Agent({ keepAlive: true });
  const { token, partner: partnerId } = bench.facts;
  const own = { authorization: `Bearer ${token}`, 'x-service-partner-id': partnerId };
  const accept = () => get(agent, `${bench.url}/api/v1/quote/${bench.quotes.next().value}/accept`, own);
  const [floor, management, health, accepting] = await Promise.all([
    sample(
      () => over,
      () => get(agent, bench.floor),
    ),
    sample(
      () => over,
      () => get(agent, `${bench.management}/healthz`),
    ),
    sample(
      () => over,
      () => get(agent, `${bench.url}/healthz`),
    ),
    Promise.all(Array.from({ length: ACCEPTING }, () => sample(() => over, accept))),
    attacking.finally(() => {
      over = true;
    }),
  ]);
  agent.destroy();
  const { stdout } = await attacking;
  return {
    ...{ attack: name, connections, mebibytes: memoryOf(bench.pid), outcomes: JSON.parse(stdout) as Outcomes },
    management: latencyOf([management]),
    ...{ health: latencyOf([health]), floor: latencyOf([floor]), accepting: latencyOf(accepting) },
  };
}

// --- The whole ----------------------------------------------------------------------------------------------------------

const home = mkdtempSync(join(tmpdir(), 'reckoner-attack-'));
const env: NodeJS.ProcessEnv = { ...process.env, RECKONER_HOME: home };
for (const name of ['DATABASE_URL', 'RECKONER_ENVIRONMENT', 'RECKONER_NOW', 'RECKONER_FAILPOINT']) delete env[name];
let serving: ChildProcess | undefined;
const others: ChildProcess[] = [];
let release = async () => {};
const measured: Measured[] = [];
try {
  const credentials = await settleIn(home, env);
  const database = await acquireEmbeddedServer(join(home, 'postgres'));
  release = () => database.release();
  const client = new pg.Client(database.connection);
  await client.connect();
  const facts = await factsOf(client, credentials.own);
  await client.end();
  const { child, url, management } = await serve(home, env);
  serving = child;
  const idle = spawn(process.execPath, ['-e', IDLE], { stdio: ['ignore', 'pipe', 'inherit'] });
  others.push(idle);
  const [floor] = (await once(idle.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  const bench: Bench = {
    ...{
      url,
      management,
      floor: floor.toString(),
      pid: child.pid as number,
      quotes: quoteIds(),
      seconds: Number(options.seconds),
    },
    facts: {
      ...facts,
      token: await tokenFor(url, credentials.own),
      largeToken: await tokenFor(url, credentials.large),
    },
  };
  for (const name of ATTACKS.filter((each) => options.only.includes(each))) {
    const found = await measure(bench, name);
    measured.push(found);
    note(JSON.stringify(found));
    if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode} under '${name}'`);
    // What is under way ends.
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
} finally {
  for (const other of others) other.kill();
  if (serving !== undefined && serving.exitCode === null) {
    serving.kill('SIGTERM');
    await once(serving, 'exit');
  }
  await release();
  rmSync(home, { recursive: true, force: true });
}

const counts = (outcomes: Outcomes) =>
  Object.entries(outcomes)
    .map(([outcome, count]) => `${outcome}: ${count}`)
    .join(', ');
const rows = measured.map(({ attack, connections, health, management, floor, accepting, mebibytes, outcomes }) => [
  ...[attack, connections, health.p50, health.p99, management.p50, management.p99, floor.p50, floor.p99],
  ...[accepting.p50, accepting.p99, health.failed + management.failed + accepting.failed, mebibytes, counts(outcomes)],
]);
const headings = [
  'attack',
  '>callers',
  '>health p50',
  '>p99',
  '>management p50',
  '>p99',
  '>idle p50',
  '>p99',
  '>accept p50',
  '>p99',
  '>failed',
  '>MiB',
];
process.stdout.write(
  options.json
    ? `${JSON.stringify(measured, null, 2)}\n`
    : `${table(
        [...headings, 'attackers were answered'],
        rows.map((row) => row.map(String)),
      )}\n` +
        `Milliseconds; ${options.seconds} seconds each from ${ADDRESSES} addresses; an invoice of ${options.rows} rows; ` +
        `--max-old-space-size=${options.heap}. idle: a server that does nothing, on the same machine at the same time.\n`,
);
