/**
 * The cluster of the embedded PostgreSQL server: whose folder it is, and how it is created, started and stopped. Who
 * may do so, and when, is decided in embedded.ts. Refusal: embedded_server.
 */
import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { lchown, lstat, mkdir, open, readdir, readFile, realpath, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { reasonOf } from '../errors.ts';
import {
  type Account,
  assertReachable,
  childOptions,
  chooseAccount,
  commandLineOf,
  complaintIn,
  completeNative,
  findPackage,
  findUser,
  OWN_DATABASE,
  type Package,
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
  readonly account: Account;
  readonly package: Package;
}

/** Makes the folder if it is missing, and refuses what could not work there, before anything is started. */
export async function preparePlace(directory: string): Promise<Place> {
  const wanted = resolve(directory);
  const programs = await findPackage();
  const account = await chooseAccount(wanted);
  await assertReachable(await realpath(programs.native), account);
  await mkdir(dirname(wanted), { recursive: true });
  await assertReachable(await realpath(dirname(wanted)), account);
  await makePrivate(wanted, account);
  const folder = await realpath(wanted);
  await assertReachable(folder, account);
  await assertOwned(folder, account);
  const data = join(folder, 'data');
  if (existsSync(data)) await assertOwned(data, account);
  const place = { folder, data, sockets: socketFolder(folder, account), account, package: programs };
  await makeSocketFolder(place);
  return place;
}

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
function socketFolder(folder: string, account: Account): string {
  if (Buffer.byteLength(join(folder, SOCKET)) <= SOCKET_PATH_MAX_BYTES) return folder;
  const hash = createHash('sha256').update(`${account.uid} ${folder}`).digest('hex');
  return `/tmp/reckoner-${hash.slice(0, 20)}`;
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
  const native = await completeNative(place.package, folder, account);
  const draft = join(folder, `data.new.${randomUUID()}`);
  const options = ['--encoding=UTF8', '--locale=C', '--data-checksums', '--auth-local=trust', '--auth-host=reject'];
  // Memory and connections stand in postgresql.conf, where a person may change them; see startServer for the rest.
  const settings = ['--set=shared_buffers=128MB', '--set=max_connections=100'];
  const initdb = join(native, 'bin', 'initdb');
  const made = await run(account, folder, initdb, ['-D', draft, '-U', 'reckoner', ...options, ...settings]);
  if (!made.succeeded) throw unusable(complaintIn(made.output), remedyFor(made.output, folder));

  const postgres = join(native, 'bin', 'postgres');
  const named = await run(
    account,
    folder,
    postgres,
    ['--single', '-D', draft, 'postgres'],
    'CREATE DATABASE reckoner\n',
  );
  // A failing statement does not fail single-user mode.
  if (!named.succeeded || /(ERROR|FATAL|PANIC): /.test(named.output)) {
    throw unusable(complaintIn(named.output), remedyFor(named.output, folder));
  }

  await rename(draft, data).catch(unless('EEXIST', 'ENOTEMPTY')); // Another command was first; or it is somebody's.
  if (!isCreated(place)) {
    throw unusable(
      `${data} is there but holds no PostgreSQL data (its PG_VERSION is missing)`,
      'Restore it from a backup, or move it away to begin with an empty ledger.',
    );
  }
  // Else a power cut could bring the draft's name back after rows were committed.
  const handle = await open(folder);
  await handle.sync().finally(() => handle.close());
}

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
  const native = await completeNative(place.package, folder, account);
  await makeSocketFolder(place);
  await removeIfRecycled(join(data, 'postmaster.pid'));
  await removeIfRecycled(join(sockets, `${SOCKET}.lock`));
  const log = join(folder, 'server.log');
  const begin = await rotate(log);

  const settings = [
    'listen_addresses=',
    `port=${PORT}`,
    `unix_socket_directories="${sockets.replaceAll('"', '""')}"`,
    'unix_socket_permissions=0700',
    'fsync=on',
    'timezone=UTC',
    'log_timezone=UTC',
    'log_checkpoints=off',
  ];
  const postgres = [join(native, 'bin', 'postgres'), '-D', data, ...settings.flatMap((setting) => ['-c', setting])];
  // The shell opens the log as the server's user: root must not open a file which that user could swap for a link.
  const shell = ['-c', 'umask 077; exec "$@" >>server.log 2>&1', 'sh', ...postgres];
  const server = spawn('/bin/sh', shell, {
    ...childOptions(account, folder),
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
export async function postmasterOf({ data }: Place): Promise<number | undefined> {
  const pid = await pidIn(join(data, 'postmaster.pid'));
  return pid !== undefined && (await serves(pid, data)) ? pid : undefined;
}

const serves = async (pid: number, data: string) => ((await commandLineOf(pid)) ?? '').includes(`postgres -D ${data} `);

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

async function pidIn(file: string): Promise<number | undefined> {
  const text = await readFile(file, 'utf8').catch(unless('ENOENT'));
  const pid = Number.parseInt(text ?? '', 10);
  return Number.isNaN(pid) ? undefined : pid;
}

/** A fast shutdown, waited for. One that fails or dawdles harms nobody: the next command waits for it or uses it. */
export async function stopServer(place: Place): Promise<void> {
  const { folder, data, sockets, account } = place;
  const pid = await postmasterOf(place);
  if (pid === undefined) return; // It runs in another container, whose processes cannot be reached from here.
  const native = await completeNative(place.package, folder, account);
  // pg_ctl as the server's user: root must not send a signal to a number read from that user's file.
  await run(account, folder, join(native, 'bin', 'pg_ctl'), ['stop', '-D', data, '-m', 'fast', '-W']);
  const since = performance.now();
  while ((await serves(pid, data)) && performance.now() - since < PATIENCE_MS) await sleep(5);
  if (sockets !== folder) await rmdir(sockets).catch(() => {}); // It is in use again if another command was quick.
}
