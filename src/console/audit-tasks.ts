/**
 * The tasks `verify` and `pack`, which auditors start from the console. Each runs in its own process, and only one of
 * each kind at a time. Refusals: request_invalid, month_unknown.
 */
import { fork } from 'node:child_process';
import { createReadStream, existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FastifyInstance } from 'fastify';
import { EXPORT_KINDS, exportFormats, exportSubject } from '#audit/export';
import { ExportInput, ExportResult, packFolder, runTask } from '#audit/tasks';
import { finishTask, insertTask, readTasks, TaskKind } from '#audit/tasks.sql';
import { COMPILED } from '#compiled';
import { openDatabase } from '#database/database';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { Shared } from '#http/shared';
import { recordEvent } from '#people/audit-events';
import { isInPeriod, Period } from '#people/scope';
import { choiceAsked, idAsked, monthAsked } from './parameters.ts';
import { Access, Routes, Transact, Visit } from './route.ts';
import { readClosedMonths } from './screens/audit.sql.ts';
import { CHECKS_PATH, mayGet, PACKS_PATH } from './screens/audit-tasks.tsx';

const LEDGER: Access = { role: 'viewer', scope: 'ledger' };

export function addAuditTasks(app: FastifyInstance, { action, file }: Routes, shared: Shared): void {
  const running = new Set<() => void>();
  app.addHook('onClose', async () => {
    for (const stop of running) stop();
  });
  const start = (kind: TaskKind, taskId: number) => startTask(shared, running, kind, taskId);
  action(CHECKS_PATH, LEDGER, async (visit, fields, transact) => {
    if (fields.get('start') !== 'verify') throw missing('start');
    const taskId = await ask(visit, transact, 'verify', undefined);
    if (taskId !== undefined) start('verify', taskId);
    return { to: `/console${CHECKS_PATH}` };
  });
  action(PACKS_PATH, { ...LEDGER, ofPeriod: true }, async (visit, fields, transact) => {
    const input = exportAsked(fields, visit);
    const taskId = await ask(visit, transact, 'export', input);
    if (taskId !== undefined) start('export', taskId);
    return { to: `/console${PACKS_PATH}/${input.from}` };
  });
  // Files with the bound `rows` may take longer than other responses, as long as the client keeps reading.
  file(`${PACKS_PATH}/files/:task/pack.zip`, { ...LEDGER, ofPeriod: true, bound: 'rows' }, async (tx, visit) => {
    const {
      params,
      context: { environment },
    } = visit;
    const taskId = idAsked('task', params['task']) ?? null;
    const [task] = await readTasks(tx, { kind: 'export', taskId, limit: 1 });
    if (task === undefined || task.result === null || !mayGet(task, visit)) return undefined;
    const { kind, from, to } = task.input as ExportInput;
    const path = join(packFolder(environment), (task.result as ExportResult).file);
    // The pack is kept for a day, on the server that made it.
    if (!existsSync(path)) return undefined;
    const name = `${kind}-${from}${to === from ? '' : `-${to}`}.zip`;
    return { type: 'application/zip', name, content: createReadStream(path), download: true };
  });
}

const missing = (path: string) => refuse('request_invalid', { problems: [{ path, reason: 'is missing' }] });

function exportAsked(fields: ReadonlyMap<string, string>, { period }: Visit): ExportInput {
  const kind = choiceAsked('kind', fields.get('kind'), [...EXPORT_KINDS, 'all'] as const);
  const from = monthAsked('month', fields.get('month'));
  if (kind === undefined) throw missing('kind');
  if (from === undefined) throw missing('month');
  const to = monthAsked('to', fields.get('to')) ?? from;
  if (to < from) throw refuse('argument_invalid', { argument: 'to', value: to, reason: `is before ${from}` });
  if (period !== null && !(isInPeriod(period, from) && isInPeriod(period, to))) throw refuse('access_limited', period);
  if (kind === 'all') return { kind, from, to, format: 'csv', months: [] };
  const format = choiceAsked('format', fields.get('format'), exportFormats(kind)) ?? 'csv';
  return { kind, from, to, format };
}

/** Records a new task. Returns undefined if a task of the same kind is already running. */
function ask(
  { user, period, context: { environment, actor } }: Visit,
  transact: Transact,
  kind: TaskKind,
  asked: ExportInput | undefined,
) {
  const now = environment.now().toISO();
  return transact(async (tx) => {
    const input = asked && (await withMonths(tx, asked, period));
    const taskId = await insertTask(tx, { kind, input: input ?? {}, userId: user.user_id, host: hostname(), now });
    if (taskId === undefined) return undefined;
    const action = kind === 'verify' ? 'audit.verify' : 'audit.export';
    const subject = input === undefined ? 'everything' : exportSubject(input);
    await recordEvent(tx, actor, { action, subject, details: { ...input }, now });
    return taskId;
  });
}

/**
 * Adds the closed months of all packs. While the books of a month are open, the log of its packs goes on into later
 * months, which a user who may see some months only does not get.
 */
async function withMonths(tx: Transaction, asked: ExportInput, period: Period): Promise<ExportInput> {
  const { kind, from, to } = asked;
  const closed = (await readClosedMonths(tx)).filter(({ month }) => from <= month && month <= to).toReversed();
  const isFinal = closed.at(-1)?.month === to && closed.every(({ books_closed }) => books_closed);
  const wrong = (reason: string) => refuse('argument_invalid', { argument: 'month', value: from, reason });
  if (closed.length === 0 && kind === 'all') throw wrong('begins a range without closed months');
  if (period !== null && !isFinal)
    throw wrong(`begins a range whose books are open. Make the pack after the books of ${to} are closed`);
  return kind === 'all' ? { ...asked, months: closed.map(({ month }) => month) } : asked;
}

/** If the process ends without a result, the task shows a problem. */
function startTask({ database, environment, log }: Shared, running: Set<() => void>, kind: TaskKind, taskId: number) {
  const failed = (err: unknown) => log.error({ err, kind, task: taskId }, 'a task of an auditor failed');
  // Node 20 cannot start a process from TypeScript.
  if (!COMPILED) {
    void openDatabase(environment)
      .then((own) => runTask({ database: own, environment }, kind, taskId).finally(own.close))
      .catch(failed);
    return;
  }
  const module = fileURLToPath(new URL('./task-process.js', import.meta.url));
  const child = fork(module, [kind, String(taskId)], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  const stop = () => void child.kill();
  running.add(stop);
  let said = '';
  child.stderr?.on('data', (piece: Buffer) => {
    said = (said + piece.toString()).slice(-2000);
  });
  child.once('error', failed);
  child.once('exit', (code) => {
    running.delete(stop);
    if (code === 0) return;
    failed(new Error(`it ended with ${code}: ${said}`));
    const problem = "its process has ended; see the server's log for the reason";
    const now = environment.now().toISO();
    database.transaction((tx) => finishTask(tx, { taskId, now, problem })).catch(failed);
  });
}
