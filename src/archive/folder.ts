/**
 * A cold store that is a folder of Parquet files, and its proof without a database, each month in a process of its own.
 * Packs are proved beside them. Refusals: file_unwritable, duckdb_missing.
 */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { open, readFile, stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { DuckDBConnection } from '@duckdb/node-api';
import { COMPILED } from '#compiled';
import { reasonOf, refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { draftOf, isSystemError, makeFolder, writeWhole } from '#files';
import { Month } from '#month';
import { packageRoot } from '#package';
import { atMost } from '#turns';
import { ArchivedFile, StoredFile } from './archive.sql.ts';
import { isFileError, readingParquet, readTotals, sha256Of, withDuckDb, writeFile, writeParquet } from './parquet.ts';
import { compareHeld, otherTotals, Part, Proof, proveStatement, Store, StoreError, unproved } from './store.ts';

const fileName = (month: Month, index: number) => `${month}-${String(index + 1).padStart(4, '0')}.parquet`;

export const folderStore = (folder: string): Store => ({
  isThere: () => withDuckDb(async () => existsSync(folder)),
  write: async (month, parts, stateOf) => {
    await mendable(() => makeFolder(folder));
    const files: ArchivedFile[] = [];
    await withDuckDb(async (connection) => {
      for (const [index, part] of parts.entries()) {
        await mendable(async () => {
          files.push(await writePart(connection, folder, fileName(month, index), part));
        });
        failpoint('archive.written');
      }
    });
    const statement = await stateOf(files);
    await mendable(() => writeWhole(statementPath(folder, month), statement, 'replace'));
  },
  prove: (month) => proveBeside(statementPath(folder, month)),
  lost: async (files) => {
    const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size;
    return [...new Set(files.map(({ month }) => month))].flatMap((month) => [
      ...files.filter(({ name, bytes, ...of }) => of.month === month && sizeOf(join(folder, name)) !== bytes),
      ...(sizeOf(statementPath(folder, month)) === undefined ? [{ month, name: `${month}.statement` }] : []),
    ]);
  },
  reading: async (files, _, work) => {
    const paths: string[] = [];
    for (const file of files) paths.push(await provenPath(folder, file));
    return mendable(() => withDuckDb((connection, own) => work(readingParquet(connection, own, paths))));
  },
});

/** Writes one file, unless it is there. */
async function writePart(
  connection: DuckDBConnection,
  folder: string,
  name: string,
  { from, last, entries, copy }: Part,
): Promise<ArchivedFile> {
  const path = join(folder, name);
  const [lines, file] = [draftOf(join(folder, 'lines')), draftOf(path)];
  try {
    await writeFile(lines.path, copy);
    await writeParquet(connection, lines.path, file.path);
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
async function refuseOther(target: string, written: string) {
  const [there, now] = await Promise.all([sha256Of(target), sha256Of(written)]);
  if (there === now) return;
  const reason = `${basename(target)} has other bytes than this month's rows give now. Move it away if no backup needs it`;
  throw refuse('file_unwritable', { file: target, reason });
}

async function synced(path: string) {
  const file = await open(path, 'r+');
  await file.sync().finally(() => file.close());
}

/** The path of a file, whose content must be what was archived. */
async function provenPath(folder: string, { name, sha256 }: StoredFile) {
  const path = join(folder, name);
  const found = await mendable(() => sha256Of(path));
  if (found !== sha256) throw new StoreError(`${path} is not the file of the archive`);
  return path;
}

async function mendable<Result>(work: () => Promise<Result>) {
  try {
    return await work();
  } catch (error) {
    if (!isSystemError(error) && !isFileError(error)) throw error;
    throw new StoreError(reasonOf(error), { cause: error });
  }
}

export const statementPath = (folder: string, month: Month) => join(folder, `${month}.statement`);

/** Proves the rows of a month by its statement and the files beside it. */
export const proveMonth = (path: string): Promise<Proof> =>
  proveStatement(path, readFile(path, 'utf8'), (files, stated) =>
    faultsOf(dirname(path), basename(path, '.statement'), files, stated),
  );

const isFileOf = (name: string, month: string) => /^(.*)-\d+\.parquet$/.exec(name)?.[1] === month;

async function faultsOf(folder: string, month: string, files: readonly ArchivedFile[], stated: readonly string[]) {
  const paths = files.map(({ name }) => join(folder, basename(name)));
  const hashes = await Promise.all(paths.map((path) => sha256Of(path).catch(reasonOf)));
  const others = files.filter(({ sha256 }, at) => sha256 !== hashes[at]);
  if (others.length > 0) return others.map(({ name }) => `${name} is missing, or not the file that was archived`);
  const strangers = readdirSync(folder).filter(
    (name) => isFileOf(name, month) && !files.some((each) => each.name === name),
  );
  if (strangers.length > 0) return strangers.map((name) => `${name} is beside its statement, which does not name it`);
  const found = await withDuckDb((connection) => readTotals(connection, paths));
  return otherTotals(found, stated);
}

/** Runs a program with Node, without our secrets. */
const run = (...args: readonly string[]): Promise<{ stdout: string; message?: string }> => {
  const { PATH, TMPDIR } = process.env;
  const options = { env: { PATH, TMPDIR }, maxBuffer: 2 ** 30 };
  return promisify(execFile)(process.execPath, [...process.execArgv, ...args], options).catch((error) => error);
};

/** Proves a month in a process of its own. */
export async function proveBeside(path: string): Promise<Proof> {
  if (!COMPILED) return proveMonth(path);
  const { stdout, message } = await run(fileURLToPath(new URL('./process.js', import.meta.url)), path);
  return message === undefined ? (JSON.parse(stdout) as Proof) : unproved(path, message);
}

/** Proves months and packs. `held` has three lines of each checkpoint, and `options` are those of verify.mjs. */
export async function proveAll(
  found: readonly string[],
  { held, options, jobs }: { held: readonly string[]; options: readonly string[]; jobs: number },
) {
  const paths = [...new Set(found)].sort();
  const isMonth = (path: string) => path.endsWith('.statement');
  // A missing DuckDB is refused before any process.
  if (paths.some(isMonth)) await withDuckDb(async () => {});
  const inTurn = atMost(jobs);
  const prove = async (path: string) =>
    isMonth(path) ? compareHeld(await proveBeside(path), held) : verifyPack(path, options);
  return Promise.all(paths.map((path) => inTurn(() => prove(path))));
}

export const JOBS = availableParallelism();

/** Packs, .zip files, and the statement of each month that has any file. */
export function packsIn(folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true });
  if (entries.some(({ name }) => name === 'manifest.json')) return [folder];
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return packsIn(path);
    const [, month] = /^(\d{4}-\d\d)(?:-\d+\.parquet|\.statement)$/.exec(entry.name) ?? [];
    return month !== undefined ? statementPath(folder, month as Month) : (/.*\.zip$/.exec(path) ?? []);
  });
}

