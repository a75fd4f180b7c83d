/** The real program in a process of its own, as people, cron and scripts run it. It is compiled by `npm test`. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export interface Ran {
  readonly status: number | null;
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

const compiled = (path: string) => fileURLToPath(new URL(`../../dist/${path}`, import.meta.url));

/** Variables that would reach the program from the machine that runs the tests. */
const OWN_VARIABLES = ['DATABASE_URL', 'SMTP_URL', 'RECKONER_HOME', 'RECKONER_NOW', 'RECKONER_ENVIRONMENT'];

export function runCompiled(path: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const env: NodeJS.ProcessEnv = { ...process.env };
  for (const name of OWN_VARIABLES) delete env[name];
  for (const [name, value] of Object.entries(options.env ?? {})) env[name] = value;
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
    child.on('close', (status) => resolve({ status, stdout, stderr, json: () => JSON.parse(stdout) as unknown }));
    child.stdin.end(options.input ?? '');
  });
}

export const reckoner = (args: readonly string[], options: RunOptions = {}): Promise<Ran> =>
  runCompiled('src/cli/reckoner.js', args, options);

export const job = (name: string, options: RunOptions = {}): Promise<Ran> =>
  runCompiled(`jobs/${name}.js`, [], options);
