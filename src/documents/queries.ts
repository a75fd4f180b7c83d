/** SQL over issued documents. */

import type { Logo } from '../config/logo.ts';
import type { Issuer } from '../config/settings.ts';
import { execute, query, queryOne, type Send, type Statement, type Transaction } from '../database/transaction.ts';
import type { Month } from '../month.ts';
import type { DocumentKind, RowKind, SnapshotSeal } from './snapshot.ts';

/**
 * The last days on which an invoice came to be open again. What settles it then is entered no earlier, whatever its true
 * day: else a report of the days between would count the same money twice. (A bank tells some lines a day ahead.)
 */
export const freedOfInvoice = (document: string): string => `
  (SELECT max(u.entry_on) FROM payment_unapplications u JOIN payment_applications a USING (payment_application_id)
   WHERE a.document_id = ${document}),
  (SELECT max(c.entry_on) FROM credit_releases c JOIN credit_applications a USING (credit_application_id)
   WHERE a.invoice_id = ${document})`;

const OPEN_FROM = `greatest(earliest_postable_date(), ${freedOfInvoice(':documentId::bigint')})`;

export interface DocumentRow {
  readonly document_id: number;
  readonly number: string;
  readonly series: string;
  readonly sequence: number;
  readonly document: DocumentKind;
  readonly purpose: 'month' | 'adjustment' | 'missing_shares';
  readonly status: 'open' | 'paid' | 'void';
  readonly partner_id: string;
  readonly month: Month;
  readonly currency: string;
  readonly arrangement: 'invoicing' | 'connected_account';
  readonly issued_on: string;
  readonly due_on: string | null;
  readonly terms_days: number | null;
  readonly enrollments: number;
  readonly spot_price: string;
  readonly partner_cut: string;
  readonly invoice_amount: string;
  readonly credit_applied: string;
  readonly amount_due: string;
  readonly credited: string;
  readonly amount_paid: string;
  readonly balance: string;
  readonly partner_name: string;
  readonly address_line1: string;
  readonly address_line2: string;
  readonly address_city: string;
  readonly address_region: string;
  readonly address_postal_code: string;
  readonly address_country: string;
  readonly tax_id: string;
  readonly purchase_order: string;
  readonly legal_note: string;
  readonly issuer: Omit<Issuer, 'logo'>;
  /** Null where there is none, or where it was not asked for. */
  readonly logo: Logo | null;
  readonly sandbox: boolean;
  readonly lines: readonly LineRow[];
  readonly payment_link: string | null;
  readonly pdf_sha256: string | null;
  readonly pdf_bytes: number | null;
  readonly renderer_version: number | null;
  readonly email_status: EmailStatus | null;
  readonly email_reason: string | null;
  readonly email_to: string[] | null;
  readonly message_id: string | null;
  readonly sent_at: string | null;
  /** Number of the void document that this one replaces, and of the one that replaces this. */
  readonly replaces: string | null;
  readonly replaced_by: string | null;
  /** Number of the invoice that an adjustment credits. */
  readonly credits: string | null;
  /** Why an adjustment was made; empty for other documents. */
  readonly reason: string;
  readonly void_reason: string | null;
  /** `YYYY-MM-DD` in the issuer's zone. */
  readonly voided_on: string | null;
  readonly written_off: string;
  /** The last seal before it was issued. */
  readonly seal: SnapshotSeal | null;
  /** Since when it is on hold, and why; null where it is not. */
  readonly held_at: string | null;
  readonly hold_reason: string | null;
}

export type EmailStatus = 'queued' | 'sending' | 'sent' | 'held' | 'failed' | 'uncertain';

export interface LineRow {
  readonly policy_id: string;
  readonly policy_name: string;
  readonly kind: RowKind;
  readonly month: Month;
  readonly count: number;
  readonly spot_price: string;
  readonly partner_cut: string;
  readonly invoice_amount: string;
}

export interface DocumentFilter {
  readonly ids?: readonly number[] | undefined;
  readonly number?: string | undefined;
  readonly months?: readonly Month[] | undefined;
  readonly partnerId?: string | undefined;
  readonly status?: string | undefined;
  /** With the issuer's logo, for a drawing. Each document brings it along, so ask for a few at a time. */
  readonly withLogos?: boolean | undefined;
}

