/**
 * Proves archived months and packs without a database, each in a process of its own. Beside the files of a month is its
 * statement, a text that proves what the close stated (docs/auditors.md). Refusals: archive_store_unknown, duckdb_missing.
 */
import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual, promisify } from 'node:util';
import { COMPILED } from '../compiled.ts';
import type { Environment } from '../config/environment.ts';
import type { Transaction } from '../database/transaction.ts';
import { Refusal, reasonOf } from '../errors/refusals.ts';
import { writeWhole } from '../files.ts';
import { type Checkpoint, readCheckpoints } from '../log/checkpoints.sql.ts';
import { readTree } from '../log/head.ts';
import { copyLines } from '../log/lines.sql.ts';
import { bodyOf } from '../log/note.ts';
import { hashLines, LeafRange } from '../log/tree.ts';
import { Amount, sumsOf } from '../money.ts';
import type { Month } from '../month.ts';
import { packageRoot } from '../package.ts';
import { type ArchivedFile, presentLeaves, readColdMonths, readStoredFiles, storedGroups } from './archive.sql.ts';
import { otherGroups, otherRows, readTotals, withDuckDb } from './parquet.ts';
import { needRows, readingFiles } from './rows.ts';
import { folderOf, sha256Of } from './store.ts';

export const statementPath = (folder: string, month: Month): string => join(folder, `${month}.statement`);

/** Writes the statement of the close whose first fact has the number `first`. */
export async function writeStatement(
  tx: Transaction,
  path: string,
  first: number,
  files: readonly ArchivedFile[],
): Promise<void> {
  const checkpoints = await readCheckpoints(tx);
  const at = checkpoints.findIndex(({ last_no }) => last_no >= first);
  const [before, own] = [checkpoints[at - 1], checkpoints[at] as Checkpoint];
  const range = { after: before?.last_no ?? 0, to: first - 1 };
  await needRows(tx, { numbers: range });
  const tree = await readTree(tx, before, range.to);
  const facts: Buffer[] = [];
  await copyLines(tx, { after: range.to, to: own.last_no }, (piece) => void facts.push(Buffer.from(piece)));
  const named = files.map((file) => `${JSON.stringify(file)}\n`).join('');
  const parts = [bodyOf(own), hashLines(tree.hashes()), Buffer.concat(facts), named];
  await writeWhole(path, parts.join('\n'), 'replace');
}

/** A month or a pack: its checkpoint in three lines, what is wrong, and what is not proved. */
export type Proof = Readonly<{
  path: string;
  months: string;
  checkpoint?: string;
  rows?: number;
  totals?: Readonly<Record<string, { readonly invoiceAmount: string }>>;
  files: readonly ArchivedFile[];
  wrong: readonly string[];
  open: readonly string[];
}>;

const unproved = (path: string, ...wrong: readonly string[]): Proof => ({
  ...{ path, months: basename(path, '.statement'), files: [], wrong, open: [] },
});

/** Proves the rows of a month by its statement and the files beside it. This is the only description of the proof. */
export const proveMonth = (path: string): Promise<Proof> =>
  proved(path, basename(path, '.statement')).catch((error: unknown) => {
    if (error instanceof Refusal) throw error;
    return unproved(path, `${basename(path)} does not prove its rows: ${reasonOf(error)}`);
  });

async function proved(path: string, months: string): Promise<Proof> {
  const [head = '', edge, lines, named] = readFileSync(path, 'utf8').split('\n\n');
  const split = (part = '') => part.split('\n').filter(Boolean);
  const facts = split(lines);
  if (!RegExp(`^closed_months\\t\\d+\\t${months}\\t`).test(facts[0] ?? '')) throw new Error('it states another close');
  // The facts are the last leaves of the checkpoint.
  const [, size, root] = split(head);
  const subtrees = Buffer.concat(split(edge).map((each) => Buffer.from(each, 'base64')));
  const tree = LeafRange.read(0, Number(size) - facts.length, subtrees);
  for (const line of facts) tree.add(hash('sha256', `\0${line}`, 'buffer'));
  if (tree.root().toString('base64') !== root) throw new Error('its facts do not give the root of its checkpoint');
  const partners = facts.filter((line) => line.startsWith('month_partners')).map((line) => line.split('\t').slice(3));
  const totals = sumsOf(partners.map(([, currency = '', , , , , amount = '']) => Amount.of(amount, currency)));
  const files = split(named).map((line) => JSON.parse(line) as ArchivedFile);
  const stated = partners.map((columns) => columns.join(' '));
  return {
    ...{
      path,
      months,
      checkpoint: `${head}\n`,
      files,
      open: [],
      wrong: await faultsOf(dirname(path), months, files, stated),
    },
    rows: partners.reduce((sum, [, , , entries]) => sum + Number(entries), 0),
    totals: Object.fromEntries(totals.map((sum) => [sum.currency, { invoiceAmount: sum.toString() }])),
  };
}

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
  const [are, were] = [new Set(found), new Set(stated)];
  if (are.size !== found.length) return ['the files have a partner twice'];
  return [
    ...found.filter((each) => !were.has(each)).map((each) => `the files have ${each}`),
    ...stated.filter((each) => !are.has(each)).map((each) => `the close stated ${each}`),
  ];
}

