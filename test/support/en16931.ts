/**
 * Checks e-invoices against the official schematron of EN 16931, run offline, and against the additional rules of
 * XRechnung and Peppol.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { XMLParser } from 'fast-xml-parser';
import SaxonJS from 'saxon-js';

const FOLDER = join(import.meta.dirname, '..', 'documents', 'e-invoice', 'rules');
const compiled = new Map<string, object>();

function rulesOf(syntax: 'CII' | 'UBL'): object {
  const known = compiled.get(syntax);
  if (known !== undefined) return known;
  const file = join(FOLDER, `EN16931-${syntax}-validation.sef.json.gz`);
  const rules = JSON.parse(gunzipSync(readFileSync(file)).toString('utf8')) as object;
  compiled.set(syntax, rules);
  return rules;
}

export interface Judgement {
  /** The ids of the rules that fail, such as `BR-CO-10`, each once, sorted. */
  readonly failed: readonly string[];
  /** How many rules applied to something. */
  readonly fired: number;
}

/** Runs the official rules. Throws if no rule applied, because that proves nothing. */
export function judge(xml: Buffer | string): Judgement {
  const text = xml.toString();
  const syntax = text.includes(':CrossIndustryInvoice') ? 'CII' : 'UBL';
  const { principalResult } = SaxonJS.transform({
    stylesheetInternal: rulesOf(syntax),
    sourceText: text,
    destination: 'serialized',
  });
  const report = String(principalResult);
  const fired = report.match(/<svrl:fired-rule/g)?.length ?? 0;
  if (fired === 0) throw new Error('the rules judged nothing');
  const assertions = report.match(/<svrl:failed-assert[^>]*/g) ?? [];
  const ids = assertions.map((assertion) => / id="([^"]+)"/.exec(assertion)?.[1] ?? assertion);
  return { failed: [...new Set(ids)].sort(), fired };
}

type Tree = { readonly [name: string]: Tree | readonly Tree[] | string | undefined };

const parser = new XMLParser({ removeNSPrefix: true, parseTagValue: false, ignoreAttributes: false });
const at = (tree: unknown, path: string): string => {
  let here: unknown = tree;
  for (const name of path.split('.')) here = (here as Tree | undefined)?.[name];
  return typeof here === 'object' && here !== null ? String((here as Tree)['#text'] ?? 'present') : String(here ?? '');
};

const SELLER = 'AccountingSupplierParty.Party';
const BUYER = 'AccountingCustomerParty.Party';
const PEPPOL: readonly (readonly [rule: string, holds: (tree: unknown) => boolean])[] = [
  ['PEPPOL-EN16931-R001', (tree) => at(tree, 'ProfileID') !== ''],
  ['PEPPOL-EN16931-R003', (tree) => at(tree, 'BuyerReference') !== '' || at(tree, 'OrderReference.ID') !== ''],
  ['PEPPOL-EN16931-R010', (tree) => at(tree, `${BUYER}.EndpointID`) !== ''],
  ['PEPPOL-EN16931-R020', (tree) => at(tree, `${SELLER}.EndpointID`) !== ''],
];
/** The fields that XRechnung 3.0 demands (BR-DE). */
const XRECHNUNG: typeof PEPPOL = [
  ['BR-DE-1', (tree) => at(tree, 'PaymentMeans.PaymentMeansCode') !== ''],
  ['BR-DE-2', (tree) => at(tree, `${SELLER}.Contact`) !== ''],
  ['BR-DE-3', (tree) => at(tree, `${SELLER}.PostalAddress.CityName`) !== ''],
  ['BR-DE-4', (tree) => at(tree, `${SELLER}.PostalAddress.PostalZone`) !== ''],
  ['BR-DE-5', (tree) => at(tree, `${SELLER}.Contact.Name`) !== ''],
  ['BR-DE-6', (tree) => at(tree, `${SELLER}.Contact.Telephone`) !== ''],
  ['BR-DE-7', (tree) => at(tree, `${SELLER}.Contact.ElectronicMail`) !== ''],
  ['BR-DE-8', (tree) => at(tree, `${BUYER}.PostalAddress.CityName`) !== ''],
  ['BR-DE-9', (tree) => at(tree, `${BUYER}.PostalAddress.PostalZone`) !== ''],
  ['BR-DE-14', (tree) => allAt(tree, 'TaxTotal.TaxSubtotal').every((total) => at(total, 'TaxCategory.Percent') !== '')],
  ['BR-DE-15', (tree) => at(tree, 'BuyerReference') !== ''],
  ['BR-DE-17', (tree) => ['380', '381'].includes(at(tree, 'InvoiceTypeCode') || at(tree, 'CreditNoteTypeCode'))],
  ['BR-DE-21', (tree) => at(tree, 'CustomizationID').endsWith('#compliant#urn:xeinkauf.de:kosit:xrechnung_3.0')],
  ['BR-DE-27', (tree) => /\d.*\d.*\d/.test(at(tree, `${SELLER}.Contact.Telephone`))],
  ['BR-DE-28', (tree) => /^[^@\s]+@([^@.\s]+\.)+[^@.\s]+$/.test(at(tree, `${SELLER}.Contact.ElectronicMail`))],
];

