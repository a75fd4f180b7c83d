/**
 * The data directory of the embedded PostgreSQL server: who owns it, and how a server for it is created, started and
 * stopped. Who may do so, and when, is decided in embedded.ts. Refusal: embedded_server.
 *
 * Root starts the server as another user, who may not be allowed to enter the folders above (mode 0700). So the server
 * begins in its data directory, calls it /proc/self/cwd, and opens its socket there.
 */
import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { lchown, lstat, mkdir, readdir, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { reasonOf } from '../errors/refusals.ts';
import { makeFolder, syncFolder, unless } from '../files.ts';
import {
  type Account,
  childOptions,
  chooseAccount,
  commandLineOf,
  complaintIn,
  findPrograms,
  OWN_DATABASE,
  remedyFor,
  run,
  unusable,
} from './programs.ts';

/** Waiting for a server that starts, recovers or shuts down ends after this long. */
export const PATIENCE_MS = 30_000;
/** Part of the socket's name only; no port is opened. */
export const PORT = 5432;
const SOCKET = `.s.PGSQL.${PORT}`;
const SOCKET_PATH_MAX_BYTES = process.platform === 'linux' ? 107 : 103;
const LOG_MAX_BYTES = 5_000_000;

export interface Cluster {
  /** RECKONER_HOME/postgres, free of symbolic links. */
  readonly folder: string;
  /** The data directory, which holds the socket too. */
  readonly data: string;
  /** In the server's command line; different for every folder. */
  readonly name: string;
  readonly account: Account;
}

/** Makes the folder if it is missing, and refuses what could not work there, before anything is started. */
export async function prepareCluster(directory: string): Promise<Cluster> {
  if (process.platform === 'win32') {
    throw unusable('Windows is not supported', `Run the program under WSL 2 or in a container, or ${OWN_DATABASE}.`);
  }
  const wanted = resolve(directory);
  const account = await chooseAccount(wanted);
  await makeFolder(dirname(wanted));
  await mkdir(wanted, { mode: 0o700 }).catch(unless('EEXIST'));
  // lchown: the user may have put a link in its place meanwhile.
  const made = await lstat(wanted);
  if (account.switched && made.uid === 0 && made.isDirectory()) await lchown(wanted, account.uid, account.gid);
  const folder = await realpath(wanted);
  const data = join(folder, 'data');
  const { uid } = await stat(folder);
  if (uid !== account.uid) {
    throw unusable(
      `${folder} belongs to the user with the number ${uid}, and it would run as number ${account.uid}`,
      `Run the command as the owner of that folder, or use another RECKONER_HOME, or ${OWN_DATABASE}.`,
    );
  }
  const excess = Buffer.byteLength(join(data, SOCKET)) - SOCKET_PATH_MAX_BYTES;
  if (excess > 0) {
    throw unusable(
      `the path ${data} is too long for its socket by ${excess} bytes`,
      `Use a RECKONER_HOME with a shorter path, or ${OWN_DATABASE}.`,
    );
  }
  const name = `reckoner-${createHash('sha256').update(folder).digest('hex').slice(0, 20)}`;
  return { folder, data, name, account };
}

/** What a program that is started in a data directory calls it. */
const pathFor = ({ account }: Cluster, data: string): string => (account.switched ? '/proc/self/cwd' : data);

export const isCreated = ({ data }: Cluster): boolean => existsSync(join(data, 'PG_VERSION'));

/**
 * Makes the data directory under another name and renames it in one step, so that a kill -9 leaves all of it or nothing.
 * Called with the start lock held: drafts of others were abandoned.
 */
export async function createCluster(cluster: Cluster): Promise<void> {
  const { folder, data, account } = cluster;
  if (existsSync(data) && (await readdir(data)).length > 0) throw notACluster(cluster);
  const abandoned = (await readdir(folder)).filter((name) => name.startsWith('data.new.'));
  if (abandoned.length > 0) await run(account, folder, 'rm', ['-rf', ...abandoned]);

  const native = await findPrograms(account);
  const draft = join(folder, `data.new.${randomUUID()}`);
  const path = pathFor(cluster, draft);
  const options = ['--encoding=UTF8', '--locale=C', '--data-checksums', '--auth-local=trust', '--auth-host=reject'];
  // Memory and connections stand in postgresql.conf, where the operator may change them; see startServer for the rest.
  const settings = ['--set=shared_buffers=128MB', '--set=max_connections=100'];
  await run(account, folder, 'mkdir', ['-m', '700', basename(draft)]);
  const initdb = join(native, 'bin', 'initdb');
  const made = await run(account, draft, initdb, ['-D', path, '-U', 'reckoner', ...options, ...settings]);
  if (!made.succeeded) throw unusable(complaintIn(made.output), remedyFor(made.output, folder));
  const postgres = join(native, 'bin', 'postgres');
  const named = await run(account, draft, postgres, ['--single', '-D', path, 'postgres'], 'CREATE DATABASE reckoner\n');
  // A failing statement does not fail single-user mode.
  if (!named.succeeded || /(ERROR|FATAL|PANIC): /.test(named.output)) {
    throw unusable(complaintIn(named.output), remedyFor(named.output, folder));
  }
  await rename(draft, data).catch(unless('EEXIST', 'ENOTEMPTY')); // Another command was first, if the lock was lost.
  if (!isCreated(cluster)) throw notACluster(cluster);
  // Otherwise a power cut could bring the draft's name back after rows were committed.
  await syncFolder(folder);
}

const notACluster = ({ data }: Cluster) =>
  unusable(
    `${data} is there but holds no PostgreSQL data (its PG_VERSION is missing)`,
    'Restore it from a backup, or move it away to begin with an empty ledger.',
  );

export interface ServerEnd {
  /** It gave up by itself; otherwise it was shut down or killed. */
  readonly failed: boolean;
  /** What it wrote to its log. */
  readonly output: string;
}

/** Starts the server in a session of its own, out of reach of Ctrl-C. Answers with a check whether it has ended. */
export async function startServer(cluster: Cluster): Promise<() => Promise<ServerEnd | undefined>> {
  const { folder, data, account } = cluster;
  const native = await findPrograms(account);
  await removeStaleLock(join(data, 'postmaster.pid'));
  await removeStaleLock(join(data, `${SOCKET}.lock`));
  const log = join(folder, 'server.log');
  const begin = await rotate(log);

  const path = pathFor(cluster, data);
  const settings = [
    `cluster_name=${cluster.name}`,
    'listen_addresses=',
    `port=${PORT}`,
    `unix_socket_directories="${path.replaceAll('"', '""')}"`,
    'unix_socket_permissions=0700',
    'fsync=on',
    'timezone=UTC',
    'log_timezone=UTC',
    'log_checkpoints=off',
  ];
  const postgres = [join(native, 'bin', 'postgres'), '-D', path, ...settings.flatMap((setting) => ['-c', setting])];
  // The shell opens the log as the server's user: root must not open a file which that user could swap for a link.
  const shell = ['-c', 'umask 077; exec "$@" >>../server.log 2>&1', 'sh', ...postgres];
  const server = spawn('/bin/sh', shell, {
    ...childOptions(account, data),
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'], // That exec closes the pipe: only a shell that cannot open the log writes here.
  });
  server.unref();
  let complaint = '';
  let failed: boolean | undefined;
  server.stderr.on('data', (chunk) => {
    complaint += String(chunk);
  });
  server.once('error', (error) => {
    complaint = reasonOf(error);
    failed = true;
  });
  server.once('close', (status) => {
    failed ??= status !== null && status !== 0;
  });
  return async () => {
    if (failed === undefined) return undefined;
    const flag = constants.O_RDONLY | constants.O_NOFOLLOW;
    return { failed, output: complaint || (await readFile(log, { flag })).subarray(begin).toString() };
  };
}

/** Moves a log that has grown too long out of the way. Answers where the next entry will begin. */
async function rotate(log: string): Promise<number> {
  const size = (await stat(log).catch(unless('ENOENT')))?.size ?? 0;
  if (size <= LOG_MAX_BYTES) return size;
  await rename(log, `${log}.1`);
  return 0;
}

/**
 * Removes a lock file whose number has gone to another process since the server was killed with its machine or
 * container: PostgreSQL would take that process for a server. It handles a number that no process has by itself.
 */
async function removeStaleLock(file: string): Promise<void> {
  const pid = await pidIn(file);
  const command = pid === undefined ? undefined : await commandLineOf(pid);
  if (command !== undefined && !/postgres(:| -D) /.test(command)) await rm(file, { force: true });
}

/** A lock file of PostgreSQL: its first line is the number of the process, its eighth the state of the server. */
const readLockFile = async (file: string): Promise<string[]> =>
  ((await readFile(file, 'utf8').catch(unless('ENOENT'))) ?? '').split('\n');

async function pidIn(file: string): Promise<number | undefined> {
  const pid = Number.parseInt((await readLockFile(file))[0] ?? '', 10);
  return Number.isNaN(pid) ? undefined : pid;
}

/** Whether a shutdown has begun. PostgreSQL writes this before it ends the first connection. */
export async function isStopping({ data }: Cluster): Promise<boolean> {
  const status = (await readLockFile(join(data, 'postmaster.pid')))[7]?.trim();
  return status === undefined || status === 'stopping';
}

/** A fast shutdown, waited for. One that fails or takes long does no harm: the next command waits for it or uses it. */
export async function stopServer({ data, name, account }: Cluster): Promise<void> {
  const pid = await pidIn(join(data, 'postmaster.pid'));
  const runs = async () => pid !== undefined && ((await commandLineOf(pid)) ?? '').includes(` cluster_name=${name} `);
  if (!(await runs())) return;
  // As the server's user: root must not send a signal to a number read from that user's file.
  await run(account, '/', '/bin/sh', ['-c', 'kill -INT "$1"', 'sh', String(pid)]);
  const since = performance.now();
  while ((await runs()) && performance.now() - since < PATIENCE_MS) await sleep(5);
}
