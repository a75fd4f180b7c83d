import { describe, expect, test } from 'vitest';
import { E_INVOICE_FORMATS } from '../../../src/config/e-invoice.ts';
import { drawEInvoice } from '../../../src/documents/e-invoice/write.ts';
import { euroCredit, euroInvoice, factsOf } from '../../support/e-invoices.ts';
import { brokenProfileRules, judge } from '../../support/en16931.ts';

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
});
