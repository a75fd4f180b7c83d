/**
 * What it costs a server to send all rows of one large invoice: by the payment page, by the API, from the console. For each
 * way, how much the memory of `serve` grows, how long its event loop stands still at most, and how long `/healthz` takes
 * meanwhile. A process that does nothing is watched at the same time: what it misses is the machine's.
 *
 *   npm run --silent build && npx tsc -p test/bench
 *   node dist/test/bench/invoice-rows.js [--rows 1000000] [--rounds 5] [--json]
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Agent, get, type RequestOptions } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { table } from '../../src/cli/output.ts';
import { median } from './measured.ts';
import { emptyLedger, MONTH, MORNING_AFTER, openWorkbench, type Workbench } from './workbench.ts';

const PROGRAM = fileURLToPath(new URL('../../src/cli/reckoner.js', import.meta.url));
const PROBE_EVERY_MS = 20;

const options = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '5' },
    json: { type: 'boolean', default: false },
  },
}).values;

// --- A process that says how it is --------------------------------------------------------------------------------------

/** Loaded before the program. The kernel's peak of its memory begins anew with each 'begin' (proc(5), clear_refs). */
const WATCH = `
import { readFileSync, writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
const mebibytes = (name) => Number(new RegExp('^' + name + ':\\\\s+(\\\\d+) kB', 'm').exec(readFileSync('/proc/self/status', 'utf8'))[1]) / 1024;
let before, cpu;
process.on('message', (message) => {
  if (message === 'begin') {
    globalThis.gc();
    writeFileSync('/proc/self/clear_refs', '5');
    before = mebibytes('VmRSS');
    cpu = process.cpuUsage();
    delay.reset();
    process.send({});
  } else {
    const { user, system } = process.cpuUsage(cpu);
    process.send({ grown: mebibytes('VmHWM') - before, peak: mebibytes('VmHWM'), stall: delay.max / 1e6, cpu: (user + system) / 1e6 });
  }
});
process.channel.unref();
`;

interface Watched {
  /** Mebibytes of resident memory more than at the beginning, at the most. */
  readonly grown: number;
  readonly peak: number;
  /** Milliseconds. */
  readonly stall: number;
  /** Seconds. */
  readonly cpu: number;
}

async function told(child: ChildProcess, message: 'begin' | 'end'): Promise<Watched> {
  child.send(message);
  const [answer] = (await once(child, 'message')) as [Watched];
  return answer;
}

const started: ChildProcess[] = [];

function watched(watch: string, args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
  const child = spawn(process.execPath, ['--expose-gc', '--import', watch, ...args], {
    env,
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  started.push(child);
  return child;
}

// --- The ledger and its ways --------------------------------------------------------------------------------------------

interface Way {
  readonly name: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

async function largeInvoice(bench: Workbench): Promise<string> {
  const rows = await bench.rowsFile(MONTH, bench.rows, 1);
  return bench.made(
    'large_invoice',
    async (url) => {
      await bench.reckoner(url, MORNING_AFTER, ['ledger', 'import', rows]);
      await bench.reckoner(url, MORNING_AFTER, ['close', MONTH]);
    },
    await emptyLedger(bench, 1),
  );
}

async function waysTo(bench: Workbench, databaseUrl: string, server: string): Promise<{ ways: Way[]; rows: number }> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  const { rows } = await client.query<{ number: string; partner_id: string; entries: number; token: string }>(
    `SELECT number, partner_id, entries::int, token FROM documents JOIN payment_links USING (document_id)
     ORDER BY entries DESC LIMIT 1`,
  );
  await client.end();
  const [invoice] = rows;
  if (invoice === undefined) throw new Error('there is no invoice');
  const said = async (...args: string[]) => JSON.parse((await bench.reckoner(databaseUrl, MORNING_AFTER, args)).stdout);
  const credentials = (await said('client', 'create', invoice.partner_id)) as Record<string, string>;
  const exchanged = await fetch(`${server}/api/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_id: credentials['client_id'], client_secret: credentials['client_secret'] }),
  });
  const { access_token: token } = (await exchanged.json()) as { access_token: string };
  const { url: link } = (await said('user', 'invite', 'ada@issuer.example', '--no-mail')) as { url: string };
  const { host } = new URL(server);
  const signedIn = await fetch(`${server}${new URL(link).pathname}`, {
    method: 'POST',
    redirect: 'manual',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'sec-fetch-site': 'same-origin',
      origin: `http://${host}`,
    },
  });
  const cookie = signedIn.headers.getSetCookie().map((each) => each.split(';')[0]);
  return {
    rows: invoice.entries,
    ways: [
      { name: 'payment page', path: `/pay/${invoice.token}/rows.csv`, headers: {} },
      {
        name: 'API',
        path: `/api/v1/invoices/${invoice.number}/rows`,
        headers: { authorization: `Bearer ${token}`, 'x-service-partner-id': invoice.partner_id },
      },
      { name: 'console', path: `/console/invoices/${invoice.number}/rows.csv`, headers: { cookie: cookie.join('; ') } },
    ],
  };
}

