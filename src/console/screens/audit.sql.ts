import { query, querying, Transaction } from '#database/transaction';
import { Month } from '#month';

export type Run = Readonly<{
  job: string;
  started_at: string;
  finished_at: string;
  exit_status: number;
}>;

const RUNS_SHOWN = 14;

export const readVerifyRuns = (tx: Transaction): Promise<Run[]> =>
  query(
    tx,
    `SELECT job, started_at, finished_at, exit_status FROM job_runs WHERE job = 'verify'
     ORDER BY finished_at DESC LIMIT :limit`,
    { limit: RUNS_SHOWN },
  );

export const readOtherRuns = querying<Run>(`
  SELECT DISTINCT ON (job) job, started_at, finished_at, exit_status FROM job_runs WHERE job <> 'verify'
  ORDER BY job, finished_at DESC`);

export type VerifyFinding = Readonly<{
  item: string;
  count: number;
  told_at: string;
}>;

export const readVerifyFindings = querying<VerifyFinding>(
  `SELECT item, count, told_at FROM job_attention WHERE job = 'verify' ORDER BY count DESC, item`,
);

export type ClosedMonth = Readonly<{
  month: Month;
  books_closed: boolean;
}>;

/** The closed months, latest first. */
export const readClosedMonths = querying<ClosedMonth>(`
  SELECT m.month, b.month IS NOT NULL AS books_closed
  FROM closed_months m LEFT JOIN book_closes b USING (month) ORDER BY m.month DESC`);
