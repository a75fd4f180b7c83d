/**
 * The snapshot of a document: all frozen data that its PDF shows. Rendering is a pure function of it and the renderer
 * version.
 */

import { Instructions } from '#config/instructions';
import { Logo } from '#config/logo';
import { Address } from '#config/validation';
import { Month } from '#month';
import { DocumentTax, LineTax } from './document-tax.ts';

export const DOCUMENT_KINDS = ['invoice', 'credit_note', 'statement'] as const;
export type DocumentKind = (typeof DOCUMENT_KINDS)[number];
export const ROW_KINDS = ['quote_accepted', 'requote_accepted', 'reversal'] as const;
export type RowKind = (typeof ROW_KINDS)[number];
/** An `opening` was carried over from the previous system, so it has no PDF. */
export type Purpose = 'month' | 'adjustment' | 'missing_shares' | 'opening';

/** Amounts have exactly the currency's digits. */
export type SnapshotLine = Readonly<{
  policy_id: string;
  policy_name: string;
  kind: RowKind;
  /** The month of the rows. For late rows, this month is earlier than the document's month. */
  month: Month;
  count: number;
  spotPrice: string;
  partnerCut: string;
  invoiceAmount: string;
  /** Omitted on a document without tax. */
  tax?: LineTax;
}>;

/** The checkpoint of a closed month, by which anyone can verify that the log up to it has not changed. */
export type SnapshotCheckpoint = Readonly<{
  month: Month;
  size: number;
  /** In Base64. */
  root: string;
}>;

/** With tax, a snapshot also has the fields of `DocumentTax`, and `amount_due` is gross less credit. */
export type DocumentSnapshot = Partial<DocumentTax> &
  Readonly<{
    document: DocumentKind;
    purpose: Purpose;
    number: string;
    month: Month;
    currency: string;
    issued_on: string;
    /** The due date; null for credit notes and statements, because nothing is due. */
    due_on: string | null;
    terms_days: number | null;
    terms_end_of_month?: boolean | null;
    terms_day?: number | null;
    /** A replacement's terms would contradict a due date that was kept from the replaced invoice. */
    due_date_kept?: boolean;
    /** We sell to the consumer, so the partner's cut is its commission. */
    by_principal?: boolean;
    sandbox: boolean;
    issuer: Readonly<{
      legal_name: string;
      address: Address;
      email: string;
      phone: string;
      tax_id: string;
      logo: Logo | null;
    }>;
    partner: Readonly<{
      partner_id: string;
      name: string;
      contact_name: string;
      address: Address;
      tax_id: string;
      purchase_order: string;
      legal_note: string;
    }>;
    /**
     * This month's lines come first, then those of earlier months. A credit note's are negated. An adjustment has none.
     */
    lines: readonly SnapshotLine[];
    enrollments: number;
    spotPrice: string;
    partnerCut: string;
    invoiceAmount: string;
    credit_applied: string;
    /** The credit notes that were applied at issue; omitted if there were none. */
    credit_notes?: readonly Readonly<{ number: string; amount: string }>[];
    amount_due: string;
    /** The number of the void document that this document replaces. */
    replaces: string | null;
    /** The number of the invoice that an adjustment credits. */
    credits: string | null;
    /**
     * For an adjustment, the amount deducted from its invoice at once, and the invoice's balance after that; omitted on
     * other documents.
     */
    lowered?: Readonly<{ by: string; left: string }> | null;
    reason: string | null;
    /** The last checkpoint that closed a month before the document was issued. */
    checkpoint: SnapshotCheckpoint | null;
    /** Null if nothing is due. */
    payment_link: string | null;
    /** The payment instructions. Null on credit notes and statements, and if nothing is due. */
    instructions: Instructions | null;
    /** The creditor reference (ISO 11649) that is printed with the instructions; null or omitted if there is none. */
    creditor_reference?: string | null;
    /** Whether the instructions differ from those on this partner's previous invoice in this currency. */
    instructions_changed: boolean;
  }>;

/** The facts of the void that the copy of a void document states. */
export type VoidMark = Readonly<{
  /** The day of the void, `YYYY-MM-DD`. */
  on: string;
  reason: string;
  /** The number of the replacement; null if there is none yet. */
  replacedBy: string | null;
}>;
