/** Logs that cannot be written: a full disk, a pipe that nobody reads, one that was closed. No job hangs, no server ends. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { dropping, fileSink } from '../../src/log.ts';
import { compiled, job, reckoner } from '../support/program.ts';
import { openWorld, partner, type World } from '../support/world.ts';

let world: World;
let folder: string;
const children: ChildProcess[] = [];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reckoner-log-'));
  world = await openWorld();
  await world.partners([partner()]);
});
afterEach(() => {
  for (const child of children.splice(0)) if (child.exitCode === null) child.kill('SIGKILL');
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await world.end();
});

const env = (more: Record<string, string> = {}) => ({
  ...process.env,
  RECKONER_HOME: world.home,
  DATABASE_URL: world.databaseUrl,
  ...more,
});

/** The program with this descriptor, or 'pipe', as its stderr. */
function start(path: string, args: string[], stderr: number | 'pipe', more: Record<string, string> = {}) {
  const child = spawn(process.execPath, [compiled(path), ...args], {
    env: env(more),
    stdio: ['ignore', 'pipe', stderr],
  });
  children.push(child);
  let stdout = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  return { child, stdout: () => stdout };
}

/** A pipe that is full, and whose reader does not read until asked. */
function fullPipe(name: string): { writer: number; close: () => void } {
  const path = join(folder, name);
  execFileSync('mkfifo', [path]);
  const reader = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  const line = Buffer.from(`${'x'.repeat(4095)}\n`);
  try {
    for (;;) writeSync(reader, line);
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).toBe('EAGAIN');
  }
  const writer = openSync(path, constants.O_WRONLY);
  return {
    writer,
    close() {
      closeSync(writer);
      closeSync(reader);
    },
  };
}

const listening = async (stdout: () => string): Promise<string> => {
  await expect.poll(stdout, { timeout: 60_000 }).toContain('http://');
  return /http:\/\/[\d.:]+\d/.exec(stdout())?.[0] ?? '';
};
const requests = async (url: string, count: number) => {
  for (let each = 0; each < count; each += 1) expect((await fetch(`${url}/pay/none`)).status).toBe(404);
};

test('a job whose log is on a full disk does its work and ends', async () => {
  const full = openSync('/dev/full', 'w');
  const { child } = start('jobs/verify.js', [], full);
  const { child: other } = start('jobs/deliver.js', [], full);
  expect(await Promise.all([once(child, 'exit'), once(other, 'exit')])).toEqual([
    [3, null],
    [0, null],
  ]);
  closeSync(full);
});

test('a server whose log is on a full disk goes on, counts what it dropped, and stops when told to', async () => {
  const full = openSync('/dev/full', 'w');
  const { child, stdout } = start('src/cli/reckoner.js', ['serve', '--port', '0'], full);
  const url = await listening(stdout);
  await requests(url, 50);
  const metrics = await (await fetch(`${url}/metrics`)).text();
  expect(Number(/^reckoner_log_lines_dropped_total (\d+)/m.exec(metrics)?.[1])).toBeGreaterThanOrEqual(50);
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
  closeSync(full);
});

test('a server whose log nobody reads any more goes on', async () => {
  const { child, stdout } = start('src/cli/reckoner.js', ['serve', '--port', '0'], 'pipe');
  const url = await listening(stdout);
  child.stderr?.destroy();
  await requests(url, 20);
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

test('a pipe that is not read stops neither a job nor a server', async () => {
  const pipe = fullPipe('slow');
  const { child } = start('jobs/deliver.js', [], pipe.writer);
  expect(await once(child, 'exit')).toEqual([0, null]);
  const { child: server, stdout } = start('src/cli/reckoner.js', ['serve', '--port', '0'], pipe.writer);
  const url = await listening(stdout);
  await requests(url, 200);
  const started = performance.now();
  server.kill('SIGTERM');
  expect(await once(server, 'exit')).toEqual([0, null]);
  expect(performance.now() - started).toBeLessThan(20_000);
  pipe.close();
});

test('what does not fit is dropped, and the next line that fits is preceded by how many are missing', () => {
  const taken: string[] = [];
  let room = true;
  const log = dropping((line) => room && taken.push(line) > 0);
  log.write('1\n');
  room = false;
  for (const line of ['2\n', '3\n']) log.write(line);
  room = true;
  log.write('4\n');
  expect(log.dropped()).toBe(2);
  expect(taken.map((line) => (line.startsWith('{') ? JSON.parse(line) : line))).toEqual([
    '1\n',
    { level: 'warn', time: expect.any(String), dropped: 2, msg: 'log lines were dropped here' },
    '4\n',
  ]);
});

test('a full device takes no line and throws nothing', () => {
  const full = openSync('/dev/full', 'w');
  expect(fileSink(full)('line\n', () => {})).toBe(false);
  closeSync(full);
});

test('SIGTERM ends a command that is busy reading, and leaves no transaction open', async () => {
  const busy = `process.on('SIGUSR2', () => {
    require('node:fs').writeSync(2, 'busy');
    for (const until = Date.now() + 60000; Date.now() < until; );
  })`;
  const preload = join(folder, 'busy.cjs');
  writeFileSync(preload, busy);
  const child = spawn(
    process.execPath,
    ['-r', preload, compiled('src/cli/reckoner.js'), 'ledger', 'import', '--format', 'csv', '-'],
    {
      env: env(),
      stdio: ['pipe', 'ignore', 'pipe'],
    },
  );
  children.push(child);
  const inTransaction = () =>
    world.sql(
      `SELECT pid FROM pg_stat_activity
       WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()`,
    );
  child.stdin?.write('partner_id,');
  await expect.poll(inTransaction, { timeout: 60_000 }).toHaveLength(1);
  child.kill('SIGUSR2');
  await once(child.stderr as NodeJS.ReadableStream, 'data');
  const started = performance.now();
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([null, 'SIGTERM']);
  expect(performance.now() - started).toBeLessThan(20_000);
  await expect.poll(inTransaction, { timeout: 10_000 }).toEqual([]);
});

test('LOG_LEVEL chooses what is logged, and a level that is none is refused', async () => {
  const given = { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl };
  expect((await job('deliver', { env: { ...given, LOG_LEVEL: 'info' } })).stderr).toContain('"msg":"finished"');
  expect(await job('deliver', { env: { ...given, LOG_LEVEL: 'warn' } })).toMatchObject({ status: 0, stderr: '' });
  const wrong = await job('deliver', { env: { ...given, LOG_LEVEL: 'loud' } });
  expect(wrong.status).toBe(2);
  expect(JSON.parse(wrong.stderr)).toMatchObject({
    code: 'environment_invalid',
    msg: expect.stringContaining("LOG_LEVEL is 'loud' but must be one of debug, info, warn, error, silent"),
  });
});

test('a command whose output cannot be written says so and fails', async () => {
  const full = openSync('/dev/full', 'w');
  const child = spawn(process.execPath, [compiled('src/cli/reckoner.js'), 'partner', 'list'], {
    env: env(),
    stdio: ['ignore', full, 'pipe'],
  });
  let stderr = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  expect(await once(child, 'close')).toEqual([1, null]);
  expect(stderr).toBe(
    'The output cannot be written: ENOSPC: no space left on device, write. Recorded changes are kept.\n',
  );
  closeSync(full);
  expect(
    (await reckoner(['partner', 'list'], { env: { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl } }))
      .status,
  ).toBe(0);
});
