/** Statements of feeds: the totals that partners state of their rows of a month, beside the ledger's rows of it. */
import { execute, query, queryingFirst, queryOne, Transaction } from '#database/transaction';
import { isByPerson } from '#documents/rows-to-correct.sql';
import { readLastCheckpoint } from '#log/checkpoints.sql';
import { Month } from '#month';
import { Scope } from '#people/scope';

/** A number of rows, and the sums of their invoice amounts by currency. */
export type FeedTotals = Readonly<{
  entries: number;
  totals: Readonly<Record<string, string>>;
}>;

/** The latest statement of a partner and month. */
export type StatedTotals = Readonly<{
  month: Month;
  partner_id: string;
  name: string;
  /** False if more rows will come. */
  complete: boolean;
  stated: FeedTotals;
  /** The ledger's rows of the month, whenever they are billed, without the reversals that a person recorded. */
  here: FeedTotals;
  agrees: boolean;
  recorded_at: string;
  via: string;
}>;

type Wanted = Readonly<{
  month?: Month | undefined;
  /** The earliest month. */
  from?: Month | undefined;
  partnerId?: string | undefined;
  scope?: Scope;
  /** Only statements that the ledger contradicts. */
  differing?: boolean | undefined;
  /** The last statement of the previous page. */
  after?: Readonly<{ month: string; partnerId: string }> | null;
  limit?: number | null;
}>;

/**
 * Reads the latest statement of each partner and month, the latest month first. No checkpoint may be taken meanwhile: the
 * transaction has one snapshot, or holds the ledger's lock.
 */
export async function readStatements(tx: Transaction, wanted: Wanted): Promise<StatedTotals[]> {
  const {
    month = null,
    from = null,
    partnerId = null,
    scope = null,
    differing = false,
    after = null,
    limit = null,
  } = wanted;
  return query(
    tx,
    // The first documents of a closed month bill all of its rows. Checkpoints keep the lines of open months, so only the
    // rows since the last checkpoint are read.
    `WITH latest AS MATERIALIZED (
       SELECT DISTINCT ON (s.month, s.partner_id) s.*
       FROM feed_statements s
       WHERE (:month::text IS NULL OR s.month = :month) AND (:from::text IS NULL OR s.month >= :from)
         AND (:partnerId::text IS NULL OR s.partner_id = :partnerId)
         AND (:scope::text[] IS NULL OR s.partner_id = ANY (:scope))
         AND (:afterMonth::text IS NULL OR s.month < :afterMonth
              OR s.month = :afterMonth AND s.partner_id > :afterPartner COLLATE "C")
       ORDER BY s.month DESC, s.partner_id, s.feed_statement_id DESC
       LIMIT CASE WHEN :differing THEN NULL ELSE :limit::bigint END
     ), since AS MATERIALIZED (
       SELECT e.partner_id, e.month, e.currency, count(*) AS entries, sum(e.invoice_amount) AS invoice_amount
       FROM ledger_rows e
       WHERE e.entry_id > :covered::bigint AND (:partnerId::text IS NULL OR e.partner_id = :partnerId)
         AND e.posted_month > coalesce((SELECT max(c.month) FROM closed_months c), '')
       GROUP BY e.partner_id, e.month, e.currency
     ), sums AS (
       SELECT feed_statement_id, currency, sum(stated) AS stated, sum(entries) AS entries, sum(here) AS here
       FROM (
         SELECT t.feed_statement_id, t.currency, t.invoice_amount AS stated, 0 AS entries, 0 AS here
         FROM latest JOIN feed_statement_totals t USING (feed_statement_id)
         UNION ALL
         SELECT s.feed_statement_id, d.currency, NULL, l.count, document_sign(d.document) * l.invoice_amount
         FROM latest s
         JOIN documents d ON d.partner_id = s.partner_id AND d.month >= s.month AND d.purpose = 'month'
           AND d.replaces IS NULL
         JOIN document_lines l ON l.document_id = d.document_id AND l.month = s.month
         UNION ALL
         SELECT s.feed_statement_id, r.currency, NULL, r.count, r.invoice_amount
         FROM latest s JOIN running_lines r ON r.partner_id = s.partner_id AND r.month = s.month
         UNION ALL
         SELECT s.feed_statement_id, r.currency, NULL, r.entries, r.invoice_amount
         FROM latest s JOIN since r ON r.partner_id = s.partner_id AND r.month = s.month
         UNION ALL
         SELECT s.feed_statement_id, r.currency, NULL, -1, -r.invoice_amount
         FROM latest s JOIN ledger_rows r ON r.partner_id = s.partner_id AND r.month = s.month AND ${isByPerson('r')}
       ) AS each GROUP BY feed_statement_id, currency
     )
     SELECT s.month, s.partner_id, p.name, s.complete,
            json_build_object('entries', s.entries, 'totals', coalesce(json_object_agg(c.currency,
              round(c.stated, minor_digits(c.currency))::text ORDER BY c.currency)
              FILTER (WHERE c.stated IS NOT NULL), '{}')) AS stated,
            json_build_object('entries', coalesce(sum(c.entries), 0), 'totals', coalesce(json_object_agg(c.currency,
              round(c.here, minor_digits(c.currency))::text ORDER BY c.currency)
              FILTER (WHERE c.entries > 0), '{}')) AS here,
            s.entries = coalesce(sum(c.entries), 0)
              AND coalesce(bool_and(coalesce(c.stated, 0) = c.here), true) AS agrees,
            s.recorded_at, e.via
     FROM latest s
     JOIN partners p USING (partner_id)
     JOIN audit_events e USING (event_id)
     LEFT JOIN sums c USING (feed_statement_id)
     GROUP BY s.feed_statement_id, s.month, s.partner_id, p.name, s.complete, s.entries, s.recorded_at, e.via
     HAVING NOT :differing OR s.entries <> coalesce(sum(c.entries), 0)
       OR bool_or(coalesce(c.stated, 0) <> c.here)
     ORDER BY s.month DESC, s.partner_id LIMIT :limit::bigint`,
    {
      ...{ month, from, partnerId, scope, differing, limit, covered: (await readLastCheckpoint(tx))?.last_no ?? 0 },
      ...{ afterMonth: after?.month ?? null, afterPartner: after?.partnerId ?? null },
    },
  );
}

/** Reads the latest statement of a month of each partner that stated totals. */
export const readStatedTotals = (tx: Transaction, month: Month): Promise<StatedTotals[]> =>
  readStatements(tx, { month });

/** Makes statements and decisions of one partner wait for each other. Returns undefined for an unknown partner. */
export const lockFeed = queryingFirst<{ time_zone: string }, { partnerId: string }>(
  `SELECT time_zone FROM partners WHERE partner_id = :partnerId FOR NO KEY UPDATE`,
);

export async function insertStatement(
  tx: Transaction,
  given: {
    partnerId: string;
    month: Month;
    entries: number;
    totals: Readonly<Record<string, string>>;
    complete: boolean;
    now: string;
    eventId: number;
  },
) {
  const { totals, ...statement } = given;
  const { id } = await queryOne<{ id: number }>(
    tx,
    `INSERT INTO feed_statements (partner_id, month, entries, complete, recorded_at, event_id)
     VALUES (:partnerId, :month, :entries, :complete, :now, :eventId)
     RETURNING feed_statement_id AS id`,
    statement,
  );
  await execute(
    tx,
    `INSERT INTO feed_statement_totals (feed_statement_id, currency, invoice_amount)
     SELECT :id, key, trim_scale(value::numeric) FROM json_each_text(:totals::json) ORDER BY key COLLATE "C"`,
    { id, totals },
  );
}
