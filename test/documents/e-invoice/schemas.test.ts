/** The form of e-invoices: which elements stand where, by the schemas of their syntaxes. */
import { describe, expect, test } from 'vitest';
import { drawEInvoice } from '../../../src/documents/e-invoice/write.ts';
import { euroCredit, euroInvoice, factsOf, taxedInvoice } from '../../support/e-invoices.ts';
import { needs } from '../../support/tools.ts';
import { misplacedInUbl, schemaFaults } from '../../support/xml-schemas.ts';

const correcting = { corrects_issued_on: '2026-11-01' };
const taxed = taxedInvoice();
const DOCUMENTS = {
  'an invoice': [euroInvoice(), {}],
  'an invoice with tax': [taxed, {}],
  'a credit note': [euroCredit(), correcting],
  'a replacement': [euroInvoice({ replaces: 'INV-2026-000041' }), correcting],
} as const;

describe.each(Object.entries(DOCUMENTS))('%s', (_, [snapshot, change]) => {
  test('as Factur-X follows the official schema of its profile', (context) => {
    needs('xmllint', context);
    expect(schemaFaults(drawEInvoice(snapshot, factsOf('facturx', change)))).toBe('');
  });

  test.each(['ubl', 'xrechnung'] as const)('as %s follows the sequences of UBL 2.1', (format) => {
    expect(misplacedInUbl(drawEInvoice(snapshot, factsOf(format, change)))).toEqual([]);
  });
});

test.for<readonly [string, RegExp, string]>([
  [
    'in another order',
    /(<ram:TypeCode>380<\/ram:TypeCode>)(\s*)(<ram:IssueDateTime>[\s\S]*?<\/ram:IssueDateTime>)/,
    '$3$2$1',
  ],
  [
    'with an element of another profile',
    /(<ram:TypeCode>380<\/ram:TypeCode>)/,
    '$1<ram:CopyIndicator>x</ram:CopyIndicator>',
  ],
  ['without what must be there', /<ram:ApplicableHeaderTradeDelivery\/>/, ''],
  ['with a price that is no number', /(<ram:ChargeAmount>)/, '$1x'],
])('the schema rejects a Factur-X %s', ([, find, put], context) => {
  needs('xmllint', context);
  const good = drawEInvoice(euroInvoice(), factsOf('facturx')).toString();
  const bad = good.replace(find, put);
  expect(bad).not.toBe(good);
  expect(schemaFaults(bad)).toContain('fails to validate');
});

test.each([
  ['ID in Invoice', /(<cbc:ID>INV[^<]*<\/cbc:ID>)(\s*)(<cbc:IssueDate>[^<]*<\/cbc:IssueDate>)/, '$3$2$1'],
  ['Name in Party', /(<cac:Contact>)\s*(<cbc:Name>[^<]*<\/cbc:Name>)/, '$2$1'],
  ['CityName in Country', /(<cac:Country>)/, '$1<cbc:CityName>x</cbc:CityName>'],
  ['text in Price', /(<cac:Price>)/, '$1x'],
])('the sequences find %s', (found, find, put) => {
  const good = drawEInvoice(euroInvoice(), factsOf('ubl')).toString();
  const bad = good.replace(find, put);
  expect(bad).not.toBe(good);
  expect(misplacedInUbl(bad)).toContain(found);
});
