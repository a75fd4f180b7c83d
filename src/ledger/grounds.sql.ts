/** The reversals to judge, with the rows of their quotes, and the grounds on which they are recorded. */
import { execute, query, querying, Transaction } from '#database/transaction';
import { QuoteRow, StoredTerms, Verdict } from './cancellation.ts';
import { GOOD } from './rows.sql.ts';
import { LAST_CLOSED } from './running-lines.sql.ts';

/** A file tells the past: its rows are judged by their own time if they are recorded within this many days of it. */
const TOLD_WITHIN_DAYS = 31;

/** SQL of all rows of the quotes in `wanted`: those of the ledger, and new ones from `added`. */
const rowsOfQuotes = (added: string, more = '') => `
  SELECT r.seq, r.kind, r.partner_id, r.quote_id, r.requote_id, r.policy_id, r.currency, z.local::date::text AS day,
         (greatest(r.accepted_at, :now::timestamptz - interval '${TOLD_WITHIN_DAYS} days')
          AT TIME ZONE r.time_zone)::date::text AS judged_on,
         greatest(r.posted_month, to_char(z.local, 'YYYY-MM') COLLATE "C",
                  month_after(nullif(${LAST_CLOSED}, '')) COLLATE "C") AS posted_month,
         r.spot_price::text, r.partner_cut::text, r.invoice_amount::text, r.cover_from::text, r.cover_to::text,
         g.ground, r.arrangement,
         CASE WHEN bool_or(r.arrangement = 'connected_account') OVER (PARTITION BY r.partner_id, r.quote_id)
         THEN shares_taken_back(r.partner_id, r.quote_id)::text ELSE '0' END AS taken_back ${more}
  FROM (
    SELECT NULL::bigint AS seq, e.kind, e.partner_id, e.quote_id, e.requote_id, e.reversal_id, e.enrollment_id,
           e.policy_id, e.currency, e.accepted_at, e.time_zone, e.posted_month, e.arrangement, e.spot_price,
           e.partner_cut, e.invoice_amount, e.cover_from, e.cover_to
    FROM wanted q CROSS JOIN LATERAL (
      SELECT * FROM ledger_rows
      WHERE partner_id = q.partner_id AND kind = 'quote_accepted' AND own_id(ledger_rows) = q.quote_id
      UNION ALL
      SELECT * FROM ledger_rows WHERE partner_id = q.partner_id AND quote_id = q.quote_id AND kind <> 'quote_accepted'
    ) AS e
    ${added}) AS r
  LEFT JOIN reversal_grounds g ON r.kind = 'reversal' AND r.seq IS NULL AND g.partner_id = r.partner_id
    AND g.reversal_id = r.reversal_id
  CROSS JOIN LATERAL (SELECT r.accepted_at AT TIME ZONE r.time_zone AS local) AS z
  ORDER BY r.partner_id, r.quote_id, r.accepted_at, r.kind = 'reversal', r.seq NULLS FIRST`;

/** All rows of the quotes that good staged reversals reverse, by quote and in the order of their times. */
export const readQuotesToJudge = querying<QuoteRow, { now: string }>(`
  WITH wanted AS MATERIALIZED (
    SELECT DISTINCT s.partner_id, s.quote_id FROM related s WHERE s.kind = 'reversal' AND ${GOOD}
  )
  ${rowsOfQuotes(`
  UNION ALL
  SELECT s.seq, s.kind, s.partner_id, s.quote_id, s.requote_id, NULL, NULL, s.policy_id, s.currency, s.accepted_at,
        p.time_zone, '', NULL, s.spot_price, s.partner_cut, s.invoice_amount, s.cover_from, s.cover_to
  FROM wanted q JOIN related s ON s.partner_id = q.partner_id AND s.quote_id = q.quote_id
  JOIN partners p ON p.partner_id = s.partner_id
  WHERE ${GOOD}`)}`);

export type RowOfQuote = QuoteRow &
  Readonly<{
    enrollment_id: string | null;
    /** The partner's present one. */
    time_zone: string;
    /** The earliest open month; null before the first close. */
    open_month: string | null;
  }>;

