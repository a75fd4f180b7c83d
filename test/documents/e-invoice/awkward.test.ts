/** Documents at the edges: whatever the books can hold is written as a valid e-invoice, or it is said what stands against it. */
import { describe, expect, test } from 'vitest';
import { E_INVOICE_FORMATS, type EInvoiceFormat, eInvoiceSellerSchema } from '../../../src/config/e-invoice.ts';
import { lackingOf } from '../../../src/documents/e-invoice/lacking.ts';
import { type EInvoiceFacts, type Parties, vatIdOf } from '../../../src/documents/e-invoice/model.ts';
import { drawEInvoice } from '../../../src/documents/e-invoice/write.ts';
import type { DocumentSnapshot, RowKind } from '../../../src/documents/snapshot.ts';
import { euroCredit, euroInvoice, factsOf, parties } from '../../support/e-invoices.ts';
import { brokenProfileRules, judge } from '../../support/en16931.ts';
import { line } from '../../support/snapshots.ts';
import { has } from '../../support/tools.ts';
import { misplacedInUbl, schemaFaults } from '../../support/xml-schemas.ts';

const sold = (policy: string, kind: RowKind, count: number, amount: string, month = '2026-10') =>
  line(policy, kind, count, amount, '0.00', { currency: 'EUR', month });
const of = (lines: DocumentSnapshot['lines'], change: Partial<DocumentSnapshot> = {}) =>
  euroInvoice({ lines, credit_applied: '0.00', ...change });

const TEXT = `A\u0001\u000b\u0000B\ufffe ]]> &amp; <x> "quoted" 'too' \t\r\n \ud800 \u200f 💥`;
const LINES = Array.from({ length: 120 }, (_, n) =>
  sold(`Policy ${n}`, n % 3 === 0 ? 'reversal' : 'quote_accepted', n + 1, `${n % 3 === 0 ? '-' : ''}${n}.37`),
);

const SNAPSHOTS: Readonly<Record<string, DocumentSnapshot>> = {
  'whose texts have what XML forbids': of([sold(TEXT, 'quote_accepted', 1, '1.00')], { reason: TEXT }),
  'of 120 lines': of(LINES),
  'of nothing but a line of zero': of([sold('Free', 'quote_accepted', 7, '0.00')]),
  'without a line': of([], { invoiceAmount: '0.00', amount_due: '0.00' }),
  'that begins with a line below zero': of([
    sold('Tickets', 'reversal', 2, '-50.00'),
    sold('Tickets', 'quote_accepted', 2, '60.00'),
  ]),
  'that credit covers': of([sold('Tickets', 'quote_accepted', 1, '10.00')], {
    credit_applied: '10.00',
    amount_due: '0.00',
  }),
  'with late lines of a year before': of([
    sold('Tickets', 'quote_accepted', 1, '10.00'),
    sold('Tickets', 'reversal', 1, '-1.00', '2025-02'),
  ]),
  'in yen': of([line('Tickets', 'quote_accepted', 3, '1000', '300', { currency: 'JPY' })], {
    currency: 'JPY',
    credit_applied: '0',
  }),
  'of billions': of([sold('Tickets', 'quote_accepted', 123456789, '999999999999.99')]),
  'with a policy of 500 letters': of([sold('N'.repeat(500), 'quote_accepted', 1, '1.00')]),
  'that credits more than any invoice': euroCredit({ invoiceAmount: '999999999.99' }),
  'of a month below zero': euroCredit({
    ...{ purpose: 'month', credits: null, invoiceAmount: '30.00' },
    lines: [sold('Tickets', 'quote_accepted', 1, '-20.00'), sold('Tickets', 'reversal', 2, '50.00')],
  }),
};

/** Whatever judges the format. Without xmllint its schema is left out; schemas.test.ts says so. */
function faultsOf(format: EInvoiceFormat, xml: Buffer): readonly string[] {
  const { failed } = judge(xml);
  if (format !== 'facturx') return [...failed, ...brokenProfileRules(xml), ...misplacedInUbl(xml)];
  return has('xmllint') && schemaFaults(xml) !== '' ? [...failed, schemaFaults(xml)] : failed;
}

