/**
 * Rows that may be a second telling of a sale. Two signs are needed. Either two rows have the same partner, kind,
 * policy, currency, amounts and second, and also the same enrollment, order or quote. Or their own ids are alike but for
 * case, leading zeros or a spreadsheet's exponent, and they have the same partner, kind, currency, amounts and local day.
 * The tickets of one order have the same order reference, and ids may differ in their case alone, so rows with different
 * enrollments never repeat each other by their order or by the case of their ids.
 */
import { execute, executing, query, queryOne, Transaction } from '#database/transaction';
import { Month } from '#month';
import { Scope } from '#people/scope';
import { OUTSIDE_TERMS } from './cancellation.ts';
import { GOOD, OWN_ID_FIELD, sameContent } from './rows.sql.ts';

export const SIGNS = {
  same_enrollment: 'the same enrollment, second and amounts',
  same_order: 'the same order reference, second and amounts',
  same_quote: 'the same quote, second and amounts',
  same_id: 'the same id but for its case, zeros or exponent, and the same day and amounts',
  held_sale: 'a row of a sale that is not recorded',
  held_reversal: 'after a reversal that is not recorded',
  ...OUTSIDE_TERMS,
} as const;
export type Sign = keyof typeof SIGNS;

/** Collects the rows that may repeat each other: the marked rows (alike.ts), and those with a hash of a marked row. */
export async function surveyAlike(tx: Transaction) {
  const marked = (hash: string) => `s.${hash} IN (SELECT ${hash} FROM marked)`;
  await execute(
    tx,
    `CREATE TEMPORARY TABLE alike ON COMMIT DROP AS
     WITH marked AS MATERIALIZED (SELECT id_hash, enrollment_hash, order_hash FROM staged WHERE alike)
     SELECT s.* FROM staged s
     WHERE s.code IS NULL AND (${['id_hash', 'enrollment_hash', 'order_hash'].map(marked).join(' OR ')}
       OR s.kind <> 'quote_accepted' AND (s.partner_id, s.quote_id) IN (
         SELECT partner_id, quote_id FROM related WHERE kind <> 'quote_accepted' AND code IS NULL
         GROUP BY partner_id, quote_id HAVING count(*) > 1))`,
  );
  await execute(tx, 'ANALYZE alike (seq, partner_id, kind, own_id)');
}

/**
 * Finds duplicates and conflicts within this import. Of several rows with one identity, the first in file order is
 * good.
 */
export const findRepeatedRows = executing(`
  INSERT INTO findings (seq, field, code, reason)
  WITH repeated AS (
    SELECT s.partner_id, s.kind, s.own_id, min(s.seq) AS first_seq
    FROM alike s WHERE ${GOOD}
    GROUP BY s.partner_id, s.kind, s.own_id HAVING count(*) > 1
  )
  SELECT s.seq, ${OWN_ID_FIELD}, CASE WHEN ${sameContent('s', 'f')} THEN 'duplicate' ELSE 'conflict' END,
         format('%s %s is on line %s with other content', s.kind, s.own_id, f.line)
  FROM repeated r
  JOIN alike s ON s.partner_id = r.partner_id AND s.kind = r.kind AND s.own_id = r.own_id AND s.seq <> r.first_seq
  JOIN alike f ON f.seq = r.first_seq
  WHERE ${GOOD}`);

/** The same sale at one second: the amounts add up, so two of them decide. */
const sameSecond = (one: string, other: string) => `
  ${one}.partner_id = ${other}.partner_id AND ${one}.kind = ${other}.kind AND ${one}.policy_id = ${other}.policy_id
  AND ${one}.currency = ${other}.currency AND ${one}.spot_price = ${other}.spot_price
  AND ${one}.partner_cut = ${other}.partner_cut
  AND date_trunc('second', ${one}.accepted_at) = date_trunc('second', ${other}.accepted_at)`;

/** The sale of an own id on one day in the time zone of `one`. */
const sameDay = (one: string, other: string) => `
  ${one}.partner_id = ${other}.partner_id AND ${one}.kind = ${other}.kind AND ${one}.currency = ${other}.currency
  AND ${one}.spot_price = ${other}.spot_price AND ${one}.partner_cut = ${other}.partner_cut
  AND (${one}.accepted_at AT TIME ZONE ${one}.time_zone)::date
    = (${other}.accepted_at AT TIME ZONE ${one}.time_zone)::date`;

/**
 * The ledger's rows of the staged partners in the staged times, as `e`. A block range index finds them, so an import
 * into days without rows reads almost nothing.
 */
