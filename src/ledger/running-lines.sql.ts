/**
 * The lines of the open months: the number and sums of their rows, by everything that a document or its tax depends on.
 * Checkpoints keep the lines of the rows that they cover, so a close totals only the rows since the last checkpoint.
 */
import { executing, querying, queryingValue } from '#database/transaction';
import { UntiedRows } from '#errors/close';
import { Month } from '#month';

const KEY = `posted_month, partner_id, currency, arrangement, policy_id, kind, month, sold_month, sold_posted,
  sold_kind, by_receipt`;
const SUMS = 'count, spot_price, partner_cut, invoice_amount, last_accepted_at';

/** SQL of the last closed month, or of the empty text before the first close. */
export const LAST_CLOSED = `coalesce((SELECT max(month) FROM closed_months), '')`;

/** The rows `e` whose event has receipts, which is each row of an open month that is not an acceptance. */
const BY_RECEIPT = `e.event_id IN (
  SELECT event_id FROM ledger_receipts WHERE posted_month > ${LAST_CLOSED})`;

/** SQL of the kind of the sale that a reversal reverses. */
export const saleKind = (reversal: string) =>
  `CASE WHEN ${reversal}.requote_id IS NULL THEN 'quote_accepted' ELSE 'requote_accepted' END`;

/** The sale `q` of a reversal `e`. */
const SOLD = 'ARRAY[q.month, q.posted_month, q.kind]';
const SALE_ID = 'coalesce(e.requote_id, e.quote_id)';
const SALE = `q.partner_id = e.partner_id AND q.kind = ${saleKind('e')}`;

/**
 * SQL of the lines of the rows `e` that fulfil a condition. A reversal's line names the row that it reverses, which is
 * one probe of the index for each reversal. A join would read the rows of all months.
 */
export const linesOf = (condition: string) => `
  SELECT posted_month, partner_id, currency, arrangement, policy_id, kind, month, coalesce(sold[1], '') AS sold_month,
         coalesce(sold[2], '') AS sold_posted, coalesce(sold[3], '') AS sold_kind, by_receipt, count, spot_price,
         partner_cut, invoice_amount, last_accepted_at
  FROM (
    SELECT e.posted_month, e.partner_id, e.currency, e.arrangement, e.policy_id, e.kind, e.month,
           CASE e.kind WHEN 'reversal' THEN coalesce(
             (SELECT ${SOLD} FROM ledger_rows q WHERE ${SALE} AND own_id(q) = ${SALE_ID}),
             (SELECT ${SOLD} FROM archived_sales q WHERE ${SALE} AND q.own_id = ${SALE_ID})
           ) END AS sold,
           ${BY_RECEIPT} AS by_receipt, count(*) AS count, sum(e.spot_price) AS spot_price,
           sum(e.partner_cut) AS partner_cut, sum(e.invoice_amount) AS invoice_amount,
           max(e.accepted_at) AS last_accepted_at
    FROM ledger_rows e WHERE ${condition} GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9) AS grouped`;

/** The rows of a month's documents. A closed month's rows posted after the month that was closed before. */
export type RowsOfMonth = Readonly<{
  month: Month;
  previous: Month | null;
  /** Null means all partners. */
  partnerIds: readonly string[] | null;
  /** The last log number of the last checkpoint for an open month; 0 for a closed month, which has no kept lines. */
  covered: number;
}>;

/** SQL of the lines of a month with the bindings of RowsOfMonth: the kept lines, and those of the rows since then. */
export const LINES_OF_MONTH = `
  SELECT ${KEY}, ${SUMS} FROM running_lines
  WHERE posted_month > coalesce(:previous::text, '') AND posted_month <= :month
    AND (:partnerIds::text[] IS NULL OR partner_id = ANY (:partnerIds::text[]))
  UNION ALL
  ${linesOf(`e.posted_month > coalesce(:previous::text, '') AND e.posted_month <= :month
    AND (:partnerIds::text[] IS NULL OR e.partner_id = ANY (:partnerIds::text[])) AND e.entry_id > :covered::bigint`)}`;

/** Reads the lines of the rows in a range of log numbers, as JSON for `keepLines`. */
export const readLines = queryingValue<string, Readonly<{ after: number; to: number }>>(`
  SELECT coalesce(json_agg(l), '[]')::text AS lines
  FROM (${linesOf('e.entry_id > :after::bigint AND e.entry_id <= :to::bigint')}) AS l`);

/** Adds lines to the kept lines. */
export const keepLines = executing<{ lines: string }>(`
  INSERT INTO running_lines AS kept (${KEY}, ${SUMS})
  SELECT ${KEY}, ${SUMS} FROM json_populate_recordset(NULL::running_lines, :lines::json)
  ON CONFLICT (${KEY}) DO UPDATE SET
    count = kept.count + excluded.count, spot_price = kept.spot_price + excluded.spot_price,
    partner_cut = kept.partner_cut + excluded.partner_cut,
    invoice_amount = kept.invoice_amount + excluded.invoice_amount,
    last_accepted_at = greatest(kept.last_accepted_at, excluded.last_accepted_at)`);

/** Documents have the lines of a closed month. */
export const dropLines = executing<{ month: Month }>(`DELETE FROM running_lines WHERE posted_month <= :month`);

/**
 * Compares the rows of the open months with their receipts, by posting month, partner and currency: the kept lines, and
 * the rows after the log number that these cover. A row without a receipt must be the only row of its acceptance.
 */
export const readUntiedRows = querying<UntiedRows, { covered: number }>(`
  WITH since AS MATERIALIZED (
    SELECT e.posted_month, e.partner_id, e.currency, ${BY_RECEIPT} AS by_receipt, e.event_id, count(*) AS count,
           sum(e.spot_price) AS spot_price, sum(e.partner_cut) AS partner_cut,
           sum(e.invoice_amount) AS invoice_amount
    FROM ledger_rows e WHERE e.entry_id > :covered::bigint GROUP BY 1, 2, 3, 4, 5
  ), sides AS (
    SELECT posted_month, partner_id, currency, count, spot_price, partner_cut, invoice_amount, 0 AS receipts,
           0 AS price_of_receipts, 0 AS cut_of_receipts, 0 AS amount_of_receipts
    FROM running_lines WHERE by_receipt
    UNION ALL
    SELECT posted_month, partner_id, currency, count, spot_price, partner_cut, invoice_amount, 0, 0, 0, 0
    FROM since WHERE by_receipt
    UNION ALL
    SELECT posted_month, partner_id, currency, 0, 0, 0, 0, entries, spot_price, partner_cut, invoice_amount
    FROM ledger_receipts
    UNION ALL
    SELECT s.posted_month, s.partner_id, s.currency, s.count, s.spot_price, s.partner_cut, s.invoice_amount, 0, 0, 0,
           0
    FROM since s JOIN audit_events a USING (event_id)
    WHERE NOT s.by_receipt AND (s.count > 1 OR a.action NOT IN ('quote.accept', 'requote.accept'))
  )
  SELECT posted_month, partner_id, currency, sum(count)::bigint AS rows, sum(receipts)::bigint AS receipts,
         sum(invoice_amount) AS invoice_amount, sum(amount_of_receipts) AS of_receipts
  FROM sides WHERE posted_month > ${LAST_CLOSED} GROUP BY posted_month, partner_id, currency
  HAVING sum(count) <> sum(receipts) OR sum(spot_price) <> sum(price_of_receipts)
      OR sum(partner_cut) <> sum(cut_of_receipts) OR sum(invoice_amount) <> sum(amount_of_receipts)
  ORDER BY posted_month, partner_id, currency`);