// --- One download ---------------------------------------------------------------------------------------------------------

/** Reads an answer to its end: how many bytes and lines it has. */
function read(url: string, given: RequestOptions): Promise<{ bytes: number; lines: number }> {
  return new Promise((resolve, reject) => {
    get(url, given, (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`${url}: ${answer.statusCode}`));
      let [bytes, lines] = [0, 0];
      answer.on('data', (piece: Buffer) => {
        bytes += piece.length;
        for (let at = piece.indexOf(10); at !== -1; at = piece.indexOf(10, at + 1)) lines += 1;
      });
      answer.on('end', () => resolve({ bytes, lines })).on('error', reject);
    }).on('error', reject);
  });
}

interface Measured extends Watched {
  readonly way: string;
  readonly megabytes: number;
  readonly seconds: number;
  readonly idleStall: number;
  readonly healthP99: number;
  readonly healthWorst: number;
}

async function download(url: string, way: Way, rows: number, [server, idle]: [ChildProcess, ChildProcess]) {
  const health: number[] = [];
  let over = false;
  const agent = new Agent({ keepAlive: true });
  await Promise.all([told(server, 'begin'), told(idle, 'begin')]);
  const probing = (async () => {
    while (!over) {
      const began = performance.now();
      await read(`${url}/healthz`, { agent });
      health.push(performance.now() - began);
      await sleep(PROBE_EVERY_MS);
    }
  })();
  const began = performance.now();
  const { bytes, lines } = await read(`${url}${way.path}`, { headers: way.headers });
  const seconds = (performance.now() - began) / 1000;
  const [ours, beside] = await Promise.all([told(server, 'end'), told(idle, 'end')]);
  over = true;
  await probing;
  agent.destroy();
  if (lines !== rows + 1) throw new Error(`${way.name}: ${lines} lines instead of ${rows + 1}`);
  const sorted = health.sort((one, other) => one - other);
  return {
    ...ours,
    ...{ way: way.name, megabytes: bytes / 1e6, seconds, idleStall: beside.stall },
    healthP99: sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Number.NaN,
    healthWorst: sorted.at(-1) ?? Number.NaN,
  } satisfies Measured;
}

// --- The whole ----------------------------------------------------------------------------------------------------------

const note = (text: string): void => void process.stderr.write(`${text}\n`);
const bench = await openWorkbench({ rows: Number(options.rows), partners: 1, repeat: 1, note });
const measured: Measured[] = [];
try {
  const name = await largeInvoice(bench);
  await bench.inClone(name, async ({ url: databaseUrl }) => {
    const watch = join(bench.folder, 'watch.mjs');
    writeFileSync(watch, WATCH);
    const home = join(bench.folder, 'home');
    const env = { ...process.env, RECKONER_HOME: home, DATABASE_URL: databaseUrl, RECKONER_NOW: MORNING_AFTER };
    const server = watched(watch, [PROGRAM, '--json', 'serve', '--port', '0'], { ...env, LOG_LEVEL: 'warn' });
    const [said] = (await once(server.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
    const { listening } = JSON.parse(said.toString()) as { listening: string };
    const idle = watched(watch, ['-e', 'setInterval(() => {}, 1000)'], process.env);
    const { ways, rows } = await waysTo(bench, databaseUrl, listening);
    for (let round = 1; round <= Number(options.rounds); round += 1) {
      for (const way of ways) {
        const each = await download(listening, way, rows, [server, idle]);
        measured.push(each);
        note(`${round} of ${options.rounds}: ${JSON.stringify(each)}`);
      }
    }
    server.kill('SIGTERM');
    await once(server, 'exit');
  });
} finally {
  for (const child of started) if (child.exitCode === null) child.kill('SIGKILL');
  await bench.close();
}

const rounded = (number: number) => String(Number(number.toPrecision(3)));
const lines = [...new Set(measured.map(({ way }) => way))].map((way) => {
  const own = measured.filter((each) => each.way === way);
  const of = (field: keyof Omit<Measured, 'way'>) => median(own.map((each) => each[field]));
  const worst = (field: keyof Omit<Measured, 'way'>) => Math.max(...own.map((each) => each[field]));
  return [
    ...[way, rounded(of('megabytes')), rounded(of('seconds')), rounded(of('cpu'))],
    ...[rounded(of('grown')), rounded(worst('grown')), rounded(of('stall')), rounded(worst('stall'))],
    ...[rounded(of('idleStall')), rounded(worst('idleStall')), rounded(of('healthP99')), rounded(worst('healthWorst'))],
  ];
});
process.stdout.write(
  options.json
    ? `${JSON.stringify(measured, null, 2)}\n`
    : `${table(
        [
          ...['way', '>MB', '>s', '>CPU s', '>MiB more', '>worst', '>stall ms', '>worst'],
          ...['>idle', '>worst', '>healthz p99', '>worst'],
        ],
        lines,
      )}\nAn invoice of ${options.rows} rows, medians of ${options.rounds} and the worst. idle: a process that does nothing, at the same time.\n`,
);
