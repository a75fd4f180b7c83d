import { EInvoiceFormat } from '#config/e-invoice';
import { Instructions } from '#config/instructions';
import { Logo } from '#config/logo';
import { Issuer } from '#config/settings';
import { prepared, query, querying, queryingColumn, Transaction } from '#database/transaction';
import { Month } from '#month';
import { Scope } from '#people/scope';
import { TaxRow } from './document-tax.ts';
import { DocumentKind, Purpose, RowKind, SnapshotCheckpoint } from './snapshot.ts';

export type DocumentRow = Readonly<{
  document_id: number;
  number: string;
  series: string;
  sequence: number;
  document: DocumentKind;
  purpose: Purpose;
  status: 'open' | 'paid' | 'void';
  partner_id: string;
  month: Month;
  currency: string;
  arrangement: 'invoicing' | 'connected_account';
  issued_on: string;
  due_on: string | null;
  terms_days: number | null;
  terms_end_of_month: boolean | null;
  terms_day: number | null;
  /** That of the invoice that it replaces, which the document's own terms would contradict. */
  due_date_kept: boolean;
  /** Whether we are the principal, and the partner's cut is a commission. */
  by_principal: boolean;
  enrollments: number;
  spot_price: string;
  partner_cut: string;
  invoice_amount: string;
  gross: string;
  /** In order; none without tax. */
  taxes: readonly TaxRow[];
  credit_applied: string;
  /** The credit notes that were applied at issue. */
  credit_notes: readonly Readonly<{ number: string; amount: string }>[];
  amount_due: string;
  credited: string;
  amount_paid: string;
  balance: string;
  partner_name: string;
  contact_name: string;
  address_line1: string;
  address_line2: string;
  address_city: string;
  address_region: string;
  address_postal_code: string;
  address_country: string;
  tax_id: string;
  purchase_order: string;
  legal_note: string;
  e_invoice: 'none' | EInvoiceFormat;
  buyer_reference: string;
  electronic_address: string;
  issuer: Omit<Issuer, 'logo'>;
  /** The issuer's logo, if it has one and the filter requests logos. */
  logo: Logo | null;
  sandbox: boolean;
  lines: readonly LineRow[];
  printed_link: string | null;
  /** The link that opens the payment page; null if it was revoked. */
  payment_link: string | null;
  pdf_sha256: string | null;
  pdf_bytes: number | null;
  /** The instructions that the PDF prints; null without a PDF or without any. */
  printed_instructions: Instructions | null;
  email_status: EmailStatus | null;
  email_reason: string | null;
  email_to: string[] | null;
  message_id: string | null;
  sent_at: string | null;
  /** The numbers of the void document that this one replaces, and of the document that replaces this one. */
  replaces: string | null;
  replaced_by: string | null;
  credits: string | null;
  /** The day of issue of the document that this one credits or replaces. */
  corrects_issued_on: string | null;
  /** For an adjustment, the amount deducted from its invoice at once, and the invoice's balance after that. */
  invoice_lowered_by: string | null;
  invoice_left: string | null;
  /** Why an adjustment was made; otherwise empty. */
  reason: string;
  /** For an item carried over by an opening, the cut-over day and the amount at issue. */
  carried_over_on: string | null;
  original_amount: string | null;
  void_reason: string | null;
  voided_on: string | null;
  written_off: string;
  bank_charges: string;
  /** The part of the credit applied at issue that was released later. */
  credit_taken_back: string;
  /** The last checkpoint that closed a month before the document was issued. */
  checkpoint: SnapshotCheckpoint | null;
  /** When and why the document was put on hold; null if the document is not on hold. */
  held_at: string | null;
  hold_reason: string | null;
}>;

export async function readEInvoice(tx: Transaction, documentId: number): Promise<Buffer | undefined> {
  const rows = await query<{ xml: Buffer }>(tx, `SELECT xml FROM document_e_invoices WHERE document_id = :documentId`, {
    documentId,
  });
  return rows[0]?.xml;
}

/** The states of an e-mail that was not withdrawn. `portal`: it is needless, because the document was delivered so. */
export const EMAIL_STATUSES = [
  'queued',
  'sending',
  'sent',
  'held',
  'failed',
  'uncertain',
  'bounced',
  'portal',
] as const;
export type EmailStatus = (typeof EMAIL_STATUSES)[number];

export type LineRow = Readonly<{
  policy_id: string;
  policy_name: string;
  kind: RowKind;
  month: Month;
  count: number;
  spot_price: string;
  partner_cut: string;
  invoice_amount: string;
  /** The position of the line's tax total; null without tax. */
  tax: number | null;
}>;

