/** SQL over what delivery adds to issued documents: links, drawings, sendings; and over the workers that do it. */
import type { Instructions } from '../config.ts';
import { execute, query, queryOne, type Transaction } from '../database/transaction.ts';
import type { EmailStatus } from '../documents/queries.ts';
import { type LinkWork, unsettledLinks } from './links/queries.ts';

export interface SendingRow {
  readonly sending_id: number;
  readonly status: EmailStatus | 'withdrawn';
  readonly reason: string | null;
  readonly message_id: string;
  readonly message: Buffer | null;
  readonly recipients: string[] | null;
  readonly envelope_from: string | null;
  readonly attempts: number;
  readonly unclear_attempts: number;
  readonly worker: number | null;
  readonly worker_lives: boolean;
  readonly contact_name: string;
  readonly contact_email: string;
  readonly contact_cc: string[];
  /** Whom a person named instead of these contacts. */
  readonly addressed_to: string | null;
  readonly entries: number;
}

/** The class of the advisory locks that workers hold by their number. */
export const WORKER_LOCKS = 7311;

/** Whether the worker of a number lives: its lock goes with its connection. */
export const workerLives = (number: string) => `
  EXISTS (SELECT FROM pg_locks l JOIN pg_database b ON b.oid = l.database
          WHERE b.datname = current_database() AND l.locktype = 'advisory'
            AND l.classid = ${WORKER_LOCKS} AND l.objid = ${number} AND l.objsubid = 2)`;

/** The document's latest sending, with the partner's present contacts. */
export function readSending(tx: Transaction, documentId: number): Promise<SendingRow | undefined> {
  return query<SendingRow>(
    tx,
    `SELECT s.sending_id, s.status, s.reason, s.message_id, s.message, s.recipients, s.envelope_from,
            s.attempts, s.unclear_attempts, s.worker, ${workerLives('s.worker')} AS worker_lives,
            p.contact_name, p.contact_email, p.contact_cc, s.addressed_to, d.entries
     FROM sendings s
     JOIN documents d ON d.document_id = s.document_id
     JOIN partners p ON p.partner_id = d.partner_id
     WHERE s.document_id = :documentId
     ORDER BY s.sending_id DESC LIMIT 1`,
    { documentId },
  ).then((rows) => rows[0]);
}

/** Keeps a link, and gives the URL of the one that is kept: where another worker was first, that of its link. */
export async function recordPaymentLink(
  tx: Transaction,
  link: { documentId: number; provider: string; token: string; url: string; now: string },
): Promise<string> {
  await execute(
    tx,
    `INSERT INTO payment_links (document_id, provider, token, url, created_at)
     VALUES (:documentId, :provider, :token, :url, CAST(:now AS timestamptz))
     ON CONFLICT (document_id) DO NOTHING`,
    link,
  );
  // A statement of its own: only a new snapshot sees what another worker committed while the insert waited for it.
  const { url } = await queryOne<{ url: string }>(tx, `SELECT url FROM payment_links WHERE document_id = :documentId`, {
    documentId: link.documentId,
  });
  return url;
}

/** The links that documents printed. */
export function readPaymentLinks(
  tx: Transaction,
  documentIds: readonly number[],
): Promise<{ document_id: number; provider: string; token: string; url: string }[]> {
  return query(
    tx,
    `SELECT document_id, provider, token, url FROM payment_links
     WHERE document_id = ANY (CAST(:documentIds AS bigint[]))`,
    { documentIds },
  );
}

/** The version of these instructions, new or known, and whether this partner's last invoice carried another. */
export async function recordInstructionVersion(
  tx: Transaction,
  facts: { documentId: number; partnerId: string; currency: string; instructions: Instructions; now: string },
): Promise<{ id: number; changed: boolean }> {
  const bindings = { ...facts, content: JSON.stringify(facts.instructions), instructions: null };
  await execute(
    tx,
    `INSERT INTO instruction_versions (currency, content, first_used_at)
     VALUES (:currency, CAST(:content AS jsonb), CAST(:now AS timestamptz))
     ON CONFLICT ON CONSTRAINT instruction_version_once DO NOTHING`,
    bindings,
  );
  // A statement of its own, see recordPaymentLink.
  const { id } = await queryOne<{ id: number }>(
    tx,
    `SELECT instruction_version_id AS id FROM instruction_versions
     WHERE currency = :currency AND content = CAST(:content AS jsonb)`,
    bindings,
  );
  const last = await query<{ id: number }>(
    tx,
    `SELECT w.instruction_version_id AS id
     FROM drawings w JOIN documents d USING (document_id)
     WHERE d.partner_id = :partnerId AND d.currency = :currency AND d.document_id < :documentId
       AND w.instruction_version_id IS NOT NULL
     ORDER BY d.document_id DESC LIMIT 1`,
    bindings,
  );
  return { id, changed: last[0] !== undefined && last[0].id !== id };
}

