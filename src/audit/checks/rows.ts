/**
 * Checks of ledger rows and of the documents that bill them. One statement reads the rows once and groups them as
 * document lines do, and the checks work on the groups. Single rows are looked up only in groups with errors. Separate
 * statements read every row eight times and took 24 s of CPU for 200,000 rows instead of 0.8 s.
 */
import { DateTime } from 'luxon';
import { query, type Transaction } from '../../database/transaction.ts';
import { type Month, monthInterval } from '../../month.ts';
import { LAST_OF_CHAIN } from './documents.ts';
import { type CheckScope, checkQuery, type Difference, type Finding, findingOf, inMonth, OF_MONTH } from './query.ts';

const ROW_CHECKS = [
  'rows_balance',
  'rows_in_their_months',
  'documents_match_rows',
  'lines_match_rows',
  'rows_billed_or_open',
  'close_counts_match',
] as const;
export type RowFindings = Readonly<Record<(typeof ROW_CHECKS)[number], Finding>>;

/**
 * spotPrice = partnerCut + invoiceAmount, with the signs of its kind and the digits of its currency. Does not rely on
 * constraints.
 */
const UNBALANCED = `(
  spot_price <> partner_cut + invoice_amount
  OR greatest(min_scale(spot_price), min_scale(partner_cut), min_scale(invoice_amount)) > minor_digits(currency)
  OR CASE kind WHEN 'reversal' THEN greatest(spot_price, partner_cut, invoice_amount) > 0
               ELSE least(spot_price, partner_cut, invoice_amount) < 0 END)`;

/**
 * False only if a group of rows of one kind and currency certainly contains no unbalanced row. A sum has as many
 * decimals as its summand with the most decimals, and the signs in a balanced row agree. Checking each row fully took
 * 1.5 µs; this takes 0.5 µs.
 */
const SUSPECTED = `(
  bool_or(spot_price <> partner_cut + invoice_amount
          OR CASE kind WHEN 'reversal' THEN partner_cut > 0 OR invoice_amount > 0
                       ELSE partner_cut < 0 OR invoice_amount < 0 END)
  OR greatest(scale(sum(spot_price)), scale(sum(partner_cut)), scale(sum(invoice_amount))) > minor_digits(currency))`;

/** An import refuses a row that is more than five minutes in the future. */
const FROM_THE_FUTURE = `accepted_at > recorded_at + interval '1 hour'`;

/**
 * A row posts to its own month. If that month was closed when the row was recorded, the row posts to the month that was
 * open then. A transaction may wait for a close, but not for a day. A sandbox's clock may be set, so times are compared
 * in production only.
 */
const misposted = (first: string, last: string, of = '') => `(
  ${of}posted_month < ${of}month
  OR (${of}posted_month > ${of}month AND NOT EXISTS (
        SELECT FROM closed_months m CROSS JOIN installation
        WHERE month_after(m.month) COLLATE "C" = ${of}posted_month
          AND (environment = 'sandbox' OR m.closed_at <= ${first} + interval '1 day')))
  OR EXISTS (
        SELECT FROM closed_months m CROSS JOIN installation
        WHERE m.month = ${of}posted_month AND environment = 'production'
          AND m.closed_at < ${last} - interval '1 day'))`;

const IN_SCOPE = `(:month::text IS NULL OR ${OF_MONTH})`;

const sums = (of: (column: string) => string) =>
  ['spot_price', 'partner_cut', 'invoice_amount'].map((column) => `${of(column)} AS ${column}`).join(', ');

const SUMMED = sums((column) => `sum(${column})`);