export type DocumentFilter = Readonly<{
  ids?: readonly number[] | undefined;
  number?: string | undefined;
  months?: readonly Month[] | undefined;
  partnerId?: string | undefined;
  /** Selects the documents of these partners; null for all partners. */
  partnerIds?: readonly string[] | null | undefined;
  status?: string | undefined;
  document?: DocumentKind | undefined;
  after?: string | undefined;
  limit?: number | undefined;
  /** Adds the issuer's logo, for rendering. Each document gets its own copy, so only a few should be read at a time. */
  withLogos?: boolean | undefined;
}>;

const documentsWhere = (condition: string, withLogos: string, limit = 'NULL') => `
     SELECT d.document_id, d.number, d.series, d.sequence, d.document, d.purpose, b.status, d.partner_id, d.month,
            d.currency, d.arrangement, d.issued_on, d.due_on, d.terms_days, d.terms_end_of_month, d.terms_day,
            coalesce(d.due_on <> due_date(d.issued_on, d.terms_days, d.terms_end_of_month, d.terms_day), false)
              AS due_date_kept, coalesce((SELECT we_are FROM presentation) = 'principal', false) AS by_principal,
            d.enrollments, d.spot_price, d.partner_cut,
            d.invoice_amount, d.gross, x.taxes, d.credit_applied, b.amount_due, b.credited, b.amount_paid, b.balance,
            d.partner_name,
            personal(d.contact_name) AS contact_name, d.address_line1, d.address_line2,
            d.address_city, d.address_region,
            d.address_postal_code,
            d.address_country, d.tax_id, d.purchase_order, d.legal_note, d.e_invoice, d.buyer_reference,
            d.electronic_address, coalesce(credited.issued_on, replaced.issued_on) AS corrects_issued_on,
            i.content AS issuer, g.logo, d.sandbox,
            l.lines, k.url AS printed_link, u.url AS payment_link,
            w.sha256 AS pdf_sha256, octet_length(w.pdf) AS pdf_bytes,
            p.content AS printed_instructions,
            s.delivery AS email_status, s.reason AS email_reason, s.recipients AS email_to, s.message_id, s.sent_at,
            CASE WHEN d.opening_id IS NOT NULL THEN d.entry_on END AS carried_over_on, d.original_amount,
            d.reason, d.invoice_lowered_by, d.invoice_left, c.credit_notes,
            v.reason AS void_reason, v.voided_on, replaced.number AS replaces,
            successor.number AS replaced_by,
            credited.number AS credits, z.checkpoint, h.held_at, h.reason AS hold_reason,
            (SELECT coalesce(sum(amount), 0) FROM live_write_offs o WHERE o.document_id = d.document_id) AS written_off,
            coalesce(y.bank_charges, 0) AS bank_charges,
            (SELECT coalesce(sum(a.amount), 0)
             FROM credit_applications a JOIN credit_releases USING (credit_application_id)
             WHERE a.invoice_id = d.document_id AND a.at_issue) AS credit_taken_back
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
                'invoice_amount', l.invoice_amount::text, 'tax', l.tax) ORDER BY l.position), '[]') AS lines
       FROM document_lines l WHERE l.document_id = d.document_id) AS l
     CROSS JOIN LATERAL (
       SELECT coalesce(json_agg(json_build_object('position', t.position, 'country', t.country,
                'registration', t.registration, 'name', t.name, 'category', t.category,
                'rate', trim_scale(t.rate)::text, 'reduced', t.reduced, 'reason', t.reason,
                'reason_code', t.reason_code, 'taxable', t.taxable::text, 'tax', t.tax::text)
                ORDER BY t.position), '[]') AS taxes
       FROM document_taxes t WHERE t.document_id = d.document_id) AS x
     CROSS JOIN LATERAL (
       SELECT coalesce(json_agg(json_build_object('number', n.number, 'amount', a.amount::text)
                                ORDER BY a.credit_application_id), '[]') AS credit_notes
       FROM credit_applications a JOIN documents n ON n.document_id = a.credit_note_id
       WHERE a.invoice_id = d.document_id AND a.at_issue) AS c
     LEFT JOIN printed_links k ON k.document_id = d.document_id
     LEFT JOIN current_links u ON u.document_id = d.document_id
     LEFT JOIN document_pdfs w ON w.document_id = d.document_id
     LEFT JOIN instruction_versions p ON p.instruction_version_id = w.instruction_version_id
     LEFT JOIN LATERAL (
       SELECT * FROM document_emails s WHERE s.document_id = d.document_id AND s.delivery <> 'withdrawn'
       ORDER BY s.email_id DESC LIMIT 1) AS s ON true
     -- The last close of a month before it was issued, by the order of the log: clocks may go back.
     LEFT JOIN LATERAL (
       SELECT json_build_object('month', substr(z.closes, 7), 'size', z.size, 'root', encode(z.root, 'base64'))
         AS checkpoint
       FROM log_checkpoints z
       WHERE z.last_no < d.log_no AND z.closes LIKE 'month %' ORDER BY z.last_no DESC LIMIT 1) AS z ON true
     LEFT JOIN document_bank_charges y ON y.document_id = d.document_id
     LEFT JOIN voids v ON v.document_id = d.document_id
     LEFT JOIN current_holds h ON h.document_id = d.document_id
     LEFT JOIN documents replaced ON replaced.document_id = d.replaces
     LEFT JOIN documents successor ON successor.replaces = d.document_id
     LEFT JOIN documents credited ON credited.document_id = d.credits
     WHERE ${condition}
     ORDER BY d.series, d.sequence LIMIT ${limit}`;

