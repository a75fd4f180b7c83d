/** E-invoices of issuers of twelve countries, in each format and of each kind, by every set of official rules at hand. */
import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { E_INVOICE_FORMATS, type EInvoiceFormat, electronicAddress } from '../../../src/config/e-invoice.ts';
import type { VatCategory } from '../../../src/config/tax.ts';
import { lackingOf } from '../../../src/documents/e-invoice/lacking.ts';
import type { Parties } from '../../../src/documents/e-invoice/model.ts';
import { drawEInvoice } from '../../../src/documents/e-invoice/write.ts';
import type { DocumentSnapshot } from '../../../src/documents/snapshot.ts';
import { euroCredit, euroInvoice, factsOf, parties, taxedInvoice } from '../../support/e-invoices.ts';
import { brokenProfileRules, judge, PEPPOL_RULES, rulesFor } from '../../support/en16931.ts';

/** Of each country: its VAT id, an electronic address and an id of its register, all with right check digits. */
const COUNTRIES = [
  ['DE', 'DE123456788', '9930:DE123456788', 'HRB 12345'],
  ['NL', 'NL004495445B01', '0106:52507270', '0106:52507270'],
  ['BE', 'BE0428759497', '0208:0428759497', '0208:0428759497'],
  ['FR', 'FR40303265045', '0009:30326504500019', '0002:303265045'],
  ['ES', 'ESB58378431', '9920:ESB58378431', ''],
  ['IT', 'IT00743110157', '0211:IT00743110157', ''],
  ['AT', 'ATU13585627', '9914:ATU13585627', ''],
  ['PL', 'PL8567346215', '9945:PL8567346215', ''],
  ['SE', 'SE556188840401', '0007:5561888404', '0007:5561888404'],
  ['NO', 'NO923609016MVA', '0192:923609016', '0192:923609016'],
  ['DK', 'DK13585628', '0184:DK13585628', '0184:DK13585628'],
  ['IE', 'IE6433435F', '0088:4012345000009', ''],
] as const;

/** Of the register, without which a seller outside the scope of VAT has no id. */
const REGISTERED = '0199:549300MLUDYVRQOOXS22';
const OUTSIDE = { category: 'O', reason: 'Not subject to VAT', reason_code: 'VATEX-EU-O' } as const;
const EXEMPT = { category: 'E', reason: 'Insurance', reason_code: 'VATEX-EU-135-1' } as const;

type Sale = Readonly<{
  snapshot: () => DocumentSnapshot;
  domestic: boolean;
  no_tax: Parties['no_tax'];
  categories: readonly VatCategory[];
}>;
const TAXED = ['S', 'E'] as const;
const REVERSE = { snapshot: euroInvoice, domestic: false, no_tax: parties.no_tax, categories: ['AE'] } as const;
const SALES: Readonly<Record<string, Sale>> = {
  'taxed at home': { snapshot: taxedInvoice, domestic: true, no_tax: null, categories: TAXED },
  'under reverse charge': REVERSE,
  'credited under reverse charge': { ...REVERSE, snapshot: euroCredit },
  'outside the scope of VAT': { snapshot: euroInvoice, domestic: false, no_tax: OUTSIDE, categories: ['O'] },
  'exempt at home': { snapshot: euroInvoice, domestic: true, no_tax: EXEMPT, categories: ['E'] },
};

let judged = 0;
const sets = new Set<string>();

describe.each(COUNTRIES)('an issuer in %s', (country, tax_id, electronic_address, registration) => {
  const seller = { ...parties.seller, country, tax_id, electronic_address, registration_id: registration };
  const partiesOf = ({ domestic, no_tax }: Sale, format: EInvoiceFormat): Parties => {
    const { buyer } = factsOf(format).parties;
    const own = { country, tax_id, electronic_address, buyer_reference: '04011000-12345-34' };
    const registration_id = no_tax?.category === 'O' ? registration || REGISTERED : registration;
    return { seller: { ...seller, registration_id }, buyer: domestic ? { ...buyer, ...own } : buyer, no_tax };
  };

  test.each(E_INVOICE_FORMATS)('%s: no document of any kind breaks a rule, or lacks anything', (format) => {
    for (const [name, sale] of Object.entries(SALES)) {
      const both = partiesOf(sale, format);
      const demand = { format, parties: both, currency: 'EUR', categories: sale.categories, hasAccount: true };
      expect([name, lackingOf(demand)]).toEqual([name, []]);
      const facts = factsOf(format, { parties: both, corrects_issued_on: '2026-11-01' });
      const xml = drawEInvoice(sale.snapshot(), facts);
      expect([name, judge(xml).failed]).toEqual([name, []]);
      if (format !== 'facturx') expect([name, brokenProfileRules(xml)]).toEqual([name, []]);
      for (const rules of rulesFor(xml.toString())) sets.add(rules);
      judged += 1;
    }
  });

  test('its electronic address is taken', () => {
    expect(electronicAddress.safeParse(electronic_address).error).toBeUndefined();
  });
});

test('these were more than a hundred e-invoices, judged by every set of official rules at hand', () => {
  expect(judged).toBe(COUNTRIES.length * E_INVOICE_FORMATS.length * Object.keys(SALES).length);
  expect(judged).toBeGreaterThan(100);
  expect(sets.size).toBe(PEPPOL_RULES === undefined ? 3 : 4);
});

test('an issuer in Greece is named for Peppol, whose rules it cannot meet', () => {
  const both = { ...parties, seller: { ...parties.seller, country: 'GR', tax_id: 'EL094259216' } };
  const lacks = lackingOf({
    ...{ format: 'ubl', parties: both, currency: 'EUR', categories: ['AE'], hasAccount: true },
  });
  expect(lacks.map(({ term }) => term)).toEqual(['BT-40']);
});

test('the official rules of Peppol BIS judge UBL', (context) => {
  if (PEPPOL_RULES === undefined) return context.skip('needs PEPPOL_RULES');
  expect(existsSync(PEPPOL_RULES)).toBe(true);
  const { parties: both, ...facts } = factsOf('ubl');
  const xml = drawEInvoice(euroInvoice(), { ...facts, parties: both });
  expect(rulesFor(xml.toString())).toContain(PEPPOL_RULES);
  const wrong = { ...both, buyer: { ...both.buyer, electronic_address: 'EM:ap@partner.example' } };
  expect(judge(drawEInvoice(euroInvoice(), { ...facts, parties: wrong })).failed).toContain('PEPPOL-EN16931-CL008');
});
