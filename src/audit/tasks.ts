/**
 * Tasks that auditors start in the console and that take longer than a request: `verify`, and packs to download. Each
 * task runs in its own process, which reports its progress.
 */
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Environment } from '#config/environment';
import { Database } from '#database/database';
import { databaseFailure } from '#database/transaction';
import { installedFonts } from '#documents/printable';
import { EXIT, Refusal } from '#errors/refusals';
import { Month } from '#month';
import { tellAttention } from '#reports/job-attention';
import { recordJobRun } from '#reports/jobs.sql';
import { Difference } from './checks/query.ts';
import { CHECKS } from './checks.ts';
import { EXPORT_KINDS, ExportRequest, exportPack } from './export.ts';
import { AllRequest, exportAll } from './export-all.ts';
import { finishTask, noteProgress, readTasks, TaskKind } from './tasks.sql.ts';
import { CheckReport, rowsOfToday, Verification, verify } from './verify.ts';

interface TaskContext {
  readonly database: Database;
  readonly environment: Environment;
}

/** Each check, with its counts and its first differences. */
export interface VerifyResult {
  readonly checks: readonly Readonly<{
    check: string;
    inspected: number;
    differences: number;
    first: readonly Difference[];
  }>[];
}

/** One pack, or all kinds of packs of each of `months`. */
export type ExportInput =
  | Omit<ExportRequest, 'out'>
  | (Omit<AllRequest, 'out'> & { readonly kind: 'all'; readonly months: readonly Month[] });

export type ExportResult = Readonly<{
  /** The pack's file name in the host's folder of packs. */
  file: string;
  bytes: number;
  /** Of all packs, the SHA-256 of SHA256SUMS. */
  manifest_sha256: string;
}>;

export const CHECKS_IN_ALL = CHECKS.length;

const DIFFERENCES_KEPT = 20;
const SEEN_EVERY_MS = 5000;
/** The most that the console writes for a month, before compression. The command has no limit. */
const LARGEST_PACK = 2 * 1024 ** 3;
export const PACKS_KEPT = 5;
export const PACK_HOURS = 24;

export const verifyResult = (checks: readonly CheckReport[]): VerifyResult => ({
  checks: checks.map(({ check, inspected, differences }) => ({
    ...{ check, inspected, differences: differences.length },
    first: differences.slice(0, DIFFERENCES_KEPT),
  })),
});

/** Verifies everything and stores the result as the findings of the latest run. */
export async function verifyAndTell(
  { database, environment }: TaskContext,
  onCheck: (report: CheckReport) => void,
): Promise<Verification> {
  const fonts = installedFonts(environment);
  const found = await database.readingBeside(async (tx, beside) => {
    const derived = await rowsOfToday(tx, environment.now());
    return verify(tx, undefined, { onCheck, fonts, beside, derived, environment });
  });
  const items = found.checks.flatMap(({ check, differences }) =>
    differences.length > 0 ? [{ item: check, count: differences.length }] : [],
  );
  const now = environment.now().toISO();
  await database.transaction((tx) => tellAttention(tx, { job: 'verify', items, now }));
  return found;
}

/** Runs a task, and ends it in every case. */
export async function runTask(context: TaskContext, kind: TaskKind, taskId: number) {
  const { database, environment } = context;
  const [task] = await database.reading((tx) => readTasks(tx, { kind, taskId, limit: 1 }));
  if (task === undefined || task.finished_at !== null) return;
  let progress = 0;
  let result: unknown;
  const note = () => database.transaction((tx) => noteProgress(tx, { taskId, progress, result })).catch(() => {});
  const seen = setInterval(note, SEEN_EVERY_MS);
  try {
    if (kind === 'verify') {
      const reports: CheckReport[] = [];
      const startedAt = environment.now().toISO();
      const found = await verifyAndTell(context, (report) => {
        reports.push(report);
        progress = reports.length;
        result = verifyResult(reports);
        void note();
      });
      result = verifyResult(found.checks);
      const exitStatus = found.differences > 0 ? EXIT.attention : EXIT.done;
      const run = { job: 'verify', startedAt, finishedAt: environment.now().toISO(), exitStatus };
      await database.transaction((tx) => recordJobRun(tx, run));
    } else {
      result = await makePack(context, taskId, task.input as ExportInput, (now) => {
        progress = now;
      });
    }
    await database.transaction((tx) => finishTask(tx, { taskId, now: environment.now().toISO(), result }));
  } catch (error) {
    const problem = problemOf(error);
    await database.transaction((tx) => finishTask(tx, { taskId, now: environment.now().toISO(), problem }));
    if (problem === UNKNOWN) throw error;
  } finally {
    clearInterval(seen);
  }
}

const UNKNOWN = 'it failed; the server log says why';

class TooLarge extends Error {}

function problemOf(thrown: unknown) {
  const error = databaseFailure(thrown) ?? thrown;
  if (error instanceof TooLarge) return 'it is too large for the console: use the command';
  return error instanceof Refusal ? error.message : UNKNOWN;
}

export const packFolder = ({ home }: Pick<Environment, 'home'>) => join(home, 'packs');

async function makePack(
  { database, environment }: TaskContext,
  taskId: number,
  input: ExportInput,
  onProgress: (bytesOrPacks: number) => void,
) {
  const folder = packFolder(environment);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await removeOldPacks(folder);
  const file = `${taskId}.zip`;
  const out = join(folder, file);
  let bytes = 0;
  let months = 1;
  const onBytes = (more: number) => {
    bytes += more;
    if (bytes > LARGEST_PACK * months) throw new TooLarge();
    if (input.kind !== 'all') onProgress(bytes);
  };
  const onPack = (complete: number) => {
    if (complete % EXPORT_KINDS.length === 0) bytes = 0;
    if (input.kind === 'all' && complete >= EXPORT_KINDS.length * input.months.length) months = input.months.length;
    onProgress(complete);
  };
  const manifest_sha256 =
    input.kind === 'all'
      ? (await exportAll(database, environment, { ...input, out }, { onPack, onBytes })).sums_sha256
      : (await exportPack(database, environment, { ...input, out }, onBytes)).manifest_sha256;
  return { file, bytes: (await stat(out)).size, manifest_sha256 };
}

/** Removes packs that are older than a day, and keeps only the latest few. */
async function removeOldPacks(folder: string) {
  const names = (await readdir(folder)).filter((name) => /^\d+\.zip$/.test(name));
  const latest = names.sort((one, other) => Number.parseInt(other, 10) - Number.parseInt(one, 10));
  for (const [at, name] of latest.entries()) {
    const { mtimeMs } = await stat(join(folder, name));
    if (at >= PACKS_KEPT - 1 || Date.now() - mtimeMs > PACK_HOURS * 3_600_000) await rm(join(folder, name));
  }
}
