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
import { tellAttention } from '#reports/job-attention';
import { recordJobRun } from '#reports/jobs.sql';
import { Difference } from './checks/query.ts';
import { CHECKS } from './checks.ts';
import { ExportRequest, exportPack } from './export.ts';
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

export type ExportInput = Omit<ExportRequest, 'out'>;

export type ExportResult = Readonly<{
  /** The pack's file name in the host's folder of packs. */
  file: string;
  bytes: number;
  manifest_sha256: string;
}>;

export const CHECKS_IN_ALL = CHECKS.length;

const DIFFERENCES_KEPT = 20;
const SEEN_EVERY_MS = 5000;
/** The largest pack that the console writes, before compression. The command has no limit. */
const LARGEST_PACK = 2 * 1024 ** 3;
const PACKS_KEPT = 5;
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
      result = await makePack(context, taskId, task.input as ExportInput, (bytes) => {
        progress = bytes;
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
  onBytes: (bytes: number) => void,
) {
  const folder = packFolder(environment);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await removeOldPacks(folder);
  const file = `${taskId}.zip`;
  const out = join(folder, file);
  let bytes = 0;
  const exported = await exportPack(database, environment, { ...input, out }, (more) => {
    bytes += more;
    if (bytes > LARGEST_PACK) throw new TooLarge();
    onBytes(bytes);
  });
  return { file, bytes: (await stat(out)).size, manifest_sha256: exported.manifest_sha256 };
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
