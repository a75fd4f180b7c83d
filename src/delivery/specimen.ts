/**
 * Renders a specimen of each kind of document, to find unusable templates before a month closes. Refusals:
 * settings_invalid, file_unreadable (an unusable template).
 */

import { firstSettings } from '#config/first-settings';
import { Instructions } from '#config/instructions';
import { Settings } from '#config/settings';
import { DocumentKind, DocumentSnapshot } from '#documents/snapshot';
import { renderDocumentEmail } from '#mail/document-text';
import { EmailTemplates } from '#mail/templates';
import { Month } from '#month';

const MONTH = '2026-01' as Month;

const sums = { spotPrice: '10.00', partnerCut: '3.00', invoiceAmount: '7.00' };
const address = {
  line1: '1 Specimen Street',
  line2: '',
  city: 'Springfield',
  region: '',
  postal_code: '',
  country: 'US',
};

/** A document for 7.00 USD to no partner, from the current issuer. */
function specimen(document: DocumentKind, { issuer }: Settings): DocumentSnapshot {
  const isInvoice = document === 'invoice';
  return {
    document,
    purpose: 'month',
    number: 'SPECIMEN',
    month: MONTH,
    currency: 'USD',
    issued_on: '2026-02-01',
    due_on: isInvoice ? '2026-03-03' : null,
    terms_days: isInvoice ? 30 : null,
    sandbox: true,
    issuer: { ...issuer, logo: null },
    partner: {
      partner_id: 'specimen',
      name: 'Specimen',
      contact_name: '',
      address,
      tax_id: '',
      purchase_order: '',
      legal_note: '',
    },
    lines: [
      { policy_id: 'specimen', policy_name: 'Specimen', kind: 'quote_accepted', month: MONTH, count: 1, ...sums },
    ],
    enrollments: 1,
    ...sums,
    credit_applied: '0.00',
    amount_due: sums.invoiceAmount,
    replaces: null,
    credits: null,
    reason: null,
    checkpoint: null,
    payment_link: isInvoice ? 'https://billing.example/pay/specimen' : null,
    // Complete, because missing settings are reported separately.
    instructions: isInvoice ? (firstSettings('sandbox').instructions['USD'] as Instructions) : null,
    instructions_changed: isInvoice,
  };
}

/** Throws at the first e-mail that cannot be rendered. */
export function trySpecimens(templates: EmailTemplates, settings: Settings) {
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
