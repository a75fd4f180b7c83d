/**
 * Two partners' programs against the running one, from discovery to the PDF of the invoice: in TypeScript with types that
 * are generated from the served description, and in Python with its standard library.
 */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { tool } from '../support/tools.ts';
import { openRunning, type Running } from './running.ts';

const run = promisify(execFile);
const JULY = '2026-07-15T12:00:00Z';
const AUGUST = '2026-08-02T12:00:00Z';
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const root = here('../..');

let running: Running;
let folder: string;

beforeAll(async () => {
  running = await openRunning(JULY);
  folder = mkdtempSync(join(tmpdir(), 'reckoner-clients-'));
  await makeClient();
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await running.end();
});

/** Generates the types of the served description, and compiles the client with them, as its developer would. */
async function makeClient(): Promise<void> {
  await running.serveAt(JULY);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  copyFileSync(here('typescript/client.ts'), join(folder, 'client.ts'));
  const generator = ['--import', here('typescript/generator-hook.mjs'), 'node_modules/openapi-typescript/bin/cli.js'];
  await run(process.execPath, [...generator, `${running.url}/openapi.json`, '-o', 'api.d.ts'], { cwd: folder });
  const compilerOptions = {
    ...{ module: 'nodenext', target: 'es2023', lib: ['es2023', 'dom'], types: ['node'], strict: true },
    ...{ exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, noFallthroughCasesInSwitch: true },
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['client.ts'] }));
  await run(process.execPath, ['node_modules/typescript/bin/tsc'], { cwd: folder }).catch((error: unknown) => {
    throw new Error(`the client does not compile:\n${(error as { stdout?: string }).stdout}`, { cause: error });
  });
}

type Client = (as: keyof Running['as'], ...args: string[]) => Promise<Record<string, unknown>>;
const clientOf =
  (program: string, ...before: string[]): Client =>
  async (as, ...args) => {
    const env = { ...process.env, ...running.as[as] };
    const { stdout } = await run(program, [...before, ...args], { cwd: folder, env });
    return JSON.parse(stdout) as Record<string, unknown>;
  };

let closed = false;
/** Sells in July, closes the month, and reads in August what came of it. */
async function walk(client: Client): Promise<void> {
  await running.serveAt(closed ? AUGUST : JULY);
  const sold = await client('p-1', 'sell');
  const settled = await client('p-csv', 'settle');
  const [now, number] = closed ? ['2026-09-02T12:00:00Z', 'INV-2026-000004'] : [AUGUST, 'INV-2026-000003'];
  await running.reckon(now, 'close');
  closed = true;
  await running.serveAt(now);
  const events = ['quote.accepted', 'requote.accepted', 'reversal.recorded'];
  expect(await client('p-1', 'documents', sold['quote_id'] as string)).toEqual({ bills: [number], events });
  const ofRouted = await client('p-csv', 'documents', settled['quote_id'] as string);
  expect(ofRouted).toMatchObject({ bills: [expect.stringMatching(/^ST/)], events: ['quote.accepted'] });
}

test('a TypeScript client of the generated types walks the whole way', async () => {
  await walk(clientOf(process.execPath, 'client.js'));
}, 120_000);

test("a client in Python's standard library walks the whole way", async () => {
  await walk(clientOf(tool('python3'), here('python/client.py')));
}, 120_000);
