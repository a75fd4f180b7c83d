/**
 * A separate server over TCP, for tests of other versions and of TLS, which the tests' server behind a Unix socket does
 * not allow.
 */
import { spawnSync } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const NOBODY = 65534;
/** The account that runs the server, which must not be root. */
const account = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};

export function run(program: string, ...args: string[]): void {
  const { status, stderr } = spawnSync(program, args, { ...account, cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] });
  if (status !== 0) throw new Error(`${program}: ${stderr}`);
}

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });

/**
 * Starts an empty server with the programs in a folder. `prepare` creates files in the server's folder and returns
 * settings.
 */
export async function startServer(
  bin: string,
  prepare: (home: string) => readonly string[] = () => [],
): Promise<{ url: string; stop: () => void }> {
  const home = mkdtempSync(join(tmpdir(), 'reckoner-server-'));
  if (account.uid !== undefined) chownSync(home, NOBODY, NOBODY);
  const data = join(home, 'data');
  const port = await freePort();
  run(join(bin, 'initdb'), '-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C');
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=off', ...prepare(home)];
  const options = [`-p ${port}`, ...settings.map((setting) => `-c ${setting}`)].join(' ');
  run(join(bin, 'pg_ctl'), '-D', data, '-l', join(home, 'log'), '-o', options, '-w', 'start');
  const stop = () => {
    run(join(bin, 'pg_ctl'), '-D', data, '-m', 'immediate', 'stop');
    rmSync(home, { recursive: true, force: true });
  };
  return { url: `postgres://postgres@127.0.0.1:${port}/postgres`, stop };
}