/** All rows of one quote in the ledger, in the order of their times. */
export const readQuoteRows = querying<RowOfQuote, { partnerId: string; quoteId: string; now: string }>(`
  WITH wanted AS (SELECT :partnerId::text COLLATE "C" AS partner_id, :quoteId::text COLLATE "C" AS quote_id)
  ${rowsOfQuotes(
    '',
    `, r.enrollment_id, (SELECT p.time_zone FROM partners p WHERE p.partner_id = r.partner_id),
       (SELECT month_after(max(month)) FROM closed_months) AS open_month`,
  )}`);

/** The present terms of policies, keyed by `partner policy`, in the order of their days. */
export async function readTermsOf(
  tx: Transaction,
  policies: readonly Pick<QuoteRow, 'partner_id' | 'policy_id'>[],
): Promise<ReadonlyMap<string, StoredTerms[]>> {
  const rows = await query<StoredTerms & { partner_id: string; policy_id: string }>(
    tx,
    `SELECT t.partner_id, t.policy_id, t.cancellation_terms_id, t.from_day::text AS "from", t.window_days,
            t.after_window, t.cut, t.before_cover_only
     FROM present_cancellation_terms t
     JOIN (SELECT DISTINCT * FROM json_to_recordset(:policies::json) AS p (partner_id text, policy_id text)) AS p
       ON p.partner_id COLLATE "C" = t.partner_id AND p.policy_id COLLATE "C" = t.policy_id
     ORDER BY t.from_day NULLS FIRST`,
    { policies: JSON.stringify(policies.map(({ partner_id, policy_id }) => ({ partner_id, policy_id }))) },
  );
  const terms = new Map<string, StoredTerms[]>();
  for (const { partner_id, policy_id, ...each } of rows) {
    const key = `${partner_id} ${policy_id}`;
    terms.set(key, [...(terms.get(key) ?? []), each]);
  }
  return terms;
}

/** What a partner has reversed by the rules, and what it has sold, of our share in a currency and posting month. */
export type MonthOfReversals = Readonly<{
  partner_id: string;
  currency: string;
  posted_month: string;
  /** Above zero. */
  reversed: string;
  /** Our share of the sales of the month, or of the month before if that is more. */
  sold: string;
}>;

/** The months in which reversals post, by partner, currency and month; `staged`: with the sales of an import. */
export const readMonthsOfReversals = (
  tx: Transaction,
  months: readonly (Pick<MonthOfReversals, 'partner_id' | 'currency' | 'posted_month'> & { readonly before: string })[],
  { staged }: { staged: boolean },
): Promise<MonthOfReversals[]> =>
  query(
    tx,
    `WITH wanted AS MATERIALIZED (
       SELECT partner_id COLLATE "C" AS partner_id, currency COLLATE "C" AS currency,
              posted_month COLLATE "C" AS posted_month, before COLLATE "C" AS before
       FROM json_to_recordset(:months::json) AS m (partner_id text, currency text, posted_month text, before text)
     )
     SELECT w.partner_id, w.currency, w.posted_month, r.reversed, greatest(n.sold, b.sold, 0)::text AS sold
     FROM wanted w
     CROSS JOIN LATERAL (
       SELECT coalesce(-sum(e.invoice_amount), 0)::text AS reversed FROM ledger_rows e
       JOIN reversal_grounds g USING (partner_id, reversal_id)
       WHERE e.partner_id = w.partner_id AND e.posted_month = w.posted_month AND e.kind = 'reversal'
         AND e.currency = w.currency AND g.ground NOT IN ('person', 'processor')) AS r
     CROSS JOIN LATERAL (
       SELECT coalesce((SELECT sum(l.invoice_amount) FROM running_lines l
                        WHERE l.posted_month = w.posted_month AND l.partner_id = w.partner_id
                          AND l.currency = w.currency AND l.kind <> 'reversal'), 0)
            + coalesce((SELECT sum(e.invoice_amount) FROM ledger_rows e
                        WHERE e.partner_id = w.partner_id AND e.posted_month = w.posted_month
                          AND e.currency = w.currency AND e.kind <> 'reversal'
                          AND e.entry_id > coalesce((SELECT max(last_no) FROM log_checkpoints), 0)), 0)
            ${
              staged
                ? `+ coalesce((SELECT sum(s.invoice_amount) FROM staged s
                        WHERE s.partner_id = w.partner_id AND s.currency = w.currency AND s.kind <> 'reversal'
                          AND ${GOOD}), 0)`
                : ''
            } AS sold) AS n
     CROSS JOIN LATERAL (
       SELECT coalesce((SELECT sum(m.invoice_amount) FROM month_partners m
                        WHERE m.month = w.before AND m.partner_id = w.partner_id AND m.currency = w.currency), 0)
            - coalesce((SELECT sum(e.invoice_amount) FROM ledger_rows e
                        WHERE e.partner_id = w.partner_id AND e.posted_month = w.before AND e.kind = 'reversal'
                          AND e.currency = w.currency), 0) AS sold) AS b`,
    { months: JSON.stringify(months) },
  );

