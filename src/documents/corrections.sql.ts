import { execute, querying, Transaction } from '#database/transaction';
import { holdEmail, releaseEmail, requestLinkChecks, withdrawEmails } from './emails.sql.ts';

const REOPENED_ON = 'greatest(earliest_postable_date(), document_reopened_on(:documentId::bigint))';

type VoidFacts = Readonly<{
  documents: readonly Readonly<{ document_id: number; reason: string }>[];
  today: string;
  now: string;
  eventId: number;
}>;

/**
 * Voids documents, releases the credit applied to them and withdraws their unsent e-mails. Delivery then closes their
 * payment links.
 */
export async function voidDocuments(tx: Transaction, facts: VoidFacts) {
  const ids = facts.documents.map((each) => each.document_id);
  const bindings = { ...facts, ids };
  await execute(
    tx,
    `INSERT INTO voids (document_id, partner_id, month, currency, arrangement, reason, voided_on, recorded_at, event_id)
     SELECT d.document_id, d.partner_id, d.month, d.currency, d.arrangement, v.reason, :today::date,
            :now::timestamptz, :eventId::bigint
     FROM json_populate_recordset(NULL::voids, :documents::json) AS v
     JOIN documents d ON d.document_id = v.document_id`,
    bindings,
  );
  await execute(
    tx,
    `INSERT INTO credit_releases (
       credit_application_id, document_id, released_on, recorded_at, event_id, reopened_on)
     SELECT credit_application_id, invoice_id, :today::date, :now::timestamptz, :eventId::bigint,
            greatest(earliest_postable_date(), entry_on)
     FROM live_credit_applications WHERE invoice_id = ANY (:ids::bigint[])`,
    bindings,
  );
  await withdrawEmails(tx, { documentIds: ids, happened: 'voided' });
  await requestLinkChecks(tx, { ids });
}

export async function insertPortalDelivery(
  tx: Transaction,
  delivery: Readonly<{ documentId: number; on: string; reference: string; now: string; eventId: number }>,
) {
  await execute(
    tx,
    `INSERT INTO portal_deliveries (document_id, delivered_on, reference, recorded_at, event_id)
     VALUES (:documentId::bigint, :on::date, :reference, :now::timestamptz, :eventId::bigint)`,
    delivery,
  );
  await withdrawEmails(tx, { documentIds: [delivery.documentId], happened: 'delivered by portal' });
}

/** The live credit notes against an invoice and against the void invoices that it replaces. */
export const readCreditsAgainst = querying<
  { number: string; amount: string; gross: string; reason: string; issued_on: string },
  { documentId: number }
>(`
  WITH RECURSIVE chain AS (
    SELECT document_id, replaces FROM documents WHERE document_id = :documentId
    UNION ALL
    SELECT d.document_id, d.replaces FROM documents d JOIN chain c ON d.document_id = c.replaces
  )
  SELECT n.number, n.invoice_amount AS amount, n.gross, n.reason, n.issued_on
  FROM chain c JOIN live_documents n ON n.credits = c.document_id
  ORDER BY n.document_id`);

export type WriteOffFacts = Readonly<{
  documentId: number;
  amount: string;
  reason: string;
  today: string;
  now: string;
  eventId: number;
}>;

export async function insertWriteOff(tx: Transaction, facts: WriteOffFacts) {
  await execute(
    tx,
    `INSERT INTO write_offs (document_id, amount, reason, written_off_on, recorded_at, event_id, reopened_on)
     VALUES (:documentId, :amount::numeric, :reason, :today::date, :now::timestamptz, :eventId,
             ${REOPENED_ON})`,
    { ...facts },
  );
  await requestLinkChecks(tx, { ids: [facts.documentId] });
}

/** Reverses the write-offs of an invoice that are not reversed yet, and requests its payment link again. */
export async function insertWriteOffReversals(tx: Transaction, { amount: _, ...facts }: WriteOffFacts) {
  await execute(
    tx,
    `INSERT INTO write_off_reversals (write_off_id, reason, reversed_on, recorded_at, event_id, reopened_on)
     SELECT write_off_id, :reason, greatest(:today::date, written_off_on), :now::timestamptz, :eventId::bigint,
            greatest(earliest_postable_date(), entry_on)
     FROM live_write_offs WHERE document_id = :documentId::bigint`,
    facts,
  );
  await requestLinkChecks(tx, { ids: [facts.documentId] });
}

/** Puts a document on hold, with its e-mail unless a worker is sending it. `why` is the e-mail's hold reason. */
export async function insertHold(
  tx: Transaction,
  facts: { documentId: number; reason: string; why: string; now: string; eventId: number },
) {
  await execute(
    tx,
    `INSERT INTO holds (document_id, follows, reason, held_at, event_id)
     SELECT :documentId, (SELECT max(hold_id) FROM holds WHERE document_id = :documentId), :reason,
            :now::timestamptz, :eventId::bigint`,
    facts,
  );
  await holdEmail(tx, { documentId: facts.documentId, reason: facts.why });
}

export async function insertRelease(tx: Transaction, facts: { documentId: number; now: string; eventId: number }) {
  await execute(
    tx,
    `INSERT INTO hold_releases (hold_id, document_id, released_at, event_id)
     SELECT max(hold_id), document_id, :now::timestamptz, :eventId::bigint
     FROM holds WHERE document_id = :documentId GROUP BY document_id`,
    facts,
  );
  await releaseEmail(tx, { documentId: facts.documentId });
}
