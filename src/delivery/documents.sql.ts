/**
 * Stores and reads what delivery adds to issued documents: payment links, PDFs, and the data of their e-mails. All
 * queries are prepared, because planning took two thirds of PostgreSQL's time for a document.
 */
import { RowScope } from '#archive/archive.sql';
import { Instructions } from '#config/instructions';
import {
  execute,
  executing,
  prepared,
  query,
  querying,
  queryingFirst,
  queryingOne,
  Transaction,
} from '#database/transaction';
import { EmailState } from '#mail/email';
import { EMAIL_STATE, packed } from '#mail/outbox.sql';
import { EInvoiceToKeep, PresentBuyer } from './e-invoice.ts';
import { rowsHeader } from './rows.ts';

type OfDocument = Readonly<{ document_id: number }>;
type OfDocuments = Readonly<{ documentIds: readonly number[] }>;

/** The rows that a query returns of documents, by the id of the document. */
const byDocument =
  <Row extends OfDocument>(read: (tx: Transaction, given: OfDocuments) => Promise<Row[]>) =>
  async (tx: Transaction, documentIds: readonly number[]): Promise<ReadonlyMap<number, Row>> =>
    new Map((await read(tx, { documentIds })).map((row) => [row.document_id, row]));

export type DocumentEmail = EmailState &
  Readonly<{
    document_id: number;
    contact_name: string;
    contact_email: string;
    contact_cc: string[];
    /** Named by a user, instead of the contacts. */
    addressed_to: string | null;
    entries: number;
    /** The last replaced document whose e-mail may have reached the partner. */
    replaces_sent: string | null;
  }>;

const DOCUMENT_EMAILS = prepared(
  'delivery.document_emails',
  `SELECT d.document_id, ${EMAIL_STATE}, e.addressed_to, p.contact_name, p.contact_email, p.contact_cc, d.entries,
            (WITH RECURSIVE replaced AS (
               SELECT r.document_id, r.number, r.replaces, 1 AS step FROM documents r WHERE r.document_id = d.replaces
               UNION ALL
               SELECT r.document_id, r.number, r.replaces, p.step + 1
               FROM replaced p JOIN documents r ON r.document_id = p.replaces
             )
             SELECT number FROM replaced r
             WHERE EXISTS (SELECT FROM document_emails s
                           WHERE s.document_id = r.document_id
                             AND s.delivery IN ('sent', 'sending', 'uncertain', 'portal'))
             ORDER BY step LIMIT 1) AS replaces_sent
     FROM unnest(:documentIds::bigint[]) AS wanted (document_id)
     JOIN documents d ON d.document_id = wanted.document_id
     JOIN partners p ON p.partner_id = d.partner_id
     CROSS JOIN LATERAL (
       SELECT * FROM emails e WHERE e.document_id = d.document_id ORDER BY e.email_id DESC LIMIT 1) AS e`,
);

export const readDocumentEmails = byDocument(querying<DocumentEmail, OfDocuments>(DOCUMENT_EMAILS));

export const readDocumentEmail = async (tx: Transaction, documentId: number) =>
  (await readDocumentEmails(tx, [documentId])).get(documentId);

export type LinkToKeep = Readonly<{
  documentId: number;
  provider: string;
  token: string;
  url: string;
  now: string;
}>;

const KEEP_LINKS = prepared(
  'delivery.keep_links',
  `INSERT INTO payment_links (document_id, provider, token, url, created_at)
     SELECT "documentId", provider, token, url, now
     FROM json_to_recordset(:links::json)
          AS l ("documentId" bigint, provider text, token text, url text, now timestamptz)
     ORDER BY "documentId"
     ON CONFLICT (document_id) DO NOTHING`,
);

/** Stores links and returns the stored ones by document, which another worker may have stored first. */
export async function recordPaymentLinks(
  tx: Transaction,
  links: readonly LinkToKeep[],
): Promise<ReadonlyMap<number, string>> {
  const documentIds = links.map((link) => link.documentId);
  const [, kept] = await Promise.all([
    execute(tx, KEEP_LINKS, { links }),
    // Separate, because only a new snapshot sees a row that another worker committed while the insert waited.
    readPaymentLinks(tx, { documentIds }),
  ]);
  return new Map(kept.map((link) => [link.document_id, link.url]));
}

