/** Puts the e-mails of documents into the outbox and takes them out, with the outbox's own functions. */
import { execute, query, type Transaction } from '../database/transaction.ts';
import type { IssueBatch } from './issue/issue.sql.ts';

export async function queueIssuedDocuments(tx: Transaction, batch: IssueBatch): Promise<void> {
  await execute(
    tx,
    `SELECT queue_document_emails(array_agg(document_id), :askedFor::text, NULL, :eventId::bigint, :mailDomain::text,
                                  :now::timestamptz)
     FROM pg_temp.issued_documents HAVING count(*) > 0`,
    { ...batch },
  );
}

export async function queueResends(
  tx: Transaction,
  {
    documents,
    ...given
  }: {
    /** `addressed_to` is an address that replaces the partner's contacts. */
    documents: readonly { readonly document_id: number | null; readonly addressed_to: string | null }[];
    eventId: number;
    mailDomain: string;
    now: string;
  },
): Promise<void> {
  await execute(
    tx,
    `SELECT queue_document_emails(array_agg(d.document_id ORDER BY d.document_id), 'resend', d.addressed_to,
                                  :eventId::bigint, :mailDomain::text, :now::timestamptz)
     FROM json_to_recordset(:documents::json) AS d (document_id bigint, addressed_to text) GROUP BY d.addressed_to`,
    { ...given, documents: JSON.stringify(documents) },
  );
}

/** Requests that delivery sync the payment links of documents. */
export async function requestLinkChecks(tx: Transaction, documentIds: readonly number[]): Promise<void> {
  await execute(tx, `SELECT request_link_checks(:ids::bigint[])`, { ids: documentIds });
}

/**
 * Withdraws the unsent e-mails of void documents and returns their new status. Skips those that a worker is sending.
 * One that may have arrived becomes uncertain instead.
 */
export function withdrawEmails(
  tx: Transaction,
  documentIds: readonly number[],
): Promise<{ status: 'withdrawn' | 'uncertain'; reason: string }[]> {
  return query(tx, `SELECT status, reason FROM withdraw_document_emails(:documentIds::bigint[])`, { documentIds });
}

export async function holdEmail(tx: Transaction, documentId: number, reason: string): Promise<void> {
  await execute(tx, `SELECT hold_document_emails(ARRAY[:documentId::bigint], :reason::text)`, { documentId, reason });
}

export async function releaseEmail(tx: Transaction, documentId: number): Promise<void> {
  await execute(tx, `SELECT release_document_emails(ARRAY[:documentId::bigint])`, { documentId });
}
