/**
 * How fast the console answers over a large ledger (console-ledger.ts): every GET address that it has, with the filters that
 * people use, as an administrator and as a viewer of one partner, one request after another at a `serve` process of its own.
 * The floor of the same run is the page without a statement of its own, and a statement that reads nothing.
 *
 *   npm run bench:console -- [--rows 1000000] [--partners 515] [--months 37] [--repeat 30]
 *                            [--folder /tmp/reckoner-bench] [--only /invoices]… [--json]
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type pg from 'pg';
import { table } from '../../src/cli/output.ts';
import { packageRoot } from '../../src/package.ts';
import { addressesOf, type Objects, readObjects, readRoutes } from './console-addresses.ts';
import { ADMINISTRATOR, NOW, openConsoleLedger, reckoner } from './console-ledger.ts';

const VIEWER = 'vera@bench.example';
/** What every address of the console is to keep. */
const GOAL_MS = 200;
const WARM_UP = 2;

const { values: options } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    partners: { type: 'string', default: '515' },
    months: { type: 'string', default: '37' },
    repeat: { type: 'string', default: '30' },
    folder: { type: 'string', default: join(tmpdir(), 'reckoner-bench') },
    only: { type: 'string', multiple: true, default: [] },
    json: { type: 'boolean', default: false },
  },
});
const note = (text: string): void => void process.stderr.write(`${text}\n`);

interface Latency {
  readonly p50: number;
  readonly p95: number;
  readonly max: number;
}

interface Measured extends Latency {
  readonly reader: string;
  readonly address: string;
  readonly status: number;
  readonly kilobytes: number;
}

function latencyOf(took: readonly number[]): Latency {
  const sorted = took.toSorted((one, other) => one - other);
  const at = (share: number) => Math.round((sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN) * 10) / 10;
  return { p50: at(0.5), p95: at(0.95), max: at(1) };
}

/** Does it once more than counted, so that plans and pages are where they are in a running server. */
async function timesOf(work: () => Promise<unknown>): Promise<number[]> {
  const took: number[] = [];
  for (let count = -WARM_UP; count < Number(options.repeat); count += 1) {
    const began = performance.now();
    await work();
    if (count >= 0) took.push(performance.now() - began);
  }
  return took;
}

async function serve(home: string): Promise<{ child: ChildProcess; url: string }> {
  const { DATABASE_URL: _database, ...inherited } = process.env;
  const env = { ...inherited, RECKONER_HOME: home, RECKONER_NOW: NOW, RECKONER_ENVIRONMENT: 'sandbox' };
  const program = join(packageRoot, 'dist', 'src', 'cli', 'reckoner.js');
  const args = [program, '--json', 'serve', '--port', '0'];
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'ignore'] });
  const [said] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  return { child, url: (JSON.parse(said.toString()) as { listening: string }).listening };
}

/** The cookie of a new session; makes the user before, if there is none. */
async function signIn(
  { home, client, url }: { home: string; client: pg.Client; url: string },
  login: string,
  roles: readonly string[],
): Promise<string> {
  const { rowCount } = await client.query('SELECT FROM users WHERE personal(login) = $1', [login]);
  const asked = rowCount === 0 ? ['invite', login, ...roles] : ['link', login];
  const made = await reckoner(home, NOW, ['user', ...asked, '--no-mail']);
  const { pathname, hash } = new URL((JSON.parse(made) as { url: string }).url);
  const answer = await fetch(`${url}${pathname}`, {
    method: 'POST',
    body: new URLSearchParams({ code: hash.slice(1) }),
    redirect: 'manual',
    headers: { 'sec-fetch-site': 'same-origin', origin: url, 'content-type': 'application/x-www-form-urlencoded' },
  });
  if (answer.status !== 303) throw new Error(`${login} cannot sign in: ${answer.status} ${await answer.text()}`);
  return answer.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ');
}

async function measure(url: string, cookie: string, reader: string, address: string): Promise<Measured> {
  let [status, bytes] = [0, 0];
  const took = await timesOf(async () => {
    const answer = await fetch(`${url}/console${address}`, { redirect: 'manual', headers: { cookie } });
    bytes = (await answer.arrayBuffer()).byteLength;
    status = answer.status;
  });
  return { reader, address, status, kilobytes: Math.round(bytes / 1024), ...latencyOf(took) };
}

async function measureAll(home: string, client: pg.Client): Promise<{ measured: Measured[]; floor: Latency }> {
  const objects: Objects = await readObjects(client);
  const { child, url } = await serve(home);
  try {
    const seat = { home, client, url };
    const readers = [
      ['administrator', await signIn(seat, ADMINISTRATOR, ['--role', 'administrator', '--role', 'finance'])],
      ['viewer of one partner', await signIn(seat, VIEWER, ['--role', 'viewer', '--partner', objects.partner])],
    ] as const;
    const addresses = (await readRoutes(home)).flatMap((path) => addressesOf(path, objects));
    const measured: Measured[] = [];
    for (const address of addresses) {
      if (options.only.length > 0 && !options.only.some((each) => address.startsWith(each))) continue;
      for (const [reader, cookie] of readers) {
        const found = await measure(url, cookie, reader, address);
        // A role that may not see it is refused before anything is read.
        if (found.status === 403) continue;
        measured.push(found);
        if (found.p95 > GOAL_MS) note(`${found.p50} / ${found.p95} ms: ${address} (${reader})`);
      }
    }
    return { measured, floor: latencyOf(await timesOf(() => client.query('SELECT 1'))) };
  } finally {
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
}

const { home, server, client } = await openConsoleLedger(
  options.folder,
  { rows: Number(options.rows), partners: Number(options.partners), months: Number(options.months) },
  note,
);
try {
  const { measured, floor } = await measureAll(home, client);
  const slow = measured.filter(({ p95 }) => p95 > GOAL_MS);
  if (options.json) process.stdout.write(`${JSON.stringify({ floor, measured }, null, 2)}\n`);
  else {
    const rows = measured
      .toSorted((one, other) => other.p95 - one.p95)
      .map(({ reader, address, status, kilobytes, p50, p95, max }) => [
        p50,
        p95,
        max,
        status,
        kilobytes,
        reader,
        address,
      ]);
    process.stdout.write(
      `${table(
        ['>p50 ms', '>p95', '>max', '>status', '>kB', 'reader', 'address'],
        rows.map((row) => row.map(String)),
      )}\n` +
        `${measured.length} addresses, ${options.repeat} requests each; ${slow.length} above ${GOAL_MS} ms at p95. ` +
        `SELECT 1: ${floor.p50} / ${floor.p95} ms.\n`,
    );
  }
} finally {
  await client.end();
  await server.release();
}