/** The current link of a document's page; undefined if there never was one. */
export const readLinkStanding = queryingFirst<{ provider: string; token: string | null }, { documentId: number }>(
  `SELECT provider, token FROM current_links WHERE document_id = :documentId`,
);

export const insertLinkChange = executing<{
  documentId: number;
  token: string | null;
  reason: string;
  now: string;
  eventId: number;
}>(`
  INSERT INTO payment_link_changes (document_id, follows, token, reason, changed_at, event_id)
  SELECT :documentId, (SELECT max(payment_link_change_id) FROM payment_link_changes WHERE document_id = :documentId),
         :token, :reason, :now, :eventId`);

const LINKS = prepared(
  'delivery.links',
  `SELECT document_id, provider, token, url FROM payment_links WHERE document_id = ANY (:documentIds)`,
);

export const readPaymentLinks = querying<
  { document_id: number; provider: string; token: string; url: string },
  OfDocuments
>(LINKS);

export type InstructionUse = Readonly<{
  documentId: number;
  partnerId: string;
  currency: string;
  now: string;
}>;

const USES = `json_to_recordset(:uses::json)
    AS u ("documentId" bigint, "partnerId" text, currency text, now timestamptz)
     CROSS JOIN LATERAL (
       SELECT instructions_for(f.value, u.currency) AS content FROM settings_in_force f
       WHERE f.section = 'instructions') AS c`;

const KEEP_INSTRUCTIONS = prepared(
  'delivery.keep_instructions',
  `INSERT INTO instruction_versions (currency, content, first_used_at)
     SELECT currency, content, min(now) FROM ${USES}
     WHERE content IS NOT NULL AND NOT EXISTS (
       SELECT FROM instruction_versions v WHERE v.currency = u.currency AND v.content = c.content)
     GROUP BY currency, content ORDER BY currency, content
     ON CONFLICT ON CONSTRAINT instruction_version_once DO NOTHING`,
);

const INSTRUCTIONS = prepared(
  'delivery.instructions',
  `SELECT u."documentId" AS document_id, v.instruction_version_id AS id, v.content,
          last.details <> v.content #- '{wire,creditor_reference}' AS changed
     FROM ${USES}
     JOIN instruction_versions v ON v.currency = u.currency AND v.content = c.content
     LEFT JOIN LATERAL (
       SELECT o.content #- '{wire,creditor_reference}' AS details
       FROM document_pdfs w JOIN documents d USING (document_id)
       JOIN instruction_versions o USING (instruction_version_id)
       WHERE d.partner_id = u."partnerId" AND d.currency = u.currency AND d.document_id < u."documentId"
       ORDER BY d.document_id DESC LIMIT 1) AS last ON true`,
);

/**
 * The instructions in force that a document prints, and whether they differ from those on the partner's last invoice.
 */
export type PrintedInstructions = Readonly<{
  id: number;
  changed: boolean;
  content: Instructions;
}>;

/**
 * Records which instructions the documents print, and returns them by document. A document gets none if none for its
 * currency are in force.
 */
export async function recordInstructionVersions(
  tx: Transaction,
  uses: readonly InstructionUse[],
): Promise<ReadonlyMap<number, PrintedInstructions>> {
  const values = { uses };
  const [, known] = await Promise.all([
    execute(tx, KEEP_INSTRUCTIONS, values),
    // Separate for the reason given in recordPaymentLinks.
    query<{ document_id: number; id: number; changed: boolean | null; content: Instructions }>(
      tx,
      INSTRUCTIONS,
      values,
    ),
  ]);
  return new Map(
    known.map(({ document_id, id, changed, content }) => [document_id, { id, content, changed: changed ?? false }]),
  );
}

export type PdfToKeep = Readonly<{
  documentId: number;
  rendererVersion: number;
  libraries: Readonly<Record<string, string>>;
  instructionVersionId: number | null;
  instructionsChanged: boolean;
  sha256: string;
  pdf: Buffer;
  eInvoice?: EInvoiceToKeep | undefined;
  now: string;
}>;

