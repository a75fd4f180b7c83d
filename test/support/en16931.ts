/**
 * Checks e-invoices against the official schematrons of EN 16931 and XRechnung, and against that of Peppol BIS where
 * PEPPOL_RULES names it, all run offline. Without Peppol's, its rules for mandatory fields are checked by our own.
 */
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { XMLParser } from 'fast-xml-parser';
import SaxonJS from 'saxon-js';

const FOLDER = join(import.meta.dirname, '..', 'documents', 'e-invoice', 'rules');
const compiled = new Map<string, object>();

/** The compiled rules of Peppol BIS, if this machine has them. */
export const PEPPOL_RULES = process.env['PEPPOL_RULES'];

function rulesIn(file: string): object {
  const known = compiled.get(file);
  if (known !== undefined) return known;
  const bytes = readFileSync(file);
  const rules = JSON.parse((file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')) as object;
  compiled.set(file, rules);
  return rules;
}

/**
 * A warning about an IBAN with wrong check digits, computed from an integer of 24 digits, which SaxonJS rounds: it fails
 * for every German IBAN. The settings refuse an IBAN with wrong check digits.
 */
const OF_LARGE_INTEGERS = 'BR-DE-19';

/** The sets of official rules that a document must hold. */
export function rulesFor(text: string): string[] {
  const of = (name: string) => join(FOLDER, `${name}-validation.sef.json.gz`);
  if (text.includes(':CrossIndustryInvoice')) return [of('EN16931-CII')];
  const profile = /CustomizationID>([^<]*)</.exec(text)?.[1] ?? '';
  if (profile.includes('xrechnung')) return [of('EN16931-UBL'), of('XRechnung-UBL')];
  const isPeppol = profile.endsWith('urn:fdc:peppol.eu:2017:poacc:billing:3.0');
  return [of('EN16931-UBL'), ...(isPeppol && PEPPOL_RULES ? [PEPPOL_RULES] : [])];
}

export interface Judgement {
  /** The ids of the rules that fail, such as `BR-CO-10`, each once, sorted. */
  readonly failed: readonly string[];
  /** How many rules applied to something. */
  readonly fired: number;
}

/** Runs the official rules. Throws if no rule of a set applied, because that proves nothing. */
export function judge(xml: Buffer | string): Judgement {
  const text = xml.toString();
  const judgements = rulesFor(text).map((file): Judgement => {
    const { principalResult } = SaxonJS.transform({
      stylesheetInternal: rulesIn(file),
      sourceText: text,
      destination: 'serialized',
    });
    const report = String(principalResult);
    const fired = report.match(/<svrl:fired-rule/g)?.length ?? 0;
    if (fired === 0) throw new Error(`the rules of ${basename(file)} judged nothing`);
    const assertions = report.match(/<svrl:failed-assert[^>]*/g) ?? [];
    const failed = assertions.map((each) => / id="([^"]+)"/.exec(each)?.[1] ?? each);
    return { failed: failed.filter((id) => id !== OF_LARGE_INTEGERS), fired };
  });
  return {
    failed: [...new Set(judgements.flatMap(({ failed }) => failed))].sort(),
    fired: judgements.reduce((sum, { fired }) => sum + fired, 0),
  };
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
/** The fields that Peppol demands between two Germans (DE-R-001 and on), by the names that XRechnung gives its rules. */
const GERMAN: typeof PEPPOL = [
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
  ['BR-DE-27', (tree) => /\d.*\d.*\d/.test(at(tree, `${SELLER}.Contact.Telephone`))],
  ['BR-DE-28', (tree) => /^[^@\s]+@([^@.\s]+\.)+[^@.\s]+$/.test(at(tree, `${SELLER}.Contact.ElectronicMail`))],
];

/**
 * The rules of Peppol for mandatory fields that a UBL breaks. The rules are written here; they are not the official files.
 */
export function brokenProfileRules(xml: Buffer | string): string[] {
  const { Invoice, CreditNote } = parser.parse(xml.toString()) as Tree;
  const tree = Invoice ?? CreditNote;
  const isGerman = [SELLER, BUYER].every(
    (party) => at(tree, `${party}.PostalAddress.Country.IdentificationCode`) === 'DE',
  );
  const rules = [...PEPPOL, ...(isGerman ? GERMAN : [])];
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
