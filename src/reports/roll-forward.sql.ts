/** The roll-forward of what partners owe, in SQL: the movements of a period, each in one column of the roll-forward. */
import { query, querying, Transaction } from '#database/transaction';
import { ReversalKind } from '#payments/enums';
import { Scope } from '#people/scope';
import { Month } from '#values';
import { Activity } from './account-statement.sql.ts';
import { TIED_ACCOUNTS, TiedBalance } from './balances.sql.ts';

/** The movements, in the order of the roll-forward. Their sum is the closing balance less the opening balance. */
export const MOVEMENTS = [
  ...(['carried_over', 'invoiced', 'tax', 'credited', 'cash', 'written_off', 'differences'] as const),
] as const;
export type Movement = (typeof MOVEMENTS)[number];

/** `family`: the partners that one payer pays for, under the topmost payer. `all`: one sum of all partners. */
export const GROUPS = ['partner', 'family', 'all'] as const;
export type Group = (typeof GROUPS)[number];

export type RollForwardScope = Readonly<{
  from: Month;
  to: Month;
  group: Group;
  partner: string | null;
  currency: string | null;
  scope: Scope;
  /** Today, or the day of the last entry. */
  present: string;
}>;

/** The topmost payer of each partner that does not pay itself, among the partners that the user may see. */
const TOP_PAYERS = `SELECT DISTINCT ON (partner_id) partner_id, payer_id FROM partner_payers
  WHERE :scope::text[] IS NULL OR payer_id = ANY (:scope::text[]) ORDER BY partner_id, distance DESC`;

/** Joins rows `r` to the payers of their partners, for GROUPED. */
export const WITH_PAYERS = `LEFT JOIN (${TOP_PAYERS}) AS t USING (partner_id)`;

/** The partner or family that a row `r` belongs to, or null for the sum of all. A family that is asked for is its payer's. */
export const GROUPED = `CASE :group::text WHEN 'partner' THEN r.partner_id
                      WHEN 'family' THEN coalesce(:partner::text, t.payer_id, r.partner_id)
                      ELSE :partner::text END`;

/** Whether a row `r` is asked for. */
export const SELECTED = `(:scope::text[] IS NULL OR r.partner_id = ANY (:scope::text[]))
         AND (:currency::text IS NULL OR r.currency = upper(:currency))
         AND (:partner::text IS NULL OR r.partner_id = :partner OR (:group::text = 'family' AND EXISTS (
           SELECT FROM partner_payers f WHERE f.partner_id = r.partner_id AND f.payer_id = :partner)))`;

/**
 * The facts that changed a balance: billed receivables less open credit and unapplied cash. Applying cash or credit
 * changes none. The tax of a document is a movement of its own, however the journal divides the document.
 */
const MOVED = `facts AS (
       SELECT p.partner_id, j.currency, j.entry_on, j.dated_on, j.fact, j.log_no, j.document, j.reference, j.recorded,
              sum(p.amount) AS amount, bool_or(p.other = 'equity:opening-balances') AS is_carried_over
       FROM journal_entries j
       CROSS JOIN LATERAL (VALUES (j.debit, j.debit_partner, j.amount, j.credit),
                                  (j.credit, j.credit_partner, -j.amount, j.debit))
         AS p (control, partner_id, amount, other)
       WHERE j.entry_on BETWEEN (:from::text || '-01')::date AND (month_after(:to) || '-01')::date - 1
         AND (j.debit IN (:receivable, :credit, :unapplied) OR j.credit IN (:receivable, :credit, :unapplied))
         AND p.control IN (:receivable, :credit, :unapplied)
         AND j.fact NOT IN ('credit_applied', 'credit_released', 'payment_applied', 'payment_unapplied')
       GROUP BY p.partner_id, j.currency, j.entry_on, j.dated_on, j.fact, j.log_no, j.document, j.reference, j.recorded
     ), moved AS (
       SELECT r.partner_id, ${GROUPED} AS of_group, to_char(r.entry_on, 'YYYY-MM') COLLATE "C" AS month, r.currency,
              r.entry_on, r.dated_on, r.fact, r.log_no, r.document, r.reference, r.recorded, m.movement, m.amount
       FROM facts r ${WITH_PAYERS}
       LEFT JOIN documents d ON r.fact IN ('document_issued', 'document_voided') AND d.document_id = r.log_no
       CROSS JOIN LATERAL (
         SELECT coalesce(CASE r.fact WHEN 'document_issued' THEN 1 ELSE -1 END * document_sign(d.document) * d.tax, 0)
           AS tax) AS x
       CROSS JOIN LATERAL (VALUES
         (CASE WHEN r.is_carried_over THEN 'carried_over'
               WHEN d.document = 'invoice' THEN 'invoiced'
               WHEN d.document = 'credit_note' THEN 'credited'
               WHEN r.fact IN ('written_off', 'write_off_undone') THEN 'written_off'
               WHEN r.fact LIKE 'small_difference%' THEN 'differences' ELSE 'cash' END, r.amount - x.tax),
         ('tax', x.tax)) AS m (movement, amount)
       WHERE m.amount <> 0 AND ${SELECTED}
     )`;

type Measures = Readonly<Record<Movement | 'opening' | 'closing' | 'aging', string>>;

export type RollForwardRow = Measures &
  Readonly<{
    /** Null for an unknown payer, and for the sum of all partners. */
    partner_id: string | null;
    partner_name: string | null;
    group: Group;
    month: Month;
    currency: string;
    /** The movements of the month, also those whose sum is zero. */
    moved: readonly Movement[];
    /** The last day of the month, or today. */
    as_of: string;
  }>;

