import { describe, expect, test } from 'vitest';
import { E_INVOICE_FORMATS } from '../../../src/config/e-invoice.ts';
import { drawEInvoice } from '../../../src/documents/e-invoice/write.ts';
import type { DocumentSnapshot } from '../../../src/documents/snapshot.ts';
import { euroCredit, euroInvoice, factsOf, taxedInvoice } from '../../support/e-invoices.ts';
import { brokenProfileRules, judge } from '../../support/en16931.ts';

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

  test('the remittance information is the creditor reference where the invoice prints one', () => {
    const reference = 'RF54INV2026000042';
    const xml = drawEInvoice({ ...euroInvoice(), creditor_reference: reference }, factsOf(format));
    expect(judge(xml).failed).toEqual([]);
    if (format !== 'facturx') expect(brokenProfileRules(xml)).toEqual([]);
    expect(xml.toString()).toMatch(new RegExp(`<(ram:PaymentReference|cbc:PaymentID)>${reference}<`));
    expect(xml.toString().match(new RegExp(reference, 'g'))).toHaveLength(1);
  });

  test('an invoice with tax at two rates and an exempt policy states each total', () => {
    const taxed = taxedInvoice();
    const xml = drawEInvoice(taxed, factsOf(format));
    expect(judge(xml).failed).toEqual([]);
    expect(xml.toString()).toContain('>1121.00<');
    expect(xml.toString()).toContain('>114.00<');
  });

  test('one rate of two countries is one total', () => {
    const taxed = taxedInvoice();
    const [high, ...others] = taxed.taxTotals ?? [];
    const halves = ['DE', 'AT'].map((country) => ({ ...high, country, taxable: '300.00', tax: '57.00' }));
    const xml = drawEInvoice({ ...taxed, taxTotals: [...halves, ...others] } as DocumentSnapshot, factsOf(format));
    expect(judge(xml).failed).toEqual([]);
    expect(xml.toString()).toBe(drawEInvoice(taxed, factsOf(format)).toString());
  });

  test('a credit note against an invoice with tax has a line for each total', () => {
    const taxed = taxedInvoice();
    const credit = euroCredit({ ...taxOf(taxed), invoiceAmount: taxed.invoiceAmount });
    const xml = drawEInvoice(credit, factsOf(format, { corrects_issued_on: '2026-11-01' }));
    expect(judge(xml).failed).toEqual([]);
    expect(xml.toString().match(/Credit against INV-2026-000042/g)).toHaveLength(3);
  });
});
