import { query, type Transaction } from '../database/transaction.ts';

export interface JudgedMonth {
  /** `YYYY-MM`, the month of the receipt. */
  readonly month: string;
  readonly credits: number;
  readonly applied: number;
  readonly undone: number;
  readonly touchless: number;
}

export interface UndoneCredit {
  readonly payment_id: number;
  readonly received_on: string;
  readonly currency: string;
  readonly amount: string;
  readonly how: 'unapplied' | 'reassigned' | 'mistake' | 'duplicate' | 'other';
  readonly undone_on: string;
}

/**
 * One row for each credit of the bank files. What a person undid is wrong, unless the same payment pays the same invoice
 * or its replacement again, or the money went back to the payer.
 */
const JUDGED = `
     WITH automatic AS (
       SELECT a.payment_id, a.amount, a.event_id, coalesce(r.kind, 'unapplied') AS how, u.unapplied_on,
              u.payment_application_id IS NOT NULL
                AND (r.kind IS NULL OR r.kind NOT IN ('returned', 'refunded', 'disputed'))
                AND NOT EXISTS (SELECT FROM live_payment_applications l JOIN documents d USING (document_id)
                                WHERE l.payment_id = a.payment_id AND a.document_id IN (d.document_id, d.replaces))
                AS is_undone
       FROM payment_applications a
       LEFT JOIN payment_unapplications u USING (payment_application_id)
       LEFT JOIN payment_reversals r USING (payment_reversal_id)
       WHERE a.evidence->>'rule' NOT IN ('by_hand', 'reapplied')
     ), by_payment AS (
       SELECT payment_id, sum(amount) AS amount, min(event_id) AS event_id,
              min(how) FILTER (WHERE is_undone) AS how, min(unapplied_on) FILTER (WHERE is_undone) AS undone_on
       FROM automatic GROUP BY payment_id
     ), judged AS (
       SELECT p.payment_id, p.received_on, p.currency, p.amount, a.payment_id IS NOT NULL AS is_applied,
              coalesce(a.how, CASE WHEN n.assigned_on IS NOT NULL THEN 'reassigned' END) AS how,
              coalesce(a.undone_on, n.assigned_on) AS undone_on,
              a.amount >= p.amount AND h.payment_id IS NULL AS is_untouched
       FROM payments p
       LEFT JOIN by_payment a USING (payment_id)
       LEFT JOIN (SELECT DISTINCT payment_id FROM payment_applications WHERE evidence->>'rule' = 'by_hand'
                  UNION SELECT payment_id FROM payment_assignments WHERE kind = 'named') AS h USING (payment_id)
       LEFT JOIN LATERAL (
         SELECT min(g.assigned_on) AS assigned_on FROM payment_assignments g
         WHERE g.payment_id = p.payment_id AND g.kind = 'named' AND g.from_partner_id IS NOT NULL
           AND g.event_id > a.event_id) AS n ON true
       WHERE EXISTS (SELECT FROM payment_sources s WHERE s.payment_id = p.payment_id AND s.source = 'bank')
     )`;

export const readJudgedMonths = (tx: Transaction): Promise<JudgedMonth[]> =>
  query(
    tx,
    `${JUDGED}
     SELECT to_char(received_on, 'YYYY-MM') AS month, count(*)::int AS credits,
            count(*) FILTER (WHERE is_applied)::int AS applied, count(how)::int AS undone,
            count(*) FILTER (WHERE is_untouched AND how IS NULL)::int AS touchless
     FROM judged GROUP BY 1 ORDER BY 1 DESC`,
  );

/** The credits whose automatic application was undone, the latest first. */
export const readUndoneCredits = (tx: Transaction, { limit }: { limit: number }): Promise<UndoneCredit[]> =>
  query(
    tx,
    `${JUDGED}
     SELECT payment_id, received_on, currency, amount, how, undone_on
     FROM judged WHERE how IS NOT NULL ORDER BY undone_on DESC, payment_id DESC LIMIT :limit`,
    { limit },
  );
