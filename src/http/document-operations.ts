/** The operations of the API on invoices, credit notes and statements. */
import { z } from 'zod';
import { operation } from './operation.ts';
import { documentAnswer, month, pageLimit } from './schemas.ts';

const documentNumber = z.string().regex(/^[A-Za-z0-9-]{1,64}$/, 'is not a document number');
const ofDocument = z.object({ number: documentNumber });

const SUMS = { spotPrice: '8750.25', partnerCut: '2625.08', invoiceAmount: '6125.17' };
const INVOICE = {
  ...{ number: 'INV-2026-000014', series: 'INV-2026', sequence: 14, document: 'invoice', purpose: 'month' },
  ...{ status: 'open', partner_id: 'p-harbour-lights', month: '2026-10', currency: 'USD' },
  ...{ issued_on: '2026-11-01', due_on: '2026-12-01', enrollments: 412, ...SUMS },
  ...{ credit_applied: '0.00', amount_due: '6125.17', credited: '0.00', amount_paid: '0.00', balance: '6125.17' },
  lines: [{ policy_id: 'ticket-protection', kind: 'quote_accepted', month: '2026-10', count: 412, ...SUMS }],
  payment_link: 'https://billing.example/pay/4mJ0…',
  pdf: { sha256: '9f2c…', bytes: 48213 },
  email: {
    status: 'sent',
    to: ['ap@partner.example'],
    message_id: '<INV-2026-000014.1.d838034f9750@billing.example>',
    sent_at: '2026-11-01T11:00:07.000Z',
  },
  ...{ replaces: null, replaced_by: null, credits: null, void_reason: null },
};

export const listInvoices = operation({
  id: 'listInvoices',
  action: 'reads',
  path: '/api/v1/invoices',
  summary: 'Your invoices, credit notes and statements',
  description:
    'Your documents in number order, with their lines, balances and payment links. The Link header has the URL of ' +
    'the next page.',
  query: z.strictObject({
    limit: pageLimit,
    cursor: documentNumber.optional().describe('Only documents after this document number of yours'),
    month: month.optional().describe('Only documents that bill this month, YYYY-MM'),
    status: z.enum(['open', 'paid', 'void']).optional(),
    document: z.enum(['invoice', 'credit_note', 'statement']).optional(),
  }),
  answer: z.array(documentAnswer),
  example: [INVOICE],
  refusals: ['request_invalid'],
});

const ownDocument = { action: 'reads', params: ofDocument } as const;

export const readInvoice = operation({
  ...ownDocument,
  id: 'readInvoice',
  path: '/api/v1/invoices/{number}',
  summary: 'One document',
  description: 'The document with its lines, its balance and its payment link.',
  answer: documentAnswer,
  example: INVOICE,
  refusals: ['invoice_unknown'],
});

export const readInvoicePdf = operation({
  ...ownDocument,
  id: 'readInvoicePdf',
  path: '/api/v1/invoices/{number}/pdf',
  summary: 'The PDF of a document',
  description:
    "The file as issued, byte for byte; the document's `pdf.sha256` is its SHA-256. Check the status before paying " +
    'from it: a void document keeps its PDF.',
  answer: 'application/pdf',
  example: undefined,
  refusals: ['invoice_unknown', 'pdf_not_ready'],
});

export const readEInvoice = operation({
  ...ownDocument,
  id: 'readEInvoice',
  path: '/api/v1/invoices/{number}/e-invoice',
  summary: 'The e-invoice of a document',
  description:
    'The EN 16931 XML issued with the document, byte for byte: CII for Factur-X, which the PDF also contains, or ' +
    'UBL for Peppol BIS and XRechnung. Check the status before paying from it: a void document keeps its e-invoice.',
  answer: 'application/xml',
  example: undefined,
  refusals: ['invoice_unknown', 'e_invoice_unknown'],
});

export const readInvoiceRows = operation({
  ...ownDocument,
  id: 'readInvoiceRows',
  path: '/api/v1/invoices/{number}/rows',
  summary: 'The rows that a document bills',
  description:
    'CSV in UTF-8 with a header and a byte order mark: one line for each acceptance or reversal, in order of ' +
    'recording. A document without rows has only the header.',
  answer: 'text/csv',
  example: undefined,
  refusals: ['invoice_unknown', 'rows_busy'],
});
