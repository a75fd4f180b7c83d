/**
 * A cluster of Citus for a test file: real servers, started by test/cluster/up. The first start on a machine builds
 * Citus, which takes minutes, so without CI the tests are skipped until somebody has run `test/cluster/up --build`.
 */
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { ROOT } from './modules.ts';
import { tool } from './tools.ts';

const CITUS = process.env['CITUS_ROOT'] ?? '/var/tmp/citus-14.0.1';
export const hasCitus = process.env['CI'] !== undefined || existsSync(join(CITUS, '.built'));

/** The URL's login owns the schema of the rows, and is no superuser. Node 0 is the coordinator, 1 and 2 are workers. */
export interface Cluster {
  readonly url: string;
  readonly port: number;
  /** Runs SQL on a node as a superuser. */
  readonly sql: (node: number, text: string) => Promise<Record<string, unknown>[]>;
  /** What psql prints, without names of columns. */
  readonly psql: (node: number, text: string) => Promise<string>;
  /** Stops a server as a crash does. */
  readonly stop: (node: number) => Promise<void>;
  readonly start: (node: number) => Promise<void>;
  /** Starts a streaming standby of a worker. Its number is 4. */
  readonly standby: (node: number) => Promise<void>;
  /** Kills a process of a server with SIGKILL. The server restarts itself. */
  readonly kill: (node: number, process: number) => Promise<void>;
  readonly end: () => void;
}

/** Each test file has its own port. One server more is started, which is not in the cluster yet. */
export async function startCluster(port: number, { empty = false } = {}): Promise<Cluster> {
  const env = { ...process.env, CITUS_PORT: String(port), CITUS_NODES: '4', CITUS_SHARDS: '8' };
  const script = (name: string) => join(ROOT, 'test', 'cluster', name);
  execFileSync(tool('bash'), [script('up'), ...(empty ? ['--empty'] : [])], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const sql = async (node: number, text: string) => {
    const client = new pg.Client({ connectionString: `postgres://postgres@127.0.0.1:${port + node}/postgres` });
    client.on('error', () => {});
    try {
      await client.connect();
      const found = await client.query(text);
      return (Array.isArray(found) ? found.at(-1) : found).rows;
    } finally {
      await client.end().catch(() => {});
    }
  };
  if (!empty) await sql(0, LOGIN);
  const data = (node: number) => `/var/lib/postgresql/node${port + node}`;
  const control = async (node: number, ...args: readonly string[]) => {
    const line = `/usr/lib/postgresql/17/bin/pg_ctl -D ${data(node)} -l /tmp/node${port + node}.log -w ${args.join(' ')}`;
    await promisify(execFile)(tool('chroot'), [CITUS, 'su', 'postgres', '-c', line]);
  };
  return {
    ...{ port, sql, url: `postgres://reckoner_cold@127.0.0.1:${port}/postgres` },
    psql: async (node, text) => {
      const of = ['-h', '127.0.0.1', '-p', String(port + node), '-U', 'reckoner_cold', '-d', 'postgres'];
      const ran = promisify(execFile)(tool('chroot'), [CITUS, 'psql', '-qAt', '-v', 'ON_ERROR_STOP=1', ...of]);
      ran.child.stdin?.end(text);
      return (await ran).stdout;
    },
    async standby(node) {
      const of = `-h 127.0.0.1 -p ${port + node} -U postgres --checkpoint=fast -R -D ${data(STANDBY)}`;
      const own = `echo port = ${port + STANDBY} >>${data(STANDBY)}/postgresql.conf`;
      const line = `rm -rf ${data(STANDBY)} && /usr/lib/postgresql/17/bin/pg_basebackup ${of} && ${own}`;
      await promisify(execFile)(tool('chroot'), [CITUS, 'su', 'postgres', '-c', line]);
      await control(STANDBY, 'start');
    },
    stop: (node) => control(node, '-m', 'immediate', 'stop'),
    start: (node) => control(node, 'start'),
    kill: async (node, pid) => {
      process.kill(pid, 'SIGKILL');
      const postmaster = readFileSync(join(CITUS, data(node), 'postmaster.pid'), 'utf8').split('\n', 1)[0];
      if (pid === Number(postmaster)) await control(node, 'start');
    },
    end: () =>
      void execFileSync(tool('bash'), [script('down')], {
        env: { ...env, CITUS_NODES: `${STANDBY + 1}` },
        stdio: 'ignore',
      }),
  };
}

const STANDBY = 4;

/** As docs/cluster.md has it. */
const LOGIN = `
  CREATE ROLE reckoner_cold LOGIN;
  GRANT CREATE ON DATABASE postgres TO reckoner_cold;
  GRANT EXECUTE ON FUNCTION pg_catalog.recover_prepared_transactions() TO reckoner_cold`;
