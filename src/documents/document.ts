/** Converts a document to JSON and to a snapshot for the renderer. Amounts have exactly their currency's digits. */
import { asksForCreditorReference, Instructions } from '#config/instructions';
import { Amount } from '#money';
import { creditorReferenceOf } from './creditor-reference.ts';
import { documentTax, lineTax } from './document-tax.ts';
import { DocumentRow, LineRow } from './documents.sql.ts';
import { DocumentSnapshot } from './snapshot.ts';

/** The same in the command line, the HTTP API and the export (contract, Documents). */
export type DocumentJson = ReturnType<typeof documentJson>;

const sums = (
  row: { spot_price: string; partner_cut: string; invoice_amount: string },
  text: (amount: string) => string,
) => ({
  spotPrice: text(row.spot_price),
  partnerCut: text(row.partner_cut),
  invoiceAmount: text(row.invoice_amount),
});

/** The fields of a line after the names of its policy. */
const lineOf = ({ taxes }: DocumentRow, line: LineRow, text: (amount: string) => string) => {
  const tax = lineTax(line.tax, taxes);
  return {
    ...{ kind: line.kind, month: line.month, count: line.count },
    ...sums(line, text),
    ...(tax !== undefined && { tax }),
  };
};

const withReference = (creditor_reference: string | null): { readonly creditor_reference?: string } =>
  creditor_reference === null ? {} : { creditor_reference };

/** The creditor reference of a document with these instructions; null if it does not print one. */
const referenceOf = (row: DocumentRow, instructions: Instructions | null) =>
  instructions !== null && asksForCreditorReference(instructions, row.currency)
    ? (creditorReferenceOf(row.number) ?? null)
    : null;

export function documentJson(row: DocumentRow) {
  const text = (amount: string) => Amount.of(amount, row.currency).toString();
  return {
    number: row.number,
    series: row.series,
    sequence: row.sequence,
    document: row.document,
    purpose: row.purpose,
    status: row.status,
    partner_id: row.partner_id,
    month: row.month,
    currency: row.currency,
    issued_on: row.issued_on,
    due_on: row.due_on,
    enrollments: row.enrollments,
    ...sums(row, text),
    ...documentTax(row),
    credit_applied: text(row.credit_applied),
    amount_due: text(row.amount_due),
    credited: text(row.credited),
    amount_paid: text(row.amount_paid),
    balance: text(row.balance),
    lines: row.lines.map((line) => ({ policy_id: line.policy_id, ...lineOf(row, line, text) })),
    payment_link: row.payment_link,
    ...withReference(referenceOf(row, row.printed_instructions)),
    pdf: row.pdf_sha256 === null ? null : { sha256: row.pdf_sha256, bytes: row.pdf_bytes ?? 0 },
    email:
      row.email_status === null || row.message_id === null
        ? null
        : { status: row.email_status, to: row.email_to, message_id: row.message_id, sent_at: row.sent_at },
    replaces: row.replaces,
    replaced_by: row.replaced_by,
    credits: row.credits,
    void_reason: row.void_reason,
  };
}

export const partnerAddress = (row: DocumentRow) => ({
  line1: row.address_line1,
  line2: row.address_line2,
  city: row.address_city,
  region: row.address_region,
  postal_code: row.address_postal_code,
  country: row.address_country,
});

type SnapshotAdditions = Readonly<{
  paymentLink: string | null;
  instructions: Instructions | null;
  instructionsChanged: boolean;
}>;

export function documentSnapshot(row: DocumentRow, additions: SnapshotAdditions): DocumentSnapshot {
  const text = (amount: string) => Amount.of(amount, row.currency).toString();
  const { issuer } = row;
  return {
    document: row.document,
    purpose: row.purpose,
    number: row.number,
    month: row.month,
    currency: row.currency,
    issued_on: row.issued_on,
    due_on: row.due_on,
    terms_days: row.terms_days,
    ...(row.terms_end_of_month && { terms_end_of_month: true }),
    ...(row.terms_day !== null && { terms_day: row.terms_day }),
    ...(row.due_date_kept && { due_date_kept: true }),
    ...(row.by_principal && { by_principal: true }),
    sandbox: row.sandbox,
    issuer: {
      legal_name: issuer.legal_name,
      address: issuer.address,
      email: issuer.email,
      phone: issuer.phone,
      tax_id: issuer.tax_id,
      logo: row.logo,
    },
    partner: {
      partner_id: row.partner_id,
      name: row.partner_name,
      contact_name: row.contact_name,
      address: partnerAddress(row),
      tax_id: row.tax_id,
      purchase_order: row.purchase_order,
      legal_note: row.legal_note,
    },
    lines: row.lines.map((line) => ({
      ...{ policy_id: line.policy_id, policy_name: line.policy_name },
      ...lineOf(row, line, text),
    })),
    enrollments: row.enrollments,
    ...sums(row, text),
    ...documentTax(row),
    credit_applied: text(row.credit_applied),
    credit_notes: row.credit_notes.map((each) => ({ ...each, amount: text(each.amount) })),
    amount_due: text(row.amount_due),
    replaces: row.replaces,
    credits: row.credits,
    lowered:
      row.invoice_lowered_by === null || row.invoice_left === null
        ? null
        : { by: text(row.invoice_lowered_by), left: text(row.invoice_left) },
    reason: row.reason || null,
    checkpoint: row.checkpoint,
    payment_link: additions.paymentLink,
    instructions: additions.instructions,
    creditor_reference: referenceOf(row, additions.instructions),
    instructions_changed: additions.instructionsChanged,
  };
}