const KEEP_PDFS = prepared(
  'delivery.keep_pdfs',
  `INSERT INTO document_pdfs (
       document_id, renderer_version, libraries, instruction_version_id, instructions_changed, sha256, pdf, rendered_at)
     SELECT "documentId", "rendererVersion", libraries, "instructionVersionId", "instructionsChanged", sha256,
            substring(:bytes::bytea FROM start FOR length), now
     FROM json_to_recordset(:pdfs::json) AS d (
       "documentId" bigint, "rendererVersion" integer, libraries jsonb, "instructionVersionId" bigint,
       "instructionsChanged" boolean, sha256 text, start integer, length integer, now timestamptz)
     ORDER BY "documentId"
     ON CONFLICT (document_id) DO NOTHING`,
);

/** A PDF that another worker stored first is kept. */
export async function recordPdfs(tx: Transaction, pdfs: readonly PdfToKeep[]) {
  const { bytes, places } = packed(pdfs.map(({ pdf }) => pdf));
  const facts = pdfs.map(({ pdf: _, eInvoice: __, ...rest }, index) => ({ ...rest, ...places[index] }));
  const eInvoices = pdfs.flatMap(({ documentId, eInvoice, now }) =>
    eInvoice === undefined ? [] : [{ ...eInvoice, documentId, xml: eInvoice.xml.toString(), now }],
  );
  await Promise.all([
    execute(tx, KEEP_PDFS, { bytes, pdfs: facts }),
    eInvoices.length > 0 ? execute(tx, KEEP_E_INVOICES, { eInvoices }) : undefined,
  ]);
}

const KEEP_E_INVOICES = prepared(
  'delivery.keep_e_invoices',
  `INSERT INTO document_e_invoices (document_id, writer_version, parties, sha256, xml, written_at)
     SELECT "documentId", "writerVersion", parties, sha256, convert_to(xml, 'UTF8'), now
     FROM json_to_recordset(:eInvoices::json) AS d (
       "documentId" bigint, "writerVersion" integer, parties jsonb, sha256 text, xml text, now timestamptz)
     ORDER BY "documentId"
     ON CONFLICT (document_id) DO NOTHING`,
);

const PRESENT_BUYERS = prepared(
  'delivery.present_buyers',
  `SELECT partner_id, e_invoice, currency, name, contact_name, address_line1 AS line1, address_line2 AS line2,
          address_city AS city, address_region AS region, address_postal_code AS postal_code,
          address_country AS country, tax_id, purchase_order, buyer_reference, electronic_address
     FROM partners
     WHERE partner_id = ANY (:partnerIds) OR (:partnerIds::text[] IS NULL AND e_invoice <> 'none'
       AND inactive_since IS NULL)
     ORDER BY partner_id`,
);

/** The e-invoice data of these partners; null stands for all active ones that want e-invoices. */
export const readPresentBuyers = querying<PresentBuyer, { partnerIds: readonly string[] | null }>(PRESENT_BUYERS);

export type KeptPdf = Readonly<{
  pdf: Buffer;
  xml: Buffer | null;
  instructions: Instructions | null;
  instructions_changed: boolean;
}>;

const PDFS = prepared(
  'delivery.pdfs',
  `SELECT w.document_id, w.pdf, x.xml, v.content AS instructions, w.instructions_changed
     FROM document_pdfs w
     LEFT JOIN instruction_versions v USING (instruction_version_id)
     LEFT JOIN document_e_invoices x ON x.document_id = w.document_id
     WHERE w.document_id = ANY (:documentIds)`,
);

/** Stored PDFs, with the data that they show in addition to the frozen documents. */
export const readPdfs = byDocument(querying<KeptPdf & OfDocument, OfDocuments>(PDFS));

/** The months and partners of the rows that documents bill. */
export const readScopeOf = queryingOne<RowScope, OfDocuments>(`
  SELECT min(month) AS from, max(month) AS to, array_agg(DISTINCT partner_id) AS "partnerIds"
  FROM documents WHERE document_id = ANY (:documentIds)`);

/**
 * The line of a row in the columns of rows.ts. PostgreSQL writes it in a tenth of the time that Node.js takes. No
 * identifier or month needs CSV quotes. `concat` leaves nulls empty. Only a row of missing shares has no price.
 */
