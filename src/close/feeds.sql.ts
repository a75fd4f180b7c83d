import { executing, querying, queryingOne } from '#database/transaction';
import { LINES_OF_MONTH, RowsOfMonth } from '#ledger/running-lines.sql';
import { Month } from '#month';

export type ExpectedFeed = Readonly<{
  partner_id: string;
  name: string;
  arrived: boolean;
  /** Whether its first rows have not arrived, although the month ended or they came by this day of the months before. */
  missing: boolean;
}>;

// The lines of documents name the months whose rows they bill. Late rows may not be billed yet, so late rows are
// looked up in the ledger. A scalar subquery costs one probe of the primary key for each partner and month. EXISTS
// may read the whole ledger.
export const readExpectedFeeds = querying<
  ExpectedFeed,
  { month: Month; monthsCompared: number; allowed: readonly string[]; now: string; hasEnded: boolean }
>(`
  WITH compared AS MATERIALIZED (
    SELECT month FROM closed_months WHERE month < :month ORDER BY month DESC LIMIT :monthsCompared
  ), billed AS MATERIALIZED (
    SELECT DISTINCT d.partner_id, l.month FROM documents d JOIN document_lines l USING (document_id)
    WHERE d.month >= (SELECT min(month) FROM compared) AND l.month IN (SELECT month FROM compared)
  )
  SELECT p.partner_id, p.name, f.arrived,
         NOT f.arrived AND (:hasEnded::boolean
           OR (:now::timestamptz AT TIME ZONE p.time_zone)::date - (:month || '-01')::date > (
             SELECT max((first.recorded_at AT TIME ZONE p.time_zone)::date - (c.month || '-01')::date)
             FROM compared c CROSS JOIN LATERAL (
               SELECT recorded_at FROM ledger_rows r
               WHERE r.partner_id = p.partner_id AND r.posted_month = c.month
               ORDER BY r.entry_id LIMIT 1) AS first)) IS TRUE AS missing
  FROM partners p CROSS JOIN LATERAL (
    SELECT (SELECT true FROM ledger_rows r
            WHERE r.partner_id = p.partner_id AND r.posted_month >= :month AND r.month = :month LIMIT 1)
           IS NOT NULL AS arrived) AS f
  WHERE p.inactive_since IS NULL AND p.partner_id <> ALL (:allowed::text[])
    AND (SELECT count(*) > 0 AND bool_and((p.partner_id, c.month) IN (SELECT partner_id, month FROM billed) OR (
           SELECT true FROM ledger_rows r
           WHERE r.partner_id = p.partner_id AND r.posted_month > c.month AND r.month = c.month
           LIMIT 1) IS NOT NULL)
         FROM compared c)
  ORDER BY p.partner_id`);

export const readWhetherEmpty = queryingOne<{ empty: boolean }, { month: Month }>(`
  SELECT (SELECT true FROM partners p
          WHERE (SELECT true FROM ledger_rows r
                 WHERE r.partner_id = p.partner_id AND r.posted_month = :month LIMIT 1) LIMIT 1) IS NULL AS empty`);

export type RepeatedDelivery = Readonly<{
  partner_id: string;
  name: string;
  currency: string;
  /** The rows that were delivered twice. */
  entries: number;
  invoice_amount: string;
  /** When the delivery was recorded, in UTC to the minute; null if one import has it twice. */
  first: string | null;
  second: string;
}>;

/**
 * Reads the imports billed in a month that have the rows of an earlier import under other ids: as many rows, with the
 * same policies, kinds, seconds and amounts. Also reads the imports whose second half has the rows of the first half in
 * the same order. Only rows of imports whose receipts allow this are read. Earlier imports are those billed since the
 * month `from`. Only imports after the event `after` are judged: imports wait for each other, so their events are in
 * the order of their commits.
 */
