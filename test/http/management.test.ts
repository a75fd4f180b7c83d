/** The management port of `reckoner serve`: what it answers while callers keep the main thread busy. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageVersion } from '../../src/package.ts';
import { command, compiled } from '../support/program.ts';
import { openWorld, type World } from '../support/world.ts';

/** On SIGUSR2 the main thread does nothing else for so long. */
const STALLED_MS = 9000;
const STALL = `process.on('SIGUSR2',()=>{const end=Date.now()+${STALLED_MS};while(Date.now()<end);})`;

const ask = async (url: string, init?: RequestInit) => {
  const answer = await fetch(url, init);
  const text = await answer.text();
  return { status: answer.status, text };
};
const json = async (url: string) => JSON.parse((await ask(url)).text) as Record<string, unknown>;

let world: World;
let child: ChildProcess;
let urls: { listening: string; management: string };
const env = () => ({ RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl });

beforeAll(async () => {
  world = await openWorld();
  child = spawn(
    process.execPath,
    [
      ...['--import', `data:text/javascript,${encodeURIComponent(STALL)}`],
      ...[compiled('src/cli/reckoner.js'), '--json', 'serve', '--port', '0', '--management-port', '0'],
    ],
    { env: { ...process.env, ...env() }, stdio: ['ignore', 'pipe', 'ignore'] },
  );
  const [said] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  urls = JSON.parse(said.toString()) as typeof urls;
}, 60_000);
afterAll(async () => {
  if (child?.exitCode === null) child.kill('SIGKILL');
  await world.end();
});

test('answers as the main port does, and nothing else', async () => {
  const { management } = urls;
  expect(management).not.toBe(urls.listening);
  expect(await json(`${management}/healthz`)).toMatchObject({ status: 'ok', version: packageVersion });
  expect(await json(`${management}/readyz`)).toEqual({ status: 'ready' });
  const { text, status } = await ask(`${management}/metrics`);
  expect({ status, has: text.includes('reckoner_build_info') }).toEqual({ status: 200, has: true });
  for (const path of ['/reference', '/api/v1/quote/q-1/accept', '/']) {
    expect((await ask(`${management}${path}`)).status, path).toBe(404);
  }
});

test('whoever comes through a proxy gets no metrics', async () => {
  const answer = await ask(`${urls.management}/metrics`, { headers: { 'x-forwarded-for': '198.51.100.7' } });
  expect(answer.status).toBe(403);
});

test('health is answered while the main thread is busy, and says so when that is for long', {
  timeout: 60_000,
}, async () => {
  const { management } = urls;
  child.kill('SIGUSR2');
  const began = performance.now();
  const found: string[] = [];
  await expect
    .poll(
      async () => {
        const { status, text } = await ask(`${management}/healthz`);
        found.push(`${status} ${(JSON.parse(text) as { status: string }).status}`);
        return found.at(-1);
      },
      { timeout: 20_000, interval: 100 },
    )
    .toBe('503 stalled');
  expect(performance.now() - began).toBeLessThan(STALLED_MS);
  expect(found.length).toBeGreaterThan(10);
  expect(new Set(found)).toEqual(new Set(['200 ok', '503 stalled']));
  await expect.poll(async () => (await ask(`${management}/healthz`)).status, { timeout: 20_000 }).toBe(200);
});

test('a management port in use is refused, and nothing listens', async () => {
  const { port } = new URL(urls.management);
  const refused = await command(['serve', '--port', '0', '--management-port', port], { env: env() });
  expect({ status: refused.status, said: refused.stderr }).toMatchObject({
    said: expect.stringContaining('the port is in use'),
  });
  expect(refused.status).not.toBe(0);
});

test('SIGTERM ends the thread with the server', async () => {
  child.kill('SIGTERM');
  const [code] = (await once(child, 'exit')) as [number | null];
  expect(code).toBe(0);
  await expect(fetch(`${urls.management}/healthz`)).rejects.toThrow();
});
