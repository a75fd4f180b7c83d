/** Writes an e-invoice as UN/CEFACT Cross Industry Invoice (D16B), profile EN 16931 of Factur-X and ZUGFeRD. */
import { EInvoice, EInvoiceLine, isOutsideScope, Party, Period, Seller, schemed, vatIdOf } from './model.ts';
import { element as el, XmlElement, xmlFile } from './xml.ts';

const NAMESPACES = {
  'xmlns:rsm': 'urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100',
  'xmlns:ram': 'urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100',
  'xmlns:udt': 'urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100',
  'xmlns:qdt': 'urn:un:unece:uncefact:data:standard:QualifiedDataType:100',
};

export function writeCii(invoice: EInvoice): Buffer {
  const transaction: XmlElement = {
    name: 'rsm:SupplyChainTradeTransaction',
    attributes: {},
    content: [
      ...invoice.lines.map((line) => lineOf(line)),
      agreementOf(invoice),
      // The schema requires this element, even if it is empty.
      { name: 'ram:ApplicableHeaderTradeDelivery', attributes: {}, content: [] },
      settlementOf(invoice),
    ].filter((each) => each !== undefined),
  };
  const content = [
    el('rsm:ExchangedDocumentContext', [
      el('ram:GuidelineSpecifiedDocumentContextParameter', [el('ram:ID', 'urn:cen.eu:en16931:2017')]),
    ]),
    el('rsm:ExchangedDocument', [
      el('ram:ID', invoice.number),
      el('ram:TypeCode', invoice.document === 'invoice' ? '380' : '381'),
      el('ram:IssueDateTime', [dateOf(invoice.issued_on)]),
      el('ram:IncludedNote', [el('ram:Content', invoice.note)]),
    ]),
    transaction,
  ].filter((each) => each !== undefined);
  return xmlFile({ name: 'rsm:CrossIndustryInvoice', attributes: NAMESPACES, content });
}

const compact = (date: string) => date.replaceAll('-', '');
const dateOf = (date: string, prefix = 'udt', type = 'DateTimeString') =>
  el(`${prefix}:${type}`, compact(date), { format: '102' });

const periodOf = (period: Period | null) =>
  period === null
    ? undefined
    : el('ram:BillingSpecifiedPeriod', [
        el('ram:StartDateTime', [dateOf(period.from)]),
        el('ram:EndDateTime', [dateOf(period.to)]),
      ]);

function lineOf(line: EInvoiceLine) {
  return el('ram:IncludedSupplyChainTradeLineItem', [
    el('ram:AssociatedDocumentLineDocument', [el('ram:LineID', line.id)]),
    el('ram:SpecifiedTradeProduct', [
      el('ram:SellerAssignedID', line.item_id),
      el('ram:Name', line.name),
      el('ram:Description', line.description),
    ]),
    el('ram:SpecifiedLineTradeAgreement', [
      el('ram:NetPriceProductTradePrice', [
        el('ram:ChargeAmount', line.price),
        el('ram:BasisQuantity', line.base_quantity, { unitCode: 'C62' }),
      ]),
    ]),
    el('ram:SpecifiedLineTradeDelivery', [el('ram:BilledQuantity', line.quantity, { unitCode: 'C62' })]),
    el('ram:SpecifiedLineTradeSettlement', [
      el('ram:ApplicableTradeTax', [
        el('ram:TypeCode', 'VAT'),
        el('ram:CategoryCode', line.tax.category),
        line.tax.category === 'O' ? undefined : el('ram:RateApplicablePercent', line.tax.rate),
      ]),
      periodOf(line.period),
      el('ram:SpecifiedTradeSettlementLineMonetarySummation', [el('ram:LineTotalAmount', line.amount)]),
    ]),
  ]);
}

function agreementOf(invoice: EInvoice) {
  const { seller, buyer } = invoice;
  const withVat = !isOutsideScope(invoice);
  const registration = schemed(seller.registration_id);
  return el('ram:ApplicableHeaderTradeAgreement', [
    el('ram:BuyerReference', buyer.buyer_reference),
    el('ram:SellerTradeParty', [
      el('ram:Name', seller.name),
      el('ram:SpecifiedLegalOrganization', [el('ram:ID', registration.id, schemeOf(registration.scheme))]),
      el('ram:DefinedTradeContact', [
        el('ram:PersonName', seller.contact_name),
        el('ram:TelephoneUniversalCommunication', [el('ram:CompleteNumber', seller.phone)]),
        el('ram:EmailURIUniversalCommunication', [el('ram:URIID', seller.email)]),
      ]),
      addressOf(seller),
      electronicAddressOf(seller),
      ...taxIdsOf(seller, withVat),
    ]),
    el('ram:BuyerTradeParty', [
      el('ram:Name', buyer.name),
      el('ram:DefinedTradeContact', [el('ram:PersonName', buyer.contact_name)]),
      addressOf(buyer),
      electronicAddressOf(buyer),
      withVat ? taxIdOf(vatIdOf(buyer.tax_id), 'VA') : undefined,
    ]),
    el('ram:BuyerOrderReferencedDocument', [el('ram:IssuerAssignedID', buyer.purchase_order)]),
  ]);
}

