import { JWK } from 'jose';
import { executing, querying, queryingOne, queryingValue } from '#database/transaction';

type SigningKeyRow = Readonly<{
  kid: string;
  jwk: string;
  // In seconds since 1970.
  at: number;
  signsUntil: number;
  until: number;
}>;

export const insertSigningKey = executing<SigningKeyRow>(`
  INSERT INTO signing_keys (kid, public_jwk, published_at, signs_until, published_until)
  VALUES (:kid, :jwk::jsonb, to_timestamp(:at), to_timestamp(:signsUntil), to_timestamp(:until))`);

/** The keys that have not expired at a time in seconds since 1970. */
export const readSigningKeys = querying<{ public_jwk: JWK; until: number }, { at: number }>(`
  SELECT public_jwk, extract(epoch FROM published_until)::float8 AS until FROM signing_keys
  WHERE published_until > to_timestamp(:at)`);

export const readMigrationNames = queryingValue<string[]>(
  `SELECT array_agg(name ORDER BY id) AS names FROM migrations`,
);

type Backlog = Readonly<{
  depth: number;
  /** In seconds. */
  age: number;
  open: number;
  /** In seconds since 1970. Null if no month is closed. */
  closed: number | null;
}>;

export const readBacklog = queryingOne<Backlog, { now: string }>(`
  SELECT (SELECT count(*) FROM document_emails WHERE status IN ('queued', 'sending')) AS depth,
         (SELECT coalesce(extract(epoch FROM :now::timestamptz - min(queued_at)), 0)::float8
          FROM document_emails WHERE status IN ('queued', 'sending')) AS age,
         (SELECT count(*) FROM ledger_rows
          WHERE posted_month > coalesce((SELECT max(month) FROM closed_months), '')) AS open,
         (SELECT extract(epoch FROM max(closed_at))::float8 FROM closed_months) AS closed`);

/** The times are in seconds since 1970. */
export type JobHealth = Readonly<{
  name: string;
  ended: number;
  seconds: number;
  exit: number;
  /** The items that needed attention after the last run. For the job verify, these are its differences. */
  attention: number;
  /** When the job last ended with exit status 0. Null if never. */
  succeeded: number | null;
}>;

export const readJobHealth = querying<JobHealth>(`
  SELECT DISTINCT ON (job) job AS name, exit_status AS exit, extract(epoch FROM finished_at)::float8 AS ended,
         extract(epoch FROM finished_at - started_at)::float8 AS seconds,
         (SELECT extract(epoch FROM max(finished_at))::float8 FROM job_runs s
          WHERE s.job = j.job AND exit_status = 0) AS succeeded,
         (SELECT coalesce(sum(count), 0)::bigint FROM job_attention a WHERE a.job = j.job) AS attention
  FROM job_runs j ORDER BY job, finished_at DESC, job_run_id DESC`);

/** The given time, or that of the database. */
const AT = 'coalesce(:now::timestamptz, now())';
/** Begins the keys that are counted by a given time, which may be set in a sandbox. Each clock ends only its own windows. */
export const BY_GIVEN_TIME = 'given time ';

/**
 * Adds to the counts of the current windows and returns the totals. A key without a window, or whose window has ended,
 * begins one of `seconds`. Also deletes some expired counts.
 */
export const addCounts = querying<
  Readonly<{ key: string; requests: number; milliseconds: number }>,
  Readonly<{ keys: readonly string[]; requests: readonly number[]; seconds: number; now: string | null }>
>(`
  WITH ended AS (
    SELECT key FROM request_counts WHERE ends_at <= ${AT} AND key <> ALL (:keys)
      AND starts_with(key, '${BY_GIVEN_TIME}') = (:now::timestamptz IS NOT NULL)
    ORDER BY ends_at LIMIT 1000 FOR UPDATE SKIP LOCKED
  ), forgotten AS (DELETE FROM request_counts WHERE key IN (SELECT key FROM ended))
  INSERT INTO request_counts AS c (key, requests, ends_at)
  SELECT key, requests, ${AT} + :seconds::integer * interval '1 second'
  FROM unnest(:keys::text[], :requests::integer[]) AS added (key, requests)
  -- A fixed order keeps servers from deadlocking.
  ORDER BY key
  ON CONFLICT (key) DO UPDATE SET
    requests = CASE WHEN c.ends_at <= ${AT} THEN excluded.requests ELSE c.requests + excluded.requests END,
    ends_at = CASE WHEN c.ends_at <= ${AT} THEN excluded.ends_at ELSE c.ends_at END
  RETURNING key, requests, (extract(epoch FROM ends_at - ${AT}) * 1000)::float8 AS milliseconds`);

/** `rows` is a JSON array. */
export const insertSecurityEvents = executing<{ host: string; rows: string }>(`
  INSERT INTO security_events (kind, network, client_id, tries, first_at, last_at, host)
  SELECT kind, network, client_id, unwritten, first_at, last_at, :host
  FROM json_to_recordset(:rows::json)
    AS t (kind text, network text, client_id text, unwritten bigint, first_at timestamptz, last_at timestamptz)`);
