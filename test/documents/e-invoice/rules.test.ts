import { describe, expect, test } from 'vitest';
import { E_INVOICE_FORMATS } from '../../../src/config/e-invoice.ts';
import { drawEInvoice } from '../../../src/documents/e-invoice/write.ts';
import type { DocumentSnapshot } from '../../../src/documents/snapshot.ts';
import { euroCredit, euroInvoice, factsOf } from '../../support/e-invoices.ts';
import { brokenProfileRules, judge } from '../../support/en16931.ts';
import { line } from '../../support/snapshots.ts';

const standard = { category: 'standard', reduced: false, reason: '', reason_code: '' } as const;
const exempt = {
  category: 'exempt',
  rate: '0',
  reduced: false,
  reason: 'Insurance',
  reason_code: 'VATEX-EU-135-1',
} as const;
const ofCountry = { country: 'DE', name: 'VAT' };

/** 700.00 and a reversal of 100.00 at 19 %, 100.00 at 7 %, and 300.00 exempt; all of it before tax. */
function taxedInvoice(): DocumentSnapshot {
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
    registration: 'DE123456789',
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

const taxOf = ({ registration, taxTotals, net, tax, gross }: DocumentSnapshot) =>
  ({ registration, taxTotals, net, tax, gross }) as Partial<DocumentSnapshot>;

const PARTNERS = { xrechnung: 'German', facturx: 'French', ubl: 'Belgian' } as const;

describe.each(E_INVOICE_FORMATS)('%s', (format) => {
  test(`an invoice of a ${PARTNERS[format]} partner breaks no rule of EN 16931`, () => {
    const xml = drawEInvoice(euroInvoice(), factsOf(format));
    const { failed, fired } = judge(xml);
    expect(failed).toEqual([]);
    expect(fired).toBeGreaterThan(50);
    if (format !== 'facturx') expect(brokenProfileRules(xml)).toEqual([]);
  });

  test(`a credit note of a ${PARTNERS[format]} partner breaks no rule, and names the invoice that it corrects`, () => {
    const xml = drawEInvoice(euroCredit(), factsOf(format, { corrects_issued_on: '2026-11-01' }));
    expect(judge(xml).failed).toEqual([]);
    if (format !== 'facturx') expect(brokenProfileRules(xml)).toEqual([]);
    expect(xml.toString()).toMatch(/INV-2026-000042<[^>]*>\s*<[^>]*(IssueDate|FormattedIssueDateTime)>/);
    expect(xml.toString()).toContain('>381<');
  });

  test('an invoice with tax at two rates and an exempt policy states each total', () => {
    const taxed = taxedInvoice();
    const xml = drawEInvoice(taxed, factsOf(format));
    expect(judge(xml).failed).toEqual([]);
    expect(xml.toString()).toContain('>1121.00<');
    expect(xml.toString()).toContain('>114.00<');
  });

  test('a credit note against an invoice with tax has a line for each total', () => {
    const taxed = taxedInvoice();
    const credit = euroCredit({ ...taxOf(taxed), invoiceAmount: taxed.invoiceAmount });
    const xml = drawEInvoice(credit, factsOf(format, { corrects_issued_on: '2026-11-01' }));
    expect(judge(xml).failed).toEqual([]);
    expect(xml.toString().match(/Credit against INV-2026-000042/g)).toHaveLength(3);
  });
});
