/**
 * SQL over what delivery adds to issued documents: links, drawings, sendings; and over the workers that do it. What each
 * delivery asks is prepared: planning was two thirds of what PostgreSQL did for a document.
 */
import type { Instructions } from '../config/instructions.ts';
import {
  execute,
  query,
  queryOne,
  type Send,
  type Statement,
  sendWithin,
  type Transaction,
} from '../database/transaction.ts';
import type { EmailStatus } from '../documents/queries.ts';
import { type LinkWork, linksOutOfSync } from './links/queries.ts';

export interface SendingRow {
  readonly sending_id: number;
  readonly status: EmailStatus | 'withdrawn';
  readonly reason: string | null;
  readonly message_id: string;
  /** What went out, if it may have to go again; without the drawing where `drawing_at` says where that goes. */
  readonly message: Buffer | null;
  readonly drawing_at: number | null;
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

/** The numbers of the workers that live: the lock of one goes with its connection. */
export const LIVING_WORKERS = `
  SELECT l.objid::bigint AS number FROM pg_locks l JOIN pg_database b ON b.oid = l.database
  WHERE b.datname = current_database() AND l.locktype = 'advisory' AND l.classid = ${WORKER_LOCKS} AND l.objsubid = 2`;

/** Whether the worker of a number lives. */
export const workerLives = (number: string) => `${number} IN (${LIVING_WORKERS})`;

const SENDINGS: Statement = {
  name: 'delivery.sendings',
  text: `WITH living AS MATERIALIZED (${LIVING_WORKERS})
     SELECT s.document_id, s.sending_id, s.status, s.reason, s.message_id, s.message, s.drawing_at, s.recipients,
            s.envelope_from, s.attempts, s.unclear_attempts, s.worker,
            CASE WHEN s.worker IS NULL THEN false ELSE s.worker IN (SELECT number FROM living) END AS worker_lives,
            p.contact_name, p.contact_email, p.contact_cc, s.addressed_to, d.entries
     FROM unnest($1::bigint[]) AS wanted (document_id)
     JOIN documents d ON d.document_id = wanted.document_id
     JOIN partners p ON p.partner_id = d.partner_id
     CROSS JOIN LATERAL (
       SELECT * FROM sendings s WHERE s.document_id = d.document_id ORDER BY s.sending_id DESC LIMIT 1) AS s`,
};

/** The latest sending of each document, with the partner's present contacts. */
export async function readSendings(
  send: Send,
  documentIds: readonly number[],
): Promise<ReadonlyMap<number, SendingRow>> {
  const rows = await send<SendingRow & { document_id: number }>(SENDINGS, [documentIds]);
  return new Map(rows.map((row) => [row.document_id, row]));
}

/** The document's latest sending, with the partner's present contacts. */
export const readSending = async (tx: Transaction, documentId: number): Promise<SendingRow | undefined> =>
  (await readSendings(sendWithin(tx), [documentId])).get(documentId);

export interface LinkToKeep {
  readonly documentId: number;
  readonly provider: string;
  readonly token: string;
  readonly url: string;
  readonly now: string;
}

const KEEP_LINKS: Statement = {
  name: 'delivery.keep_links',
  text: `INSERT INTO payment_links (document_id, provider, token, url, created_at)
     SELECT "documentId", provider, token, url, now
     FROM json_to_recordset($1::json)
          AS l ("documentId" bigint, provider text, token text, url text, now timestamptz)
     ORDER BY "documentId"
     ON CONFLICT (document_id) DO NOTHING`,
};

/** Keeps links, and gives those that are kept by document: where another worker was first, its link. */
export async function recordPaymentLinks(
  send: Send,
  links: readonly LinkToKeep[],
): Promise<ReadonlyMap<number, string>> {
  const documentIds = links.map((link) => link.documentId);
  const [, kept] = await Promise.all([
    send(KEEP_LINKS, [JSON.stringify(links)]),
    // A statement of its own: only a new snapshot sees what another worker committed while the insert waited for it.
    readPaymentLinks(send, documentIds),
  ]);
  return new Map(kept.map((link) => [link.document_id, link.url]));
}

const LINKS: Statement = {
  name: 'delivery.links',
  text: `SELECT document_id, provider, token, url FROM payment_links WHERE document_id = ANY ($1::bigint[])`,
};

/** The links that documents printed. */
export const readPaymentLinks = (
  send: Send,
  documentIds: readonly number[],
): Promise<{ document_id: number; provider: string; token: string; url: string }[]> => send(LINKS, [documentIds]);

export interface InstructionUse {
  readonly documentId: number;
  readonly partnerId: string;
  readonly currency: string;
  readonly instructions: Instructions;
  readonly now: string;
}

const USES = `json_to_recordset($1::json)
    AS u ("documentId" bigint, "partnerId" text, currency text, instructions jsonb, now timestamptz)`;

const KEEP_INSTRUCTIONS: Statement = {
  name: 'delivery.keep_instructions',
  text: `INSERT INTO instruction_versions (currency, content, first_used_at)
     SELECT currency, instructions, min(now) FROM ${USES}
     WHERE NOT EXISTS (
       SELECT FROM instruction_versions v WHERE v.currency = u.currency AND v.content = u.instructions)
     GROUP BY currency, instructions ORDER BY currency, instructions
     ON CONFLICT ON CONSTRAINT instruction_version_once DO NOTHING`,
};

const INSTRUCTIONS: Statement = {
  name: 'delivery.instructions',
  text: `SELECT u."documentId" AS document_id, v.instruction_version_id AS id, last.instruction_version_id AS last
     FROM ${USES}
     JOIN instruction_versions v ON v.currency = u.currency AND v.content = u.instructions
     LEFT JOIN LATERAL (
       SELECT w.instruction_version_id FROM document_pdfs w JOIN documents d USING (document_id)
       WHERE d.partner_id = u."partnerId" AND d.currency = u.currency AND d.document_id < u."documentId"
         AND w.instruction_version_id IS NOT NULL
       ORDER BY d.document_id DESC LIMIT 1) AS last ON true`,
};

/** By document: the version of its instructions, new or known, and whether the partner's last invoice carried another. */
export async function recordInstructionVersions(
  send: Send,
  uses: readonly InstructionUse[],
): Promise<ReadonlyMap<number, { id: number; changed: boolean }>> {
  const values = [JSON.stringify(uses)];
  const [, known] = await Promise.all([
    send(KEEP_INSTRUCTIONS, values),
    // A statement of its own, see recordPaymentLinks.
    send<{ document_id: number; id: number; last: number | null }>(INSTRUCTIONS, values),
  ]);
  return new Map(
    known.map(({ document_id, id, last }) => [document_id, { id, changed: last !== null && last !== id }]),
  );
}

export interface DrawingFacts {
  readonly documentId: number;
  readonly rendererVersion: number;
  readonly libraries: Readonly<Record<string, string>>;
  readonly instructionVersionId: number | null;
  readonly instructionsChanged: boolean;
  readonly sha256: string;
  readonly pdf: Buffer;
  readonly now: string;
}

/** Bytes one behind the other in one parameter, and where each begins in it, as `substring` counts. */
function packed(contents: readonly Buffer[]): { bytes: Buffer; places: { start: number; length: number }[] } {
  let start = 1;
  const places = contents.map(({ length }) => {
    const place = { start, length };
    start += length;
    return place;
  });
  return { bytes: Buffer.concat(contents), places };
}

const KEEP_DRAWINGS: Statement = {
  name: 'delivery.keep_drawings',
  text: `INSERT INTO document_pdfs (
       document_id, renderer_version, libraries, instruction_version_id, instructions_changed, sha256, pdf, rendered_at)
     SELECT "documentId", "rendererVersion", libraries, "instructionVersionId", "instructionsChanged", sha256,
            substring($1::bytea FROM start FOR length), now
     FROM json_to_recordset($2::json) AS d (
       "documentId" bigint, "rendererVersion" integer, libraries jsonb, "instructionVersionId" bigint,
       "instructionsChanged" boolean, sha256 text, start integer, length integer, now timestamptz)
     ORDER BY "documentId"
     ON CONFLICT (document_id) DO NOTHING`,
};

/** Keeps drawings. Where another worker kept one first, that one counts. */
export async function recordDrawings(send: Send, drawings: readonly DrawingFacts[]): Promise<void> {
  const { bytes, places } = packed(drawings.map(({ pdf }) => pdf));
  const facts = drawings.map(({ pdf: _, ...drawing }, index) => ({ ...drawing, ...places[index] }));
  await send(KEEP_DRAWINGS, [bytes, JSON.stringify(facts)]);
}

/** The same of one. */
export const recordDrawing = (tx: Transaction, drawing: DrawingFacts): Promise<void> =>
  recordDrawings(sendWithin(tx), [drawing]);

export interface KeptDrawing {
  readonly pdf: Buffer;
  readonly instructions: Instructions | null;
  readonly instructions_changed: boolean;
}

const DRAWINGS: Statement = {
  name: 'delivery.drawings',
  text: `SELECT w.document_id, w.pdf, v.content AS instructions, w.instructions_changed
     FROM document_pdfs w LEFT JOIN instruction_versions v USING (instruction_version_id)
     WHERE w.document_id = ANY ($1::bigint[])`,
};

/** Kept drawings with what their faces carried besides the frozen documents. */
export async function readDrawings(
  send: Send,
  documentIds: readonly number[],
): Promise<ReadonlyMap<number, KeptDrawing>> {
  const rows = await send<KeptDrawing & { document_id: number }>(DRAWINGS, [documentIds]);
  return new Map(rows.map((row) => [row.document_id, row]));
}

const ROWS: Statement = {
  name: 'delivery.rows',
  text: `SELECT e.document_id, e.kind, e.partner_id, e.quote_id, e.requote_id, e.reversal_id, e.enrollment_id, e.policy_id,
            e.currency, e.accepted_at, e.spot_price AS "spotPrice", e.partner_cut AS "partnerCut",
            e.invoice_amount AS "invoiceAmount", e.entry_id::text AS entry_id, e.billed_month AS posted_month,
            e.recorded_at, e.number AS document
     FROM billed_rows e
     WHERE e.document_id = ANY ($1::bigint[])
     ORDER BY e.document_id, e.entry_id`,
};

export type RowOfDocument = Readonly<Record<string, string | null>>;

/**
 * Rows that each document bills, in ledger order; none for a credit against an invoice, which bills nothing. An invoice
 * for missing shares bills what did not come of quotes: their rows.
 */
export async function readRowsOfDocuments(
  send: Send,
  documentIds: readonly number[],
): Promise<ReadonlyMap<number, RowOfDocument[]>> {
  const rows = await send<RowOfDocument & { document_id: number }>(ROWS, [documentIds]);
  const byDocument = new Map<number, RowOfDocument[]>();
  for (const { document_id: id, ...row } of rows) {
    const known = byDocument.get(id);
    if (known === undefined) byDocument.set(id, [row]);
    else known.push(row);
  }
  return byDocument;
}

/** Rows that a document bills, in ledger order. */
export const readDocumentRows = async (tx: Transaction, id: number): Promise<RowOfDocument[]> =>
  (await readRowsOfDocuments(sendWithin(tx), [id])).get(id) ?? [];

/** What is kept of a message while it may have to be repeated: all of it, or all but the drawing that is kept itself. */
export interface KeptMessage {
  readonly message: Buffer;
  readonly drawingAt: number | null;
}

export interface Claim {
  readonly sendingId: number;
  /** As they were read: another attempt since then may have left bytes that must be repeated. */
  readonly attempts: number;
  readonly worker: number;
  readonly recipients: readonly string[];
  readonly envelopeFrom: string;
  readonly kept: KeptMessage;
  /** Of the whole message. */
  readonly sha256: string;
  /** Of the drawing that the message holds, where this worker made it just now: another may have kept its own first. */
  readonly drawing?: string | undefined;
  readonly now: string;
}

const CLAIM: Statement = {
  name: 'delivery.claim',
  text: `WITH living AS MATERIALIZED (${LIVING_WORKERS})
     UPDATE sendings s SET status = 'sending', worker = c.worker, recipients = c.recipients,
            envelope_from = c."envelopeFrom", message = substring($1::bytea FROM c.start FOR c.length),
            drawing_at = c."drawingAt", message_sha256 = c.sha256, attempts = s.attempts + 1, attempted_at = c.now,
            reason = NULL
     FROM json_to_recordset($2::json) AS c (
       "sendingId" bigint, attempts integer, worker bigint, recipients text[], "envelopeFrom" text, start integer,
       length integer, "drawingAt" integer, sha256 text, drawing text, now timestamptz)
     WHERE s.sending_id = c."sendingId" AND s.status IN ('queued', 'held') AND s.attempts = c.attempts
       AND NOT EXISTS (SELECT FROM current_holds h WHERE h.document_id = s.document_id)
       AND (c.drawing IS NULL
            OR EXISTS (SELECT FROM document_pdfs w WHERE w.document_id = s.document_id AND w.sha256 = c.drawing))
       AND c.worker IN (SELECT number FROM living)
     RETURNING s.sending_id, s.worker`,
};

/**
 * Says, before the mail server is called, what is about to be sent and by whom. False where another worker did, where
 * the document was voided or put on hold since it was read, where another drawing of it is kept, or where this one's own
 * lock is gone, so that others may take it for dead.
 */
export async function claimSendings(send: Send, claims: readonly Claim[]): Promise<boolean[]> {
  const { bytes, places } = packed(claims.map(({ kept }) => kept.message));
  const facts = claims.map(({ kept, ...claim }, index) => ({
    ...claim,
    ...places[index],
    drawingAt: kept.drawingAt,
  }));
  const [, claimed] = await Promise.all([
    // First the rows alone: only a statement begun after that sees the hold of whoever had them before.
    lockSendings(send, claims),
    send<{ sending_id: number; worker: number }>(CLAIM, [bytes, JSON.stringify(facts)]),
  ]);
  const workers = new Map(claimed.map((row) => [row.sending_id, row.worker]));
  return claims.map(({ sendingId, worker }) => workers.get(sendingId) === worker);
}

/** The same of one. */
export const claimSending = async (tx: Transaction, claim: Claim): Promise<boolean> =>
  (await claimSendings(sendWithin(tx), [claim]))[0] === true;

const LOCK: Statement = {
  name: 'delivery.lock',
  text: `SELECT FROM sendings WHERE sending_id = ANY ($1::bigint[]) ORDER BY sending_id FOR UPDATE`,
};

/** In one order, lest two who take several each wait for the other. */
const lockSendings = (send: Send, sendings: readonly { readonly sendingId: number }[]): Promise<unknown> =>
  send(LOCK, [sendings.map(({ sendingId }) => sendingId)]);

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

const SETTLE: Statement = {
  name: 'delivery.settle',
  text: `UPDATE sendings s SET status = e.status, worker = NULL, reason = e.reason,
            unclear_attempts = s.unclear_attempts + CASE WHEN e.unclear THEN 1 ELSE 0 END,
            (message, drawing_at) = (
              SELECT s.message, s.drawing_at WHERE e.status = 'queued' AND (e.unclear OR s.unclear_attempts > 0)),
            sent_at = CASE WHEN e.status = 'sent' THEN e.now END
     FROM json_to_recordset($1::json) AS e (
       "sendingId" bigint, worker bigint, status text, reason text, unclear boolean, now timestamptz)
     WHERE s.sending_id = e."sendingId" AND s.status = 'sending' AND s.worker = e.worker
     RETURNING s.sending_id`,
};

/**
 * Records how attempts ended; false of one that is another worker's by now. The bytes stay only while a repetition must
 * be the same.
 */
export async function settleSendings(send: Send, settlements: readonly Settlement[]): Promise<boolean[]> {
  const [, settled] = await Promise.all([
    settlements.length > 1 ? lockSendings(send, settlements) : undefined,
    send<{ sending_id: number }>(SETTLE, [JSON.stringify(settlements)]),
  ]);
  const ids = new Set(settled.map((row) => row.sending_id));
  return settlements.map(({ sendingId }) => ids.has(sendingId));
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
     FROM (SELECT DISTINCT document_id FROM sendings WHERE status = ANY (:statuses::text[])
           ${links === 'nothing' ? '' : `UNION ${linksOutOfSync(links)}`}) AS unfinished`,
    { statuses },
  );
  return documents;
}

/** The documents of these numbers, in the order of their issue. */
export async function readIdsOf(tx: Transaction, numbers: readonly string[]): Promise<number[]> {
  const rows = await query<{ document_id: number }>(
    tx,
    `SELECT document_id FROM documents WHERE number = ANY (:numbers::text[]) ORDER BY document_id`,
    { numbers },
  );
  return rows.map((row) => row.document_id);
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