/** Keeps the grounds of staged reversals, and holds those that wait for a person. */
export async function keepVerdicts(tx: Transaction, verdicts: readonly Verdict[]) {
  await execute(
    tx,
    `CREATE TEMPORARY TABLE grounds ON COMMIT DROP AS
     SELECT * FROM json_to_recordset(:verdicts::json) AS v (
       seq bigint, ground text, outside text, cancellation_terms_id bigint, sold_on date, judged_on date)`,
    { verdicts: JSON.stringify(verdicts) },
  );
  await execute(
    tx,
    `INSERT INTO findings (seq, field, code, reason)
     SELECT seq, 'reversal_id', 'held', outside FROM grounds WHERE ground IS NULL`,
  );
}

/** Records the ground of each good staged reversal: what the rules found, or one ground that allows all of them. */
export async function insertGrounds(
  tx: Transaction,
  { allowedBy, ...facts }: { allowedBy: 'person' | 'processor' | undefined; recordedAt: string; eventId: number },
) {
  const judged = allowedBy === undefined;
  await execute(
    tx,
    `INSERT INTO reversal_grounds (
       partner_id, reversal_id, quote_id, ground, cancellation_terms_id, held_row_id, sold_on, judged_on, recorded_at,
       event_id)
     SELECT s.partner_id, s.own_id, s.quote_id, v.ground, v.cancellation_terms_id, h.held_row_id, v.sold_on,
            v.judged_on, :recordedAt::timestamptz, :eventId::bigint
     FROM related s
     JOIN ${
       judged
         ? `(SELECT seq, ground, cancellation_terms_id, CASE WHEN ground <> 'processor' THEN sold_on END AS sold_on,
             CASE WHEN ground <> 'processor' THEN judged_on END AS judged_on FROM grounds) AS v USING (seq)`
         : `(SELECT '${allowedBy}' AS ground, NULL::bigint AS cancellation_terms_id, NULL::date AS sold_on,
             NULL::date AS judged_on) AS v ON true`
     }
     LEFT JOIN held_rows h ON h.partner_id = s.partner_id AND h.kind = s.kind AND own_id(h) = s.own_id
     WHERE s.kind = 'reversal' AND ${GOOD} ORDER BY s.seq`,
    facts,
  );
}

/**
 * SQL of the rows of open months that no rule and no person allowed, because the processor had already reversed our
 * share. What a person records from the processor's transfers (splits/reverse.ts) is not among them.
 */
export const REVERSED_BY_PROCESSOR = `
  SELECT e.* FROM ledger_rows e JOIN reversal_grounds g USING (partner_id, reversal_id)
  JOIN audit_events a ON a.event_id = g.event_id
  WHERE e.kind = 'reversal' AND e.posted_month > ${LAST_CLOSED} AND g.ground = 'processor'
    AND (a.action <> 'processor.reverse' OR g.held_row_id IS NOT NULL)`;