const near = (from: 'first_at' | 'day_from', to: 'last_at' | 'day_to') => `
  (SELECT e.*
   FROM unnest((SELECT range_agg(tstzrange(${from}, ${to}, '[]')) FROM spans)) AS island
   CROSS JOIN LATERAL (
     SELECT *, own_id(e) AS own_id FROM ledger_rows e
     WHERE e.accepted_at BETWEEN lower(island) AND upper(island)
       AND e.partner_id BETWEEN (SELECT min(partner_id) FROM spans) AND (SELECT max(partner_id) FROM spans)) AS e
   WHERE e.partner_id IN (SELECT partner_id FROM spans)) AS e`;

/**
 * Finds the good staged rows that may repeat another good staged row, or a row of the ledger, and keeps them in
 * `doubles` (stage.ts). `spreadsheet`: some own ids are long numbers, which a spreadsheet writes with an exponent.
 */
export async function findDoubles(tx: Transaction, { spreadsheet }: { spreadsheet: boolean }) {
  await execute(
    tx,
    `CREATE TEMPORARY TABLE spans ON COMMIT DROP AS
     SELECT partner_id, date_trunc('second', first_at) AS first_at, last_at + interval '1 second' AS last_at,
            date_trunc('day', first_at AT TIME ZONE time_zone) AT TIME ZONE time_zone AS day_from,
            (date_trunc('day', last_at AT TIME ZONE time_zone) + interval '1 day') AT TIME ZONE time_zone AS day_to
     FROM sellers JOIN partners USING (partner_id)`,
  );
  await execute(tx, 'ANALYZE spans');
  const { within, ledger } = await queryOne<{ within: boolean; ledger: boolean }>(
    tx,
    `SELECT EXISTS (SELECT FROM alike) AS within, EXISTS (SELECT FROM ${near('day_from', 'day_to')}) AS ledger`,
  );
  if (ledger) await findInLedger(tx);
  if (within) await findWithin(tx);
  if (spreadsheet) await findExponents(tx);
}

async function findInLedger(tx: Transaction) {
  const found = (sign: Sign, from: string) =>
    execute(
      tx,
      `INSERT INTO doubles (seq, sign, repeats)
       SELECT DISTINCT ON (s.seq) s.seq, '${sign}', e.own_id FROM ${from} AND ${GOOD}
       ORDER BY s.seq, e.entry_id ON CONFLICT DO NOTHING`,
    );
  await found(
    'same_enrollment',
    `${near('first_at', 'last_at')} JOIN staged s ON s.enrollment_id = e.enrollment_id AND ${sameSecond('e', 's')}`,
  );
  // Of the rows of an order, the first one decides for a row without an enrollment. For other rows, the first one
  // without an enrollment decides.
  await execute(
    tx,
    `INSERT INTO doubles (seq, sign, repeats)
     SELECT s.seq, 'same_order', CASE WHEN s.enrollment_id IS NULL THEN e.first_id ELSE e.bare_first_id END
     FROM staged s JOIN (
       SELECT partner_id, kind, policy_id, currency, spot_price, partner_cut, order_reference,
              date_trunc('second', accepted_at) AS accepted_at, (array_agg(own_id ORDER BY entry_id))[1] AS first_id,
              (array_agg(own_id ORDER BY entry_id) FILTER (WHERE enrollment_id IS NULL))[1] AS bare_first_id
       FROM ${near('first_at', 'last_at')} WHERE order_reference IS NOT NULL
       GROUP BY 1, 2, 3, 4, 5, 6, 7, 8) AS e ON s.order_reference = e.order_reference AND ${sameSecond('e', 's')}
     WHERE (s.enrollment_id IS NULL OR e.bare_first_id IS NOT NULL) AND ${GOOD}
     ON CONFLICT DO NOTHING`,
  );
  await found(
    'same_quote',
    `related s JOIN LATERAL (
       SELECT *, own_id(l) AS own_id FROM ledger_rows l
       WHERE l.partner_id = s.partner_id AND l.quote_id = s.quote_id AND l.kind <> 'quote_accepted') AS e
     ON ${sameSecond('e', 's')} WHERE true`,
  );
  await found(
    'same_id',
    `${near('day_from', 'day_to')} JOIN staged s ON bare_id(s.own_id) = bare_id(e.own_id) AND ${sameDay('e', 's')}
     AND (coalesce(s.enrollment_id = e.enrollment_id, true) OR ltrim(s.own_id, '0') = ltrim(e.own_id, '0'))`,
  );
}

const saleWith = (column: string) =>
  `PARTITION BY partner_id, kind, policy_id, currency, spot_price, partner_cut, second, ${column}`;
const dayWith = (columns: string) =>
  `PARTITION BY partner_id, kind, currency, spot_price, partner_cut, day, ${columns}`;

