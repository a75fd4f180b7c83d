/**
 * Writes files and folders that are complete or absent, even after a power cut. Errors of the file system are thrown.
 */
import { randomUUID } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { link, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Returns the code of an error, such as 'ENOENT' from the operating system or '57P03' from PostgreSQL. */
export const codeOf = (error: unknown) =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;

/** Returns a handler for `.catch` that ignores these codes and throws all other errors. */
export const unless =
  (...codes: readonly string[]) =>
  (error: unknown): undefined => {
    if (!codes.includes(codeOf(error) ?? '')) throw error;
  };

/** Returns whether an error comes from the operating system, such as a full disk. A user can fix such an error. */
export const isSystemError = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string';

/**
 * Makes a folder and its parents, if missing. The option `recursive` of mkdir does not return if an existing folder
 * answers ENOENT, as /proc does.
 */
export async function makeFolder(folder: string) {
  if (existsSync(folder)) return;
  const above = dirname(folder);
  if (above !== folder) await makeFolder(above);
  await mkdir(folder).catch(unless('EEXIST'));
  await syncFolder(above);
}

/** Makes new and renamed files in a folder durable, if the system supports this for folders. */
export async function syncFolder(folder: string) {
  const handle = await open(folder).catch(unless('EACCES', 'EISDIR', 'EPERM'));
  await handle
    ?.sync()
    .catch(unless('EINVAL', 'EPERM', 'ENOTSUP'))
    .finally(() => handle.close());
}

/** A file or folder that is written under a temporary name beside its destination. */
export type Draft = Readonly<{
  /** The temporary path. The writer must make its content durable. */
  path: string;
  /** Gives the draft its final name. Throws EEXIST if the name is taken. A folder may replace an empty folder. */
  publish: () => Promise<void>;
  /** Gives the draft its final name, and replaces an existing file. */
  replace: () => Promise<void>;
  discard: () => Promise<void>;
}>;

/** Drafts to remove when the process exits, for example on a signal. */
const unpublished = new Set<string>();
process.on('exit', () => {
  for (const path of unpublished) rmSync(path, { recursive: true, force: true });
});
/**
 * The handler exists only while there are drafts. Without a handler, SIGTERM ends a process even during a long
 * computation.
 */
const exit = () => process.exit(143);
function begun(path: string) {
  unpublished.add(path);
  if (process.listenerCount('SIGTERM') === 0) process.on('SIGTERM', exit);
}
function ended(path: string) {
  unpublished.delete(path);
  if (unpublished.size === 0) process.off('SIGTERM', exit);
}

export function draftOf(target: string): Draft {
  const path = `${target}.${randomUUID()}.tmp`;
  begun(path);
  const discard = async () => {
    await rm(path, { recursive: true, force: true });
    ended(path);
  };
  const publishBy = (giveName: () => Promise<void>) => async () => {
    try {
      await giveName();
    } finally {
      await discard();
    }
    await syncFolder(dirname(target));
  };
  return {
    path,
    publish: publishBy(async () => ((await stat(path)).isDirectory() ? rename(path, target) : linkTo(path, target))),
    replace: publishBy(() => rename(path, target)),
    discard,
  };
}

/** Gives a file another name, which must be free. On file systems without hard links (FAT), renames the file. */
export async function linkTo(path: string, target: string) {
  try {
    await link(path, target);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') throw error;
    if (existsSync(target)) throw Object.assign(new Error(`${target} exists`, { cause: error }), { code: 'EEXIST' });
    await rename(path, target);
  }
}

/** Writes a file so that a reader finds either the complete new file or the previous one. */
export async function writeWhole(target: string, content: string | Uint8Array, publish: 'publish' | 'replace') {
  const draft = draftOf(target);
  try {
    const file = await open(draft.path, 'wx');
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
  } catch (error) {
    await draft.discard().catch(() => {}); // The first error is the one to report.
    // The error of a full disk does not name the file.
    if (isSystemError(error) && error.path === undefined) error.message += ` '${target}'`;
    throw error;
  }
  await draft[publish]();
}