const SQL = `WITH lines AS MATERIALIZED (
  SELECT posted_month, partner_id, currency, arrangement, policy_id, kind, month, time_zone, count(*) AS count,
         ${SUMMED},
         min(accepted_at) AS earliest, max(accepted_at) AS latest, min(recorded_at) AS first_recorded,
         max(recorded_at) AS last_recorded, ${SUSPECTED} AS suspected,
         bool_or(${FROM_THE_FUTURE}) AS from_the_future
  FROM ledger_rows e WHERE ${IN_SCOPE}
  GROUP BY posted_month, partner_id, currency, arrangement, policy_id, kind, month, time_zone
),
-- The month that bills a row: its posting month, or the first month for rows before it. NULL while it is open.
rows AS MATERIALIZED (
  SELECT l.*, m.month AS billed_month
  FROM lines l LEFT JOIN closed_months m ON m.month = greatest(l.posted_month, (SELECT min(month) FROM closed_months))
),
months AS (
  SELECT time_zone, month, min(earliest) AS earliest, max(latest) AS latest,
    bool_or(from_the_future OR ${misposted('first_recorded', 'last_recorded')}) AS misposted
  FROM lines GROUP BY time_zone, month
),
-- Each document of a month has the sums of the rows of its partner, currency and arrangement; so do void
-- ones before it.
billed AS (
  SELECT billed_month AS month, partner_id, currency, arrangement, sum(count)::bigint AS entries,
         coalesce(sum(count) FILTER (WHERE kind = 'quote_accepted'), 0)::bigint AS enrollments, ${SUMMED}
  FROM rows WHERE billed_month IS NOT NULL GROUP BY billed_month, partner_id, currency, arrangement
), issued AS (
  SELECT d.number, d.month::text, d.partner_id, d.currency, d.arrangement, d.entries, d.enrollments,
         ${sums((column) => `document_sign(d.document) * d.${column}`)}
  FROM documents d WHERE d.purpose = 'month' AND ${inMonth('d.month')}
), documents_found AS (
  SELECT month, partner_id, currency, arrangement, i.number,
         (b.entries, b.enrollments, b.spot_price, b.partner_cut, b.invoice_amount) AS by_rows,
         (i.entries, i.enrollments, i.spot_price, i.partner_cut, i.invoice_amount) AS by_document
  FROM billed b FULL JOIN issued i USING (month, partner_id, currency, arrangement)
), documents_found_differences AS (
  SELECT format('%s of %s for %s in %s', coalesce(number, 'no document'), partner_id, month, currency) AS subject,
         format('states %s; its rows give %s', by_document, by_rows) AS detail
  FROM documents_found WHERE by_rows IS DISTINCT FROM by_document
),
-- The same for the lines of each policy, kind and month of the rows; a change of tax divides such a line.
billed_lines AS (
  SELECT d.number, r.policy_id, r.kind, r.month, sum(r.count)::bigint AS count,
         ${sums((column) => `document_sign(d.document) * sum(r.${column})`)}
  FROM rows r
  JOIN documents d ON d.purpose = 'month' AND d.month = r.billed_month AND d.partner_id = r.partner_id
    AND d.currency = r.currency AND d.arrangement = r.arrangement
  GROUP BY d.document_id, d.number, d.document, r.policy_id, r.kind, r.month
), printed_lines AS (
  SELECT d.number, l.policy_id, l.kind, l.month::text, sum(l.count)::bigint AS count,
         ${sums((column) => `sum(l.${column})`)}
  FROM document_lines l JOIN documents d USING (document_id)
  WHERE d.purpose = 'month' AND ${inMonth('d.month')}
  GROUP BY d.number, l.policy_id, l.kind, l.month
), lines_found AS (
  SELECT number, policy_id, kind, month, (b.count, b.spot_price, b.partner_cut, b.invoice_amount) AS by_rows,
         (p.count, p.spot_price, p.partner_cut, p.invoice_amount) AS by_line
  FROM billed_lines b FULL JOIN printed_lines p USING (number, policy_id, kind, month)
), lines_found_differences AS (
  SELECT format('%s, line %s %s %s', number, policy_id, kind, month) AS subject,
         format('states %s; its rows give %s', by_line, by_rows) AS detail
  FROM lines_found WHERE by_rows IS DISTINCT FROM by_line
),
-- Every row is on exactly one document of its closed month, the last of its chain, or its month is open. The document
-- depends only on partner, month, currency and arrangement, so groups of rows are checked.
heads AS (
  SELECT d.month::text, d.partner_id, d.currency, d.arrangement, count(*) AS documents
  FROM documents d WHERE d.purpose = 'month' AND ${LAST_OF_CHAIN}
  GROUP BY d.month, d.partner_id, d.currency, d.arrangement
), placed AS (
  SELECT posted_month, billed_month, partner_id, currency, arrangement, sum(count) AS count
  FROM rows GROUP BY posted_month, billed_month, partner_id, currency, arrangement
), places AS (
  SELECT p.*, coalesce(h.documents, 0) AS documents
  FROM placed p
  LEFT JOIN heads h ON h.month = p.billed_month AND h.partner_id = p.partner_id AND h.currency = p.currency
    AND h.arrangement = p.arrangement
), places_differences AS (
  SELECT format('rows of %s in %s: %s', partner_id, currency, count) AS subject,
         format('post to %s; documents that bill them: %s', posted_month, documents) AS detail
  FROM places
  WHERE CASE WHEN billed_month IS NULL THEN posted_month <= (SELECT max(month) FROM closed_months)
    ELSE documents <> 1 END
),
-- The counts of rows, late rows and partners that the close recorded are right, and every document has an e-mail.
by_month AS (
  SELECT billed_month AS month, sum(count) AS entries,
    coalesce(sum(count) FILTER (WHERE month < billed_month), 0) AS late_entries
  FROM rows WHERE billed_month IS NOT NULL GROUP BY billed_month
), sent_to AS (
  SELECT d.month, count(DISTINCT d.partner_id) AS partners, count(*) AS documents,
         count(*) FILTER (WHERE EXISTS (SELECT FROM emails s WHERE s.document_id = d.document_id)) AS with_email
  FROM documents d WHERE d.purpose = 'month' GROUP BY d.month
), counts AS (
  SELECT m.month, m.entries, m.late_entries, m.partners_with_documents, coalesce(r.entries, 0) AS counted,
         coalesce(r.late_entries, 0) AS counted_late, coalesce(i.partners, 0) AS partners,
         coalesce(i.documents, 0) AS documents, coalesce(i.with_email, 0) AS with_email
  FROM closed_months m LEFT JOIN by_month r ON r.month = m.month LEFT JOIN sent_to i ON i.month = m.month
  WHERE ${inMonth('m.month')}
), counts_differences AS (
  SELECT month AS subject,
         format('closed with %s rows, %s late, %s partners; counted %s, %s, %s; %s of %s documents have an e-mail',
                entries, late_entries, partners_with_documents, counted, counted_late, partners, with_email,
                  documents) AS detail
  FROM counts
  WHERE (entries, late_entries, partners_with_documents, documents) <> (counted, counted_late, partners, with_email)
)
SELECT (SELECT coalesce(sum(count), 0)::bigint FROM lines) AS rows,
       (SELECT coalesce(bool_or(suspected), false) FROM lines) AS suspected,
       (SELECT coalesce(json_agg(months), '[]') FROM months) AS months,
       ${['documents_found', 'lines_found', 'places', 'counts'].map(findingOf).join(', ')}`;