const findWithin = executing(`
  INSERT INTO doubles (seq, sign, repeats, repeats_seq)
  WITH suspects AS MATERIALIZED (
    SELECT s.*, date_trunc('second', s.accepted_at) AS second, (s.accepted_at AT TIME ZONE p.time_zone)::date AS day
    FROM alike s JOIN partners p USING (partner_id) WHERE ${GOOD}
  ), firsts AS (
    SELECT seq, enrollment_id, order_reference, kind,
           min(seq) OVER (${saleWith('enrollment_id')}) AS of_enrollment,
           min(seq) OVER (${saleWith('order_reference')}) AS of_order,
           min(seq) FILTER (WHERE enrollment_id IS NULL) OVER (${saleWith('order_reference')}) AS bare_of_order,
           min(seq) OVER (${saleWith('quote_id')}) AS of_quote,
           least(
             min(seq) OVER (${dayWith("ltrim(own_id, '0')")}),
             min(seq) OVER (${dayWith('bare_id(own_id), enrollment_id')}),
             min(seq) FILTER (WHERE enrollment_id IS NULL) OVER (${dayWith('bare_id(own_id)')}),
             CASE WHEN enrollment_id IS NULL THEN min(seq) OVER (${dayWith('bare_id(own_id)')}) END) AS of_id
    FROM suspects
  ), judged AS (
    SELECT seq,
           CASE WHEN enrollment_id IS NOT NULL AND of_enrollment < seq THEN 'same_enrollment'
                WHEN order_reference IS NOT NULL AND enrollment_id IS NULL AND of_order < seq THEN 'same_order'
                WHEN order_reference IS NOT NULL AND bare_of_order < seq THEN 'same_order'
                WHEN kind <> 'quote_accepted' AND of_quote < seq THEN 'same_quote'
                WHEN of_id < seq THEN 'same_id' END AS sign,
           of_enrollment, CASE WHEN enrollment_id IS NULL THEN of_order ELSE bare_of_order END AS of_order, of_quote,
           of_id
    FROM firsts
  )
  SELECT j.seq, j.sign, f.own_id, f.seq
  FROM judged j
  JOIN alike f ON f.seq = CASE j.sign WHEN 'same_enrollment' THEN of_enrollment WHEN 'same_order' THEN of_order
                                       WHEN 'same_quote' THEN of_quote WHEN 'same_id' THEN of_id END
  ON CONFLICT DO NOTHING`);

// Staged rows come after all rows of the ledger.
const AFTER_LEDGER = 1_000_000_000_000_000;
const EXPONENT = `'^([0-9])\\.?([0-9]*)[eE]0*([0-9]{1,2})$'`;

/**
 * A spreadsheet writes the id 1234567890123456 as 1.23457E15. The long number rounds to the short one. Each short one is
 * compared with one long number only, because the ids of neighbors round to the same.
 */
async function findExponents(tx: Transaction) {
  const numbers = (from: string, columns: string) => `
    SELECT ${columns} partner_id, kind, currency, spot_price, partner_cut, accepted_at, time_zone, own_id
    FROM ${from} AND own_id ~ '^[0-9][0-9.]*([eE][0-9]+)?$' AND length(own_id) < 40`;
  await execute(
    tx,
    `INSERT INTO doubles (seq, sign, repeats, repeats_seq)
     WITH numbers AS MATERIALIZED (
       ${numbers(`${near('day_from', 'day_to')} WHERE true`, 'NULL::bigint AS seq, entry_id AS place,')}
       UNION ALL
       ${numbers(
         `(SELECT s.*, p.time_zone FROM staged s JOIN partners p USING (partner_id) WHERE ${GOOD}) AS s WHERE true`,
         `seq, ${AFTER_LEDGER} + seq,`,
       )}
     ), short AS (
       SELECT n.*, length(m[1] || m[2]) - 1 - m[3]::int AS digits,
              (m[1] || m[2])::numeric * power(10::numeric, m[3]::int - length(m[2])) AS value
       FROM numbers n CROSS JOIN LATERAL regexp_match(own_id, ${EXPONENT}) AS m WHERE m IS NOT NULL
     ), long AS (
       SELECT n.*, digits, round(own_id::numeric, digits) AS value
       FROM numbers n CROSS JOIN (SELECT DISTINCT digits FROM short) AS d WHERE own_id ~ '^[0-9]+$'
     ), pairs AS (
       SELECT DISTINCT ON (e.place) e.seq AS short_seq, e.place AS short_place, e.own_id AS short_id, s.seq, s.place,
              s.own_id
       FROM short e JOIN long s ON s.digits = e.digits AND s.value = e.value AND ${sameDay('e', 's')}
       ORDER BY e.place, s.accepted_at = e.accepted_at DESC, s.place
     )
     SELECT DISTINCT ON (1) CASE WHEN place > short_place THEN seq ELSE short_seq END, 'same_id',
            CASE WHEN place > short_place THEN short_id ELSE own_id END,
            CASE WHEN place > short_place THEN short_seq ELSE seq END
     FROM pairs WHERE greatest(place, short_place) > ${AFTER_LEDGER}
     ORDER BY 1 ON CONFLICT DO NOTHING`,
  );
}

