/**
 * Two partners' programs against the running one, from discovery to the PDF of the invoice: in TypeScript with types that
 * are generated from the served description, and in Python with its standard library.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Credentials } from '../../src/partners/clients.ts';
import { command, compiled } from '../support/program.ts';
import { PRICED } from '../support/service.ts';
import { needs } from '../support/tools.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

const run = promisify(execFile);
const JULY = '2026-07-15T12:00:00Z';
const AUGUST = '2026-08-02T12:00:00Z';
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const root = here('../..');

let world: World;
let folder: string;
let url: string;
let clients: Record<'p-1' | 'p-csv', Credentials>;
let server: ChildProcess | undefined;

beforeAll(async () => {
  world = await openWorld();
  folder = mkdtempSync(join(tmpdir(), 'reckoner-clients-'));
  url = await freeAddress();
  const settings = { ...JSON.parse(readFileSync(join(world.home, 'settings.json'), 'utf8')), public_url: url };
  writeFileSync(join(world.home, 'settings.json'), JSON.stringify(settings));
  world.at(JULY);
  await world.partners([
    partner(PRICED),
    partner({
      ...{ ...PRICED, partner_id: 'p-csv', arrangement: 'connected_account', connected_account_id: 'acct_csv' },
      ...{ merchant_of_record: 'platform', split: 'sequential', balance_transactions_from: 'settlement_file' },
    }),
  ]);
  // Documents of three months, so that there are pages of them.
  for (const month of ['05', '06']) {
    const row = quote({ accepted_at: `2026-${month}-03T12:00:00Z` });
    await world.rows([row]);
    await reckon(`2026-${month === '05' ? '06' : '07'}-02T12:00:00Z`, 'close');
  }
  const client = async (id: string) => (await reckon(JULY, 'client', 'create', id)).json() as Credentials;
  clients = { 'p-1': await client('p-1'), 'p-csv': await client('p-csv') };
  await makeClient();
});
afterAll(async () => {
  await stop();
  rmSync(folder, { recursive: true, force: true });
  await world.end();
});

const env = (now: string) => ({ RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: now });

async function reckon(now: string, ...args: string[]) {
  const ran = await command(['--json', ...args], { env: env(now) });
  expect({ args, status: ran.status, stderr: ran.stderr }).toEqual({ args, status: 0, stderr: '' });
  return ran;
}

/** An address that is free now: the program must know its own before it listens. */
async function freeAddress(): Promise<string> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  await new Promise((done) => probe.close(done));
  return `http://127.0.0.1:${port}`;
}

async function stop(): Promise<void> {
  if (server === undefined || server.exitCode !== null) return;
  server.kill('SIGTERM');
  await once(server, 'exit');
}

async function serveAt(now: string): Promise<void> {
  await stop();
  server = spawn(process.execPath, [compiled('src/cli/reckoner.js'), '--json', 'serve', '--port', new URL(url).port], {
    env: { ...process.env, ...env(now) },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await once(server.stdout as NodeJS.ReadableStream, 'data');
}

/** Generates the types of the served description, and compiles the client with them, as its developer would. */
async function makeClient(): Promise<void> {
  await serveAt(JULY);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  copyFileSync(here('typescript/client.ts'), join(folder, 'client.ts'));
  const generator = ['--import', here('typescript/generator-hook.mjs'), 'node_modules/openapi-typescript/bin/cli.js'];
  await run(process.execPath, [...generator, `${url}/openapi.json`, '-o', 'api.d.ts'], { cwd: folder });
  const compilerOptions = {
    ...{ module: 'nodenext', target: 'es2023', lib: ['es2023', 'dom'], types: ['node'], strict: true },
    ...{ exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, noFallthroughCasesInSwitch: true },
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['client.ts'] }));
  await run(process.execPath, ['node_modules/typescript/bin/tsc'], { cwd: folder }).catch((error: unknown) => {
    throw new Error(`the client does not compile:\n${(error as { stdout?: string }).stdout}`, { cause: error });
  });
}

type Client = (as: keyof typeof clients, ...args: string[]) => Promise<Record<string, unknown>>;
const clientOf =
  (program: string, ...before: string[]): Client =>
  async (as, ...args) => {
    const { partner_id, client_id, client_secret } = clients[as];
    const given = { BASE_URL: url, PARTNER_ID: partner_id, CLIENT_ID: client_id, CLIENT_SECRET: client_secret };
    const { stdout } = await run(program, [...before, ...args], { cwd: folder, env: { ...process.env, ...given } });
    return JSON.parse(stdout) as Record<string, unknown>;
  };

let closed = false;
/** Sells in July, closes the month, and reads in August what came of it. */
async function walk(client: Client): Promise<void> {
  await serveAt(closed ? AUGUST : JULY);
  const sold = await client('p-1', 'sell');
  const settled = await client('p-csv', 'settle');
  const [now, number] = closed ? ['2026-09-02T12:00:00Z', 'INV-2026-000004'] : [AUGUST, 'INV-2026-000003'];
  await reckon(now, 'close');
  closed = true;
  await serveAt(now);
  const events = ['quote.accepted', 'requote.accepted', 'quote.reversed'];
  expect(await client('p-1', 'documents', sold['quote_id'] as string)).toEqual({ bills: [number], events });
  const ofRouted = await client('p-csv', 'documents', settled['quote_id'] as string);
  expect(ofRouted).toMatchObject({ bills: [expect.stringMatching(/^ST/)], events: ['quote.accepted'] });
}

test('a TypeScript client of the generated types walks the whole way', async () => {
  await walk(clientOf(process.execPath, 'client.js'));
}, 120_000);

test("a client in Python's standard library walks the whole way", async (context) => {
  needs('python3', context);
  await walk(clientOf('python3', here('python/client.py')));
}, 120_000);