/** The hold that document `d` is on. */
export const PRESENT_HOLD = `
  SELECT h.hold_id, h.held_at, h.reason FROM holds h
  WHERE h.document_id = d.document_id AND NOT EXISTS (SELECT FROM hold_releases r WHERE r.hold_id = h.hold_id)`;

const documentsWhere = (condition: string, withLogos: string): string => `
     SELECT d.document_id, d.number, d.series, d.sequence, d.document, d.purpose, b.status, d.partner_id, d.month,
            d.currency, d.arrangement, d.issued_on, d.due_on, d.terms_days, d.enrollments, d.spot_price, d.partner_cut,
            d.invoice_amount, d.credit_applied, b.amount_due, b.credited, b.amount_paid, b.balance, d.partner_name,
            d.address_line1, d.address_line2, d.address_city, d.address_region, d.address_postal_code,
            d.address_country, d.tax_id, d.purchase_order, d.legal_note, i.content AS issuer, g.logo, d.sandbox,
            l.lines, k.url AS payment_link, w.sha256 AS pdf_sha256, octet_length(w.pdf) AS pdf_bytes, w.renderer_version,
            s.status AS email_status, s.reason AS email_reason, s.recipients AS email_to, s.message_id, s.sent_at,
            d.reason, v.reason AS void_reason, v.voided_on, replaced.number AS replaces, successor.number AS replaced_by,
            credited.number AS credits, z.seal, h.held_at, h.reason AS hold_reason,
            (SELECT coalesce(sum(amount), 0) FROM write_offs o WHERE o.document_id = d.document_id) AS written_off
     FROM documents d
     JOIN document_balances b ON b.document_id = d.document_id
     JOIN issuer_versions i ON i.issuer_version_id = d.issuer_version_id
     LEFT JOIN LATERAL (
       SELECT json_build_object('sha256', sha256, 'media_type', media_type, 'width', width, 'height', height,
                'content', translate(encode(content, 'base64'), E'\\n', '')) AS logo
       FROM logos WHERE sha256 = i.logo_sha256 AND ${withLogos}) AS g ON true
     CROSS JOIN LATERAL (
       SELECT coalesce(json_agg(json_build_object(
                'policy_id', l.policy_id, 'policy_name', l.policy_name, 'kind', l.kind, 'month', l.month,
                'count', l.count, 'spot_price', l.spot_price::text, 'partner_cut', l.partner_cut::text,
                'invoice_amount', l.invoice_amount::text) ORDER BY l.position), '[]') AS lines
       FROM document_lines l WHERE l.document_id = d.document_id) AS l
     LEFT JOIN payment_links k ON k.document_id = d.document_id
     LEFT JOIN document_pdfs w ON w.document_id = d.document_id
     LEFT JOIN LATERAL (
       SELECT * FROM sendings s WHERE s.document_id = d.document_id AND s.status <> 'withdrawn'
       ORDER BY s.sending_id DESC LIMIT 1) AS s ON true
     -- The last seal before it was issued: the order in which facts are recorded tells, whatever the clocks said.
     LEFT JOIN LATERAL (
       SELECT json_build_object('month', z.month, 'root', z.seal) AS seal FROM seals z
       WHERE z.facts_to < d.fact_id ORDER BY z.month DESC LIMIT 1) AS z ON true
     LEFT JOIN voids v ON v.document_id = d.document_id
     LEFT JOIN LATERAL (${PRESENT_HOLD}) AS h ON true
     LEFT JOIN documents replaced ON replaced.document_id = d.replaces
     LEFT JOIN documents successor ON successor.replaces = d.document_id
     LEFT JOIN documents credited ON credited.document_id = d.credits
     WHERE ${condition}
     ORDER BY d.series, d.sequence`;

/** Documents with their lines, balances and the state of their delivery, in number order. */
export function readDocuments(tx: Transaction, filter: DocumentFilter): Promise<DocumentRow[]> {
  return query(
    tx,
    documentsWhere(
      `(:ids::bigint[] IS NULL OR d.document_id = ANY (:ids::bigint[]))
       AND (:number::text IS NULL OR d.number = :number)
       AND (:months::text[] IS NULL OR d.month = ANY (:months::text[]))
       AND (:partnerId::text IS NULL OR d.partner_id = :partnerId)
       AND (:status::text IS NULL OR b.status = :status)`,
      ':withLogos::boolean',
    ),
    {
      ids: filter.ids ?? null,
      number: filter.number ?? null,
      months: filter.months ?? null,
      partnerId: filter.partnerId ?? null,
      status: filter.status ?? null,
      withLogos: filter.withLogos ?? false,
    },
  );
}

