/** Findings about the clock, forgotten pauses, jobs, and differences that the nightly jobs found. */
import { query, queryOne, Transaction } from '#database/transaction';
import { END_PAUSE } from '#errors/pauses';
import { Pause } from '#people/pauses.sql';
import { duration, minuteOf, plural } from '#text';
import { Finding, ReadFindings, SEE, seeMonthOfAccounts, troubleOf } from './finding.ts';

export const wrongClock = (ahead: number, today: string): Finding[] =>
  ahead === 0
    ? []
    : [
        troubleOf('machine', 'clock', {
          urgent:
            `This machine's clock is ${duration(Math.abs(ahead))} ${ahead > 0 ? 'ahead of' : 'behind'} the database's. Nothing ` +
            'is recorded until they agree. Correct the clock that is wrong (timedatectl).',
          since: today,
        }),
      ];

const FORGOTTEN_HOURS = 24;

/** Reports an intentional pause only after FORGOTTEN_HOURS. A pause after a restore always needs a decision. */
export const forgottenPause = (pause: Pick<Pause, 'cause' | 'reason' | 'paused_at'> | null, now: number): Finding[] =>
  pause === null || (pause.cause === 'command' && now - Date.parse(pause.paused_at) < FORGOTTEN_HOURS * 3_600_000)
    ? []
    : [
        troubleOf('machine', `pause:${pause.paused_at}`, {
          urgent:
            `The ledger has been paused since ${minuteOf(pause.paused_at)}: ${pause.reason}. Nothing is closed, ` +
            'issued, sent or recorded.',
          since: pause.paused_at,
          remedies: [pause.cause === 'restore' ? { ...END_PAUSE, label: 'See what to decide' } : END_PAUSE],
        }),
      ];

/** A job of jobs/crontab, or `deliver --watch`, is late after this number of hours: at least twice its period. */
const LATE_HOURS: Readonly<Record<string, number>> = {
  ...{ 'month-close': 3, deliver: 4 / 3, worker: 4 / 3 },
  ...{ watch: 49, remind: 49, verify: 49, reconcile: 49, backup: 49, purge: 49 },
  drill: 24 * 40,
};
/** A job that has not run for this long is treated as retired, but a drill is not. */
const JOB_GIVEN_UP_DAYS = 30;

export type LastRun = Readonly<{
  job: string;
  started_at: string;
  finished_at: string;
  exit_status: number;
  subject: string | null;
}>;

export const failedJobs = (jobs: readonly LastRun[], now: number): Finding[] =>
  jobs.flatMap(({ job, finished_at: since, exit_status, subject }) => {
    const at = minuteOf(since);
    const hours = (now - Date.parse(since)) / 3_600_000;
    const limit = LATE_HOURS[job];
    const late = limit !== undefined && hours > limit && (hours < 24 * JOB_GIVEN_UP_DAYS || job === 'drill');
    // A month that does not close has its own findings.
    const failed = exit_status === 1 || exit_status === 2 || (exit_status === 3 && job !== 'month-close');
    const found: [isFound: boolean, item: string, urgent: string, remedies?: Finding['remedies']][] = [
      [failed, `failed:${job}`, `The last run of ${job} failed at ${since} (exit ${exit_status}). Read its log.`],
      [
        job === 'verify' && exit_status === 4,
        'verify',
        `The verify of ${at} found differences between stored data and the ledger. Until they are explained, close ` +
          'nothing and keep an unchanged backup.',
        [SEE.differences],
      ],
      [
        job === 'drill' && exit_status === 4,
        'drill',
        `The drill of ${at} found that the backup of ${minuteOf(subject ?? since)} is not the ledger. Read its log, and ` +
          'try an earlier backup.',
      ],
      [
        late,
        `late:${job}`,
        `${job} last ran at ${at}. It should run more often: check ` +
          `${job === 'worker' ? 'the host of the worker' : 'the scheduler'}.`,
      ],
    ];
    return found
      .filter(([isFound]) => isFound)
      .map(([, item, urgent, remedies = []]) => troubleOf('machine', item, { urgent, since, remedies }));
  });

/** Returns the latest findings of verify and reconcile. */
export const readJobFindings: ReadFindings = async (tx: Transaction, { scope }) => {
  if (scope !== null) return [];
  const found = await query<{ job: 'verify' | 'reconcile'; item: string; count: number; since: string }>(
    tx,
    `SELECT job, item, count, told_at::date AS since FROM job_attention WHERE job IN ('verify', 'reconcile')
     ORDER BY told_at, job, item`,
  );
  return found.map(({ job, item, count, since }): Finding => {
    const isVerify = job === 'verify';
    return {
      ...{ item: `${job}:${item}`, kind: 'findings', state: job, tone: 'bad', title: item, partners: [], money: null },
      ...{ since, count },
      reason: isVerify
        ? `${plural(count, 'difference')}: do not change the database; find the cause`
        : `${count} open with the processor`,
      urgent: isVerify ? `${item}: ${plural(count, 'difference')} in the last verify.` : null,
      remedies: [isVerify ? SEE.differences : seeMonthOfAccounts('See what is open', item)],
    };
  });
};

const LATE_REQUEST_HOURS = 1;

/** Calls of partners that wait for the archive (http/late-requests.ts). */
export const readLateRequests: ReadFindings = async (tx, { scope, now }) => {
  const { count, since } = await queryOne<{ count: number; since: string | null }>(
    tx,
    'SELECT count(*) AS count, min(requested_at) AS since FROM late_requests WHERE answered_at IS NULL',
  );
  if (scope !== null || since === null || now - Date.parse(since) < LATE_REQUEST_HOURS * 3_600_000) return [];
  const urgent = `Late requests of partners wait for the archive: ${count}. The log of deliver says why.`;
  return [troubleOf('machine', 'late_requests', { urgent, since, count })];
};
