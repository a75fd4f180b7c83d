/** The real PgBouncer in front of the tests' server. */
import { spawn } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inject } from 'vitest';
import { socketUrl } from './server.ts';
import { tool } from './tools.ts';

const PORT = 6432;

export interface PgBouncer {
  /** The same database, through the pooler. */
  readonly url: (databaseUrl: string) => string;
  readonly stop: () => Promise<void>;
}

export async function startPgBouncer(
  mode: 'transaction' | 'session',
  more: readonly string[] = [],
): Promise<PgBouncer> {
  const program = tool('pgbouncer');
  const { hostname, port, username } = new URL(inject('serverUrl'));
  const [host, user] = [decodeURIComponent(hostname), username || 'postgres'];
  // It refuses to run as root. The server's user may not pass the folders above its socket, so it begins in that folder.
  const owner = process.getuid?.() === 0 && host.startsWith('/') ? statSync(host) : undefined;
  const folder = mkdtempSync(join(tmpdir(), 'pgb-'));
  const ini = join(folder, 'pgbouncer.ini');
  const settings = [
    '[databases]',
    `* = host=${owner ? '/proc/self/cwd' : host} port=${port || 5432} user=${user}`,
    '[pgbouncer]',
    `unix_socket_dir = ${folder}`,
    ...['listen_addr =', `listen_port = ${PORT}`, 'auth_type = any', `pool_mode = ${mode}`, 'default_pool_size = 10'],
    ...more,
  ];
  writeFileSync(ini, `${settings.join('\n')}\n`);
  chmodSync(folder, 0o755);
  if (owner) chownSync(folder, owner.uid, owner.gid);
  const child = spawn(program, [ini], {
    stdio: ['ignore', 'ignore', 'pipe'],
    ...(owner && { uid: owner.uid, gid: owner.gid, cwd: host }),
  });
  let log = '';
  child.stderr.on('data', (text: Buffer) => {
    log += text.toString();
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  for (let waited = 0; !existsSync(join(folder, `.s.PGSQL.${PORT}`)); waited += 1) {
    if (waited > 200 || child.exitCode !== null) throw new Error(`pgbouncer does not listen: ${log}`);
    await sleep(50);
  }
  return {
    url: (databaseUrl) => socketUrl(folder, PORT, new URL(databaseUrl).pathname.slice(1)),
    async stop() {
      child.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
