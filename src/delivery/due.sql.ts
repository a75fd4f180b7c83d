import { DueItems } from '#database/claims';
import { execute, executing, prepared, querying, queryOne, Transaction } from '#database/transaction';
import { EmailStatus } from '#mail/email';
import { LinkWork, linksOutOfSync } from './links/links.sql.ts';

/**
 * Makes undelivered documents due, also held ones, whose data may have been supplied, and those whose payment link
 * needs work. Returns their number.
 */
export async function wakeDocuments(
  tx: Transaction,
  links: LinkWork,
  statuses: readonly EmailStatus[] = ['queued', 'sending', 'held'],
) {
  if (links === 'nothing') {
    await execute(
      tx,
      `DELETE FROM link_checks c USING documents d WHERE d.document_id = c.document_id AND d.opening_id IS NULL`,
    );
  }
  await execute(
    tx,
    `INSERT INTO link_checks (document_id)
     SELECT document_id FROM (
       -- Documents carried over by an opening have no e-mail, only a payment link.
       SELECT d.document_id FROM documents d
       WHERE d.opening_id IS NOT NULL AND d.document = 'invoice' AND 'queued' = ANY (:statuses)
         AND d.document_id IN (SELECT document_id FROM open_documents)
         AND NOT EXISTS (SELECT FROM payment_links k WHERE k.document_id = d.document_id)
       ${links === 'nothing' ? '' : `UNION ${linksOutOfSync(links)}`}) AS unfinished
     ORDER BY document_id
     ON CONFLICT DO NOTHING`,
    { statuses },
  );
  // Last, in a fixed order, and without locked rows, so that no process waits for another or a long import.
  await execute(
    tx,
    `UPDATE emails SET due_at = now()
     WHERE email_id IN (
       SELECT email_id FROM emails
       WHERE document_id IS NOT NULL AND status = ANY (:statuses) AND due_at > now()
       ORDER BY email_id FOR UPDATE SKIP LOCKED)`,
    { statuses },
  );
  const { documents } = await queryOne<{ documents: number }>(
    tx,
    `SELECT count(*) AS documents
     FROM (SELECT document_id FROM emails WHERE document_id IS NOT NULL AND status = ANY (:statuses)
           UNION
           SELECT document_id FROM link_checks) AS unfinished`,
    { statuses },
  );
  return documents;
}

export const DUE_DOCUMENTS: DueItems = {
  kind: 'document',
  due: (free) => `
    WITH with_email AS MATERIALIZED (
      SELECT e.document_id FROM emails e
      WHERE e.document_id IS NOT NULL AND e.status IN ('queued', 'sending', 'held') AND e.due_at <= now()
        AND ${free('e.document_id')}
      ORDER BY e.due_at, e.email_id LIMIT :most FOR UPDATE SKIP LOCKED),
    with_link AS MATERIALIZED (
      SELECT c.document_id FROM link_checks c
      WHERE ${free('c.document_id')} AND c.document_id NOT IN (SELECT document_id FROM with_email)
      ORDER BY c.document_id LIMIT :most - (SELECT count(*) FROM with_email) FOR UPDATE SKIP LOCKED)
    SELECT document_id AS key FROM with_email UNION ALL SELECT document_id FROM with_link`,
};

export const theseDocuments = (documentIds: readonly number[]): DueItems => ({
  kind: 'document',
  due: (free) => `
    SELECT id AS key FROM unnest(:documentIds::bigint[]) WITH ORDINALITY AS d (id, position)
    WHERE ${free('id')} ORDER BY position LIMIT :most`,
  bindings: () => ({ documentIds }),
});

/** A request to check a document's link. The field `asked` contains the state of the request when it was read. */
export type LinkCheck = Readonly<{
  document_id: number;
  asked: number;
}>;

const LINK_CHECKS = prepared(
  'delivery.link_checks',
  `SELECT document_id, asked FROM link_checks WHERE document_id = ANY (:documentIds)`,
);

export const readLinkChecks = querying<LinkCheck, { documentIds: readonly number[] }>(LINK_CHECKS);

/** Deletes requests to check a link, unless they were or are being repeated after they were read. */
export const endLinkChecks = executing<{ checks: readonly LinkCheck[] }>(`
  DELETE FROM link_checks WHERE document_id IN (
    SELECT c.document_id FROM link_checks c
    JOIN json_populate_recordset(NULL::link_checks, :checks::json) AS d USING (document_id, asked)
    ORDER BY c.document_id FOR UPDATE OF c SKIP LOCKED)`);
