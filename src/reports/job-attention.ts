/**
 * What needs attention when a job ends. A job that runs every ten minutes reports each thing once, again after a day if
 * it persists, and at once if it grows: people switch off alarms that repeat. `status` always lists everything.
 */

import { execute, query, type Transaction } from '../database/transaction.ts';

export interface AttentionItem {
  /** A stable name, such as `INV-2026-000003 failed (e-mail 17)`, that does not change while the thing persists. */
  readonly item: string;
  readonly count: number;
}

interface Found {
  readonly job: string;
  readonly items: readonly AttentionItem[];
  /** ISO instant. */
  readonly now: string;
  /** After this many hours a persisting thing is reported again. */
  readonly againAfterHours: number;
}

/** A daily job reports persisting things each day, although its start varies by seconds. */
const DAY_HOURS = 20;
export const WEEK_HOURS = 6 * 24 + DAY_HOURS;

/** The things to report now: new since the last run, increased, or due to be reported again. */
export async function readUntold(tx: Transaction, found: Found): Promise<string[]> {
  const rows = await query<{ item: string }>(
    tx,
    `SELECT g.item
     FROM (SELECT item, sum(count) AS count
           FROM json_to_recordset(:items::json) AS i (item text, count bigint) GROUP BY item) AS g
     LEFT JOIN job_attention a ON a.job = :job AND a.item = g.item
     WHERE a.item IS NULL OR g.count > a.count
        OR a.told_at <= :now::timestamptz - make_interval(hours => :againAfterHours::integer)
     ORDER BY g.item`,
    { ...found, items: JSON.stringify(found.items) },
  );
  return rows.map(({ item }) => item);
}

/** Stores what a job found, replacing its earlier findings. */
export async function recordAttention(tx: Transaction, found: Found): Promise<void> {
  await execute(
    tx,
    `WITH given AS (
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
        OR a.told_at <= EXCLUDED.told_at - make_interval(hours => :againAfterHours::integer)`,
    { ...found, items: JSON.stringify(found.items) },
  );
}

/** Stores what a job found and returns the things to report now. */
export async function tellAttention(tx: Transaction, found: Omit<Found, 'againAfterHours'>): Promise<string[]> {
  const asked = { ...found, againAfterHours: DAY_HOURS };
  const untold = await readUntold(tx, asked);
  await recordAttention(tx, asked);
  return untold;
}
