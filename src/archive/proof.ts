/**
 * Proves archived months in folders, and packs, without a database, each in a process of its own. Beside the files of a
 * month is its statement (statement.ts). Refusal: duckdb_missing.
 */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { COMPILED } from '../compiled.ts';
import { reasonOf } from '../errors/refusals.ts';
import type { Month } from '../month.ts';
import { packageRoot } from '../package.ts';
import type { ArchivedFile } from './archive.sql.ts';
import { readTotals, withDuckDb } from './parquet.ts';
import { compareHeld, otherTotals, type Proof, proveStatement, unproved } from './statement.ts';
import { sha256Of } from './written.ts';

export const statementPath = (folder: string, month: Month): string => join(folder, `${month}.statement`);

/** Proves the rows of a month by its statement and the files beside it. */
export const proveMonth = (path: string): Promise<Proof> =>
  proveStatement({
    path,
    text: () => readFile(path, 'utf8'),
    faultsOf: (files, stated) => faultsOf(dirname(path), basename(path, '.statement'), files, stated),
  });

const isFileOf = (name: string, month: string): boolean => /^(.*)-\d+\.parquet$/.exec(name)?.[1] === month;

async function faultsOf(
  folder: string,
  month: string,
  files: readonly ArchivedFile[],
  stated: readonly string[],
): Promise<string[]> {
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
): Promise<Proof[]> {
  const paths = [...new Set(found)].sort();
  const isMonth = (path: string) => path.endsWith('.statement');
  // If DuckDB is missing, this says so before any process.
  if (paths.some(isMonth)) await withDuckDb(async () => {});
  return atOnce(jobs, paths, async (path) =>
    isMonth(path) ? compareHeld(await proveBeside(path), held) : verifyPack(path, options),
  );
}

export const JOBS = availableParallelism();

/** The results of calls of which some run at once. */
export async function atOnce<Of, Result>(
  jobs: number,
  given: readonly Of[],
  work: (each: Of) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const rest = given.entries();
  const next = async () => {
    for (const [at, each] of rest) results[at] = await work(each);
  };
  await Promise.all(Array.from({ length: jobs }, next));
  return results;
}

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
