/** SQL of auditors' tasks: `verify` and exports that take longer than a request. */
import { execute, query, Transaction } from '#database/transaction';

export type TaskKind = 'verify' | 'export';

export type AuditTask = Readonly<{
  task_id: number;
  kind: TaskKind;
  input: unknown;
  /** The user is null for a job. */
  login: string | null;
  asked_at: string;
  finished_at: string | null;
  host: string;
  progress: number;
  result: unknown;
  problem: string | null;
  /** The process of the task has not reported for a minute. */
  is_lost: boolean;
}>;

/** The latest first. */
export function readTasks(
  tx: Transaction,
  { kind, taskId = null, limit }: { kind: TaskKind; taskId?: number | null; limit: number },
): Promise<AuditTask[]> {
  return query(
    tx,
    `SELECT t.task_id, t.kind, t.input, personal(u.login) AS login, t.asked_at, t.finished_at, t.host, t.progress,
            t.result, t.problem,
            t.finished_at IS NULL AND t.seen_at < clock_timestamp() - interval '1 minute' AS is_lost
     FROM audit_tasks t LEFT JOIN users u ON u.user_id = t.asked_by
     WHERE t.kind = :kind AND (:taskId::bigint IS NULL OR t.task_id = :taskId::bigint)
     ORDER BY t.task_id DESC LIMIT :limit`,
    { kind, taskId, limit },
  );
}

type NewTask = Readonly<{
  kind: TaskKind;
  input: unknown;
  userId: number | null;
  host: string;
  /** ISO instant. */
  now: string;
}>;

/**
 * Returns the number of the new task; undefined while another task of the same kind is running. Ends lost tasks and
 * deletes old tasks.
 */
export async function insertTask(tx: Transaction, task: NewTask) {
  await execute(
    tx,
    `UPDATE audit_tasks SET finished_at = :now::timestamptz, problem = 'the server that ran it has stopped'
     WHERE finished_at IS NULL AND seen_at < clock_timestamp() - interval '1 minute'`,
    { now: task.now },
  );
  await execute(tx, `DELETE FROM audit_tasks WHERE finished_at < :now::timestamptz - interval '400 days'`, {
    now: task.now,
  });
  const [made] = await query<{ task_id: number }>(
    tx,
    `INSERT INTO audit_tasks (kind, input, asked_by, asked_at, host)
     VALUES (:kind, :input::jsonb, :userId::bigint, :now::timestamptz, :host)
     ON CONFLICT (kind) WHERE finished_at IS NULL DO NOTHING
     RETURNING task_id`,
    { ...task, input: JSON.stringify(task.input) },
  );
  return made?.task_id;
}

/** Records that the task is running; `result` is its result so far. */
export async function noteProgress(
  tx: Transaction,
  { taskId, progress, result }: { taskId: number; progress: number; result?: unknown },
) {
  await execute(
    tx,
    `UPDATE audit_tasks SET seen_at = clock_timestamp(), progress = :progress,
            result = coalesce(:result::jsonb, result)
     WHERE task_id = :taskId AND finished_at IS NULL`,
    { taskId, progress, result: result === undefined ? null : JSON.stringify(result) },
  );
}

/** Ends a running task with its result, or the reason why it has none. */
export async function finishTask(
  tx: Transaction,
  end: { taskId: number; now: string; result?: unknown; problem?: string },
) {
  await execute(
    tx,
    `UPDATE audit_tasks SET finished_at = :now::timestamptz, problem = :problem,
            result = coalesce(:result::jsonb, result)
     WHERE task_id = :taskId AND finished_at IS NULL`,
    {
      ...{ taskId: end.taskId, now: end.now, problem: end.problem ?? null },
      result: end.result === undefined ? null : JSON.stringify(end.result),
    },
  );
}
