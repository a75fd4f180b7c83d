/**
 * A specimen of each document, to find out before a month closes whether its e-mail can be rendered. Refusals:
 * settings_invalid, file_unreadable (a template that cannot be used).
 */

import { firstSettings } from '../config/first-settings.ts';
import type { Instructions } from '../config/instructions.ts';
import type { Settings } from '../config/settings.ts';
import { documentSnapshot } from '../documents/document.ts';
import type { DocumentRow } from '../documents/queries.ts';
import type { DocumentKind, DocumentSnapshot } from '../documents/snapshot.ts';
import { renderDocumentEmail } from '../mail/document-text.ts';
import type { EmailTemplates } from '../mail/templates.ts';
import type { Month } from '../month.ts';

const MONTH = '2026-01' as Month;

const line = {
  policy_id: 'specimen',
  policy_name: 'Specimen',
  kind: 'quote_accepted',
  month: MONTH,
  count: 1,
  spot_price: '10.00',
  partner_cut: '3.00',
  invoice_amount: '7.00',
} as const;

/** A document over 7.00 USD to nobody, by the present issuer. */
function specimen(document: DocumentKind, { issuer }: Settings): DocumentSnapshot {
  const isInvoice = document === 'invoice';
  const row = {
    document_id: 0,
    number: 'SPECIMEN',
    document,
    purpose: 'month',
    partner_id: 'specimen',
    month: MONTH,
    currency: 'USD',
    issued_on: '2026-02-01',
    due_on: isInvoice ? '2026-03-03' : null,
    terms_days: isInvoice ? 30 : null,
    enrollments: 1,
    spot_price: line.spot_price,
    partner_cut: line.partner_cut,
    invoice_amount: line.invoice_amount,
    credit_applied: '0.00',
    amount_due: line.invoice_amount,
    partner_name: 'Specimen',
    ...{ address_line1: '1 Specimen Street', address_line2: '', address_city: 'Springfield', address_region: '' },
    ...{ address_postal_code: '', address_country: 'US', tax_id: '', purchase_order: '', legal_note: '' },
    issuer,
    sandbox: true,
    lines: [line],
    ...{ replaces: null, replaced_by: null, credits: null, reason: '', void_reason: null, voided_on: null },
  } as unknown as DocumentRow;
  return documentSnapshot(row, {
    paymentLink: isInvoice ? 'https://billing.example/pay/specimen' : null,
    // Complete ones: missing settings are reported apart from faulty templates.
    instructions: isInvoice ? (firstSettings('sandbox').instructions['USD'] as Instructions) : null,
    instructionsChanged: isInvoice,
  });
}

/** Renders the e-mail of each kind of document; throws for the first that cannot be rendered. */
export function trySpecimens(templates: EmailTemplates, settings: Settings): void {
  for (const document of ['invoice', 'credit_note', 'statement'] as const) {
    renderDocumentEmail(
      specimen(document, settings),
      {
        contactName: 'Specimen',
        attachments: [{ filename: 'SPECIMEN.pdf', note: 'the document' }],
        rowsOmitted: false,
      },
      templates,
    );
  }
}
