import { executing, query, querying, queryingColumn, Transaction } from '#database/transaction';
import { LastRun } from '#findings/machine';

export const readLastRuns = querying<LastRun>(`
  SELECT DISTINCT ON (job) job, started_at, finished_at, exit_status, subject
  FROM job_runs ORDER BY job, finished_at DESC, job_run_id DESC`);

export type JobRun = Readonly<{
  job: string;
  startedAt: string;
  exitStatus: number;
  /** What the run was about. For a drill: when the backup was made. */
  subject?: string | undefined;
}>;

export async function recordJobRun(tx: Transaction, run: JobRun & { finishedAt: string }) {
  await query(
    tx,
    `INSERT INTO job_runs (job, started_at, finished_at, exit_status, subject)
     VALUES (:job, :startedAt::timestamptz, :finishedAt::timestamptz, :exitStatus, :subject)`,
    { ...run, subject: run.subject ?? null },
  );
}

export type AttentionItem = Readonly<{
  /** A stable name that does not change while the problem persists, such as `INV-2026-000003 failed (e-mail 17)`. */
  item: string;
  count: number;
}>;

export type Attention = Readonly<{
  job: string;
  items: readonly AttentionItem[];
  now: string;
  againAfterHours: number;
}>;

/** The items to report now: new since the last run, grown, or due to be reported again. */
export const readUntold = queryingColumn<string, Attention>(`
  SELECT g.item
  FROM (SELECT item, sum(count) AS count
        FROM json_to_recordset(:items::json) AS i (item text, count bigint) GROUP BY item) AS g
  LEFT JOIN job_attention a ON a.job = :job AND a.item = g.item
  WHERE a.item IS NULL OR g.count > a.count
     OR a.told_at <= :now::timestamptz - make_interval(hours => :againAfterHours::integer)
  ORDER BY g.item`);

export const recordAttention = executing<Attention>(`
  WITH given AS (
    SELECT item, sum(count) AS count
    FROM json_to_recordset(:items::json) AS g (item text, count bigint) GROUP BY item
  ), gone AS (
    DELETE FROM job_attention WHERE job = :job AND item NOT IN (SELECT item FROM given)
  )
  INSERT INTO job_attention AS a (job, item, count, told_at)
  SELECT :job, item, count, :now::timestamptz FROM given
  ON CONFLICT (job, item) DO UPDATE SET count = EXCLUDED.count,
    told_at = CASE WHEN EXCLUDED.count > a.count
                     OR a.told_at <= EXCLUDED.told_at - make_interval(hours => :againAfterHours::integer)
                   THEN EXCLUDED.told_at ELSE a.told_at END
  WHERE a.count <> EXCLUDED.count
     OR a.told_at <= EXCLUDED.told_at - make_interval(hours => :againAfterHours::integer)`);
