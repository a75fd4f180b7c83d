import { execute, executing, query, Transaction } from '#database/transaction';
import { Amount } from '#money';
import { lastDay, Month } from '#month';

const UNJUDGED = `s.code IS NULL AND NOT EXISTS (SELECT FROM findings f WHERE f.seq = s.seq)`;

/**
 * Finds staged rows that differ from the API's quote or requote with the same id, or that were accepted after the quote
 * expired.
 */
export const findDifferingQuotes = executing(`
  INSERT INTO findings (seq, field, code, reason)
  SELECT s.seq, CASE WHEN d.differs THEN a.field ELSE 'accepted_at' END,
         CASE WHEN d.differs THEN 'conflict' ELSE 'quote_expired' END,
         CASE WHEN d.differs
         THEN format('%s was priced by the API at %s %s, cut %s, invoice %s; the row differs. Correct it, or '
                'record it anyway with --accept-differing', s.own_id, a.spot_price, a.currency, a.partner_cut,
                a.invoice_amount)
         ELSE format('%s could be accepted until %s. Correct the row, or record it anyway with --accept-differing',
                     s.own_id, to_char(a.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) END
  FROM staged s JOIN (
    SELECT 'quote_accepted' AS kind, 'quote_id' AS field, partner_id, quote_id AS own_id, quote_id, policy_id,
           currency, spot_price, partner_cut, invoice_amount, expires_at
    FROM quotes
    UNION ALL
    SELECT 'requote_accepted', 'requote_id', r.partner_id, r.requote_id, r.quote_id, q.policy_id, r.currency,
           r.spot_price - r.accepted_spot_price, r.partner_cut - r.accepted_partner_cut,
           r.invoice_amount - r.accepted_invoice_amount, r.expires_at
    FROM requotes r JOIN quotes q USING (quote_id)
  ) AS a ON a.own_id = s.own_id AND a.kind = s.kind AND a.partner_id = s.partner_id
  CROSS JOIN LATERAL (
    SELECT (s.quote_id, s.policy_id, s.currency, s.spot_price, s.partner_cut, s.invoice_amount)
           IS DISTINCT FROM
           (a.quote_id, a.policy_id, a.currency, a.spot_price, a.partner_cut, a.invoice_amount) AS differs) AS d
  WHERE ${UNJUDGED} AND (d.differs OR s.accepted_at >= a.expires_at)`);

export type LimitedRow = Readonly<{
  seq: number;
  partner_id: string;
  quote_id: string;
  kind: string;
  currency: string;
  spot_price: string;
  price_before: string;
  largest_price: string;
  largest_in: string;
}>;

/** The rows of quotes whose price, including all staged rows, exceeds the largest price of their policy. */
export const readLimited = (tx: Transaction, { skipInvalid }: { skipInvalid: boolean }): Promise<LimitedRow[]> =>
  query(
    tx,
    `WITH limited AS MATERIALIZED (
       SELECT s.seq, s.kind, s.partner_id, s.quote_id, s.currency, s.spot_price, o.largest_price,
              p.currency AS largest_in
       FROM policies o JOIN partners p USING (partner_id) JOIN staged s USING (partner_id, policy_id)
       WHERE o.largest_price IS NOT NULL AND ${UNJUDGED} ${skipInvalid ? `AND s.kind <> 'reversal'` : ''}
     ), totals AS (
       SELECT l.*, coalesce((
                SELECT sum(e.spot_price) FROM (
                  SELECT spot_price FROM ledger_rows
                  WHERE partner_id = l.partner_id AND kind = 'quote_accepted' AND own_id(ledger_rows) = l.quote_id
                  UNION ALL
                  SELECT spot_price FROM ledger_rows
                  WHERE partner_id = l.partner_id AND quote_id = l.quote_id AND kind <> 'quote_accepted') AS e), 0)
                AS price_before,
              sum(l.spot_price) OVER in_order AS added
       FROM limited l
       WINDOW in_order AS (PARTITION BY l.partner_id, l.quote_id ORDER BY l.kind <> 'reversal', l.kind, l.seq)
     )
     SELECT seq, partner_id, quote_id, kind, currency, spot_price, price_before, largest_price, largest_in
     FROM totals
     WHERE (partner_id, quote_id) IN (
       SELECT partner_id, quote_id FROM totals
       WHERE kind <> 'reversal' AND (price_before + added > largest_price OR currency <> largest_in))
     ORDER BY kind <> 'reversal', kind, seq`,
  );