const VERIFIER = join(packageRoot, 'templates', 'export', 'verify.mjs');

async function verifyPack(path: string, options: readonly string[]): Promise<Proof> {
  if (path.endsWith('.zip')) return { ...unproved(path), open: ['is not read: unpack it'] };
  const { stdout, message } = await run(VERIFIER, path, ...options);
  const said = (verdict: string) =>
    (stdout.match(new RegExp(`^${verdict} .*(\\n .*)*`, 'gm')) ?? []).map((text) =>
      text.slice(6).replaceAll(/\s+/g, ' '),
    );
  const [wrong, open] = [said('WRONG'), said('open ')];
  if (message !== undefined && wrong.length + open.length === 0) wrong.push(message);
  return { ...describe(path), path, files: [], wrong, open };
}

/** What a pack says of itself, which its verifier compares. */
function describe(pack: string): Pick<Proof, 'months' | 'checkpoint' | 'rows' | 'totals'> {
  const read = (...path: readonly string[]) => readFileSync(join(pack, ...path), 'utf8');
  try {
    const { from, to, size, files } = JSON.parse(read('manifest.json'));
    const { rows, totals } = files.find((file: Partial<Proof>) => file.totals);
    return { months: `${from} to ${to}`, checkpoint: read('checkpoints', `${size}`), rows, totals };
  } catch {
    return { months: basename(pack) };
  }
}
