/**
 * The cluster of the embedded PostgreSQL server: whose folder it is, and how it is created, started and stopped. Who
 * may do so, and when, is decided in embedded.ts. Refusal: embedded_server.
 */
import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { lchown, lstat, mkdir, open, readdir, readFile, realpath, rename, rm, rmdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { reasonOf } from '../errors/refusals.ts';
import { makeFolder } from '../folder.ts';
import {
  type Account,
  barrierTo,
  childOptions,
  chooseAccount,
  commandLineOf,
  complaintIn,
  findPackage,
  findUser,
  listProcesses,
  OWN_DATABASE,
  type Package,
  publishNative,
  remedyFor,
  run,
  unless,
  unusable,
} from './binaries.ts';

/** Waiting for a server that starts, recovers or shuts down ends after this long. */
export const PATIENCE_MS = 30_000;
/** Part of the socket's name only; no port is opened. */
export const PORT = 5432;
const SOCKET = `.s.PGSQL.${PORT}`;
const SOCKET_PATH_MAX_BYTES = 103; // 107 on Linux, 103 on macOS.
const LOG_MAX_BYTES = 5_000_000;

// --- The place ------------------------------------------------------------------------------------------------------

export interface Place {
  /** RECKONER_HOME/postgres, free of symbolic links. */
  readonly folder: string;
  readonly data: string;
  /** The folder of the socket. */
  readonly sockets: string;
  /** What `ps` shows behind «postgres:», the same for every command and different for every folder. */
  readonly name: string;
  readonly account: Account;
  readonly package: Package;
  /**
   * Root keeps its home to itself (mode 0700), and the server's user may not enter it. Root then puts the server into
   * its data folder, and the server calls that folder by the one name it needs no way to: /proc/self/cwd.
   */
  readonly hidden: boolean;
}

/** Where a program of PostgreSQL is started and what it calls a data folder. */
const seenFrom = ({ folder, hidden }: Place, data: string) =>
  hidden ? { cwd: data, path: '/proc/self/cwd', log: '../server.log' } : { cwd: folder, path: data, log: 'server.log' };

/** Makes the folder if it is missing, and refuses what could not work there, before anything is started. */
export async function preparePlace(directory: string): Promise<Place> {
  const wanted = resolve(directory);
  const found = await findPackage();
  const account = await chooseAccount(wanted);
  makeFolder(dirname(wanted));
  await makePrivate(wanted, account);
  const folder = await realpath(wanted);
  const barrier = await barrierTo(folder, account);
  const hidden = barrier !== undefined;
  if (hidden && process.platform !== 'linux') throw unreachable(barrier, folder, account);
  await assertOwned(folder, account);
  const data = join(folder, 'data');
  if (existsSync(data)) await assertOwned(data, account);
  const hash = createHash('sha256').update(`${account.uid} ${folder}`).digest('hex');
  const name = `reckoner-${hash.slice(0, 20)}`;
  const sockets = hidden ? join('/tmp', name) : socketFolder(folder, name);
  const programs = await publishNative({ ...found, native: await realpath(found.native) }, account);
  const place = { folder, data, sockets, name, account, package: programs, hidden };
  await makeSocketFolder(place);
  return place;
}

const unreachable = (barrier: string, folder: string, account: Account) =>
  unusable(
    `root runs it as the user ${account.name}, who may not enter ${barrier} on the way to ${folder}`,
    "Move RECKONER_HOME to a folder that all may enter ('chmod o+x'), such as /srv, " +
      `or run the command as an ordinary user, or ${OWN_DATABASE}.`,
  );

/** A folder made by root goes to the user at once. lchown, lest that user has put a link in its place meanwhile. */
async function makePrivate(folder: string, account: Account): Promise<void> {
  await mkdir(folder, { mode: 0o700 }).catch(unless('EEXIST'));
  const made = await lstat(folder);
  if (account.switched && made.uid === 0 && made.isDirectory()) await lchown(folder, account.uid, account.gid);
}

async function assertOwned(folder: string, account: Account): Promise<void> {
  const { uid } = await stat(folder);
  if (uid === account.uid) return;
  const owner = (await findUser(uid))?.name ?? `uid ${uid}`;
  throw unusable(
    `${folder} belongs to the user ${owner}, and it would run as ${account.name}`,
    account.switched
      ? `Give it to that user ('chown -R ${account.name} ${folder}'), or ${OWN_DATABASE}.`
      : `Run the command as ${owner}, or use another RECKONER_HOME, or ${OWN_DATABASE}.`,
  );
}

/**
 * The socket lies beside the data unless its path would be too long for the kernel. Then it lies in a folder of its own
 * in /tmp, not os.tmpdir(): every command must come to the same name, whatever TMPDIR says.
 */
function socketFolder(folder: string, name: string): string {
  return Buffer.byteLength(join(folder, SOCKET)) <= SOCKET_PATH_MAX_BYTES ? folder : join('/tmp', name);
}

/** In /tmp anybody could have made this folder before us, to pose as our server. */
async function makeSocketFolder({ folder, sockets, account }: Place): Promise<void> {
  if (sockets === folder) return;
  await makePrivate(sockets, account);
  const made = await lstat(sockets);
  if (made.isDirectory() && made.uid === account.uid && (made.mode & 0o077) === 0) return;
  throw unusable(
    `${sockets}, the folder for its socket, is not a private folder of the user ${account.name}`,
    'Remove it and find out who made it, or use a RECKONER_HOME with a shorter path.',
  );
}

// --- Creating, starting, stopping -----------------------------------------------------------------------------------

export const isCreated = ({ data }: Place): boolean => existsSync(join(data, 'PG_VERSION'));

/** What a creation left behind that was killed. Called with the start lock held, so that none is under way. */
export async function removeLeftovers({ folder, account }: Place): Promise<void> {
  const leftovers = (await readdir(folder)).filter((name) => /^(data|native)\.new\./.test(name));
  if (leftovers.length > 0) await run(account, folder, 'rm', ['-rf', ...leftovers]);
}

/** Makes the cluster beside its place and renames it in one step, so that a kill -9 leaves all of it or nothing. */
export async function createCluster(place: Place): Promise<void> {
  const { folder, data, account } = place;
  if (existsSync(data) && (await readdir(data)).length > 0) throw notACluster(place);
  const { native } = place.package;
  const draft = join(folder, `data.new.${randomUUID()}`);
  const options = ['--encoding=UTF8', '--locale=C', '--data-checksums', '--auth-local=trust', '--auth-host=reject'];
  // Memory and connections stand in postgresql.conf, where a person may change them; see startServer for the rest.
  const settings = ['--set=shared_buffers=128MB', '--set=max_connections=100'];
  const initdb = join(native, 'bin', 'initdb');
  await run(account, folder, 'mkdir', ['-m', '700', basename(draft)]);
  const { cwd, path } = seenFrom(place, draft);
  const made = await run(account, cwd, initdb, ['-D', path, '-U', 'reckoner', ...options, ...settings]);
  if (!made.succeeded) throw unusable(complaintIn(made.output), remedyFor(made.output, folder));

  const postgres = join(native, 'bin', 'postgres');
  const named = await run(account, cwd, postgres, ['--single', '-D', path, 'postgres'], 'CREATE DATABASE reckoner\n');
  // A failing statement does not fail single-user mode.
  if (!named.succeeded || /(ERROR|FATAL|PANIC): /.test(named.output)) {
    throw unusable(complaintIn(named.output), remedyFor(named.output, folder));
  }

  await rename(draft, data).catch(unless('EEXIST', 'ENOTEMPTY')); // Another command was first, if the lock was lost.
  if (!isCreated(place)) throw notACluster(place);
  // Else a power cut could bring the draft's name back after rows were committed.
  const handle = await open(folder);
  await handle.sync().finally(() => handle.close());
}

const notACluster = ({ data }: Place) =>
  unusable(
    `${data} is there but holds no PostgreSQL data (its PG_VERSION is missing)`,
    'Restore it from a backup, or move it away to begin with an empty ledger.',
  );

export interface ServerEnd {
  /** It gave up by itself; otherwise it was shut down or killed. */
  readonly failed: boolean;
  readonly said: string;
}

export interface StartedServer {
  /** undefined while it runs. */
  readonly end: () => Promise<ServerEnd | undefined>;
}

/** Starts the server in a session of its own, out of reach of Ctrl-C. It is ready when it lets somebody in. */
export async function startServer(place: Place): Promise<StartedServer> {
  const { folder, data, sockets, account } = place;
  const { native } = place.package;
  await makeSocketFolder(place);
  if (existsSync(join(data, 'postmaster.pid'))) await endOrphans(place);
  await removeIfRecycled(join(data, 'postmaster.pid'));
  await removeIfRecycled(join(sockets, `${SOCKET}.lock`));
  const log = join(folder, 'server.log');
  const begin = await rotate(log);

  const settings = [
    `cluster_name=${place.name}`,
    'listen_addresses=',
    `port=${PORT}`,
    `unix_socket_directories="${sockets.replaceAll('"', '""')}"`,
    'unix_socket_permissions=0700',
    'fsync=on',
    'timezone=UTC',
    'log_timezone=UTC',
    'log_checkpoints=off',
  ];
  const { cwd, path, log: logFromThere } = seenFrom(place, data);
  const postgres = [join(native, 'bin', 'postgres'), '-D', path, ...settings.flatMap((setting) => ['-c', setting])];
  // The shell opens the log as the server's user: root must not open a file which that user could swap for a link.
  const shell = ['-c', `umask 077; exec "$@" >>${logFromThere} 2>&1`, 'sh', ...postgres];
  const server = spawn('/bin/sh', shell, {
    ...childOptions(account, cwd),
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'], // That exec closes the pipe: only a shell that cannot open the log speaks here.
  });
  server.unref();
  let said = '';
  let failed: boolean | undefined;
  server.stderr.on('data', (chunk) => {
    said += String(chunk);
  });
  server.once('error', (error) => {
    said = reasonOf(error);
    failed = true;
  });
  server.once('close', (status) => {
    failed ??= status !== null && status !== 0;
  });
  return {
    end: async () => (failed === undefined ? undefined : { failed, said: said || (await readFrom(log, begin)) }),
  };
}

/** Moves a log that has grown too long out of the way. Answers where the next entry will begin. */
async function rotate(log: string): Promise<number> {
  const size = (await stat(log).catch(unless('ENOENT')))?.size ?? 0;
  if (size <= LOG_MAX_BYTES) return size;
  await rename(log, `${log}.1`);
  return 0;
}

/** The end of the log, from this position. */
async function readFrom(log: string, position: number): Promise<string> {
  const handle = await open(log, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { size } = await handle.stat();
    const start = Math.max(position, size - 20_000);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.max(size - start, 0)), 0, null, start);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** The process that serves this data folder, if there is one. */
export async function postmasterOf(place: Place): Promise<number | undefined> {
  const file = join(place.data, 'postmaster.pid');
  if (!existsSync(file)) return undefined;
  const pid = await pidIn(file);
  if (pid !== undefined && serves((await commandLineOf(pid)) ?? '', place)) return pid;
  // Started inside a container, it has another number there than here.
  return (await listProcesses()).find(({ command }) => serves(command, place))?.pid;
}

const serves = (command: string, { name }: Place): boolean =>
  command.includes('postgres -D ') && command.includes(` cluster_name=${name} `);

/**
 * Ends what has outlived a killed postmaster. Its processes notice in an instant and end by themselves, but one that
 * waits for a lock of a sibling that was killed too waits for ever, and PostgreSQL will not start beside it.
 */
async function endOrphans(place: Place): Promise<void> {
  const since = performance.now();
  while (performance.now() - since < PATIENCE_MS) {
    const processes = await listProcesses();
    const orphans = processes.filter(({ command }) => command.startsWith(`postgres: ${place.name}: `));
    if (orphans.length === 0 || processes.some(({ command }) => serves(command, place))) return;
    if (performance.now() - since > 2_000) {
      const pids = orphans.map(({ pid }) => String(pid));
      await run(place.account, place.folder, '/bin/sh', ['-c', 'kill -9 "$@"', 'sh', ...pids]);
    }
    await sleep(20);
  }
}

/**
 * A lock file that names a stranger: the server was killed with its machine or container, and its number has gone to
 * another process since, or to a dead one that nobody collects, or to one of Node's threads. PostgreSQL would take it
 * for a living server. A number that no process has is left to PostgreSQL, which looks for leftover memory as well.
 */
async function removeIfRecycled(file: string): Promise<void> {
  if (!existsSync(file)) return;
  const pid = await pidIn(file);
  const command = pid === undefined ? '' : await commandLineOf(pid);
  if (command !== undefined && !/postgres(:| -D) /.test(command)) await rm(file, { force: true });
}

/** A lock file of PostgreSQL; its first line is the number of the process, its eighth what that is about to do. */
const readLockFile = async (file: string): Promise<string[]> =>
  ((await readFile(file, 'utf8').catch(unless('ENOENT'))) ?? '').split('\n');

async function pidIn(file: string): Promise<number | undefined> {
  const [first = ''] = await readLockFile(file);
  const pid = Number.parseInt(first, 10);
  return Number.isNaN(pid) ? undefined : pid;
}

/** Whether a shutdown has begun. PostgreSQL writes this before it ends the first connection. */
export async function isStopping({ data }: Place): Promise<boolean> {
  const status = (await readLockFile(join(data, 'postmaster.pid')))[7]?.trim();
  return status === undefined || status === 'stopping';
}

/** A fast shutdown, waited for. One that fails or dawdles harms nobody: the next command waits for it or uses it. */
export async function stopServer(place: Place): Promise<void> {
  const { folder, data, sockets, account } = place;
  const pid = await pidIn(join(data, 'postmaster.pid'));
  // In another container it has another number: it cannot be stopped from here, and whoever comes next there does.
  if (pid === undefined || pid !== (await postmasterOf(place))) return;
  const { native } = place.package;
  // pg_ctl as the server's user: root must not send a signal to a number read from that user's file.
  const { cwd, path } = seenFrom(place, data);
  await run(account, cwd, join(native, 'bin', 'pg_ctl'), ['stop', '-D', path, '-m', 'fast', '-W']);
  const since = performance.now();
  while (serves((await commandLineOf(pid)) ?? '', place) && performance.now() - since < PATIENCE_MS) await sleep(5);
  if (sockets !== folder) await rmdir(sockets).catch(() => {}); // It is in use again if another command was quick.
}
