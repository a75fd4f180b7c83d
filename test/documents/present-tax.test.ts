/** What the console, the partner's place and the command line say of a document's tax. */
import { expect, test } from 'vitest';
import type { DocumentRow, LineRow } from '../../src/documents/documents.sql.ts';
import { lineTaxText, taxSteps } from '../../src/documents/present-tax.ts';

const total = { registration: 'DE123456788', country: 'DE', name: 'VAT', reduced: false, reason_code: '' };
const taxed = {
  ...{ currency: 'EUR', invoice_amount: '1100.00', address_country: 'DE' },
  taxes: [
    { ...total, position: 1, category: 'standard', rate: '19', reason: '', taxable: '1000.03', tax: '190.01' },
    {
      ...total,
      position: 2,
      category: 'reverse_charge',
      rate: '0',
      reason: 'Reverse charge',
      taxable: '99.97',
      tax: '0',
    },
  ],
} as unknown as DocumentRow;
const untaxed: DocumentRow = { ...taxed, taxes: [] };

test('a document with tax shows the total before tax, a row for each rate, and the total with tax', () => {
  expect(taxSteps(taxed).map(({ label, amount }) => `${label}: ${amount.toString()}`)).toEqual([
    'Total before tax: 1100.00',
    'VAT 19% on 1,000.03: 190.01',
    'Reverse charge, no VAT on 99.97: 0.00',
    'Total with tax: 1290.01',
  ]);
});

test('a line shows its rate, or why it bears none', () => {
  const lines = [1, 2].map((tax) => ({ tax }) as LineRow);
  expect(lines.map((line) => lineTaxText(line, taxed))).toEqual(['19%', 'reverse charge']);
});

test('a document without tax shows nothing of it', () => {
  expect([taxSteps(untaxed), lineTaxText({ tax: null } as LineRow, untaxed)]).toEqual([[], '']);
});
