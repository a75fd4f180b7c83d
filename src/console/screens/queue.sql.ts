/** The documents that wait for a person: e-mails that were not sent, and void documents that nothing replaces. */
import { query, type Transaction } from '../../database/transaction.ts';
import type { Scope } from '../../people/scope.ts';

export interface WaitingDocument {
  readonly what: 'held' | 'failed' | 'bounced' | 'uncertain' | 'gap';
  readonly number: string;
  readonly partner_id: string;
  readonly partner_name: string;
  readonly currency: string;
  readonly amount: string;
  /** `YYYY-MM-DD` */
  readonly since: string;
  readonly reason: string | null;
  /** Finance put it on hold: nobody waits for it. */
  readonly on_hold: boolean;
}

/** The oldest first. */
export function readWaitingDocuments(tx: Transaction, scope: Scope, limit: number): Promise<WaitingDocument[]> {
  return query(
    tx,
    `SELECT w.what, d.number, d.partner_id, d.partner_name, d.currency,
            CASE w.what WHEN 'gap' THEN b.amount_due ELSE b.balance END::text AS amount,
            w.since::date AS since, w.reason, h.document_id IS NOT NULL AS on_hold
     FROM (
       SELECT e.document_id, e.status AS what, e.queued_at AS since, e.reason
       FROM latest_emails e
       WHERE e.status IN ('held', 'failed', 'bounced', 'uncertain')
         AND NOT EXISTS (SELECT FROM voids v WHERE v.document_id = e.document_id)
       UNION ALL
       SELECT v.document_id, 'gap', v.recorded_at, v.reason
       FROM voids v JOIN documents d USING (document_id)
       WHERE d.purpose = 'month'
         AND NOT EXISTS (SELECT FROM documents later WHERE later.replaces = v.document_id)
     ) AS w
     JOIN documents d USING (document_id)
     JOIN document_balances b USING (document_id)
     LEFT JOIN current_holds h USING (document_id)
     WHERE :scope::text[] IS NULL OR d.partner_id = ANY (:scope::text[])
     ORDER BY w.since, d.document_id LIMIT :limit`,
    { scope, limit },
  );
}

export interface Finding {
  readonly job: string;
  readonly item: string;
  readonly since: string;
}

/** What verify and reconcile found when they ran last. */
export const readFindings = (tx: Transaction): Promise<Finding[]> =>
  query(
    tx,
    `SELECT job, item, told_at::date AS since FROM job_attention WHERE job IN ('verify', 'reconcile')
     ORDER BY told_at, item`,
  );