const withBuyer = ({ parties: both, ...facts }: EInvoiceFacts, buyer: Partial<Parties['buyer']>): EInvoiceFacts => ({
  ...facts,
  parties: { ...both, buyer: { ...both.buyer, ...buyer } },
});

describe.each(E_INVOICE_FORMATS)('%s', (format) => {
  const facts = factsOf(format, { corrects_issued_on: '2026-11-01' });

  test.each(Object.entries(SNAPSHOTS))('a document %s breaks no rule', (_, snapshot) => {
    expect(faultsOf(format, drawEInvoice(snapshot, facts))).toEqual([]);
  });

  test.each<[string, Partial<Parties['buyer']>]>([
    ['with an awkward name', { name: TEXT, line1: TEXT, contact_name: TEXT, purchase_order: TEXT }],
    ['with a name of 1000 letters', { name: 'X'.repeat(1000) }],
    ['in Greece, whose VAT identifiers begin otherwise', { tax_id: 'EL094259216', country: 'GR' }],
    ['in Northern Ireland', { tax_id: 'XI123456789', country: 'GB' }],
  ])('a partner %s breaks no rule', (_, buyer) => {
    expect(faultsOf(format, drawEInvoice(euroInvoice(), withBuyer(facts, buyer)))).toEqual([]);
  });

  test.each<[string, Partial<Parties['buyer']>, string]>([
    ['in a country that ISO 3166 does not have', { country: 'UK' }, 'address.country that ISO 3166 has'],
    ['without a tax number', { tax_id: '' }, 'tax_id'],
    ['with a tax number that is no VAT identifier', { tax_id: '12345' }, 'tax_id'],
    ['with a VAT identifier of no country', { tax_id: 'UK123456789' }, 'tax_id'],
  ])('a partner %s holds it, as the rules reject it', (_, buyer, field) => {
    const { parties: both } = withBuyer(facts, buyer);
    const lacks = lackingOf({ format, parties: both, currency: 'EUR', categories: ['AE'], hasAccount: true });
    expect(lacks.map((each) => each.field)).toEqual([field]);
    expect(judge(drawEInvoice(euroInvoice(), { ...facts, parties: both })).failed).not.toEqual([]);
  });
});

test.each(['xrechnung', 'ubl'] as const)('%s states a rate of each total, also outside the scope of VAT', (format) => {
  const facts = factsOf(format);
  const no_tax = { category: 'O', reason: 'Not subject to VAT', reason_code: 'VATEX-EU-O' } as const;
  const xml = drawEInvoice(euroInvoice(), { ...facts, parties: { ...facts.parties, no_tax } });
  expect(faultsOf(format, xml)).toEqual([]);
  // Of its one total, and of no line (BR-O-05).
  expect(xml.toString().match(/<cbc:Percent>0<\/cbc:Percent>/g)).toHaveLength(1);
});

test('between two Germans Peppol demands what XRechnung does', () => {
  const facts = { ...factsOf('ubl', { corrects_issued_on: '2026-11-01' }), parties };
  for (const snapshot of [euroInvoice(), euroCredit()])
    expect(faultsOf('ubl', drawEInvoice(snapshot, facts))).toEqual([]);
  const lacking = (tax_id: string, country: string) =>
    lackingOf({
      ...{ format: 'ubl', currency: 'EUR', categories: ['AE'], hasAccount: true },
      parties: {
        ...parties,
        seller: { ...parties.seller, phone: '' },
        buyer: { ...parties.buyer, buyer_reference: '', tax_id, country },
      },
    }).map(({ term }) => term);
  expect(lacking('DE987654328', 'DE')).toEqual(['BT-42', 'BT-10']);
  expect(lacking('BE0843766574', 'BE')).toEqual([]);
});

