/**
 * Verifies archived months and packs, each in a process of its own. Refusals: archive_store_unknown, duckdb_missing.
 */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { COMPILED } from '../compiled.ts';
import type { Environment } from '../config/environment.ts';
import type { Transaction } from '../database/transaction.ts';
import { readCheckpoints } from '../log/checkpoints.sql.ts';
import type { TreeHead } from '../log/note.ts';
import type { Month } from '../month.ts';
import { packageRoot } from '../package.ts';
import { readStoredFiles } from './archive.sql.ts';
import { compareHeld, type Proof, proveMonth, statementPath, unproved } from './month-proof.ts';
import { withDuckDb } from './parquet.ts';
import { folderOf } from './store.ts';

/** Runs a program with Node, without our secrets. */
const run = (program: string, args: readonly string[]): Promise<{ failed: string | undefined; text: string }> =>
  new Promise((resolve) => {
    const { PATH, TMPDIR } = process.env;
    const options = { env: { PATH, TMPDIR }, maxBuffer: Number.POSITIVE_INFINITY };
    execFile(process.execPath, [...process.execArgv, program, ...args], options, (error, text) =>
      resolve({ failed: error?.message, text }),
    );
  });

async function sideBySide<Result>(
  paths: Iterable<string>,
  jobs: number,
  prove: (path: string) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const rest = [...paths].sort().entries();
  const next = async () => {
    for (const [at, path] of rest) results[at] = await prove(path);
  };
  await Promise.all(Array.from({ length: jobs }, next));
  return results;
}

async function proveBeside(path: string, held: readonly TreeHead[]): Promise<Proof> {
  if (!COMPILED) return compareHeld(await proveMonth(path), held);
  const { failed, text } = await run(fileURLToPath(new URL('./month-process.js', import.meta.url)), [path]);
  return compareHeld(failed === undefined ? (JSON.parse(text) as Proof) : unproved(path, failed), held);
}

/** What is wrong with the files of archived months, of which the log has the checkpoints. */
export async function proveColdMonths(
  tx: Transaction,
  environment: Environment,
  months: readonly Month[],
  jobs: number,
): Promise<{ readonly subject: string; readonly detail: string }[]> {
  const [files, held] = [await readStoredFiles(tx, {}), await readCheckpoints(tx)];
  const folders = new Map<string, string>();
  for (const store of new Set(files.map((file) => file.store))) {
    folders.set(store, await folderOf(tx, environment, store));
  }
  const own = files.filter(({ month }) => months.includes(month));
  const paths = new Set(own.map(({ store, month }) => statementPath(folders.get(store) ?? '', month)));
  const proofs = await sideBySide(paths, jobs, (path) => proveBeside(path, held));
  return proofs.flatMap(({ months: subject, wrong, open }) =>
    [...wrong, ...open].map((detail) => ({ subject, detail })),
  );
}

/**
 * Proves all archived months and packs in a folder and its subfolders, by checkpoints that the caller holds. `options`
 * are those of verify.mjs.
 */
export async function verifyPacks(
  folder: string,
  {
    held,
    options,
    jobs,
  }: { readonly held: readonly TreeHead[]; readonly options: readonly string[]; readonly jobs: number },
): Promise<Proof[]> {
  const paths = new Set(pathsIn(folder));
  const isMonth = (path: string) => path.endsWith('.statement');
  // If DuckDB is missing, this says so before any process.
  if ([...paths].some(isMonth)) await withDuckDb(async () => {});
  return sideBySide<Proof>(paths, jobs, (path) =>
    isMonth(path) ? proveBeside(path, held) : verifyPack(path, options),
  );
}

/** Packs, .zip files, and the statement of each month that has any file. */
function pathsIn(folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true });
  if (entries.some(({ name }) => name === 'manifest.json')) return [folder];
  return entries.flatMap((entry) => {
    if (entry.isDirectory()) return pathsIn(join(folder, entry.name));
    const [, month, zip] = /^(\d{4}-\d\d)(?:-\d+\.parquet|\.statement)$|(\.zip)$/.exec(entry.name) ?? [];
    if (month !== undefined) return statementPath(folder, month as Month);
    return zip === undefined ? [] : join(folder, entry.name);
  });
}

const VERIFIER = join(packageRoot, 'templates', 'export', 'verify.mjs');

async function verifyPack(path: string, options: readonly string[]): Promise<Proof> {
  if (path.endsWith('.zip')) return { ...unproved(path), open: ['is not read: unpack it'] };
  const { failed, text } = await run(VERIFIER, [path, ...options]);
  const said = (verdict: string) =>
    [...text.matchAll(new RegExp(`^${verdict} +(.*(?:\\n .*)*)`, 'gm'))].map(([, words = '']) =>
      words.replaceAll(/\s+/g, ' '),
    );
  const [wrong, open, [log = '']] = [said('WRONG'), said('open'), said('ok')];
  if (failed !== undefined && wrong.length + open.length === 0) wrong.push(failed);
  return { ...unproved(path, ...wrong), ...describe(path), root: /root (\S+)/.exec(log)?.[1] ?? null, open };
}

type Manifest = Readonly<{
  from: string;
  to: string;
  files: readonly { readonly rows: number; readonly totals?: Record<string, { readonly invoiceAmount: string }> }[];
}>;

/** What a pack says of itself, which its verifier compares. */
function describe(path: string): Partial<Proof> {
  try {
    const { from, to, files } = JSON.parse(readFileSync(join(path, 'manifest.json'), 'utf8')) as Manifest;
    const { rows = null, totals = {} } = files.find((file) => file.totals !== undefined) ?? {};
    const invoiced = Object.entries(totals).map(([currency, { invoiceAmount }]) => [currency, invoiceAmount]);
    return { months: from === to ? from : `${from} to ${to}`, rows, totals: Object.fromEntries(invoiced) };
  } catch {
    return {};
  }
}