interface ZoneMonth {
  readonly time_zone: string;
  readonly month: Month;
  /** ISO instants of the earliest and the latest row. */
  readonly earliest: string;
  readonly latest: string;
  readonly misposted: boolean;
}

interface RowSums {
  readonly rows: number;
  readonly suspected: boolean;
  readonly months: readonly ZoneMonth[];
  readonly documents_found: Finding;
  readonly lines_found: Finding;
  readonly places: Finding;
  readonly counts: Finding;
}

const findAll = checkQuery<RowSums>('check_rows', SQL);

export async function checkRows(tx: Transaction, scope: CheckScope): Promise<RowFindings> {
  const sums = await findAll(tx, scope);
  const misdated = sums.months.filter(isMisdated);
  return {
    rows_balance: {
      inspected: sums.rows,
      differences: sums.suspected ? await findUnbalanced(tx, scope) : [],
    },
    rows_in_their_months: {
      inspected: sums.rows,
      differences: misdated.length === 0 ? [] : await findMisdated(tx, scope, misdated),
    },
    documents_match_rows: sums.documents_found,
    lines_match_rows: sums.lines_found,
    rows_billed_or_open: sums.places,
    close_counts_match: sums.counts,
  };
}

function findUnbalanced(tx: Transaction, scope: CheckScope): Promise<Difference[]> {
  return query(
    tx,
    `SELECT format('row %s of %s', entry_id, partner_id) AS subject,
            format('%s %s = %s + %s in %s', kind, spot_price, partner_cut, invoice_amount, currency) AS detail
     FROM ledger_rows e WHERE ${IN_SCOPE} AND ${UNBALANCED} ORDER BY entry_id`,
    { month: scope.month, after: scope.after },
  );
}

/**
 * True if a row's time is not in the row's month by the recorded time zone, if the row posts to a wrong month, or if it
 * was recorded before it was accepted.
 */
function isMisdated({ time_zone, month, earliest, latest, misposted }: ZoneMonth): boolean {
  // Months begin at whole seconds, so truncating to milliseconds does not change the result.
  const { startsAt, endsAt } = monthInterval(month, time_zone);
  return misposted || DateTime.fromISO(earliest) < startsAt || DateTime.fromISO(latest) >= endsAt;
}

function findMisdated(tx: Transaction, scope: CheckScope, misdated: readonly ZoneMonth[]): Promise<Difference[]> {
  const intervals = misdated.map((each) => {
    const { startsAt, endsAt } = monthInterval(each.month, each.time_zone);
    return { ...each, starts_at: startsAt.toUTC().toISO(), ends_at: endsAt.toUTC().toISO() };
  });
  return query(
    tx,
    `SELECT format('row %s of %s', e.entry_id, e.partner_id) AS subject,
            format('accepted at %s in %s, belongs to %s, posts to %s, recorded at %s', e.accepted_at, e.time_zone,
              e.month, e.posted_month, e.recorded_at) AS detail
     FROM ledger_rows e
     JOIN json_to_recordset(:intervals::json) AS i (
       time_zone text, month text, starts_at timestamptz, ends_at timestamptz)
       ON i.time_zone = e.time_zone AND i.month = e.month
     WHERE ${IN_SCOPE} AND (e.accepted_at < i.starts_at OR e.accepted_at >= i.ends_at OR ${FROM_THE_FUTURE}
            OR ${misposted('e.recorded_at', 'e.recorded_at', 'e.')})
     ORDER BY e.entry_id`,
    { month: scope.month, after: scope.after, intervals: JSON.stringify(intervals) },
  );
}