/**
 * One row for each partner, currency and month with a balance or a movement. `openings` are the balances before the
 * first month. `aging` is the net of the aging at the end of the month, which comes from the open items and not from the
 * journal.
 */
export const readRollForward = (
  tx: Transaction,
  asked: RollForwardScope & { openings: readonly TiedBalance[]; newestFirst: boolean },
): Promise<RollForwardRow[]> =>
  query(
    tx,
    `WITH ${MOVED}, months AS (
       SELECT to_char(day, 'YYYY-MM') COLLATE "C" AS month, (day + interval '1 month')::date - 1 AS last_day
       FROM generate_series((:from::text || '-01')::date, (:to::text || '-01')::date, interval '1 month') AS day
     ), opened AS (
       SELECT partner_id COLLATE "C" AS partner_id, currency, receivable - credit - unapplied AS amount
       FROM json_to_recordset(:openings::json)
         AS o (partner_id text, currency text, receivable numeric, credit numeric, unapplied numeric)
     ), aged AS (
       SELECT m.month, d.partner_id, d.currency, document_sign(d.document) * o.balance AS amount
       FROM months m CROSS JOIN LATERAL open_items(m.last_day) o JOIN documents d USING (document_id)
       UNION ALL
       SELECT m.month, c.partner_id, p.currency, -c.amount
       FROM months m CROSS JOIN LATERAL unapplied_cash(m.last_day) c JOIN payments p USING (payment_id)
     ), grouped AS (
       SELECT ${GROUPED} AS of_group, r.currency, r.month, sum(r.opening) AS opening, sum(r.aging) AS aging
       FROM (SELECT partner_id, currency, :from::text COLLATE "C" AS month, amount AS opening, 0 AS aging FROM opened
             UNION ALL SELECT partner_id, currency, month, 0, amount FROM aged) AS r
       ${WITH_PAYERS}
       WHERE ${SELECTED}
       GROUP BY of_group, r.currency, r.month
     ), sums AS (
       SELECT of_group, currency, month, sum(opening) AS opening, sum(aging) AS aging,
              coalesce(array_agg(DISTINCT moved) FILTER (WHERE moved <> ''), '{}') AS moved,
              ${MOVEMENTS.map((name) => `sum(${name}) AS ${name}`).join(', ')}
       FROM (SELECT of_group, currency, month, opening, aging, '' AS moved,
                    ${MOVEMENTS.map((name) => `0 AS ${name}`).join(', ')}
             FROM grouped
             UNION ALL
             SELECT of_group, currency, month, 0, 0, movement,
                    ${MOVEMENTS.map((name) => `CASE movement WHEN '${name}' THEN amount ELSE 0 END`).join(', ')}
             FROM moved
             UNION ALL
             SELECT g.of_group, g.currency, m.month, 0, 0, '', ${MOVEMENTS.map(() => '0').join(', ')}
             FROM (SELECT of_group, currency FROM grouped UNION SELECT of_group, currency FROM moved) AS g
             CROSS JOIN months m) AS parts
       GROUP BY of_group, currency, month
     ), rolled AS (
       SELECT *, sum(opening + ${MOVEMENTS.join(' + ')})
                   OVER (PARTITION BY of_group, currency ORDER BY month) AS closing
       FROM sums
     )
     SELECT of_group AS partner_id, p.name AS partner_name, :group::text AS "group", s.month, s.currency,
            least((month_after(month) || '-01')::date - 1, :present::date)::text AS as_of,
            (closing - (${MOVEMENTS.join(' + ')}))::text AS opening,
            ${MOVEMENTS.map((name) => `${name}::text`).join(', ')}, closing::text, aging::text, moved
     FROM rolled s LEFT JOIN partners p ON p.partner_id = s.of_group
     WHERE closing <> 0 OR aging <> 0 OR moved <> '{}'
     ORDER BY CASE WHEN :newestFirst::boolean THEN month END DESC, of_group COLLATE "C" NULLS LAST,
              s.currency, s.month`,
    { ...TIED_ACCOUNTS, ...asked },
  );

export type MovementRow = Readonly<{
  partner_id: string | null;
  partner_name: string | null;
  entry_on: string;
  dated_on: string;
  fact: Activity;
  kind: ReversalKind | null;
  document: string | null;
  payment_id: number | null;
  reference: string | null;
  movement: Movement;
  currency: string;
  amount: string;
}>;

/** The facts behind a cell, in the order of their entries. `unknown`: only those of unknown payers. */
export const readMovements = querying<
  MovementRow,
  RollForwardScope & { movement: Movement | null; unknown: boolean | null } & typeof TIED_ACCOUNTS
>(`
     WITH ${MOVED}
     SELECT m.partner_id, p.name AS partner_name, m.entry_on, m.dated_on, m.fact, m.document,
            coalesce(r.payment_id, g.payment_id, CASE m.fact WHEN 'payment_received' THEN m.log_no END) AS payment_id,
            r.kind, personal(m.reference) AS reference, m.movement, m.currency, m.amount::text
     FROM moved m LEFT JOIN partners p ON p.partner_id = m.partner_id
     LEFT JOIN payment_reversals r
       ON m.fact IN ('payment_reversed', 'payment_reinstated') AND r.payment_reversal_id = m.log_no
     LEFT JOIN payment_assignments g ON m.fact = 'payment_assigned' AND g.payment_assignment_id = m.log_no
     WHERE (:movement::text IS NULL OR m.movement = :movement)
       AND (:unknown::boolean IS NULL OR m.partner_id IS NULL)
     ORDER BY m.entry_on, m.recorded, m.partner_id COLLATE "C", m.movement`);
