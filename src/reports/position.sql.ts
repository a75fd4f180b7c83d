import { query, Transaction } from '#database/transaction';
import { Scope } from '#people/scope';
import { BILLED, Billed } from './days-sales-outstanding.sql.ts';

type Asked = Readonly<{ scope: Scope; today: string }>;

/** A sum of open items: of a currency, or of one of its partners or weeks. */
export type OpenSum = Readonly<{
  currency: string;
  of: 'currency' | 'partner' | 'week';
  partner_id: string | null;
  partner_name: string | null;
  /** The Monday of the week in which the items are due. */
  week: string | null;
  documents: number;
  open: string;
  overdue: string;
  credit: string;
}>;

/** Reads the open items once. `lastWeek` also has all items that are due later. */
export const readOpenSums = (
  tx: Transaction,
  asked: Asked & { lastWeek: string; partners: number },
): Promise<OpenSum[]> =>
  query(
    tx,
    `WITH sums AS (
       SELECT d.currency, d.partner_id, w.week, grouping(d.partner_id, w.week) AS level, count(*) AS documents,
              coalesce(sum(o.balance) FILTER (WHERE d.document = 'invoice'), 0) AS open,
              coalesce(sum(o.balance) FILTER (WHERE d.due_on < :today::date), 0) AS overdue,
              coalesce(sum(o.balance) FILTER (WHERE d.document = 'credit_note'), 0) AS credit
       FROM open_items('infinity') o JOIN documents d USING (document_id)
       CROSS JOIN LATERAL (
         SELECT CASE WHEN d.due_on >= :today::date
                     THEN least(date_trunc('week', d.due_on)::date, :lastWeek::date) END AS week) AS w
       WHERE :scope::text[] IS NULL OR d.partner_id = ANY (:scope::text[])
       GROUP BY d.currency, GROUPING SETS ((), (d.partner_id), (w.week))
     )
     SELECT currency, CASE level WHEN 3 THEN 'currency' WHEN 1 THEN 'partner' ELSE 'week' END AS of, partner_id,
            (SELECT name FROM partners p WHERE p.partner_id = ranked.partner_id) AS partner_name,
            week, documents, open::text, overdue::text, credit::text
     FROM (SELECT *, row_number() OVER (PARTITION BY currency, level ORDER BY open DESC, partner_id) AS rank
           FROM sums WHERE level <> 2 OR week IS NOT NULL) AS ranked
     WHERE level <> 1 OR (rank <= :partners AND open > 0)
     ORDER BY currency, level, rank`,
    asked,
  );

/** An amount of a currency: received in a week, or billed in `days` if `week` is null. */
export type Flow = Billed & Readonly<{ currency: string; week: string | null }>;

/** The payer to whom a payment belongs now. Only asked for readers of some partners. */
const IN_SCOPE = `(:scope::text[] IS NULL
       OR (SELECT b.partner_id FROM payment_balances b WHERE b.payment_id = p.payment_id) = ANY (:scope::text[]))`;

/** Cash received since a day, less what was reversed of it, and what the last three closed months billed. */
export const readFlows = (tx: Transaction, asked: Asked & { receivedFrom: string }): Promise<Flow[]> =>
  query(
    tx,
    `WITH ${BILLED}
     SELECT p.currency, date_trunc('week', p.received_on)::date AS week,
            sum(p.amount - coalesce(r.amount, 0))::text AS amount, NULL::integer AS days
     FROM payments p
     LEFT JOIN (SELECT payment_id, sum(amount) AS amount FROM live_payment_reversals GROUP BY payment_id) AS r
       USING (payment_id)
     -- A payment is never entered before it is received, and entry_on has the index.
     WHERE p.entry_on >= :receivedFrom::date AND p.received_on BETWEEN :receivedFrom::date AND :today::date
       AND p.source <> 'opening' AND ${IN_SCOPE}
     GROUP BY 1, 2
     UNION ALL
     SELECT currency, NULL, sum(amount)::text, days FROM billed CROSS JOIN billed_days
     WHERE :scope::text[] IS NULL OR partner_id = ANY (:scope::text[]) GROUP BY currency, days
     ORDER BY 1, 2`,
    { ...asked, asOf: asked.today },
  );

export type ChangeKind =
  | 'invoice'
  | 'credit_note'
  | 'statement'
  | 'voided'
  | 'received'
  | 'reversed'
  | 'written_off'
  | 'disputed'
  | 'dispute_ended'
  | 'held'
  | 'released'
  | 'partners'
  | 'settings';

/** `currency` and `amount` are null for changes without money. */
export type ChangeSum = Readonly<{
  kind: ChangeKind;
  currency: string | null;
  count: number;
  amount: string | null;
}>;

/** The facts recorded since an instant, by kind and currency. */
export const readChanges = (tx: Transaction, asked: { since: string; scope: Scope }): Promise<ChangeSum[]> =>
  query(
    tx,
    `SELECT kind, currency, count(*) AS count, sum(amount)::text AS amount
     FROM (
       SELECT document AS kind, partner_id, currency, gross AS amount FROM documents WHERE issued_at >= :since
       UNION ALL
       SELECT 'voided', d.partner_id, d.currency, d.gross FROM voids v JOIN documents d USING (document_id)
       WHERE v.recorded_at >= :since
       UNION ALL
       SELECT 'received', CASE WHEN :scope::text[] IS NOT NULL THEN
                (SELECT b.partner_id FROM payment_balances b WHERE b.payment_id = p.payment_id) END, currency, amount
       FROM payments p WHERE recorded_at >= :since
       UNION ALL
       SELECT 'reversed', partner_id, currency, amount FROM payment_reversals WHERE recorded_at >= :since
       UNION ALL
       SELECT 'written_off', d.partner_id, d.currency, w.amount FROM write_offs w JOIN documents d USING (document_id)
       WHERE w.recorded_at >= :since
       UNION ALL
       SELECT 'disputed', d.partner_id, d.currency, t.amount
       FROM invoice_disputes t JOIN documents d USING (document_id) WHERE t.recorded_at >= :since
       UNION ALL
       SELECT 'dispute_ended', d.partner_id, d.currency, t.amount
       FROM invoice_dispute_closings c JOIN invoice_disputes t USING (invoice_dispute_id)
       JOIN documents d ON d.document_id = t.document_id WHERE c.recorded_at >= :since
       UNION ALL
       SELECT 'held', d.partner_id, d.currency, d.gross FROM holds h JOIN documents d USING (document_id)
       WHERE h.held_at >= :since
       UNION ALL
       SELECT 'released', d.partner_id, d.currency, d.gross FROM hold_releases r JOIN documents d USING (document_id)
       WHERE r.released_at >= :since
       UNION ALL
       SELECT 'partners', subject, NULL, NULL FROM audit_events
       WHERE action IN ('partner.create', 'partner.update') AND occurred_at >= :since
       UNION ALL
       SELECT 'settings', NULL, NULL, NULL FROM audit_events
       WHERE action IN ('settings.change', 'settings.adopt') AND occurred_at >= :since
     ) AS changed
     WHERE :scope::text[] IS NULL OR partner_id = ANY (:scope::text[])
     GROUP BY kind, currency ORDER BY kind, currency`,
    asked,
  );