export interface DrawingFacts {
  readonly documentId: number;
  readonly drawingVersion: number;
  readonly libraries: Readonly<Record<string, string>>;
  readonly instructionVersionId: number | null;
  readonly instructionsChanged: boolean;
  readonly sha256: string;
  readonly pdf: Buffer;
  readonly now: string;
}

/** Keeps a drawing. Where another worker kept one first, that one counts. */
export async function recordDrawing(tx: Transaction, drawing: DrawingFacts): Promise<void> {
  await execute(
    tx,
    `INSERT INTO drawings (
       document_id, drawing_version, libraries, instruction_version_id, instructions_changed, sha256, pdf, drawn_at)
     VALUES (:documentId, :drawingVersion, CAST(:libraries AS jsonb), :instructionVersionId, :instructionsChanged,
             :sha256, :pdf, CAST(:now AS timestamptz))
     ON CONFLICT (document_id) DO NOTHING`,
    { ...drawing, libraries: JSON.stringify(drawing.libraries) },
  );
}

/** The kept drawing with what its face carried besides the frozen document. */
export function readDrawing(
  tx: Transaction,
  documentId: number,
): Promise<{ pdf: Buffer; instructions: Instructions | null; instructions_changed: boolean } | undefined> {
  return query<{ pdf: Buffer; instructions: Instructions | null; instructions_changed: boolean }>(
    tx,
    `SELECT w.pdf, v.content AS instructions, w.instructions_changed
     FROM drawings w LEFT JOIN instruction_versions v USING (instruction_version_id)
     WHERE w.document_id = :documentId`,
    { documentId },
  ).then((rows) => rows[0]);
}

/**
 * Rows that a document bills, in ledger order; none for a credit against an invoice, which bills nothing. An invoice for
 * missing shares bills what did not come of quotes: their rows.
 */
export function readDocumentRows(tx: Transaction, documentId: number): Promise<Record<string, string | null>[]> {
  return query(
    tx,
    `SELECT e.kind, e.partner_id, e.quote_id, e.requote_id, e.reversal_id, e.enrollment_id, e.policy_id, e.currency,
            e.accepted_at, e.spot_price AS "spotPrice", e.partner_cut AS "partnerCut",
            e.invoice_amount AS "invoiceAmount", e.entry_id::text AS entry_id, e.billed_month AS posted_month,
            e.recorded_at, e.number AS document
     FROM (
       SELECT e.*, d.month AS billed_month, d.number
       FROM documents d
       JOIN closed_months m ON m.month = d.month
       JOIN entries e ON e.partner_id = d.partner_id AND e.currency = d.currency AND e.arrangement = d.arrangement
         AND e.posted_month > coalesce(m.previous, '') AND e.posted_month <= m.month
       WHERE d.document_id = :documentId AND d.purpose = 'month'
       UNION ALL
       SELECT e.*, e.posted_month, d.number
       FROM documents d
       JOIN missing_shares b ON b.document_id = d.document_id
       JOIN entries e ON e.partner_id = b.partner_id AND e.quote_id = b.quote_id AND e.arrangement = d.arrangement
       WHERE d.document_id = :documentId AND d.purpose = 'missing_shares') AS e
     ORDER BY e.entry_id`,
    { documentId },
  );
}

export interface Claim {
  readonly sendingId: number;
  /** As they were read: another attempt since then may have left bytes that must be repeated. */
  readonly attempts: number;
  readonly worker: number;
  readonly recipients: readonly string[];
  readonly envelopeFrom: string;
  readonly message: Buffer;
  readonly sha256: string;
  readonly now: string;
}

/**
 * Says, before the mail server is called, what is about to be sent and by whom. False where another worker did, where
 * the document was voided or put on hold since it was read, or where this one's own lock is gone, so that others may
 * take it for dead.
 */
export async function claimSending(tx: Transaction, claim: Claim): Promise<boolean> {
  // First the row alone: only a statement begun after that sees the hold of whoever had it before.
  await execute(tx, `SELECT FROM sendings WHERE sending_id = :sendingId FOR UPDATE`, { sendingId: claim.sendingId });
  const claimed = await execute(
    tx,
    `UPDATE sendings SET status = 'sending', worker = :worker, recipients = CAST(:recipients AS text[]),
            envelope_from = :envelopeFrom, message = :message, message_sha256 = :sha256, attempts = attempts + 1,
            attempted_at = CAST(:now AS timestamptz), reason = NULL
     WHERE sending_id = :sendingId AND status IN ('queued', 'held') AND attempts = :attempts
       AND NOT EXISTS (
         SELECT FROM holds h WHERE h.document_id = sendings.document_id
         AND NOT EXISTS (SELECT FROM hold_releases r WHERE r.hold_id = h.hold_id))
       AND ${workerLives('CAST(:worker AS bigint)')}`,
    { ...claim },
  );
  return claimed === 1;
}