export async function recordAboveLargest(tx: Transaction, dear: readonly { seq: number; price: string }[]) {
  await execute(
    tx,
    `INSERT INTO findings (seq, field, code, reason)
     SELECT s.seq, CASE WHEN s.currency = p.currency THEN 'spotPrice' ELSE 'currency' END, 'policy_price_exceeded',
            format('%s takes its quote to %s %s, above %s %s, the largest price of policy %s. Correct the row, or '
                   'raise largest_price in the partner''s file and import that first', s.own_id,
                   round(d.price / 10000, minor_digits(s.currency)), s.currency, round(o.largest_price,
                   minor_digits(p.currency)), p.currency, s.policy_id)
     FROM json_to_recordset(:dear::json) AS d (seq bigint, price numeric)
     JOIN staged s USING (seq) JOIN partners p USING (partner_id) JOIN policies o USING (partner_id, policy_id)`,
    { dear: JSON.stringify(dear) },
  );
}

export type DifferingCuts = Readonly<{
  partner_id: string;
  policy_id: string;
  currency: string;
  partner_cut_rate: string;
  rows: number;
  /** The sum of the rows' cuts, and the sum that the policy's rate gives. */
  partner_cut: string;
  by_rate: string;
}>;

/**
 * The rate is the quote's if the API made the quote. Otherwise it is the policy's rate of the day of the row's own
 * acceptance in `zone`. A difference of one minor unit is allowed, because the cut of a requote is the difference of
 * two rounded cuts.
 */
const differingCuts = (rows: string, which: string, zone = 's.time_zone') => `
  -- Materialized, so that the few differing rows are sorted, and not all rows before they are joined with quotes.
  WITH differing AS MATERIALIZED (
    SELECT s.partner_id, s.policy_id, s.currency, r.rate, s.partner_cut,
           round(s.spot_price * r.rate, minor_digits(s.currency)) AS by_rate
    -- OFFSET 0 makes PostgreSQL read the rows first, by month. Without OFFSET 0, the planner looked up the rows policy
    -- by policy.
    FROM (SELECT s.* FROM ${rows} s WHERE s.kind <> 'reversal' AND (${which}) OFFSET 0) AS s
    JOIN policies o USING (partner_id, policy_id)
    LEFT JOIN quotes q ON q.quote_id = s.quote_id AND q.partner_id = s.partner_id
    CROSS JOIN LATERAL (
      SELECT coalesce(q.partner_cut_rate, CASE o.dated_cut_rates WHEN '[]' THEN o.partner_cut_rate
                                          ELSE cut_rate_on(o, (s.accepted_at AT TIME ZONE ${zone})::date) END) AS rate
    ) AS r
    WHERE abs(s.partner_cut - s.spot_price * r.rate) > power(10::numeric, -minor_digits(s.currency))
  )
  SELECT partner_id, policy_id, currency, rate AS partner_cut_rate, count(*) AS rows, sum(partner_cut) AS partner_cut,
         sum(by_rate) AS by_rate
  FROM differing GROUP BY partner_id, policy_id, currency, rate
  ORDER BY partner_id COLLATE "C", policy_id COLLATE "C", currency, rate`;

const withDigits = ({ partner_cut, by_rate, ...row }: DifferingCuts) => ({
  ...row,
  partner_cut: Amount.of(partner_cut, row.currency).toString(),
  by_rate: Amount.of(by_rate, row.currency).toString(),
});

/** A row takes the time zone that its partner has when the row is recorded. */
const PRESENT_ZONE = '(SELECT p.time_zone FROM partners p WHERE p.partner_id = s.partner_id)';

export async function readStagedCuts(tx: Transaction): Promise<DifferingCuts[]> {
  return (await query<DifferingCuts>(tx, differingCuts('staged', UNJUDGED, PRESENT_ZONE))).map(withDigits);
}

/** Differing cuts among the rows that post after the first of two months, up to and including the second. */
export async function readDifferingCuts(
  tx: Transaction,
  months: Readonly<{ after: string | null; to: string }>,
): Promise<DifferingCuts[]> {
  const which = `s.posted_month > coalesce(:after::text, '') AND s.posted_month <= :to`;
  return (await query<DifferingCuts>(tx, differingCuts('ledger_rows', which), months)).map(withDigits);
}

/**
 * Differing cuts among the rows that post after a given month. Only two kinds of partners are read: partners that were
 * changed after the month ended, and partners for which an import has reported differing cuts after the month ended.
 */
export async function readOpenDifferingCuts(tx: Transaction, after: Month | null): Promise<DifferingCuts[]> {
  const rows = `(
    SELECT e.* FROM (
      SELECT c.partner_id FROM audit_events
      CROSS JOIN LATERAL jsonb_to_recordset(details->'differing_cuts') AS c (partner_id text)
      WHERE action = 'ledger.import' AND occurred_at >= :since::timestamptz
      UNION
      SELECT subject FROM audit_events WHERE action = 'partner.update' AND occurred_at >= :since::timestamptz
    ) AS suspected JOIN ledger_rows e USING (partner_id))`;
  const which = `s.posted_month > coalesce(:after::text, '')`;
  const since = after === null ? '-infinity' : `${lastDay(after)}T00:00:00Z`;
  return (await query<DifferingCuts>(tx, differingCuts(rows, which), { after, since })).map(withDigits);
}