const DOCUMENTS_TO_RENDER: Statement = {
  name: 'documents.to_render',
  text: documentsWhere('d.document_id = ANY ($1::bigint[])', 'true'),
};

/** These documents with their logos, by a prepared statement: planning it takes 10 ms, more than reading ten documents. */
export const readDocumentsToRender = (send: Send, ids: readonly number[]): Promise<DocumentRow[]> =>
  send(DOCUMENTS_TO_RENDER, [ids]);

/** The PDF that was issued; undefined while there is none. */
export async function readPdf(tx: Transaction, documentId: number): Promise<Buffer | undefined> {
  const rows = await query<{ pdf: Buffer }>(tx, `SELECT pdf FROM document_pdfs WHERE document_id = :documentId`, {
    documentId,
  });
  return rows[0]?.pdf;
}

// --- Voids ------------------------------------------------------------------------------------------------------------

export interface VoidFacts {
  readonly documents: readonly { readonly document_id: number; readonly reason: string }[];
  /** `YYYY-MM-DD` in the issuer's zone. */
  readonly today: string;
  /** ISO instant. */
  readonly now: string;
  readonly eventId: number;
}

/**
 * Voids documents: the credit that they had used is open again, and what of theirs has not gone out stays here. A look
 * of delivery at each takes their payment links back.
 */
export async function voidDocuments(tx: Transaction, facts: VoidFacts): Promise<void> {
  const ids = facts.documents.map((each) => each.document_id);
  const bindings = { ...facts, documents: JSON.stringify(facts.documents), ids };
  await execute(
    tx,
    `INSERT INTO voids (document_id, partner_id, month, currency, arrangement, reason, voided_on, recorded_at, event_id)
     SELECT d.document_id, d.partner_id, d.month, d.currency, d.arrangement, v.reason, :today::date,
            :now::timestamptz, :eventId::bigint
     FROM json_to_recordset(:documents::json) AS v (document_id bigint, reason text)
     JOIN documents d ON d.document_id = v.document_id`,
    bindings,
  );
  await execute(
    tx,
    `INSERT INTO credit_releases (credit_application_id, document_id, released_on, recorded_at)
     SELECT credit_application_id, invoice_id, :today::date, :now::timestamptz
     FROM credit_applications WHERE invoice_id = ANY (:ids::bigint[])`,
    bindings,
  );
  await withdrawSendings(tx, ids);
  await enqueueLook(tx, ids);
}

/**
 * Takes back what of void documents has not gone out, and says what became of it; nothing where a worker has it in hand.
 * An attempt whose end nobody saw may have arrived: that is neither taken back nor repeated, and a person is asked.
 */
export function withdrawSendings(
  tx: Transaction,
  documentIds: readonly number[],
): Promise<{ status: 'withdrawn' | 'uncertain'; reason: string }[]> {
  return query(
    tx,
    `UPDATE sendings SET message = NULL, drawing_at = NULL,
            status = CASE WHEN unclear_attempts > 0 THEN 'uncertain' ELSE 'withdrawn' END,
            reason = CASE WHEN unclear_attempts > 0 THEN 'it may have arrived; the document was voided before it was sent again'
                          ELSE 'the document was voided before it was sent' END
     WHERE document_id = ANY (:documentIds::bigint[]) AND status IN ('queued', 'held') RETURNING status, reason`,
    { documentIds },
  );
}

/** Has delivery look at documents: their payment links must follow what is owed. */
export async function enqueueLook(tx: Transaction, documentIds: readonly number[]): Promise<void> {
  await execute(tx, `SELECT enqueue_deliveries(:ids::bigint[])`, { ids: documentIds });
}

// --- Rerun ------------------------------------------------------------------------------------------------------------

export interface RerunCandidate {
  readonly document_id: number;
  readonly number: string;
  readonly document: DocumentKind;
  readonly currency: string;
  readonly void: boolean;
  readonly amount_paid: string;
  readonly credited: string;
  readonly written_off: string;
  readonly held_at: string | null;
  readonly hold_reason: string | null;
  /** What its snapshot would say differently now, in words. */
  readonly differences: string[];
}

