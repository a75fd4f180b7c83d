/**
 * Hosts that share one database: processes of the real program, either at ports of this machine or each in a network
 * namespace with its own address, as on separate machines. A namespace reaches the database and the mail server only
 * through its link, which can be cut.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { findPrograms, prepareCluster } from '../../src/database/cluster.ts';
import { acquireEmbeddedServer } from '../../src/database/embedded.ts';
import { startLink } from './breaking-link.ts';
import { makeDatabase } from './databases.ts';
import { ROOT } from './modules.ts';
import { compiled } from './program.ts';
import { has, needsNote, tool } from './tools.ts';

export interface Host {
  readonly name: string;
  /** Where its servers listen. */
  readonly address: string;
  readonly start: (script: string, args: readonly string[], env: NodeJS.ProcessEnv) => ChildProcess;
  /** Silently drops every packet in both directions until the link is mended. */
  readonly cut: () => void;
  readonly mend: () => void;
}

export interface Site {
  readonly hosts: readonly Host[];
  /** Where the hosts find the database and the mail server. */
  readonly address: string;
  /** The database may be empty: 'init' creates whatever is missing. */
  readonly databaseUrl: string;
  readonly end: () => Promise<void>;
}

const HOSTS = 4;

const numbered = <Made>(make: (nth: number) => Made): Made[] =>
  Array.from({ length: HOSTS }, (_, index) => make(index + 1));

/** Processes at ports of this machine. They reach the tests' server through its socket. */
export async function portsOfOneMachine(): Promise<Site> {
  const database = await makeDatabase('hosts');
  const never = () => {
    throw new Error('a port has no link to cut');
  };
  return {
    address: '127.0.0.1',
    databaseUrl: database.url,
    hosts: numbered((nth) => ({
      ...{ name: `port ${nth}`, address: '127.0.0.1', cut: never, mend: never },
      start: (script, args, env) => spawn(process.execPath, [compiled(script), ...args], { env }),
    })),
    end: database.drop,
  };
}

// --- Network namespaces -----------------------------------------------------------------------------------------------

const ip = (...args: string[]): void => void execFileSync(tool('ip'), args, { stdio: ['ignore', 'ignore', 'pipe'] });

/** Why network namespaces cannot be made here, for example for lack of privileges; undefined if they can. */
export function whyNoNamespaces(): string | undefined {
  if (!has('ip')) return needsNote('ip');
  const name = `rk${process.pid}try`;
  try {
    ip('netns', 'add', name);
    ip('netns', 'del', name);
    return undefined;
  } catch (error) {
    const { stderr } = error as Error & { stderr?: Buffer };
    return `needs the right to make network namespaces (${stderr?.toString().trim().split('\n')[0]})`;
  }
}

/**
 * Four namespaces at one bridge, where a separate PostgreSQL listens. The addresses are those of RFC 2544, for tests.
 */
export async function networkNamespaces(): Promise<Site> {
  const [id, net] = [process.pid, `198.18.${process.pid % 250}`];
  const bridge = `rk${id}br`;
  const names = numbered((nth) => `rk${id}h${nth}`);
  const address = `${net}.1`;
  const unlink = () => {
    for (const name of names) tryTo('netns', 'del', name);
    tryTo('link', 'del', bridge);
  };
  try {
    ip('link', 'add', bridge, 'type', 'bridge');
    ip('addr', 'add', `${address}/24`, 'dev', bridge);
    ip('link', 'set', bridge, 'up');
    const server = await startServer(address, `${net}.0/24`);
    return {
      address,
      databaseUrl: server.url,
      hosts: names.map((name, index) => namespace(name, bridge, `${net}.${11 + index}`)),
      async end() {
        await server.stop();
        unlink();
      },
    };
  } catch (error) {
    unlink();
    throw error;
  }
}

export type SilentLink = Pick<Host, 'address' | 'cut' | 'mend'> & { readonly end: () => Promise<void> };