export interface Settlement {
  readonly sendingId: number;
  /** Whose attempt it was. */
  readonly worker: number | null;
  readonly status: 'queued' | 'sent' | 'failed' | 'uncertain';
  readonly reason: string;
  /** The attempt's end was not seen: keep the bytes and count it. */
  readonly unclear: boolean;
  readonly now: string;
}

/**
 * Records how an attempt ended; false where it is another worker's by now. The bytes stay only while a repetition must
 * be the same.
 */
export async function settleSending(tx: Transaction, settlement: Settlement): Promise<boolean> {
  const settled = await execute(
    tx,
    `UPDATE sendings SET status = :status, worker = NULL, reason = :reason,
            unclear_attempts = unclear_attempts + CASE WHEN :unclear THEN 1 ELSE 0 END,
            message = CASE WHEN :status = 'queued' AND (:unclear OR unclear_attempts > 0) THEN message END,
            sent_at = CASE WHEN :status = 'sent' THEN CAST(:now AS timestamptz) END
     WHERE sending_id = :sendingId AND status = 'sending' AND worker = :worker`,
    { ...settlement },
  );
  return settled === 1;
}

/** Says in `status` why a document still waits, where no step of its delivery could say so itself. */
export async function noteFailure(tx: Transaction, documentId: number, reason: string): Promise<void> {
  await execute(tx, `UPDATE sendings SET reason = :reason WHERE document_id = :documentId AND status = 'queued'`, {
    documentId,
    reason,
  });
}

export async function holdSending(tx: Transaction, sendingId: number, reason: string): Promise<void> {
  await execute(
    tx,
    `UPDATE sendings SET status = 'held', reason = :reason WHERE sending_id = :sendingId AND status IN ('queued', 'held')`,
    { sendingId, reason },
  );
}

/**
 * Queues every document whose delivery is not finished, those on hold too, in case what they lack is there now; and
 * every one about whose payment link there is something to do.
 */
export async function enqueueUnfinished(
  tx: Transaction,
  links: LinkWork,
  statuses: readonly EmailStatus[] = ['queued', 'sending', 'held'],
): Promise<number> {
  const { documents } = await queryOne<{ documents: number }>(
    tx,
    `SELECT count(*) AS documents, CASE WHEN count(*) > 0 THEN enqueue_deliveries(array_agg(document_id)) END
     FROM (SELECT DISTINCT document_id FROM sendings WHERE status = ANY (CAST(:statuses AS text[]))
           ${links === 'nothing' ? '' : `UNION ${unsettledLinks(links)}`}) AS unfinished`,
    { statuses },
  );
  return documents;
}

/** The documents of these numbers, in the order of their issue. */
export async function readIdsOf(tx: Transaction, numbers: readonly string[]): Promise<number[]> {
  const rows = await query<{ document_id: number }>(
    tx,
    `SELECT document_id FROM documents WHERE number = ANY (CAST(:numbers AS text[])) ORDER BY document_id`,
    { numbers },
  );
  return rows.map((row) => row.document_id);
}

/**
 * Takes back what of a void document has not gone out, and says what became of it; undefined where a worker has it in
 * hand. An attempt whose end nobody saw may have arrived: that stays a question for a person.
 */
export async function withdrawSending(
  tx: Transaction,
  sendingId: number,
): Promise<'withdrawn' | 'uncertain' | undefined> {
  const [taken] = await query<{ status: 'withdrawn' | 'uncertain' }>(
    tx,
    `UPDATE sendings SET status = CASE WHEN unclear_attempts > 0 THEN 'uncertain' ELSE 'withdrawn' END, message = NULL,
            reason = 'the document was voided before it was sent'
     WHERE sending_id = :sendingId AND status IN ('queued', 'held') RETURNING status`,
    { sendingId },
  );
  return taken?.status;
}

/** E-mails by how they stand. */
export interface EmailCounts {
  readonly sent: number;
  readonly pending: number;
  readonly held: number;
  readonly failed: number;
  readonly uncertain: number;
}

/** Its columns, over whatever has a `status`. */
export const EMAIL_COUNTS = `
  count(*) FILTER (WHERE status = 'sent') AS sent,
  count(*) FILTER (WHERE status IN ('queued', 'sending')) AS pending,
  count(*) FILTER (WHERE status = 'held') AS held,
  count(*) FILTER (WHERE status = 'failed') AS failed,
  count(*) FILTER (WHERE status = 'uncertain') AS uncertain`;

/** How the deliveries of all live documents stand. */
export function countDeliveries(tx: Transaction): Promise<EmailCounts> {
  return queryOne(
    tx,
    `SELECT ${EMAIL_COUNTS}
     FROM (SELECT DISTINCT ON (document_id) status FROM sendings s
           WHERE NOT EXISTS (SELECT FROM voids v WHERE v.document_id = s.document_id)
           ORDER BY document_id, sending_id DESC) AS latest`,
  );
}
