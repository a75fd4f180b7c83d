/**
 * How well the credits of bank files are applied: `reckoner report cash-application`, and the console's report. Shares
 * are in percent, rounded down, so that only a faultless month has 100.0.
 */

import { z } from 'zod';
import { query, Transaction } from '#database/transaction';
import { lastDay, Month, names } from '#values';
import { defineList, ListQuery, pageOf } from './list.ts';

type Row = Readonly<{
  /** The month of receipt; `total` for all months. */
  month: Month | 'total';
  credits: number;
  applied: number;
  /** Of these, the credits that a person took back, and their payments. */
  undone: number;
  undone_payments: readonly number[];
  precision: string | null;
  /** The credits that were applied in full without a person. */
  touchless: number;
  touchless_share: string;
}>;

/**
 * A person took an application back unless the payment pays the same invoice or one of its replacements again, the bank
 * or we returned the money, or the invoice was then voided for good, before the payment was applied otherwise.
 */
const STATEMENT = `
     WITH RECURSIVE unapplied AS (
       SELECT payment_application_id, a.payment_id, document_id, u.log_no
       FROM payment_applications a JOIN payment_unapplications u USING (payment_application_id)
       LEFT JOIN payment_reversals r USING (payment_reversal_id)
       WHERE coalesce(r.kind, '') NOT IN ('returned', 'refunded', 'disputed')
       UNION ALL
       SELECT payment_application_id, payment_id, d.document_id, x.log_no
       FROM unapplied x JOIN documents d ON d.replaces = x.document_id
     ), wrong AS (
       SELECT payment_application_id FROM unapplied x LEFT JOIN voids v USING (document_id)
       GROUP BY payment_application_id
       HAVING NOT bool_or(EXISTS (SELECT FROM live_payment_applications l
                                  WHERE (l.payment_id, l.document_id) = (x.payment_id, x.document_id)))
          AND NOT bool_and(v.log_no > x.log_no IS TRUE AND NOT EXISTS (
            SELECT FROM payment_applications h WHERE h.payment_id = x.payment_id AND h.document_id <> x.document_id
              AND h.log_no BETWEEN x.log_no AND v.log_no))
     ), automatic AS (
       SELECT a.payment_id, sum(a.amount) AS amount, min(a.event_id) AS event_id,
              count(w.payment_application_id) > 0 AS is_undone
       FROM payment_applications a LEFT JOIN wrong w USING (payment_application_id)
       WHERE a.evidence->>'rule' NOT IN ('by_hand', 'reapplied') GROUP BY a.payment_id
     ), judged AS (
       SELECT p.payment_id, to_char(p.received_on, 'YYYY-MM') AS month, a.payment_id IS NOT NULL AS is_applied,
              a.is_undone OR EXISTS (
                SELECT FROM payment_assignments g WHERE g.payment_id = p.payment_id AND g.kind = 'named'
                  AND g.from_partner_id IS NOT NULL AND g.event_id > a.event_id) AS is_undone,
              a.amount >= p.amount
                AND NOT EXISTS (SELECT FROM payment_assignments g
                                WHERE g.payment_id = p.payment_id AND g.kind = 'named')
                AND NOT EXISTS (SELECT FROM payment_applications h
                                WHERE h.payment_id = p.payment_id AND h.evidence->>'rule' = 'by_hand') AS is_untouched
       FROM payments p LEFT JOIN automatic a USING (payment_id)
       WHERE EXISTS (SELECT FROM payment_sources s WHERE s.payment_id = p.payment_id AND s.source = 'bank')
     ), counted AS (
       SELECT coalesce(month, 'total') AS month, count(*) AS credits, count(*) FILTER (WHERE is_applied) AS applied,
              count(*) FILTER (WHERE is_undone) AS undone,
              coalesce(json_agg(payment_id ORDER BY payment_id DESC) FILTER (WHERE is_undone), '[]')
                AS undone_payments,
              count(*) FILTER (WHERE is_untouched AND NOT is_undone) AS touchless
       FROM judged GROUP BY GROUPING SETS ((month), ()) HAVING count(*) > 0
     )
     SELECT *, trunc(100.0 * (applied - undone) / nullif(applied, 0), 1)::text AS precision,
            trunc(100.0 * touchless / credits, 1)::text AS touchless_share
     FROM counted ORDER BY month DESC`;

const SHOWN = names('month credits applied undone precision touchless touchless_share undone_payments');

export const cashApplication = defineList({
  command: 'report cash-application',
  summary: 'Show how many credits of bank files were applied automatically, and how many of these rightly',
  title: 'Cash application',
  one: 'month',
  ofLedger: true,
  none: 'No bank file has had a credit yet.',
  filters: z.strictObject({}),
  sorts: ['-month', '-month'],
  columns: {
    month: {
      value: ({ month }) => (month === 'total' ? 'All months' : month),
      to: ({ month }) => (month === 'total' ? null : ['payments/all', { from: `${month}-01`, to: lastDay(month) }]),
    },
    credits: { type: 'amount' },
    applied: { heading: 'Applied automatically', type: 'amount' },
    undone: { heading: 'Undone later', type: 'amount', look: 'quiet' },
    undone_payments: {
      look: 'wrap',
      value: (row) => row.undone_payments.join(', '),
      to: ({ undone_payments: [last] }) => (last === undefined ? null : ['payments', `payment-${last}`]),
    },
    precision: { heading: 'Precision, %', type: 'amount' },
    touchless: { type: 'amount' },
    touchless_share: { heading: 'Touchless, %', type: 'amount' },
  },
  sheet: SHOWN,
  terminal: SHOWN,
  page: SHOWN,
  key: ({ month }) => month,
  keyed: 'text',
  read: async (tx: Transaction, asked: ListQuery<object>) =>
    pageOf(await query<Row>(tx, STATEMENT, {}), asked, ({ month }) => month),
});
