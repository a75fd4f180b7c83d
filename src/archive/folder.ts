/** A cold store that is a folder of Parquet files. Refusals: archive_incomplete, file_unwritable, duckdb_missing. */
import { existsSync, statSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { reasonOf, refuse } from '../errors/refusals.ts';
import { failpoint } from '../failpoint.ts';
import { draftOf, isSystemError, makeFolder, writeWhole } from '../files.ts';
import type { Month } from '../month.ts';
import type { ArchivedFile, StoredFile } from './archive.sql.ts';
import { isFileError, readingParquet, withDuckDb, writeParquet } from './parquet.ts';
import { proveBeside, statementPath } from './proof.ts';
import { type Part, type Store, StoreError } from './store.ts';
import { sha256Of, writeFile } from './written.ts';

const fileName = (month: Month, index: number): string => `${month}-${String(index + 1).padStart(4, '0')}.parquet`;

export const folderStore = (folder: string): Store => ({
  write: async (month, parts, stateOf) => {
    await mendable(() => makeFolder(folder));
    const files: ArchivedFile[] = [];
    await withDuckDb(async (connection) => {
      for (const [index, part] of parts.entries()) {
        await mendable(async () => {
          files.push(
            await writePart(folder, fileName(month, index), part, (lines, file) =>
              writeParquet(connection, lines, file),
            ),
          );
        });
        failpoint('archive.written');
      }
    });
    const statement = await stateOf(files);
    await mendable(() => writeWhole(statementPath(folder, month), statement, 'replace'));
  },
  prove: (month) => proveBeside(statementPath(folder, month)),
  lost: async (files) =>
    files
      .filter(({ name, bytes }) => statSync(join(folder, name), { throwIfNoEntry: false })?.size !== bytes)
      .map(({ name }) => name),
  reading: async (files, _, work) => {
    const paths: string[] = [];
    for (const file of files) paths.push(await provenPath(folder, file));
    return mendable(() => withDuckDb((connection, own) => work(readingParquet(connection, own, paths))));
  },
});

/** Writes one file, unless it is there. */
async function writePart(
  folder: string,
  name: string,
  { from, last, entries, copy }: Part,
  write: (lines: string, file: string) => Promise<void>,
): Promise<ArchivedFile> {
  const path = join(folder, name);
  const [lines, file] = [draftOf(join(folder, 'lines')), draftOf(path)];
  try {
    await writeFile(lines.path, copy);
    await write(lines.path, file.path);
    await synced(file.path);
    if (existsSync(path)) await refuseOther(path, file.path);
    else await file.publish();
  } finally {
    await lines.discard();
    await file.discard();
  }
  const [sha256, bytes] = [await sha256Of(path), (await stat(path)).size];
  return { name, sha256, bytes, entries, partner_from: from, partner_to: last };
}

/** A file that an archive may name, even in a backup, is never replaced by another. */
async function refuseOther(target: string, written: string): Promise<void> {
  const [there, now] = await Promise.all([sha256Of(target), sha256Of(written)]);
  if (there === now) return;
  const reason = `${basename(target)} has other bytes than this month's rows give now. Move it away if no backup needs it`;
  throw refuse('file_unwritable', { file: target, reason });
}

async function synced(path: string): Promise<void> {
  const file = await open(path, 'r+');
  await file.sync().finally(() => file.close());
}

/** The path of a file, whose content must be what was archived. */
async function provenPath(folder: string, { name, sha256 }: StoredFile): Promise<string> {
  const path = join(folder, name);
  const found = await mendable(() => sha256Of(path));
  if (found !== sha256) throw new StoreError(`${path} is not the file of the archive`);
  return path;
}

async function mendable<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!isSystemError(error) && !isFileError(error)) throw error;
    throw new StoreError(reasonOf(error), { cause: error });
  }
}
