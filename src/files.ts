/** Files and folders that are complete or absent, even after a power cut. Errors: those of the file system. */
import { randomUUID } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { link, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** The code of an error: 'ENOENT' of the operating system, '57P03' of PostgreSQL. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;

/** For `.catch`: ignores these codes and throws everything else. */
export const unless =
  (...codes: readonly string[]) =>
  (error: unknown): undefined => {
    if (!codes.includes(codeOf(error) ?? '')) throw error;
  };

/**
 * Whether an error comes from the operating system (disk full, read-only), so that the user can fix it. Anything else
 * is a bug.
 */
export const isSystemError = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string';

/**
 * Makes a folder and its parents; an existing folder stays. mkdir's option `recursive` never returns if an existing
 * folder answers ENOENT, as /proc does.
 */
export async function makeFolder(folder: string): Promise<void> {
  if (existsSync(folder)) return;
  const above = dirname(folder);
  if (above !== folder) await makeFolder(above);
  await mkdir(folder).catch(unless('EEXIST'));
  await syncFolder(above);
}

/** Makes new and renamed files of this folder durable, if the system can do that for folders. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder).catch(unless('EACCES', 'EISDIR', 'EPERM'));
  await handle
    ?.sync()
    .catch(unless('EINVAL', 'EPERM', 'ENOTSUP'))
    .finally(() => handle.close());
}

/** A file or folder that is written under a temporary name beside its destination. */
export interface Draft {
  /** Where to write it. The writer makes its content durable. */
  readonly path: string;
  /** Gives it its final name. Throws EEXIST if the name is taken. A folder may take the name of an empty folder. */
  readonly publish: () => Promise<void>;
  /** Gives it its final name and replaces a file of that name. */
  readonly replace: () => Promise<void>;
  readonly discard: () => Promise<void>;
}

/** Removed when the process exits, for example because a signal ends it at once. */
const unpublished = new Set<string>();
process.on('exit', () => {
  for (const path of unpublished) rmSync(path, { recursive: true, force: true });
});
/**
 * The handler is set only while there are drafts: without it, SIGTERM ends a process even in the middle of a long task.
 */
const exit = () => process.exit(143);
function begun(path: string): void {
  unpublished.add(path);
  if (process.listenerCount('SIGTERM') === 0) process.on('SIGTERM', exit);
}
function ended(path: string): void {
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

/** Gives a file another name, which must be free. Renames it on file systems without hard links (FAT). */
export async function linkTo(path: string, target: string): Promise<void> {
  try {
    await link(path, target);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') throw error;
    if (existsSync(target)) throw Object.assign(new Error(`${target} exists`, { cause: error }), { code: 'EEXIST' });
    await rename(path, target);
  }
}

/** Writes a file so that readers find either all of it or the previous file. */
export async function writeWhole(
  target: string,
  content: string | Uint8Array,
  publish: 'publish' | 'replace',
): Promise<void> {
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
    throw error;
  }
  await draft[publish]();
}