/** More facts than are recorded in one second. A row before a checkpoint may be repeated after it. */
const FACTS_OF_A_SECOND = 20_000;

/**
 * Finds the rows of the API in a range of log numbers that may repeat an earlier one of the same second and amounts: an
 * acceptance of the same order whose quote was asked for after the earlier acceptance, or a reversal of the same quote.
 * The tickets of an order are quoted before the first of them is accepted. Our own enrollments always differ, so they say
 * nothing.
 */
export async function findDoubledRows(tx: Transaction, { after, to }: Readonly<{ after: number; to: number }>) {
  const earlier = (columns: string) =>
    `(PARTITION BY e.partner_id, e.policy_id, e.currency, e.spot_price, e.partner_cut, date_trunc('second', e.accepted_at),
        ${columns} ORDER BY e.entry_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)`;
  await execute(
    tx,
    `INSERT INTO doubled_rows (posted_month, partner_id, entry_id, repeats)
     SELECT posted_month, partner_id, entry_id, repeats
     FROM (SELECT e.posted_month, e.partner_id, e.entry_id, first_value(own_id(e)) OVER earlier AS repeats,
                  min(e.accepted_at) OVER earlier <= q.quoted_at AS is_after
           FROM ledger_rows e JOIN quotes q ON q.quote_id = e.quote_id AND q.partner_id = e.partner_id
           WHERE e.entry_id > :from::bigint AND e.entry_id <= :to::bigint AND e.kind = 'quote_accepted'
             AND e.order_reference IS NOT NULL
           WINDOW earlier AS ${earlier('e.order_reference')}
           UNION ALL
           SELECT e.posted_month, e.partner_id, e.entry_id, first_value(own_id(e)) OVER earlier, true
           FROM ledger_rows e JOIN audit_events v ON v.event_id = e.event_id AND v.action = 'quote.reverse'
           WHERE e.entry_id > :from::bigint AND e.entry_id <= :to::bigint AND e.kind = 'reversal'
           WINDOW earlier AS ${earlier('e.quote_id')}) AS found
     WHERE repeats IS NOT NULL AND is_after AND entry_id > :after::bigint
     ORDER BY entry_id ON CONFLICT DO NOTHING`,
    { after, from: Math.max(0, after - FACTS_OF_A_SECOND), to },
  );
}

export const dropDoubledRows = executing<{ month: Month }>('DELETE FROM doubled_rows WHERE posted_month <= :month');

export type DoubledRow = Readonly<{
  entry_id: number;
  partner_id: string;
  partner_name: string;
  kind: string;
  own_id: string;
  repeats: string;
  order_reference: string | null;
  currency: string;
  accepted_at: string;
  invoice_amount: string;
}>;

type DoubledQuestion = Readonly<{
  partner?: string | null;
  scope?: Scope;
  after?: string | null;
  limit?: number | null;
}>;

/** SQL of the doubled rows `d` with their rows `e`. A doubled sale is settled once it or the first sale is reversed. */
export const DOUBLED = `doubled_rows d JOIN ledger_rows e USING (partner_id, posted_month, entry_id)
  WHERE (e.kind = 'reversal' OR NOT EXISTS (
    SELECT FROM ledger_rows r WHERE r.partner_id = e.partner_id AND r.quote_id IN (e.quote_id, d.repeats)
      AND r.kind = 'reversal'))`;

export function readDoubledRows(tx: Transaction, question: DoubledQuestion): Promise<DoubledRow[]> {
  const { partner = null, scope = null, after = null, limit = null } = question;
  return query(
    tx,
    `SELECT e.entry_id, e.partner_id, (SELECT name FROM partners p WHERE p.partner_id = e.partner_id) AS partner_name,
            e.kind, own_id(e) AS own_id, d.repeats, e.order_reference, e.currency, e.accepted_at, e.invoice_amount
     FROM ${DOUBLED} AND (:partner::text IS NULL OR e.partner_id = :partner)
       AND (:scope::text[] IS NULL OR e.partner_id = ANY (:scope::text[]))
       AND (:after::bigint IS NULL OR e.entry_id > :after::bigint)
     ORDER BY e.entry_id LIMIT :limit`,
    { partner, scope, after, limit },
  );
}

export const forgetDoubledRows = executing<{ entries: readonly number[] }>(
  'DELETE FROM doubled_rows WHERE entry_id = ANY (:entries::bigint[])',
);