export interface RerunQuestion {
  readonly month: Month;
  /** One partner's documents only. */
  readonly partnerId?: string | undefined;
  readonly issuerVersionId: number;
  /** The instructions of each currency, as the settings have them now. */
  readonly instructions: Readonly<Record<string, unknown>>;
  readonly termsDays: number;
  readonly newTerms: boolean;
}

/**
 * The last document of each chain in `month_lines`, compared with what would be issued now. The ledger is compared too:
 * rows of a closed month cannot change, and if they did this is where it must show.
 */
export async function readRerunCandidates(tx: Transaction, question: RerunQuestion): Promise<RerunCandidate[]> {
  // The planner may know nothing yet of the documents of a month just closed: joined to their lines and balances by
  // their table, 2,000 of them took 60 s; one by one from this one 0.3 s.
  await execute(tx, `DROP TABLE IF EXISTS pg_temp.last_documents`);
  await execute(
    tx,
    `CREATE TEMPORARY TABLE last_documents ON COMMIT DROP AS
     SELECT d.document_id FROM documents d
     WHERE d.month = :month AND d.purpose = 'month'
       AND (:partnerId::text IS NULL OR d.partner_id = :partnerId)
       AND NOT EXISTS (SELECT FROM documents later WHERE later.replaces = d.document_id)`,
    { month: question.month, partnerId: question.partnerId ?? null },
  );
  await execute(tx, 'ANALYZE pg_temp.last_documents');
  return query(
    tx,
    `WITH by_rows AS (
       SELECT l.partner_id, l.currency, l.arrangement,
              jsonb_object_agg(l.policy_id, o.name) AS names,
              jsonb_agg(jsonb_build_array(l.policy_id, l.kind, l.month, l.count, l.spot_price, l.partner_cut, l.invoice_amount)
                        ORDER BY l.policy_id, l.kind, l.month) AS lines
       FROM pg_temp.month_lines l JOIN policies o ON o.partner_id = l.partner_id AND o.policy_id = l.policy_id
       GROUP BY l.partner_id, l.currency, l.arrangement
     )
     SELECT d.document_id, d.number, d.document, d.currency, v.document_id IS NOT NULL AS void, b.amount_paid, b.credited,
            (SELECT coalesce(sum(amount), 0) FROM write_offs o WHERE o.document_id = d.document_id) AS written_off,
            h.held_at, h.reason AS hold_reason,
            array_remove(ARRAY[
              CASE WHEN f.lines IS DISTINCT FROM r.lines THEN 'the ledger''s sums' END,
              CASE WHEN f.names IS DISTINCT FROM r.names THEN 'the policies'' names' END,
              CASE WHEN d.partner_name <> p.name THEN 'the partner''s name' END,
              CASE WHEN (d.address_line1, d.address_line2, d.address_city, d.address_region, d.address_postal_code,
                         d.address_country) IS DISTINCT FROM (p.address_line1, p.address_line2, p.address_city,
                         p.address_region, p.address_postal_code, p.address_country) THEN 'the partner''s address' END,
              CASE WHEN d.tax_id <> p.tax_id THEN 'the tax id' END,
              CASE WHEN d.purchase_order <> p.purchase_order THEN 'the purchase order' END,
              CASE WHEN d.legal_note <> p.legal_note THEN 'the legal note' END,
              CASE WHEN d.issuer_version_id <> :issuerVersionId::bigint THEN 'the issuer''s details' END,
              CASE WHEN i.content IS NOT NULL AND i.content IS DISTINCT FROM (:instructions::jsonb -> d.currency)
                   THEN 'the payment instructions' END,
              CASE WHEN :newTerms::boolean AND d.document = 'invoice'
                    AND d.terms_days <> coalesce(p.payment_terms_days, :termsDays::integer)
                   THEN 'the payment terms' END], NULL) AS differences
     FROM pg_temp.last_documents
     JOIN documents d USING (document_id)
     JOIN by_rows r ON r.partner_id = d.partner_id AND r.currency = d.currency AND r.arrangement = d.arrangement
     CROSS JOIN LATERAL (SELECT CASE d.document WHEN 'credit_note' THEN -1 ELSE 1 END AS sign) AS s
     CROSS JOIN LATERAL (
       SELECT jsonb_object_agg(l.policy_id, l.policy_name) AS names,
              jsonb_agg(jsonb_build_array(l.policy_id, l.kind, l.month, l.count, s.sign * l.spot_price,
                                          s.sign * l.partner_cut, s.sign * l.invoice_amount)
                        ORDER BY l.policy_id, l.kind, l.month) AS lines
       FROM document_lines l WHERE l.document_id = d.document_id) AS f
     CROSS JOIN LATERAL (
       SELECT amount_paid, credited FROM document_balances WHERE document_id = d.document_id OFFSET 0) AS b
     JOIN partners p ON p.partner_id = d.partner_id
     LEFT JOIN voids v ON v.document_id = d.document_id
     LEFT JOIN document_pdfs w ON w.document_id = d.document_id
     LEFT JOIN instruction_versions i ON i.instruction_version_id = w.instruction_version_id
     LEFT JOIN LATERAL (${PRESENT_HOLD}) AS h ON true
     ORDER BY d.series, d.sequence`,
    { ...question, partnerId: null, instructions: JSON.stringify(question.instructions) },
  );
}