/**
 * Addresses behind links that can be cut, each in a namespace. A connection to one at its port reaches a port of this
 * machine.
 */
export async function silentLinks(ports: readonly number[]): Promise<SilentLink[]> {
  const [id, net] = [process.pid, `198.19.${process.pid % 250}`];
  const bridge = `rk${id}lb`;
  const made: SilentLink[] = [];
  const end = async () => {
    for (const each of made) await each.end();
    tryTo('link', 'del', bridge);
  };
  try {
    ip('link', 'add', bridge, 'type', 'bridge');
    ip('addr', 'add', `${net}.1/24`, 'dev', bridge);
    ip('link', 'set', bridge, 'up');
    for (const [nth, port] of ports.entries()) {
      const { address, cut, mend, name } = namespace(`rk${id}l${nth}`, bridge, `${net}.${11 + nth}`);
      const here = await startLink(port, { listen: `${net}.1` });
      const relay = join(ROOT, 'test', 'support', 'relay.mjs');
      const args = ['netns', 'exec', name, process.execPath, relay, String(port), `${net}.1`, String(here.port)];
      const child = spawn(tool('ip'), args, { stdio: ['ignore', 'pipe', 'inherit'] });
      await once(child.stdout, 'data');
      const stop = async () => {
        child.kill('SIGKILL');
        await here.end();
        tryTo('netns', 'del', name);
      };
      made.push({
        address,
        cut,
        mend,
        end: nth === 0 ? async () => stop().finally(() => tryTo('link', 'del', bridge)) : stop,
      });
    }
    return made;
  } catch (error) {
    await end();
    throw error;
  }
}

function tryTo(...args: string[]): void {
  try {
    ip(...args);
  } catch {
    // It was never made.
  }
}

function namespace(name: string, bridge: string, address: string): Host {
  const link = `${name}v`;
  ip('netns', 'add', name);
  ip('link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
  ip('link', 'set', link, 'master', bridge, 'up');
  ip('-n', name, 'addr', 'add', `${address}/24`, 'dev', 'eth0');
  for (const each of ['eth0', 'lo']) ip('-n', name, 'link', 'set', each, 'up');
  return {
    ...{ name, address },
    // 'ip' becomes the program: signals reach it.
    start: (script, args, env) =>
      spawn(tool('ip'), ['netns', 'exec', name, process.execPath, compiled(script), ...args], { env }),
    // The host's own end stays up, so that it is told nothing.
    cut: () => ip('link', 'set', link, 'nomaster'),
    mend: () => ip('link', 'set', link, 'master', bridge),
  };
}

/**
 * Starts a server with the embedded server's programs that listens at an address, like a server that an operator runs.
 */
async function startServer(address: string, clients: string): Promise<{ url: string; stop: () => Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'reckoner-hosts-'));
  const own = join(folder, 'postgres');
  await (await acquireEmbeddedServer(own)).release();
  const { data, account } = await prepareCluster(own);
  appendFileSync(join(data, 'pg_hba.conf'), `host all all ${clients} trust\n`);
  const program = join(await findPrograms(account), 'postgres');
  const settings = [`listen_addresses=${address}`, 'port=5432', 'unix_socket_directories=', 'max_connections=300'];
  const server = spawn(program, ['-D', '/proc/self/cwd', ...settings.flatMap((each) => ['-c', each])], {
    ...{ cwd: data, stdio: 'ignore' },
    ...(account.switched && { uid: account.uid, gid: account.gid }),
  });
  const url = `postgres://reckoner@${address}:5432/reckoner`;
  for (let tries = 0; !(await answers(url)); tries += 1) {
    if (tries > 200 || server.exitCode !== null) throw new Error(`no PostgreSQL at ${address}`);
    await sleep(100);
  }
  return {
    url,
    async stop() {
      const ended = new Promise((resolve) => server.once('exit', resolve));
      server.kill('SIGINT');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client(url);
  return client.connect().then(
    () => client.end().then(() => true),
    () => false,
  );
}
