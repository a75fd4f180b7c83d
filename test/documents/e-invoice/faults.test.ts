import { expect, test } from 'vitest';
import type { EInvoiceFormat } from '../../../src/config/e-invoice.ts';
import { drawEInvoice } from '../../../src/documents/e-invoice/write.ts';
import { euroInvoice, factsOf } from '../../support/e-invoices.ts';
import { brokenProfileRules, judge } from '../../support/en16931.ts';

const xmlOf = (format: EInvoiceFormat): string => drawEInvoice(euroInvoice(), factsOf(format)).toString();

/** The element with its content, as it is written: once, or the first. */
const whole = (name: string) => new RegExp(`\\s*<${name}[ >][\\s\\S]*?</${name}>`);

type Fault = readonly [what: string, format: EInvoiceFormat, find: RegExp, put: string, rule: string];

const FAULTS: readonly Fault[] = [
  ['has no number', 'facturx', /<ram:ID>INV[^<]*<\/ram:ID>/, '', 'BR-02'],
  ['has no date of issue', 'facturx', whole('ram:IssueDateTime'), '', 'BR-03'],
  ['is of a type that no list has', 'facturx', />380</, '>999<', 'BR-CL-01'],
  ['has no currency', 'facturx', whole('ram:InvoiceCurrencyCode'), '', 'BR-05'],
  ['does not name its buyer', 'facturx', /<ram:Name>Billetterie[^<]*<\/ram:Name>/, '', 'BR-07'],
  ["does not say the seller's country", 'facturx', /<ram:CountryID>DE<\/ram:CountryID>/, '', 'BR-09'],
  ["says the buyer's country in words", 'facturx', />FR</, '>France<', 'BR-CL-14'],
  [
    'has a total of lines that they do not add up to',
    'facturx',
    /(<ram:LineTotalAmount>)\d+(\.\d\d<\/ram:LineTotalAmount>\s*<ram:TaxB)/,
    '$17$2',
    'BR-CO-10',
  ],
  ['asks for another amount than is due', 'facturx', /(<ram:DuePayableAmount>)\d/, '$19', 'BR-CO-16'],
  [
    'says nothing of why it charges no tax',
    'facturx',
    /<ram:ExemptionReason>[\s\S]*?(<ram:BasisAmount>[\s\S]*?<ram:CategoryCode>AE<\/ram:CategoryCode>)\s*<ram:ExemptionReasonCode>[^<]*<\/ram:ExemptionReasonCode>/,
    '$1',
    'BR-AE-10',
  ],
  ["has no VAT id of the seller's", 'facturx', whole('ram:SpecifiedTaxRegistration'), '', 'BR-AE-02'],
  ['is written by another profile than any', 'ubl', whole('cbc:CustomizationID'), '', 'BR-01'],
  ['names an address scheme that no list has', 'ubl', /schemeID="9930"/, 'schemeID="8888"', 'BR-CL-25'],
  ["has no name of the seller's", 'ubl', whole('cbc:RegistrationName'), '', 'BR-06'],
  [
    'charges tax under reverse charge',
    'ubl',
    /(<cac:ClassifiedTaxCategory>\s*<cbc:ID>AE<\/cbc:ID>\s*<cbc:Percent>)0</,
    '$119<',
    'BR-AE-05',
  ],
  ['has a line without a quantity', 'ubl', whole('cbc:InvoicedQuantity'), '', 'BR-22'],
  ['has a line without a name', 'ubl', /<cbc:Name>Ticket Protection<\/cbc:Name>/, '', 'BR-25'],
  ['has a price below zero', 'ubl', /(<cbc:PriceAmount currencyID="EUR">)/, '$1-', 'BR-27'],
  ['ends before it begins', 'xrechnung', /<cbc:EndDate>2026/, '<cbc:EndDate>2025', 'BR-29'],
  ['asks for money without an account', 'xrechnung', whole('cac:PayeeFinancialAccount'), '', 'BR-61'],
  ['has three decimals', 'xrechnung', /(<cbc:PayableAmount[^>]*>\d+\.\d\d)/, '$10', 'BR-DEC-18'],
  ['says the tax of a total twice', 'xrechnung', /(<cac:TaxTotal>[\s\S]*<\/cac:TaxTotal>)/, '$1$1', 'BR-AE-01'],
];

test('at least twenty deliberate faults are tried', () => {
  expect(FAULTS.length).toBeGreaterThanOrEqual(20);
});

test.each(FAULTS)('an e-invoice that %s (%s) is rejected', (_what, format, find, put, rule) => {
  const good = xmlOf(format);
  const bad = good.replace(find, put);
  expect(bad).not.toBe(good);
  expect(judge(bad).failed).toContainEqual(expect.stringContaining(rule));
});

test.each([
  ['BuyerReference', ['BR-DE-15']],
  ['Telephone', ['BR-DE-6', 'BR-DE-27']],
  ['CityName', ['BR-DE-3']],
  ['EndpointID', ['PEPPOL-EN16931-R020']],
])('an XRechnung without its first %s breaks %j', (name, rules) => {
  expect(brokenProfileRules(xmlOf('xrechnung').replace(whole(`cbc:${name}`), ''))).toEqual(rules);
});