test.each([
  [
    'an e-mail address of the seller, which Peppol refuses',
    'ubl',
    'EUR',
    { electronic_address: 'EM:ar@us.example' },
    {},
    ['BT-34'],
  ],
  [
    'an e-mail address of the buyer, which Peppol refuses',
    'ubl',
    'EUR',
    {},
    { electronic_address: 'EM:ap@x.example' },
    ['BT-49'],
  ],
  ['an e-mail address, which XRechnung takes', 'xrechnung', 'EUR', {}, { electronic_address: 'EM:ap@x.example' }, []],
  ['a Greek seller for Peppol', 'ubl', 'EUR', { country: 'GR' }, {}, ['BT-40']],
  ['a Greek seller for Factur-X', 'facturx', 'EUR', { country: 'GR' }, {}, []],
  ['a Danish seller and buyer in kroner', 'ubl', 'DKK', { country: 'DK' }, { country: 'DK' }, ['BT-40']],
  ['a Danish seller and buyer in euros, by SEPA', 'ubl', 'EUR', { country: 'DK' }, { country: 'DK' }, []],
  ['a Danish seller and a German buyer', 'ubl', 'DKK', { country: 'DK' }, {}, []],
] as const)('%s', (_name, format, currency, seller, buyer, terms) => {
  const lacks = lackingOf({
    ...{ format, currency, categories: ['AE'], hasAccount: true },
    parties: { ...parties, seller: { ...parties.seller, ...seller }, buyer: { ...parties.buyer, ...buyer } },
  });
  expect(lacks.map(({ term }) => term)).toEqual(terms);
});

test("XRechnung demands a phone number of the seller's that can be one (BR-DE-27)", () => {
  const both = { ...parties, seller: { ...parties.seller, phone: 'none' } };
  const lacks = lackingOf({
    ...{ format: 'xrechnung', parties: both, currency: 'EUR' },
    ...{ categories: ['AE'], hasAccount: true },
  });
  expect(lacks).toEqual([{ term: 'BT-42', file: 'settings.json', field: 'issuer.phone with three digits' }]);
  const facts = { ...factsOf('xrechnung'), parties: both };
  expect(brokenProfileRules(drawEInvoice(euroInvoice(), facts))).toEqual(['BR-DE-27']);
});

test('a tax number of the United States is no VAT identifier', () => {
  expect(['04-1234567', 'UK 123 456', 'DE 123.456.788', 'EL1234', 'XI12345'].map(vatIdOf)).toEqual([
    ...['', '', 'DE123456788', 'EL1234', 'XI12345'],
  ]);
});

test.each([
  [
    'no reason that the VATEX list has',
    { no_tax: { category: 'E', reason_code: 'VATEX-XX-1' } },
    'a VATEX code such as',
  ],
  [
    'the reason of another category',
    { no_tax: { category: 'E', reason_code: 'VATEX-EU-AE' } },
    'category AE, not to E',
  ],
  ['a reason of exports', { no_tax: { category: 'O', reason_code: 'VATEX-EU-G' } }, 'category G, not to O'],
  ['a register that ISO 6523 does not have', { registration_id: '9999:123' }, 'ISO 6523'],
])('settings with %s are refused', (_, seller, says) => {
  const { error } = eInvoiceSellerSchema.safeParse(seller);
  expect(error?.issues.map(({ message }) => message).join()).toContain(says);
});

test('settings with what the lists have are taken', () => {
  for (const seller of [
    { no_tax: { category: 'E', reason_code: 'VATEX-EU-132-1A' } },
    { no_tax: { category: 'AE', reason: 'Reverse charge', reason_code: 'VATEX-EU-AE' } },
    { no_tax: { category: 'Z' } },
    { registration_id: '0002:732829320' },
    { registration_id: 'HRB 12345' },
  ]) {
    expect(eInvoiceSellerSchema.safeParse(seller).error).toBeUndefined();
  }
});