/** Compares the checkpoint of a month with the three lines of those that are held elsewhere. */
export function compareHeld(proof: Proof, held: readonly string[]): Proof {
  const { checkpoint, wrong } = proof;
  if (checkpoint === undefined) return proof;
  const [origin, size] = checkpoint.split('\n');
  const own = held.filter((each) => each.startsWith(`${origin}\n${size}\n`));
  const isOther = own.some((each) => each !== checkpoint);
  return {
    ...proof,
    wrong: isOther ? [...wrong, `the held checkpoint of ${size} facts is another`] : wrong,
    open: own.length > 0 ? [] : [`no held checkpoint has ${size} facts`],
  };
}

/** Runs a program with Node, without our secrets. */
const run = (...args: readonly string[]): Promise<{ stdout: string; message?: string }> => {
  const { PATH, TMPDIR } = process.env;
  const options = { env: { PATH, TMPDIR }, maxBuffer: 2 ** 30 };
  return promisify(execFile)(process.execPath, [...process.execArgv, ...args], options).catch((error) => error);
};

async function proveBeside(path: string): Promise<Proof> {
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
  const proofs: Proof[] = [];
  const rest = paths.entries();
  const next = async () => {
    for (const [at, path] of rest)
      proofs[at] = isMonth(path) ? compareHeld(await proveBeside(path), held) : await verifyPack(path, options);
  };
  await Promise.all(Array.from({ length: jobs }, next));
  return proofs;
}

export const JOBS = availableParallelism();

const sizeOf = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.size;

/** What is wrong with the files of archived months: all that can be found in `months`, the sizes of files in others. */
export async function proveColdMonths(
  tx: Transaction,
  environment: Environment,
  months: readonly Month[],
  jobs = JOBS,
): Promise<{ subject: string; detail: string }[]> {
  const files = await readStoredFiles(tx, {});
  const paths: string[] = [];
  const others: { subject: string; detail: string }[] = [];
  for (const { month, store } of await readColdMonths(tx)) {
    const folder = await folderOf(tx, environment, store);
    if (months.includes(month)) paths.push(statementPath(folder, month));
    else {
      const own = files.filter((file) => file.month === month);
      const lost = own.filter(({ name, bytes }) => sizeOf(join(folder, name)) !== bytes).map(({ name }) => name);
      if (sizeOf(statementPath(folder, month)) === undefined) lost.push(`${month}.statement`);
      others.push(...lost.map((name) => ({ subject: month, detail: `${name} is missing, or has another size` })));
    }
  }
  const proofs = await proveAll(paths, { held: (await readCheckpoints(tx)).map(bodyOf), options: [], jobs });
  const own = files.filter(({ month }) => months.includes(month));
  const isProved = proofs.every(({ wrong }) => wrong.length === 0) && own.length > 0;
  // Rows and groups that stayed are compared with their files.
  const differing = !isProved
    ? []
    : await readingFiles(tx, environment, own, async ({ connection, paths: read, written }) => [
        ...(await otherRows(connection, read, await written(presentLeaves(months)))).map((number) => `row ${number}`),
        ...(await otherGroups(connection, read, await written(storedGroups(months)))).map((name) => `group ${name}`),
      ]);
  const wrongRows = differing.map((subject) => ({ subject, detail: 'is not that of the archive' }));
  const ofFiles = proofs.flatMap(({ months: subject, wrong, open, files: proved }) => {
    const named = files.filter(({ month }) => month === subject).map(({ month: _, store: __, ...file }) => file);
    const isOther = wrong.length === 0 && !isDeepStrictEqual(named, proved);
    const other = isOther ? ['has other files in the database than its statement names'] : [];
    return [...wrong, ...open, ...other].map((detail) => ({ subject, detail }));
  });
  return [...others, ...ofFiles, ...wrongRows];
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