const LINE = `
         concat(e.kind, ',', e.partner_id, ',', e.quote_id, ',', e.requote_id, ',', e.reversal_id, ',',
                e.enrollment_id, ',', e.policy_id, ',', e.currency, ',',
                replace(replace(e.accepted_at::text, ' ', 'T'), '+00', 'Z'), ',',
                round(e.spot_price, minor_digits(e.currency)) || ',',
                round(e.partner_cut, minor_digits(e.currency)) || ',',
                round(e.invoice_amount, minor_digits(e.currency)), ',', csv_cell(e.order_reference), ',',
                e.cover_from, ',', e.cover_to, ',', e.entry_id, ',', e.billed_month, ',',
                replace(replace(e.recorded_at::text, ' ', 'T'), '+00', 'Z'), ',', e.number, ',',
                CASE e.kind WHEN 'reversal' THEN (
                  SELECT g.ground FROM reversal_grounds g
                  WHERE g.partner_id = e.partner_id AND g.reversal_id = e.reversal_id) END, E'\\r\\n')`;

export type RowsOfDocument = Readonly<{
  count: number;
  lines: string;
}>;

const ROWS = prepared(
  'delivery.rows',
  `SELECT e.document_id, count(*) AS count, string_agg(${LINE}, '' ORDER BY e.entry_id) AS lines
     FROM billed_rows e WHERE e.document_id = ANY (:documentIds) GROUP BY e.document_id`,
);

/**
 * The rows that each document bills, in ledger order. A credit against an invoice bills none. An invoice for missing
 * shares has one for each quote, with the billed share alone.
 */
export const readRowsOfDocuments = byDocument(querying<RowsOfDocument & OfDocument, OfDocuments>(ROWS));

const LINES_OF_DOCUMENT = `
  SELECT ${LINE} AS line FROM billed_rows e WHERE e.document_id = :documentId ORDER BY e.entry_id`;

/**
 * The lines of a document whose rows were all posted to one month, read in the order of an index. Through the view, a
 * million rows would be sorted first, which takes longer than the server's statement timeout.
 */
const LINES_OF_POSTED_MONTH = `
  SELECT ${LINE} AS line
  FROM (SELECT r.*, :month::text AS billed_month, :number::text AS number FROM ledger_rows r) AS e
  WHERE e.posted_month = :posted AND e.partner_id = :partnerId AND e.currency = :currency
    AND e.arrangement = :arrangement
  ORDER BY e.entry_id`;

type BilledDocument = Readonly<{
  purpose: string;
  month: string;
  number: string;
  partnerId: string;
  currency: string;
  arrangement: string;
  /** The month to which all rows are posted; null if there are several, as at a first close. */
  posted: string | null;
}>;

const readBilledDocument = queryingFirst<BilledDocument, { documentId: number }>(`
  SELECT d.purpose, d.month, d.number, d.partner_id AS "partnerId", d.currency, d.arrangement,
         CASE WHEN p.first = p.last THEN p.first END AS posted
  FROM documents d
  LEFT JOIN closed_months m ON m.month = d.month
  LEFT JOIN LATERAL (
    SELECT min(posted_month) AS first, max(posted_month) AS last
    FROM ledger_rows
    WHERE partner_id = d.partner_id
      AND posted_month > coalesce(m.previous, '') AND posted_month <= m.month) AS p ON true
  WHERE d.document_id = :documentId`);

/** Yields the file of the rows that a document bills, in ledger order and in batches, so that memory use stays constant. */
export async function* readDocumentRows(tx: Transaction, documentId: number): AsyncGenerator<string> {
  const document = await readBilledDocument(tx, { documentId });
  yield rowsHeader(document?.purpose);
  const cursor = 'DECLARE document_rows NO SCROLL CURSOR FOR';
  if (document?.purpose === 'month' && document.posted !== null)
    await execute(tx, `${cursor} ${LINES_OF_POSTED_MONTH}`, { ...document });
  else await execute(tx, `${cursor} ${LINES_OF_DOCUMENT}`, { documentId });
  for (;;) {
    const rows = await query<{ line: string }>(tx, 'FETCH 1000 FROM document_rows');
    if (rows.length === 0) return;
    yield rows.map(({ line }) => line).join('');
  }
}

/** Records why a document still waits, if no step of its delivery could. It waits for a minute. */
export const noteFailure = executing<{ documentId: number; reason: string }>(`
  UPDATE emails SET reason = :reason, due_at = now() + interval '1 minute'
  WHERE document_id = :documentId AND status IN ('queued', 'held')`);
