/** Puts the e-mails of documents into the outbox and takes them out, by the outbox's own functions. */
import { execute, query, type Transaction } from '../database/transaction.ts';
import type { IssueBatch } from './issue/issue.sql.ts';

/** Queues the first e-mail of each document just issued, under a permanent Message-ID. */
export async function queueIssuedDocuments(tx: Transaction, batch: IssueBatch): Promise<void> {
  await execute(
    tx,
    `SELECT queue_document_emails(array_agg(document_id), :askedFor::text, NULL, :eventId::bigint, :mailDomain::text,
                                  :now::timestamptz)
     FROM pg_temp.issued_documents HAVING count(*) > 0`,
    { ...batch },
  );
}

interface RepeatedEmail {
  readonly documentId: number;
  /** An address that replaces the partner's contacts. */
  readonly addressedTo: string | null;
  readonly eventId: number;
  readonly mailDomain: string;
  readonly now: string;
}

/** Queues another e-mail of a document, under a permanent Message-ID. */
export async function queueResend(tx: Transaction, email: RepeatedEmail): Promise<void> {
  await execute(
    tx,
    `SELECT queue_document_emails(ARRAY[:documentId::bigint], 'resend', :addressedTo::text, :eventId::bigint,
                                  :mailDomain::text, :now::timestamptz)`,
    { ...email },
  );
}

/** Asks delivery to check documents: their payment links follow what has changed. */
export async function requestLinkChecks(tx: Transaction, documentIds: readonly number[]): Promise<void> {
  await execute(tx, `SELECT request_link_checks(:ids::bigint[])`, { ids: documentIds });
}

/**
 * Withdraws the unsent e-mails of void documents and returns their new status; none if a worker is sending it. An
 * e-mail with an attempt of unknown outcome may have arrived: it becomes uncertain instead, for manual review.
 */
export function withdrawEmails(
  tx: Transaction,
  documentIds: readonly number[],
): Promise<{ status: 'withdrawn' | 'uncertain'; reason: string }[]> {
  return query(tx, `SELECT status, reason FROM withdraw_document_emails(:documentIds::bigint[])`, { documentIds });
}

/** Holds the unsent e-mail of a document. */
export async function holdEmail(tx: Transaction, documentId: number, reason: string): Promise<void> {
  await execute(tx, `SELECT hold_document_emails(ARRAY[:documentId::bigint], :reason::text)`, { documentId, reason });
}

/** Queues the held e-mail of a document again. */
export async function releaseEmail(tx: Transaction, documentId: number): Promise<void> {
  await execute(tx, `SELECT release_document_emails(ARRAY[:documentId::bigint])`, { documentId });
}
