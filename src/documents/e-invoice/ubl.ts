/** Writes an e-invoice as UBL 2.1, Invoice or CreditNote, in Peppol BIS Billing 3 or XRechnung 3.0. */
import { EInvoice, EInvoiceLine, isOutsideScope, Party, Period, schemed, Tax, vatIdOf } from './model.ts';
import { element as el, xmlFile } from './xml.ts';

const UBL = 'urn:oasis:names:specification:ubl:schema:xsd';
const CUSTOMIZATIONS = {
  ubl: 'urn:cen.eu:en16931:2017#compliant#urn:fdc:peppol.eu:2017:poacc:billing:3.0',
  xrechnung: 'urn:cen.eu:en16931:2017#compliant#urn:xeinkauf.de:kosit:xrechnung_3.0',
};
const PROFILE = 'urn:fdc:peppol.eu:2017:poacc:billing:01:1.0';

export function writeUbl(invoice: EInvoice): Buffer {
  const { document, format, currency } = invoice;
  if (format === 'facturx') throw new TypeError(`${invoice.number} is written as CII`);
  const isInvoice = document === 'invoice';
  const root = isInvoice ? 'Invoice' : 'CreditNote';
  const withVat = !isOutsideScope(invoice);
  const type = isInvoice ? el('cbc:InvoiceTypeCode', '380') : el('cbc:CreditNoteTypeCode', '381');
  const note = el('cbc:Note', invoice.note);
  const taxPoint = el('cbc:TaxPointDate', invoice.tax_point ?? '');
  const content = [
    el('cbc:CustomizationID', CUSTOMIZATIONS[format]),
    el('cbc:ProfileID', PROFILE),
    el('cbc:ID', invoice.number),
    el('cbc:IssueDate', invoice.issued_on),
    isInvoice ? el('cbc:DueDate', invoice.due_on ?? '') : undefined,
    ...(isInvoice ? [type, note, taxPoint] : [taxPoint, type, note]),
    el('cbc:DocumentCurrencyCode', currency),
    el('cbc:BuyerReference', invoice.buyer.buyer_reference),
    periodOf(invoice.period),
    el('cac:OrderReference', [el('cbc:ID', invoice.buyer.purchase_order)]),
    correctedBy(invoice),
    el('cac:AccountingSupplierParty', [sellerOf(invoice, withVat)]),
    el('cac:AccountingCustomerParty', [buyerOf(invoice, withVat)]),
    paymentOf(invoice.payment),
    taxTotalOf(invoice),
    totalsOf(invoice),
    ...invoice.lines.map((line) => lineOf(line, currency, isInvoice)),
  ].filter((each) => each !== undefined);
  const attributes = {
    xmlns: `${UBL}:${root}-2`,
    'xmlns:cac': `${UBL}:CommonAggregateComponents-2`,
    'xmlns:cbc': `${UBL}:CommonBasicComponents-2`,
  };
  return xmlFile({ name: root, attributes, content });
}

const periodOf = (period: Period | null) =>
  period === null
    ? undefined
    : el('cac:InvoicePeriod', [el('cbc:StartDate', period.from), el('cbc:EndDate', period.to)]);

const correctedBy = ({ corrects }: EInvoice) =>
  corrects === null
    ? undefined
    : el('cac:BillingReference', [
        el('cac:InvoiceDocumentReference', [el('cbc:ID', corrects.number), el('cbc:IssueDate', corrects.issued_on)]),
      ]);

const taxScheme = (id: string) => el('cac:TaxScheme', [el('cbc:ID', id)]);
const schemeOf = (scheme: string) => (scheme === '' ? {} : { schemeID: scheme });

function endpointOf({ electronic_address: address }: Party) {
  const { scheme, id } = schemed(address);
  return el('cbc:EndpointID', id, schemeOf(scheme));
}

const addressOf = (party: Party) =>
  el('cac:PostalAddress', [
    el('cbc:StreetName', party.line1),
    el('cbc:AdditionalStreetName', party.line2),
    el('cbc:CityName', party.city),
    el('cbc:PostalZone', party.postal_code),
    el('cbc:CountrySubentity', party.region),
    el('cac:Country', [el('cbc:IdentificationCode', party.country)]),
  ]);

const taxIdOf = (id: string, scheme: string) =>
  id === '' ? undefined : el('cac:PartyTaxScheme', [el('cbc:CompanyID', id), taxScheme(scheme)]);

