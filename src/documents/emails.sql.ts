/** Puts the e-mails of documents into the outbox and takes them out, with the outbox's own functions. */
import { execute, executing, querying, Transaction } from '#database/transaction';
import { IssueBatch } from './issue/issue.sql.ts';

export const queueIssuedDocuments = executing<IssueBatch>(`
  SELECT queue_document_emails(array_agg(document_id), :askedFor::text, NULL, :eventId::bigint, :mailDomain::text,
                               :now::timestamptz)
  FROM pg_temp.issued_documents HAVING count(*) > 0`);

export async function queueResends(
  tx: Transaction,
  {
    documents,
    ...given
  }: {
    /** `addressed_to` is an address that replaces the partner's contacts. */
    documents: readonly Readonly<{ document_id: number | null; addressed_to: string | null }>[];
    eventId: number;
    mailDomain: string;
    now: string;
  },
) {
  await execute(
    tx,
    `SELECT queue_document_emails(array_agg(d.document_id ORDER BY d.document_id), 'resend', d.addressed_to,
                                  :eventId::bigint, :mailDomain::text, :now::timestamptz)
     FROM json_to_recordset(:documents::json) AS d (document_id bigint, addressed_to text) GROUP BY d.addressed_to`,
    { ...given, documents },
  );
}

/** Requests that delivery sync the payment links of documents. */
export const requestLinkChecks = executing<{ ids: readonly number[] }>(`SELECT request_link_checks(:ids::bigint[])`);

/**
 * Withdraws the unsent e-mails of documents that were voided, or delivered by portal. Returns their new status. Skips those that a worker is sending.
 * One that may have arrived becomes uncertain instead.
 */
export const withdrawEmails = querying<
  { status: 'withdrawn' | 'uncertain'; reason: string },
  { documentIds: readonly number[]; happened: 'voided' | 'delivered by portal' }
>(`SELECT status, reason FROM withdraw_document_emails(:documentIds::bigint[], :happened)`);

export const holdEmail = executing<{ documentId: number; reason: string }>(
  `SELECT hold_document_emails(ARRAY[:documentId::bigint], :reason::text)`,
);

export const releaseEmail = executing<{ documentId: number }>(
  `SELECT release_document_emails(ARRAY[:documentId::bigint])`,
);
