/**
 * The statements of the purge. A statement deletes a batch of rows that ended before an instant and that may be
 * deleted.
 */
import { queryingOne } from '#database/transaction';

/**
 * The number of rows that were deleted from each table, or that would be deleted. For processor events, this is the
 * number of erasures.
 */
export type Purged = Readonly<{
  idempotency_keys: number;
  requotes: number;
  quotes: number;
  job_runs: number;
  processor_events: number;
}>;

export type Batch = Readonly<{
  deleted: number;
  read: number;
  /** The last row that was read. The next batch begins after this row. */
  last_at: string | null;
  last_id: string | null;
}>;

export type Range = Readonly<{
  before: string;
  afterAt: string;
  afterId: string;
  batch: number;
}>;

export const deleteKeys = queryingOne<Batch, Range>(`
  WITH over AS MATERIALIZED (
    SELECT partner_id, idempotency_key FROM idempotency_keys k
    WHERE recorded_at < :before::timestamptz AND idempotency_key_may_go(k) ORDER BY recorded_at LIMIT :batch
  ), gone AS (
    DELETE FROM idempotency_keys k USING over o
    WHERE k.partner_id = o.partner_id AND k.idempotency_key = o.idempotency_key RETURNING 1
  )
  SELECT (SELECT count(*) FROM gone) AS deleted, count(*) AS read, NULL::timestamptz AS last_at, NULL AS last_id
  FROM over`);

/** Offers that must stay are read only once, because the index sorts offers by their expiry. */
const deletingOffers = (offer: 'quote' | 'requote') =>
  `WITH over AS MATERIALIZED (
     SELECT expires_at, ${offer}_id FROM ${offer}s
     WHERE expires_at < :before::timestamptz AND (expires_at, ${offer}_id) > (:afterAt::timestamptz, :afterId)
     ORDER BY expires_at, ${offer}_id LIMIT :batch
   ), gone AS (
     DELETE FROM ${offer}s d USING over o WHERE d.${offer}_id = o.${offer}_id AND ${offer}_may_go(d) RETURNING 1
   )
   SELECT (SELECT count(*) FROM gone) AS deleted, count(*) AS read, max(expires_at) AS last_at,
          (array_agg(${offer}_id ORDER BY expires_at DESC, ${offer}_id DESC))[1] AS last_id
   FROM over`;

export const deleteRequotes = queryingOne<Batch, Range>(deletingOffers('requote'));

export const deleteQuotes = queryingOne<Batch, Range>(deletingOffers('quote'));

export const deleteJobRuns = queryingOne<Batch, Range>(`
  WITH over AS MATERIALIZED (
    SELECT job_run_id FROM job_runs r
    WHERE finished_at < :before::timestamptz AND job_run_may_go(r) ORDER BY job_run_id LIMIT :batch
  ), gone AS (
    DELETE FROM job_runs r USING over o WHERE r.job_run_id = o.job_run_id RETURNING 1
  )
  SELECT (SELECT count(*) FROM gone) AS deleted, count(*) AS read, NULL::timestamptz AS last_at, NULL AS last_id
  FROM over`);

/**
 * The number of rows that may be deleted because they ended before the instant of their table. The instant is null for
 * a table whose rows are kept forever.
 */
export const countOver = queryingOne<
  Omit<Purged, 'processor_events'>,
  { idempotency_keys: string | null; requotes: string | null; quotes: string | null; job_runs: string | null }
>(`
  SELECT (SELECT count(*) FROM idempotency_keys k
          WHERE recorded_at < :idempotency_keys::timestamptz AND idempotency_key_may_go(k)) AS idempotency_keys,
         (SELECT count(*) FROM requotes r
          WHERE expires_at < :requotes::timestamptz AND requote_may_go(r)) AS requotes,
         (SELECT count(*) FROM quotes q WHERE expires_at < :quotes::timestamptz AND quote_may_go(q)) AS quotes,
         (SELECT count(*) FROM job_runs r
          WHERE finished_at < :job_runs::timestamptz AND job_run_may_go(r)) AS job_runs`);