export const readRepeatedDeliveries = querying<RepeatedDelivery, { month: Month; from: Month; after: number }>(`
  WITH receipts AS (
    SELECT *, posted_month = :month AND event_id > :after::bigint AS is_judged,
           dense_rank() OVER (
             ORDER BY partner_id, currency, entries, spot_price, partner_cut, invoice_amount) AS alike
    FROM ledger_receipts WHERE posted_month BETWEEN :from AND :month AND entries >= 3
  ), compared AS MATERIALIZED (
    SELECT * FROM (SELECT *, count(*) OVER w > 1 AND bool_or(is_judged) OVER w AS has_equal
                   FROM receipts WINDOW w AS (PARTITION BY alike)) AS r
    WHERE has_equal
       -- The sums of a delivery that is there twice are even.
       OR is_judged AND entries % 2 = 0 AND mod(spot_price * log_units(currency), 2) = 0
         AND mod(partner_cut * log_units(currency), 2) = 0
  ), contents AS (
    SELECT d.*, c.content, c.half
    FROM compared d CROSS JOIN LATERAL (
      -- The sum of the rows' hashes does not depend on their order. Sales of one price on one day may be alike by
      -- chance, so fewer than three different rows prove nothing.
      SELECT CASE WHEN count(DISTINCT content) >= 3 THEN sum(hashtextextended(content, 0)::numeric) END AS content,
             count(DISTINCT content) >= 3 AND d.entries % 2 = 0
               AND sum(hashtextextended(content, nth % (d.entries / 2))::numeric
                       * CASE WHEN nth < d.entries / 2 THEN 1 ELSE -1 END) = 0 AS half
      FROM (SELECT concat_ws(E'\t', policy_id, kind, date_trunc('second', accepted_at), trim_scale(spot_price),
                             trim_scale(partner_cut)) AS content,
                   row_number() OVER (ORDER BY entry_id) - 1 AS nth
            FROM ledger_rows e
            WHERE e.partner_id = d.partner_id AND e.posted_month = d.posted_month AND e.event_id = d.event_id
              AND e.currency = d.currency) AS e) AS c
  ), repeated AS (
    SELECT *, lag(event_id) OVER (PARTITION BY alike, content ORDER BY event_id) AS before FROM contents
  ), found AS (
    SELECT partner_id, currency, event_id, entries, invoice_amount, before FROM repeated
    WHERE is_judged AND content IS NOT NULL AND before IS NOT NULL
    UNION ALL
    SELECT partner_id, currency, event_id, entries / 2, invoice_amount / 2, NULL FROM repeated
    WHERE is_judged AND half
  )
  SELECT f.partner_id, p.name, f.currency, f.entries, f.invoice_amount,
         to_char(one.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')
           || ' UTC (event ' || one.event_id || ')' AS first,
         to_char(two.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')
           || ' UTC (event ' || two.event_id || ')' AS second
  FROM found f JOIN partners p USING (partner_id)
  LEFT JOIN audit_events one ON one.event_id = f.before JOIN audit_events two ON two.event_id = f.event_id
  ORDER BY f.partner_id, f.currency, f.event_id`);

export const readLastImport = queryingOne<{ event_id: number }, { month: Month }>(
  `SELECT coalesce(max(event_id), 0) AS event_id FROM ledger_receipts WHERE posted_month = :month AND entries >= 3`,
);

export type FeedHistory = Readonly<{
  partner_id: string;
  name: string;
  strict: boolean;
  currency: string;
  /** The sales of each compared month since the first with a sale, from the oldest to the latest. */
  sales: readonly number[];
  /** The days without a row at the end of each compared month. */
  quiet: readonly number[];
  sales_now: number;
  quiet_now: number | null;
}>;

/**
 * Reads the rows of a month and of the closed months before it, by partner and currency, for active partners that have
 * rows of the month. Sales are all rows except reversals. Rows count in their own month, whenever they are billed.
 */
export const readFeedHistories = querying<
  FeedHistory,
  RowsOfMonth & Readonly<{ monthsCompared: number; onlyStrict: boolean }>
