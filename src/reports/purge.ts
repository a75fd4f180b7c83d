/**
 * Deletes what has no further use once its time is over: idempotency keys, quotes and requotes that nobody accepted, and runs
 * of jobs. The database refuses to delete anything else (make_append_only in migrations/001_foundation.sql). Refusal: paused.
 */
import type { Database } from '../database/database.ts';
import { lockLedgerShared } from '../database/ledger-lock.ts';
import { queryOne, type Transaction } from '../database/transaction.ts';
import { failpoint } from '../failpoint.ts';
import { type ActorContext, recordEvent } from '../people/audit-events.ts';
import { refuseWhilePaused } from '../people/pauses.ts';

/** How many rows of each table were deleted, or would be. */
export interface Purged {
  readonly idempotency_keys: number;
  readonly requotes: number;
  readonly quotes: number;
  readonly job_runs: number;
}
type Table = keyof Purged;

/** One transaction reads at most so many rows, so that it holds nobody up for long. */
const BATCH = 5000;

/** Days for which idempotency keys are kept (docs/partners.md), and runs of jobs. The database keeps them for as long. */
const KEY_DAYS = 30;
const JOB_RUN_DAYS = 400;

/** What ended before this may go. A clock that runs ahead of the database's lets nothing go earlier. */
const END = `least(:now::timestamptz, now()) - make_interval(days => :days::integer)`;

interface Batch {
  readonly deleted: number;
  readonly read: number;
  /** The row that was read last: the next batch begins after it. */
  readonly last_at: string | null;
  readonly last_id: string | null;
}

/** Each deletes a batch. Quotes that stay are read once: the index has them in the order in which they expired. */
const DELETE_BATCH: Readonly<Record<Table, string>> = {
  idempotency_keys: `
    WITH over AS MATERIALIZED (
      SELECT partner_id, idempotency_key FROM idempotency_keys
      WHERE recorded_at < ${END} ORDER BY recorded_at LIMIT :batch
    ), gone AS (
      DELETE FROM idempotency_keys k USING over o
      WHERE k.partner_id = o.partner_id AND k.idempotency_key = o.idempotency_key RETURNING 1
    )
    SELECT (SELECT count(*) FROM gone) AS deleted, count(*) AS read, NULL AS last_at, NULL AS last_id FROM over`,
  requotes: `
    WITH over AS MATERIALIZED (
      SELECT expires_at, requote_id FROM requotes
      WHERE expires_at < ${END} AND (expires_at, requote_id) > (:afterAt::timestamptz, :afterId)
      ORDER BY expires_at, requote_id LIMIT :batch
    ), gone AS (
      DELETE FROM requotes r USING over o WHERE r.requote_id = o.requote_id AND requote_may_go(r) RETURNING 1
    )
    SELECT (SELECT count(*) FROM gone) AS deleted, count(*) AS read, max(expires_at) AS last_at,
           (array_agg(requote_id ORDER BY expires_at DESC, requote_id DESC))[1] AS last_id FROM over`,
  quotes: `
    WITH over AS MATERIALIZED (
      SELECT expires_at, quote_id FROM quotes
      WHERE expires_at < ${END} AND (expires_at, quote_id) > (:afterAt::timestamptz, :afterId)
      ORDER BY expires_at, quote_id LIMIT :batch
    ), gone AS (
      DELETE FROM quotes q USING over o WHERE q.quote_id = o.quote_id AND quote_may_go(q) RETURNING 1
    )
    SELECT (SELECT count(*) FROM gone) AS deleted, count(*) AS read, max(expires_at) AS last_at,
           (array_agg(quote_id ORDER BY expires_at DESC, quote_id DESC))[1] AS last_id FROM over`,
  job_runs: `
    WITH over AS MATERIALIZED (
      SELECT job_run_id FROM job_runs r
      WHERE finished_at < ${END} AND job_run_may_go(r) ORDER BY job_run_id LIMIT :batch
    ), gone AS (
      DELETE FROM job_runs r USING over o WHERE r.job_run_id = o.job_run_id RETURNING 1
    )
    SELECT (SELECT count(*) FROM gone) AS deleted, count(*) AS read, NULL AS last_at, NULL AS last_id FROM over`,
};

const COUNT_DUE: Readonly<Record<Table, string>> = {
  idempotency_keys: `SELECT count(*) AS due FROM idempotency_keys WHERE recorded_at < ${END}`,
  requotes: `SELECT count(*) AS due FROM requotes r WHERE expires_at < ${END} AND requote_may_go(r)`,
  quotes: `SELECT count(*) AS due FROM quotes q WHERE expires_at < ${END} AND quote_may_go(q)`,
  job_runs: `SELECT count(*) AS due FROM job_runs r WHERE finished_at < ${END} AND job_run_may_go(r)`,
};

/** Quotes of the settings' days; null: they are kept for ever. */
const daysOf = ({ settings }: ActorContext): Readonly<Record<Table, number | null>> => ({
  idempotency_keys: KEY_DAYS,
  requotes: settings.retention.quotes_days,
  quotes: settings.retention.quotes_days,
  job_runs: JOB_RUN_DAYS,
});

/** Offers are what a partner may ask about: an event states how many went. */
const WITH_EVENT: ReadonlySet<Table> = new Set(['requotes', 'quotes']);

const TABLES = Object.keys(DELETE_BATCH) as Table[];

/** Deletes what is due, each batch in a transaction of its own. Safe to repeat and to run twice at once. */
export async function purge(database: Database, context: ActorContext): Promise<Purged> {
  const deleted: Partial<Record<Table, number>> = {};
  for (const table of TABLES) deleted[table] = await purgeTable(database, context, table);
  return deleted as Purged;
}

async function purgeTable(database: Database, context: ActorContext, table: Table): Promise<number> {
  const days = daysOf(context)[table];
  if (days === null) return 0;
  let deleted = 0;
  let after = { afterAt: '-infinity', afterId: '' };
  for (let isMore = true; isMore; ) {
    const batch = await database.transaction((tx) => purgeBatch(tx, context, { table, days, ...after }));
    failpoint('purge.committed');
    deleted += batch.deleted;
    after = { afterAt: batch.last_at ?? '-infinity', afterId: batch.last_id ?? '' };
    isMore = batch.read === BATCH;
  }
  return deleted;
}

interface From {
  readonly table: Table;
  readonly days: number;
  readonly afterAt: string;
  readonly afterId: string;
}

async function purgeBatch(tx: Transaction, context: ActorContext, { table, ...from }: From): Promise<Batch> {
  await lockLedgerShared(tx);
  await refuseWhilePaused(tx);
  const now = context.environment.now().toISO();
  const batch = await queryOne<Batch>(tx, DELETE_BATCH[table], { ...from, now, batch: BATCH });
  if (batch.deleted > 0 && WITH_EVENT.has(table)) {
    const details = { deleted: batch.deleted, expired_for_days: from.days };
    await recordEvent(tx, context.actor, { action: 'quote.purge', subject: table, details, now });
  }
  failpoint('purge.recorded');
  return batch;
}

/** How many rows a purge would delete now. */
export async function countPurgeable(tx: Transaction, context: ActorContext): Promise<Purged> {
  const now = context.environment.now().toISO();
  const due: Partial<Record<Table, number>> = {};
  for (const table of TABLES) {
    const days = daysOf(context)[table];
    due[table] = days === null ? 0 : (await queryOne<{ due: number }>(tx, COUNT_DUE[table], { now, days })).due;
  }
  return due as Purged;
}