/**
 * The rules of Peppol and XRechnung for mandatory fields that a UBL breaks. The rules are written here; they are not
 * the official files.
 */
export function brokenProfileRules(xml: Buffer | string): string[] {
  const { Invoice, CreditNote } = parser.parse(xml.toString()) as Tree;
  const tree = Invoice ?? CreditNote;
  const profile = at(tree, 'CustomizationID');
  // Peppol has them as its own between two Germans (DE-R-001 and on).
  const german = [SELLER, BUYER].every(
    (party) => at(tree, `${party}.PostalAddress.Country.IdentificationCode`) === 'DE',
  );
  const own = profile.includes('xrechnung')
    ? XRECHNUNG
    : german
      ? XRECHNUNG.filter(([rule]) => rule !== 'BR-DE-21')
      : [];
  const rules = [...PEPPOL, ...own];
  return rules.filter(([, holds]) => !holds(tree)).map(([rule]) => rule);
}

/** The amounts that an e-invoice states. */
export interface Stated {
  readonly net: string;
  readonly tax: string;
  readonly gross: string;
  readonly due: string;
  /** The tax point (BT-7), or empty. */
  readonly taxPoint: string;
  /** Of each total: category, rate, taxable amount, tax and reason. */
  readonly taxes: readonly (readonly string[])[];
  /** Of each line: amount, category and rate. */
  readonly lines: readonly (readonly string[])[];
}

const allAt = (tree: unknown, path: string): readonly unknown[] => {
  let here: unknown = tree;
  for (const name of path.split('.')) here = (here as Tree | undefined)?.[name];
  return Array.isArray(here) ? here : here === undefined ? [] : [here];
};
const fields = (trees: readonly unknown[], ...paths: readonly string[]) =>
  trees.map((tree) => paths.map((path) => at(tree, path)));

/** Reads the amounts back from either syntax. */
export function statedBy(xml: Buffer): Stated {
  const { CrossIndustryInvoice: cii, Invoice, CreditNote } = parser.parse(xml) as Tree;
  if (cii !== undefined) {
    const trade = 'SupplyChainTradeTransaction';
    const paid = `${trade}.ApplicableHeaderTradeSettlement`;
    const sum = (name: string) => at(cii, `${paid}.SpecifiedTradeSettlementHeaderMonetarySummation.${name}`);
    const line = 'SpecifiedLineTradeSettlement';
    return {
      net: sum('TaxBasisTotalAmount'),
      tax: sum('TaxTotalAmount'),
      gross: sum('GrandTotalAmount'),
      due: sum('DuePayableAmount'),
      taxPoint: at(allAt(cii, `${paid}.ApplicableTradeTax`)[0], 'TaxPointDate.DateString').replace(
        /^(\d{4})(\d\d)(\d\d)$/,
        '$1-$2-$3',
      ),
      taxes: fields(
        allAt(cii, `${paid}.ApplicableTradeTax`),
        ...['CategoryCode', 'RateApplicablePercent', 'BasisAmount', 'CalculatedAmount', 'ExemptionReason'],
      ),
      lines: fields(
        allAt(cii, `${trade}.IncludedSupplyChainTradeLineItem`),
        `${line}.SpecifiedTradeSettlementLineMonetarySummation.LineTotalAmount`,
        `${line}.ApplicableTradeTax.CategoryCode`,
        `${line}.ApplicableTradeTax.RateApplicablePercent`,
      ),
    };
  }
  const tree = Invoice ?? CreditNote;
  const line = 'Item.ClassifiedTaxCategory';
  return {
    net: at(tree, 'LegalMonetaryTotal.TaxExclusiveAmount'),
    tax: at(tree, 'TaxTotal.TaxAmount'),
    gross: at(tree, 'LegalMonetaryTotal.TaxInclusiveAmount'),
    due: at(tree, 'LegalMonetaryTotal.PayableAmount'),
    taxPoint: at(tree, 'TaxPointDate'),
    taxes: fields(
      allAt(tree, 'TaxTotal.TaxSubtotal'),
      ...['TaxCategory.ID', 'TaxCategory.Percent', 'TaxableAmount', 'TaxAmount', 'TaxCategory.TaxExemptionReason'],
    ),
    lines: fields(
      [...allAt(tree, 'InvoiceLine'), ...allAt(tree, 'CreditNoteLine')],
      ...['LineExtensionAmount', `${line}.ID`, `${line}.Percent`],
    ),
  };
}