>(`
  WITH compared AS MATERIALIZED (
    SELECT month, (month || '-01')::date AS first_day, (month_after(month) || '-01')::date - 1 AS last_day
    FROM closed_months WHERE month < :month ORDER BY month DESC LIMIT :monthsCompared
  ), billed AS MATERIALIZED (
    SELECT d.partner_id, d.currency, l.month, sum(l.count) FILTER (WHERE l.kind <> 'reversal') AS sales
    FROM documents d JOIN document_lines l USING (document_id)
    WHERE d.month >= (SELECT min(month) FROM compared) AND d.purpose = 'month' AND d.replaces IS NULL
      AND l.month IN (SELECT month FROM compared)
    GROUP BY d.partner_id, d.currency, l.month
  ), ended AS (
    SELECT m.partner_id, m.currency, m.month, max(m.last_accepted_at) AS at
    FROM month_partners m WHERE m.month IN (SELECT month FROM compared) GROUP BY m.partner_id, m.currency, m.month
  ), begun AS (
    SELECT partner_id, currency, min(month) AS month FROM billed WHERE sales > 0 GROUP BY partner_id, currency
  ), now AS MATERIALIZED (
    SELECT partner_id, currency, sum(count) FILTER (WHERE kind <> 'reversal') AS sales, max(last_accepted_at) AS at
    FROM (${LINES_OF_MONTH}) AS lines WHERE month = :month GROUP BY partner_id, currency
  )
  SELECT f.partner_id, p.name, p.feed IS NOT NULL AS strict, f.currency, h.sales, h.quiet,
         coalesce(n.sales, 0)::integer AS sales_now,
         (month_after(:month) || '-01')::date - 1 - (n.at AT TIME ZONE p.time_zone)::date AS quiet_now
  FROM begun f LEFT JOIN now n USING (partner_id, currency) JOIN partners p USING (partner_id)
  CROSS JOIN LATERAL (
    SELECT json_agg(coalesce(b.sales, 0) ORDER BY c.month) AS sales,
           coalesce(json_agg(c.last_day - l.day ORDER BY c.month) FILTER (WHERE l.day >= c.first_day), '[]') AS quiet
    FROM compared c
    LEFT JOIN billed b ON b.partner_id = f.partner_id AND b.currency = f.currency AND b.month = c.month
    LEFT JOIN ended e ON e.partner_id = f.partner_id AND e.currency = f.currency AND e.month = c.month
    CROSS JOIN LATERAL (SELECT (e.at AT TIME ZONE p.time_zone)::date AS day) AS l
    WHERE c.month >= f.month) AS h
  WHERE p.inactive_since IS NULL AND (p.feed IS NOT NULL OR NOT :onlyStrict::boolean)
    AND f.partner_id IN (SELECT partner_id FROM now)
  ORDER BY f.partner_id, f.currency`);

export const readWhetherStrict = queryingOne<{ strict: boolean }>(
  `SELECT EXISTS (SELECT FROM partners WHERE feed IS NOT NULL) AS strict`,
);

export type StoredFeedDecision = Readonly<{
  partner_id: string;
  name: string;
  kind: string;
  evidence: string;
  reason: string | null;
  recorded_at: string;
}>;

export const readFeedDecisions = querying<StoredFeedDecision, { month: Month }>(`
  SELECT f.partner_id, p.name, f.kind, f.evidence, f.reason, f.recorded_at
  FROM feed_decisions f JOIN partners p USING (partner_id) WHERE f.month = :month ORDER BY f.feed_decision_id`);

export const insertFeedDecisions = executing<
  Readonly<{
    month: Month;
    decided: readonly Readonly<{ partner_id: string; kind: string; evidence: string }>[];
    reason: string | null;
    now: string;
    eventId: number;
  }>
>(`
  INSERT INTO feed_decisions (month, partner_id, kind, evidence, reason, recorded_at, event_id)
  SELECT :month, d.partner_id, d.kind, d.evidence, :reason::text, :now::timestamptz, :eventId::bigint
  FROM json_to_recordset(:decided::json) AS d (partner_id text, kind text, evidence text)`);
