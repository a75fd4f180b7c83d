/** The documents whose e-mails wait for a person, and what the other items of the work queue are made of. */
import { query, type Transaction } from '../../database/transaction.ts';
import type { Scope } from '../../people/scope.ts';

export interface WaitingDocument {
  readonly what: 'held' | 'failed' | 'bounced' | 'uncertain' | 'queued';
  readonly number: string;
  readonly partner_id: string;
  readonly partner_name: string;
  readonly currency: string;
  readonly amount: string;
  /** `YYYY-MM-DD` */
  readonly since: string;
  readonly reason: string | null;
}

/** The oldest first. An e-mail that is queued since before `queuedBefore` is one that no mail server takes. */
export function readWaitingDocuments(
  tx: Transaction,
  asked: { readonly scope: Scope; readonly queuedBefore: string; readonly limit: number },
): Promise<WaitingDocument[]> {
  return query(
    tx,
    `SELECT e.status AS what, d.number, d.partner_id, d.partner_name, d.currency, b.balance::text AS amount,
            e.queued_at::date AS since, e.reason
     FROM unfinished_emails JOIN document_emails e USING (email_id, document_id)
     JOIN documents d USING (document_id) JOIN document_balances b USING (document_id)
     WHERE (e.status IN ('held', 'failed', 'bounced', 'uncertain')
            OR (e.status = 'queued' AND e.queued_at < :queuedBefore::timestamptz))
       AND NOT EXISTS (SELECT FROM current_holds h WHERE h.document_id = e.document_id)
       AND (:scope::text[] IS NULL OR d.partner_id = ANY (:scope::text[]))
     ORDER BY e.queued_at, d.document_id LIMIT :limit`,
    asked,
  );
}

/** The names of partners, by their ids. */
export async function readNamesOf(tx: Transaction, ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await query<{ partner_id: string; name: string }>(
    tx,
    `SELECT partner_id, name FROM partners WHERE partner_id = ANY (:ids::text[])`,
    { ids },
  );
  return new Map(rows.map(({ partner_id, name }) => [partner_id, name]));
}

/** What is known of documents with trouble in their links. */
export function readLinkedDocuments(
  tx: Transaction,
  { numbers, scope }: { numbers: readonly string[]; scope: Scope },
): Promise<Omit<WaitingDocument, 'what' | 'reason'>[]> {
  return query(
    tx,
    `SELECT d.number, d.partner_id, d.partner_name, d.currency, b.balance::text AS amount,
            coalesce(w.since::date, d.issued_on) AS since
     FROM documents d JOIN document_balances b USING (document_id) LEFT JOIN payment_link_waits w USING (document_id)
     WHERE d.number = ANY (:numbers::text[]) AND (:scope::text[] IS NULL OR d.partner_id = ANY (:scope::text[]))`,
    { numbers, scope },
  );
}

export interface JobFinding {
  readonly job: 'verify' | 'reconcile';
  readonly item: string;
  readonly count: number;
  readonly since: string;
}

/** What verify and reconcile found when they ran last. */
export const readJobFindings = (tx: Transaction): Promise<JobFinding[]> =>
  query(
    tx,
    `SELECT job, item, count, told_at::date AS since FROM job_attention WHERE job IN ('verify', 'reconcile')
     ORDER BY told_at, job, item`,
  );