/** Leaves in `month_lines` what these void documents stood for, so that it is issued again in their place. */
export async function planReplacements(
  tx: Transaction,
  documentIds: readonly number[],
  newTerms: boolean,
): Promise<void> {
  await execute(
    tx,
    `INSERT INTO pg_temp.replaced
     SELECT document_id, partner_id, currency, arrangement, CASE WHEN :newTerms::boolean THEN NULL ELSE due_on END,
            CASE WHEN :newTerms::boolean THEN NULL ELSE terms_days END
     FROM documents WHERE document_id = ANY (:documentIds::bigint[])`,
    { documentIds, newTerms },
  );
  await execute(
    tx,
    `DELETE FROM pg_temp.month_lines l WHERE NOT EXISTS (
       SELECT FROM pg_temp.replaced r
       WHERE r.partner_id = l.partner_id AND r.currency = l.currency AND r.arrangement = l.arrangement)`,
  );
}

/** The numbers that replace void documents. */
export function readReplacements(
  tx: Transaction,
  documentIds: readonly number[],
): Promise<{ number: string; replaced_by: string }[]> {
  return query(
    tx,
    `SELECT d.number, later.number AS replaced_by
     FROM documents d JOIN documents later ON later.replaces = d.document_id
     WHERE d.document_id = ANY (:documentIds::bigint[]) ORDER BY later.series, later.sequence`,
    { documentIds },
  );
}

// --- Credit, write-off, hold ------------------------------------------------------------------------------------------

/** The live credit notes against an invoice and the void ones that it replaces. */
export function readCreditsAgainst(
  tx: Transaction,
  documentId: number,
): Promise<{ number: string; amount: string; reason: string; issued_on: string }[]> {
  return query(
    tx,
    `WITH RECURSIVE chain AS (
       SELECT document_id, replaces FROM documents WHERE document_id = :documentId
       UNION ALL
       SELECT d.document_id, d.replaces FROM documents d JOIN chain c ON d.document_id = c.replaces
     )
     SELECT n.number, n.invoice_amount AS amount, n.reason, n.issued_on
     FROM chain c JOIN documents n ON n.credits = c.document_id
     WHERE NOT EXISTS (SELECT FROM voids v WHERE v.document_id = n.document_id)
     ORDER BY n.document_id`,
    { documentId },
  );
}

export interface Adjustment {
  readonly documentId: number;
  readonly amount: string;
  /** What of it is used for the invoice at once; the rest is open credit. */
  readonly applied: string;
  readonly reason: string;
  readonly today: string;
  readonly now: string;
  readonly issuerVersionId: number;
  readonly mailDomain: string;
  readonly eventId: number;
}

