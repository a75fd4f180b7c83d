/** E-invoices for tests, for a German, a French and a Belgian partner. A test can change anything in them. */
import type { EInvoiceFormat } from '../../src/config/e-invoice.ts';
import type { EInvoiceFacts, Parties } from '../../src/documents/e-invoice/model.ts';
import type { DocumentSnapshot } from '../../src/documents/snapshot.ts';
import { internationalWire, lateLines, line, snapshot, usualLines } from './snapshots.ts';

export const parties: Parties = {
  seller: {
    name: 'Fairweather Protection GmbH',
    line1: 'Neuer Wall 10',
    line2: '3. Stock',
    city: 'Hamburg',
    region: '',
    postal_code: '20354',
    country: 'DE',
    tax_id: 'DE 123456788',
    contact_name: 'Accounts Receivable',
    electronic_address: '9930:DE123456788',
    registration_id: 'HRB 12345',
    email: 'billing@fairweather.example',
    phone: '+49 40 555 0142',
  },
  buyer: {
    name: 'Leuchtturm Tickets & Söhne AG',
    line1: 'Unter den Linden 1',
    line2: '',
    city: 'Berlin',
    region: '',
    postal_code: '10117',
    country: 'DE',
    tax_id: 'DE987654328',
    contact_name: 'Buchhaltung',
    electronic_address: '0204:04011000-12345-34',
    buyer_reference: '04011000-12345-34',
    purchase_order: 'PO-77 <2026>',
  },
  no_tax: { category: 'AE', reason: 'Reverse charge', reason_code: 'VATEX-EU-AE' },
};

const french = {
  name: 'Billetterie du Phare SAS',
  line1: '12 rue de Rivoli',
  city: 'Paris',
  postal_code: '75001',
  country: 'FR',
  tax_id: 'FR 40 303265045',
  electronic_address: '0009:30326504500011',
  buyer_reference: '',
};
const belgian = {
  name: 'Vuurtoren Tickets BV',
  line1: 'Koningsstraat 1',
  city: 'Brussel',
  postal_code: '1000',
  country: 'BE',
  tax_id: 'BE0843766574',
  electronic_address: '0208:0843766574',
  buyer_reference: '',
};

const BUYERS: Readonly<Record<EInvoiceFormat, Parties['buyer']>> = {
  xrechnung: parties.buyer,
  facturx: { ...parties.buyer, ...french },
  ubl: { ...parties.buyer, ...belgian },
};

export const factsOf = (format: EInvoiceFormat, change: Partial<EInvoiceFacts> = {}): EInvoiceFacts => ({
  format,
  parties: { ...parties, buyer: BUYERS[format] },
  corrects_issued_on: null,
  ...change,
});

/** An invoice in euros with reversals, late lines and applied credit. */
export const euroInvoice = (change: Partial<DocumentSnapshot> = {}): DocumentSnapshot =>
  snapshot({
    currency: 'EUR',
    lines: [...usualLines, ...lateLines, line('Free "Cover" <one>', 'quote_accepted', 5, '0.00', '0.00')],
    credit_applied: '250.10',
    instructions: { wire: internationalWire },
    ...change,
  });

/** A credit note against a stated invoice. */
export const euroCredit = (change: Partial<DocumentSnapshot> = {}): DocumentSnapshot =>
  euroInvoice({
    document: 'credit_note',
    purpose: 'adjustment',
    number: 'CN-2026-000003',
    lines: [],
    invoiceAmount: '120.55',
    amount_due: '0.00',
    credit_applied: '0.00',
    due_on: null,
    terms_days: null,
    instructions: null,
    payment_link: null,
    credits: 'INV-2026-000042',
    reason: 'Event was cancelled & refunded',
    ...change,
  });

const standard = { category: 'standard', reduced: false, reason: '', reason_code: '' } as const;
const exempt = {
  category: 'exempt',
  rate: '0',
  reduced: false,
  reason: 'Insurance',
  reason_code: 'VATEX-EU-135-1',
} as const;
const ofCountry = { country: 'DE', name: 'VAT' };

/** An invoice: 700.00 and a reversal of 100.00 at 19 %, 100.00 at 7 %, and 300.00 exempt; all of it before tax. */
export function taxedInvoice(): DocumentSnapshot {
  const sold = (policy: string, kind: 'quote_accepted' | 'reversal', share: string, tax: object) => ({
    ...line(policy, kind, 3, share, '0.00', { currency: 'EUR' }),
    tax,
  });
  const [high, low] = [
    { ...standard, rate: '19' },
    { ...standard, rate: '7' },
  ];
  return euroInvoice({
    lines: [
      sold('Parking', 'quote_accepted', '700.00', high),
      sold('Parking', 'reversal', '-100.00', high),
      sold('Meals', 'quote_accepted', '100.00', low),
      sold('Tickets', 'quote_accepted', '300.00', exempt),
    ] as DocumentSnapshot['lines'],
    registration: 'DE123456788',
    taxTotals: [
      { ...ofCountry, ...high, taxable: '600.00', tax: '114.00' },
      { ...ofCountry, ...low, taxable: '100.00', tax: '7.00' },
      { ...ofCountry, ...exempt, taxable: '300.00', tax: '0.00' },
    ],
    net: '1000.00',
    tax: '121.00',
    gross: '1121.00',
    credit_applied: '21.00',
    amount_due: '1100.00',
  });
}
