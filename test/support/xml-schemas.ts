/**
 * Checks the structure of e-invoices: CII against the official schema of Factur-X, with xmllint, and UBL against the
 * sequences of UBL 2.1 that ours need. The rules of EN 16931 check the content of an e-invoice; a schema checks the
 * order.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { XMLParser } from 'fast-xml-parser';
import { tool } from './tools.ts';

const SCHEMA = join(import.meta.dirname, '../documents/e-invoice/rules/factur-x/Factur-X_1.07.3_EN16931.xsd');

/** The errors that the schema of Factur-X, profile EN 16931, finds in a CII; empty if there are none. Needs xmllint. */
export function schemaFaults(xml: Buffer | string): string {
  const ran = spawnSync(tool('xmllint'), ['--noout', '--nonet', '--schema', SCHEMA, '-'], {
    input: xml,
    encoding: 'utf8',
  });
  if (ran.error !== undefined) throw ran.error;
  if (ran.status === 0) return '';
  // 3: it is not valid. Anything else is no verdict.
  if (ran.status !== 3) throw new Error(`xmllint judged nothing: ${ran.stderr}`);
  return ran.stderr;
}

const INVOICE = `CustomizationID ProfileID ID IssueDate DueDate InvoiceTypeCode Note TaxPointDate DocumentCurrencyCode
  BuyerReference InvoicePeriod OrderReference BillingReference AccountingSupplierParty AccountingCustomerParty
  PaymentMeans TaxTotal LegalMonetaryTotal InvoiceLine CreditNoteLine`;
const CREDIT_NOTE = INVOICE.replace(
  'DueDate InvoiceTypeCode Note TaxPointDate',
  'DueDate TaxPointDate CreditNoteTypeCode Note',
);
const LINE = 'ID InvoicedQuantity CreditedQuantity LineExtensionAmount InvoicePeriod Item Price';
const CATEGORY = 'ID Percent TaxExemptionReasonCode TaxExemptionReason TaxScheme';

/** What may stand in each element, in this order (OASIS UBL 2.1): what we write of it. */
const SEQUENCES: Readonly<Record<string, string>> = {
  Invoice: INVOICE,
  CreditNote: CREDIT_NOTE,
  InvoicePeriod: 'StartDate EndDate',
  OrderReference: 'ID',
  BillingReference: 'InvoiceDocumentReference',
  InvoiceDocumentReference: 'ID IssueDate',
  AccountingSupplierParty: 'Party',
  AccountingCustomerParty: 'Party',
  Party: 'EndpointID PostalAddress PartyTaxScheme PartyLegalEntity Contact',
  PostalAddress: 'StreetName AdditionalStreetName CityName PostalZone CountrySubentity Country',
  Country: 'IdentificationCode',
  PartyTaxScheme: 'CompanyID TaxScheme',
  PartyLegalEntity: 'RegistrationName CompanyID',
  Contact: 'Name Telephone ElectronicMail',
  PaymentMeans: 'PaymentMeansCode PaymentID PayeeFinancialAccount',
  PayeeFinancialAccount: 'ID Name FinancialInstitutionBranch',
  FinancialInstitutionBranch: 'ID',
  TaxTotal: 'TaxAmount TaxSubtotal',
  TaxSubtotal: 'TaxableAmount TaxAmount TaxCategory',
  TaxCategory: CATEGORY,
  ClassifiedTaxCategory: CATEGORY,
  TaxScheme: 'ID',
  LegalMonetaryTotal: 'LineExtensionAmount TaxExclusiveAmount TaxInclusiveAmount PrepaidAmount PayableAmount',
  InvoiceLine: LINE,
  CreditNoteLine: LINE,
  Item: 'Description Name SellersItemIdentification ClassifiedTaxCategory',
  SellersItemIdentification: 'ID',
  Price: 'PriceAmount BaseQuantity',
};

type Node = Readonly<Record<string, readonly Node[] | string>>;

const parser = new XMLParser({ preserveOrder: true, removeNSPrefix: true });

/** The elements of a UBL that UBL 2.1 does not have there, or not after the one before them. */
export function misplacedInUbl(xml: Buffer | string): string[] {
  return (parser.parse(xml.toString()) as Node[]).flatMap((node) => ('?xml' in node ? [] : misplacedIn(node)));
}

function misplacedIn(node: Node): string[] {
  const [[parent, children] = ['', '']] = Object.entries(node);
  if (typeof children === 'string') return [];
  const sequence = SEQUENCES[parent]?.split(/\s+/);
  let before = 0;
  return children.flatMap((child) => {
    const [name = ''] = Object.keys(child);
    if (name === '#text') return sequence === undefined ? [] : [`text in ${parent}`];
    const place = sequence?.indexOf(name) ?? -1;
    const wrong = place < before ? [`${name} in ${parent}`] : [];
    before = Math.max(before, place);
    return [...wrong, ...misplacedIn(child)];
  });
}