function sellerOf({ seller }: EInvoice, withVat: boolean) {
  const registration = schemed(seller.registration_id);
  const vatId = vatIdOf(seller.tax_id);
  return el('cac:Party', [
    endpointOf(seller),
    addressOf(seller),
    // BT-31, or BT-32 if the tax id is not a VAT identifier.
    vatId === '' ? taxIdOf(seller.tax_id, 'TAX') : withVat ? taxIdOf(vatId, 'VAT') : undefined,
    el('cac:PartyLegalEntity', [
      el('cbc:RegistrationName', seller.name),
      el('cbc:CompanyID', registration.id, schemeOf(registration.scheme)),
    ]),
    el('cac:Contact', [
      el('cbc:Name', seller.contact_name),
      el('cbc:Telephone', seller.phone),
      el('cbc:ElectronicMail', seller.email),
    ]),
  ]);
}

const buyerOf = ({ buyer }: EInvoice, withVat: boolean) =>
  el('cac:Party', [
    endpointOf(buyer),
    addressOf(buyer),
    withVat ? taxIdOf(vatIdOf(buyer.tax_id), 'VAT') : undefined,
    el('cac:PartyLegalEntity', [el('cbc:RegistrationName', buyer.name)]),
    el('cac:Contact', [el('cbc:Name', buyer.contact_name)]),
  ]);

function paymentOf(payment: EInvoice['payment']) {
  if (payment === null) return undefined;
  const { account } = payment;
  return el('cac:PaymentMeans', [
    el('cbc:PaymentMeansCode', payment.code),
    el('cbc:PaymentID', payment.reference),
    account === null
      ? undefined
      : el('cac:PayeeFinancialAccount', [
          el('cbc:ID', account.id),
          el('cbc:Name', account.holder),
          el('cac:FinancialInstitutionBranch', [el('cbc:ID', account.bic)]),
        ]),
  ]);
}

/** The category of a total or a line. A line states no reason and, outside the scope of VAT, no rate (BR-O-05). */
function categoryOf(name: string, tax: Tax, ofTotal: boolean) {
  return el(name, [
    el('cbc:ID', tax.category),
    // German rules require the rate of each total, even outside the scope of VAT (BR-DE-14).
    tax.category === 'O' && !ofTotal ? undefined : el('cbc:Percent', tax.rate),
    ofTotal ? el('cbc:TaxExemptionReasonCode', tax.reason_code) : undefined,
    ofTotal ? el('cbc:TaxExemptionReason', tax.reason) : undefined,
    taxScheme('VAT'),
  ]);
}

function taxTotalOf({ taxes, totals, currency }: EInvoice) {
  const money = (name: string, amount: string) => el(name, amount, { currencyID: currency });
  return el('cac:TaxTotal', [
    money('cbc:TaxAmount', totals.tax),
    ...taxes.map((tax) =>
      el('cac:TaxSubtotal', [
        money('cbc:TaxableAmount', tax.taxable),
        money('cbc:TaxAmount', tax.amount),
        categoryOf('cac:TaxCategory', tax, true),
      ]),
    ),
  ]);
}

function totalsOf({ totals, currency }: EInvoice) {
  const money = (name: string, amount: string) => el(name, amount, { currencyID: currency });
  return el('cac:LegalMonetaryTotal', [
    money('cbc:LineExtensionAmount', totals.lines),
    money('cbc:TaxExclusiveAmount', totals.lines),
    money('cbc:TaxInclusiveAmount', totals.gross),
    money('cbc:PrepaidAmount', totals.prepaid),
    money('cbc:PayableAmount', totals.due),
  ]);
}

function lineOf(line: EInvoiceLine, currency: string, isInvoice: boolean) {
  return el(isInvoice ? 'cac:InvoiceLine' : 'cac:CreditNoteLine', [
    el('cbc:ID', line.id),
    el(isInvoice ? 'cbc:InvoicedQuantity' : 'cbc:CreditedQuantity', line.quantity, { unitCode: 'C62' }),
    el('cbc:LineExtensionAmount', line.amount, { currencyID: currency }),
    periodOf(line.period),
    el('cac:Item', [
      el('cbc:Description', line.description),
      el('cbc:Name', line.name),
      el('cac:SellersItemIdentification', [el('cbc:ID', line.item_id)]),
      categoryOf('cac:ClassifiedTaxCategory', line.tax, false),
    ]),
    el('cac:Price', [
      el('cbc:PriceAmount', line.price, { currencyID: currency }),
      el('cbc:BaseQuantity', line.base_quantity, { unitCode: 'C62' }),
    ]),
  ]);
}
