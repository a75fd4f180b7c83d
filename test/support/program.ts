/** The real program in a separate process, as people, cron and scripts run it. It is compiled by `npm test`. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { remember } from './last-runs.ts';

export interface Ran {
  /** Null if a signal ended it. */
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /** stdout as JSON. */
  readonly json: () => unknown;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly input?: string;
  readonly cwd?: string;
}

export const compiled = (path: string) => fileURLToPath(new URL(`../../dist/${path}`, import.meta.url));

/** A shell script of `jobs/`, which runs the compiled program. */
export const jobScript = (name: string) => fileURLToPath(new URL(`../../jobs/${name}`, import.meta.url));

/** Variables that would reach the program from the machine that runs the tests. */
const OWN_VARIABLES = [
  'DATABASE_URL',
  'DATABASE_URL_READ',
  'SMTP_URL',
  'RECKONER_HOME',
  'RECKONER_NOW',
  'RECKONER_ENVIRONMENT',
  'RECKONER_FAILPOINT',
  'STRIPE_SECRET_KEY',
  'STRIPE_API_BASE',
];

function environmentWith(own: Readonly<Record<string, string | undefined>>): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...process.env };
  for (const name of OWN_VARIABLES) delete env[name];
  return Object.assign(env, own);
}

export function runCompiled(path: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const env = environmentWith(options.env ?? {});
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [compiled(path), ...args], { env, cwd: options.cwd });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    child.on('error', reject);
    child.on('close', (status, signal) => {
      const ran = { status, signal, stdout, stderr, json: () => JSON.parse(stdout) as unknown };
      remember([path, ...args].join(' '), ran);
      resolve(ran);
    });
    child.stdin.end(options.input ?? '');
  });
}

export const reckoner = (args: readonly string[], options: RunOptions = {}): Promise<Ran> =>
  runCompiled('src/cli/reckoner.js', args, options);

let resident: ChildProcess | undefined;
let turn: Promise<unknown> = Promise.resolve();

/**
 * The same, but in a process that runs one command after another (resident.mjs). For tests of a command's output and
 * effects, but not of how its process begins and ends.
 */
export function command(
  args: readonly string[],
  { env = {}, cwd }: Pick<RunOptions, 'env' | 'cwd'> = {},
): Promise<Ran> {
  const ran = turn.then(async () => {
    if (!resident?.connected)
      resident = fork(fileURLToPath(new URL('resident.mjs', import.meta.url)), {
        env: environmentWith({}),
        execArgv: [],
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      });
    const child = resident as ChildProcess;
    const answer = new Promise<Pick<Ran, 'status' | 'stdout' | 'stderr'>>((resolve, reject) => {
      child.once('message', (message) => resolve(message as Ran));
      child.once('error', reject);
      child.once('exit', (status, signal) => {
        resident = undefined;
        reject(new Error(`reckoner ${args.join(' ')} ended its process: ${signal ?? status}`));
      });
    });
    child.send({ args, env, cwd });
    const { status, stdout, stderr } = await answer.finally(() => child.removeAllListeners());
    return { status, signal: null, stdout, stderr, json: () => JSON.parse(stdout) as unknown };
  });
  turn = ran.catch(() => {});
  return ran;
}

export const job = (name: string, options: RunOptions = {}): Promise<Ran> =>
  runCompiled(`jobs/${name}.js`, [], options);

/** Starts the program and kills it with -9 after this many milliseconds. Returns whether it was still running. */
export function killed(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  afterMilliseconds: number,
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [compiled('src/cli/reckoner.js'), ...args], {
      env: environmentWith(env),
      stdio: 'ignore',
    });
    const timer = setTimeout(() => child.kill('SIGKILL'), afterMilliseconds);
    child.on('error', reject);
    child.on('close', (_, signal) => {
      clearTimeout(timer);
      resolve(signal === 'SIGKILL');
    });
  });
}