/** Issues a credit note against an invoice, uses it there, queues its e-mail, and gives its number. */
export async function insertAdjustment(tx: Transaction, adjustment: Adjustment): Promise<string> {
  const issued = await queryOne<{ document_id: number; number: string }>(
    tx,
    `INSERT INTO documents (
       series, sequence, document, purpose, partner_id, month, currency, arrangement, issued_on, enrollments, entries,
       spot_price, partner_cut, invoice_amount, credit_applied, partner_name, address_line1, address_line2, address_city,
       address_region, address_postal_code, address_country, tax_id, purchase_order, legal_note, issuer_version_id,
       sandbox, issued_at, credits, reason)
     SELECT series.series, coalesce((SELECT max(x.sequence) FROM documents x WHERE x.series = series.series), 0) + 1,
            'credit_note', 'adjustment', d.partner_id, d.month, d.currency, d.arrangement, :today::date, 0, 0,
            :amount::numeric, 0, :amount::numeric, 0, p.name, p.address_line1, p.address_line2,
            p.address_city, p.address_region, p.address_postal_code, p.address_country, p.tax_id, p.purchase_order,
            p.legal_note, :issuerVersionId::bigint, d.sandbox, :now::timestamptz, d.document_id, :reason
     FROM documents d
     JOIN partners p ON p.partner_id = d.partner_id
     CROSS JOIN (SELECT 'CN-' || left(:today, 4) COLLATE "C" AS series) AS series
     WHERE d.document_id = :documentId
     RETURNING document_id, number`,
    { ...adjustment },
  );
  const bindings = { ...adjustment, noteId: issued.document_id };
  await execute(
    tx,
    `INSERT INTO credit_applications (credit_note_id, invoice_id, amount, applied_on, recorded_at, at_issue, reopened_on)
     SELECT :noteId, :documentId, :applied::numeric, :today::date, :now::timestamptz, false,
            ${OPEN_FROM}
     WHERE :applied::numeric > 0`,
    bindings,
  );
  await queueSending(tx, {
    documentId: issued.document_id,
    askedFor: 'credit',
    addressedTo: null,
    eventId: adjustment.eventId,
    mailDomain: adjustment.mailDomain,
    now: adjustment.now,
  });
  await enqueueLook(tx, [adjustment.documentId]);
  return issued.number;
}

export interface QueuedSending {
  readonly documentId: number;
  readonly askedFor: 'credit' | 'resend';
  /** An address in place of the partner's contacts. */
  readonly addressedTo: string | null;
  readonly eventId: number;
  readonly mailDomain: string;
  readonly now: string;
}

/** Queues one more sending of a document, under a Message-ID that is fixed from now on. */
export async function queueSending(tx: Transaction, sending: QueuedSending): Promise<void> {
  await execute(
    tx,
    `INSERT INTO sendings (document_id, asked_for, message_id, status, queued_at, event_id, addressed_to)
     SELECT d.document_id, :askedFor,
            format('<%s.%s.%s@%s>', d.number,
                   (SELECT count(*) + 1 FROM sendings s WHERE s.document_id = d.document_id), i.installation_id,
                   :mailDomain::text),
            'queued', :now::timestamptz, :eventId::bigint, :addressedTo
     FROM documents d CROSS JOIN installation i WHERE d.document_id = :documentId`,
    { ...sending },
  );
  await enqueueLook(tx, [sending.documentId]);
}

export async function insertWriteOff(
  tx: Transaction,
  facts: { documentId: number; amount: string; reason: string; today: string; now: string; eventId: number },
): Promise<void> {
  await execute(
    tx,
    `INSERT INTO write_offs (document_id, amount, reason, written_off_on, recorded_at, event_id, reopened_on)
     VALUES (:documentId, :amount::numeric, :reason, :today::date, :now::timestamptz, :eventId,
             ${OPEN_FROM})`,
    facts,
  );
  await enqueueLook(tx, [facts.documentId]);
}

/** Puts a document on hold, and its e-mail with it unless that is under way already. */
export async function insertHold(
  tx: Transaction,
  facts: { documentId: number; reason: string; why: string; now: string; eventId: number },
): Promise<void> {
  await execute(
    tx,
    `INSERT INTO holds (document_id, follows, reason, held_at, event_id)
     SELECT :documentId, (SELECT max(hold_id) FROM holds WHERE document_id = :documentId), :reason,
            :now::timestamptz, :eventId::bigint`,
    facts,
  );
  await execute(
    tx,
    `UPDATE sendings SET status = 'held', reason = :why WHERE document_id = :documentId AND status IN ('queued', 'held')`,
    facts,
  );
}

export async function insertRelease(
  tx: Transaction,
  facts: { documentId: number; now: string; eventId: number },
): Promise<void> {
  await execute(
    tx,
    `INSERT INTO hold_releases (hold_id, document_id, released_at, event_id)
     SELECT max(hold_id), document_id, :now::timestamptz, :eventId::bigint
     FROM holds WHERE document_id = :documentId GROUP BY document_id`,
    facts,
  );
  await execute(
    tx,
    `UPDATE sendings SET status = 'queued', reason = NULL WHERE document_id = :documentId AND status = 'held'`,
    facts,
  );
  await enqueueLook(tx, [facts.documentId]);
}
