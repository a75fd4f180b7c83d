/** How the e-mails of documents enter and leave the queue. */
import { execute, query, type Transaction } from '../database/transaction.ts';
import type { IssueBatch } from './issue/context.ts';

/** Queues the first e-mail of each document just issued, under a Message-ID that stays. */
export async function queueIssuedDocuments(tx: Transaction, batch: IssueBatch): Promise<void> {
  await execute(
    tx,
    `INSERT INTO sendings (document_id, asked_for, message_id, status, queued_at, event_id)
     SELECT d.document_id, :askedFor, '<' || d.number || '.1.' || i.installation_id || '@' || :mailDomain || '>',
            'queued', :now::timestamptz, :eventId::bigint
     FROM pg_temp.issued_documents JOIN documents d USING (document_id) CROSS JOIN installation i
     ORDER BY d.document_id`,
    { ...batch },
  );
  await execute(
    tx,
    `SELECT enqueue_deliveries(array_agg(document_id)) FROM pg_temp.issued_documents HAVING count(*) > 0`,
  );
}

export interface RepeatedEmail {
  readonly documentId: number;
  /** An address that replaces the partner's contacts. */
  readonly addressedTo: string | null;
  readonly eventId: number;
  readonly mailDomain: string;
  readonly now: string;
}

/** Queues one more e-mail of a document, under a Message-ID that stays. */
export async function queueResend(tx: Transaction, email: RepeatedEmail): Promise<void> {
  await execute(
    tx,
    `INSERT INTO sendings (document_id, asked_for, message_id, status, queued_at, event_id, addressed_to)
     SELECT d.document_id, 'resend',
            format('<%s.%s.%s@%s>', d.number,
                   (SELECT count(*) + 1 FROM sendings s WHERE s.document_id = d.document_id), i.installation_id,
                   :mailDomain::text),
            'queued', :now::timestamptz, :eventId::bigint, :addressedTo
     FROM documents d CROSS JOIN installation i WHERE d.document_id = :documentId`,
    { ...email },
  );
  await enqueueDeliveries(tx, [email.documentId]);
}

/** Asks delivery to look at documents: their payment links and e-mails follow what has changed. */
export async function enqueueDeliveries(tx: Transaction, documentIds: readonly number[]): Promise<void> {
  await execute(tx, `SELECT enqueue_deliveries(:ids::bigint[])`, { ids: documentIds });
}

/**
 * Withdraws the unsent e-mails of void documents and returns what became of them; none if a worker is sending it. An
 * e-mail with an attempt of unknown outcome may have arrived: it becomes uncertain instead, for manual review.
 */
export function withdrawEmails(
  tx: Transaction,
  documentIds: readonly number[],
): Promise<{ status: 'withdrawn' | 'uncertain'; reason: string }[]> {
  return query(
    tx,
    `UPDATE sendings SET message = NULL, drawing_at = NULL,
            status = CASE WHEN unclear_attempts > 0 THEN 'uncertain' ELSE 'withdrawn' END,
            reason = CASE WHEN unclear_attempts > 0
                          THEN 'it may have arrived; the document was voided before it was sent again'
                          ELSE 'the document was voided before it was sent' END
     WHERE document_id = ANY (:documentIds::bigint[]) AND status IN ('queued', 'held') RETURNING status, reason`,
    { documentIds },
  );
}

/** Holds the unsent e-mail of a document. */
export async function holdEmail(tx: Transaction, documentId: number, reason: string): Promise<void> {
  await execute(
    tx,
    `UPDATE sendings SET status = 'held', reason = :reason
     WHERE document_id = :documentId AND status IN ('queued', 'held')`,
    { documentId, reason },
  );
}

/** Queues the held e-mail of a document again. */
export async function releaseEmail(tx: Transaction, documentId: number): Promise<void> {
  await execute(
    tx,
    `UPDATE sendings SET status = 'queued', reason = NULL WHERE document_id = :documentId AND status = 'held'`,
    { documentId },
  );
  await enqueueDeliveries(tx, [documentId]);
}