/** Prepared for each filter, because planning takes 10 ms, longer than reading ten documents. */
const STATEMENTS = {
  all: prepared('documents.all', documentsWhere('true', 'false')),
  ids: prepared('documents.ids', documentsWhere('d.document_id = ANY (:ids::bigint[])', 'false')),
  number: prepared('documents.number', documentsWhere('d.number = :number', 'false')),
  months: prepared('documents.months', documentsWhere('d.month = ANY (:months::text[])', 'false')),
  several: documentsWhere(
    `(:ids::bigint[] IS NULL OR d.document_id = ANY (:ids::bigint[]))
     AND (:number::text IS NULL OR d.number = :number)
     AND (:months::text[] IS NULL OR d.month = ANY (:months::text[]))
     AND (:partnerId::text IS NULL OR d.partner_id = :partnerId)
     AND (:partnerIds::text[] IS NULL OR d.partner_id = ANY (:partnerIds::text[]))
     AND (:status::text IS NULL OR b.status = :status)
     AND (:document::text IS NULL OR d.document = :document)
     AND (:after::text IS NULL
          OR (d.series, d.sequence) > (SELECT series, sequence FROM documents WHERE number = :after))`,
    ':withLogos::boolean',
    ':limit::bigint',
  ),
} as const;

function statementFor(filter: DocumentFilter): keyof typeof STATEMENTS {
  const given = Object.entries(filter).flatMap(([name, value]) => ((value ?? false) === false ? [] : [name]));
  const [only = 'all', ...more] = given;
  return more.length === 0 && only in STATEMENTS ? (only as keyof typeof STATEMENTS) : 'several';
}

export function readDocuments(tx: Transaction, filter: DocumentFilter): Promise<DocumentRow[]> {
  return query(tx, STATEMENTS[statementFor(filter)], {
    ids: filter.ids ?? null,
    number: filter.number ?? null,
    months: filter.months ?? null,
    partnerId: filter.partnerId ?? null,
    partnerIds: filter.partnerIds ?? null,
    status: filter.status ?? null,
    document: filter.document ?? null,
    after: filter.after ?? null,
    limit: filter.limit ?? null,
    withLogos: filter.withLogos ?? false,
  });
}

const DOCUMENTS_TO_RENDER = prepared(
  'documents.to_render',
  documentsWhere('d.document_id = ANY (:ids::bigint[])', 'true'),
);

/** Documents with their logos. Prepared, because planning takes 10 ms, longer than reading ten documents. */
export const readDocumentsToRender = querying<DocumentRow, { ids: readonly number[] }>(DOCUMENTS_TO_RENDER);

export const readIdsOf = queryingColumn<number, { numbers: readonly string[] }>(
  `SELECT document_id FROM documents WHERE number = ANY (:numbers::text[]) ORDER BY document_id`,
);

export const readPdfs = querying<
  Readonly<{ number: string; month: string; issued_at: string; pdf: Buffer | null }>,
  Readonly<{ numbers: readonly string[]; scope: Scope }>
>(`
  SELECT d.number, d.month, d.issued_at, w.pdf FROM documents d LEFT JOIN document_pdfs w USING (document_id)
  WHERE d.number = ANY (:numbers::text[]) AND (:scope::text[] IS NULL OR d.partner_id = ANY (:scope::text[]))
  ORDER BY d.document_id`);

export async function readPdf(tx: Transaction, documentId: number): Promise<Buffer | undefined> {
  const rows = await query<{ pdf: Buffer }>(tx, `SELECT pdf FROM document_pdfs WHERE document_id = :documentId`, {
    documentId,
  });
  return rows[0]?.pdf;
}