const schemeOf = (scheme: string) => (scheme === '' ? {} : { schemeID: scheme });

const addressOf = (party: Party) =>
  el('ram:PostalTradeAddress', [
    el('ram:PostcodeCode', party.postal_code),
    el('ram:LineOne', party.line1),
    el('ram:LineTwo', party.line2),
    el('ram:CityName', party.city),
    el('ram:CountryID', party.country),
    el('ram:CountrySubDivisionName', party.region),
  ]);

function electronicAddressOf({ electronic_address: address }: Party) {
  const { scheme, id } = schemed(address);
  return el('ram:URIUniversalCommunication', [el('ram:URIID', id, schemeOf(scheme))]);
}

const taxIdOf = (id: string, scheme: 'VA' | 'FC') =>
  el('ram:SpecifiedTaxRegistration', [el('ram:ID', id, { schemeID: scheme })]);

/** BT-31, or BT-32 if the tax id is not a VAT identifier. */
function taxIdsOf({ tax_id: taxId }: Seller, withVat: boolean) {
  const vatId = vatIdOf(taxId);
  return [vatId === '' ? taxIdOf(taxId, 'FC') : withVat ? taxIdOf(vatId, 'VA') : undefined];
}

function settlementOf(invoice: EInvoice) {
  const { currency, payment, totals, corrects, tax_point: point } = invoice;
  return el('ram:ApplicableHeaderTradeSettlement', [
    el('ram:PaymentReference', payment?.reference ?? ''),
    el('ram:InvoiceCurrencyCode', currency),
    paymentOf(payment),
    ...invoice.taxes.map((tax, index) =>
      el('ram:ApplicableTradeTax', [
        el('ram:CalculatedAmount', tax.amount),
        el('ram:TypeCode', 'VAT'),
        el('ram:ExemptionReason', tax.reason),
        el('ram:BasisAmount', tax.taxable),
        el('ram:CategoryCode', tax.category),
        el('ram:ExemptionReasonCode', tax.reason_code),
        // The tax point is stated once (CII-SR-461).
        el('ram:TaxPointDate', point === null || index > 0 ? [] : [dateOf(point, 'udt', 'DateString')]),
        tax.category === 'O' ? undefined : el('ram:RateApplicablePercent', tax.rate),
      ]),
    ),
    periodOf(invoice.period),
    el('ram:SpecifiedTradePaymentTerms', [
      el('ram:DueDateDateTime', invoice.due_on === null ? [] : [dateOf(invoice.due_on)]),
    ]),
    el('ram:SpecifiedTradeSettlementHeaderMonetarySummation', [
      el('ram:LineTotalAmount', totals.lines),
      el('ram:TaxBasisTotalAmount', totals.lines),
      el('ram:TaxTotalAmount', totals.tax, { currencyID: currency }),
      el('ram:GrandTotalAmount', totals.gross),
      el('ram:TotalPrepaidAmount', totals.prepaid),
      el('ram:DuePayableAmount', totals.due),
    ]),
    corrects === null
      ? undefined
      : el('ram:InvoiceReferencedDocument', [
          el('ram:IssuerAssignedID', corrects.number),
          el('ram:FormattedIssueDateTime', [dateOf(corrects.issued_on, 'qdt')]),
        ]),
  ]);
}

function paymentOf(payment: EInvoice['payment']) {
  if (payment === null) return undefined;
  const { account } = payment;
  return el('ram:SpecifiedTradeSettlementPaymentMeans', [
    el('ram:TypeCode', payment.code),
    account === null
      ? undefined
      : el('ram:PayeePartyCreditorFinancialAccount', [
          account.isIban ? el('ram:IBANID', account.id) : undefined,
          el('ram:AccountName', account.holder),
          account.isIban ? undefined : el('ram:ProprietaryID', account.id),
        ]),
    el('ram:PayeeSpecifiedCreditorFinancialInstitution', [el('ram:BICID', account?.bic ?? '')]),
  ]);
}
