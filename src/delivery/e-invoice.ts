/**
 * Composes the e-invoice of a document from the data that was frozen with it; current data fills its blanks. Throws a
 * HoldReason if the profile requires missing data, so that only the delivery waits, not the close.
 */
import { hash } from 'node:crypto';
import { EInvoiceFormat } from '#config/e-invoice';
import { Instructions, instructionsFor } from '#config/instructions';
import { Issuer, Settings } from '#config/settings';
import { TaxCategory } from '#config/tax';
import { partnerAddress } from '#documents/document';
import { DocumentRow } from '#documents/documents.sql';
import { CURRENCY_TERM, FORMAT_NAMES, Lack, lackingOf, lackingText } from '#documents/e-invoice/lacking';
import { categoriesOf, Parties, Seller } from '#documents/e-invoice/model';
import { drawEInvoice, E_INVOICE_WRITER_VERSION } from '#documents/e-invoice/write';
import { DocumentSnapshot } from '#documents/snapshot';
import { Amount } from '#money';
import { HoldReason } from './hold-reason.ts';

export type PresentBuyer = Readonly<{
  partner_id: string;
  e_invoice: 'none' | EInvoiceFormat;
  currency: string;
  name: string;
  contact_name: string;
  line1: string;
  line2: string;
  city: string;
  region: string;
  postal_code: string;
  country: string;
  tax_id: string;
  purchase_order: string;
  buyer_reference: string;
  electronic_address: string;
}>;

export type EInvoiceToKeep = Readonly<{
  writerVersion: number;
  parties: Parties;
  sha256: string;
  xml: Buffer;
}>;

const BLANK_SELLER = { contact_name: '', electronic_address: '', registration_id: '', no_tax: null };

function presentParties({ issuer }: { readonly issuer: Omit<Issuer, 'logo'> }, buyer: PresentBuyer): Parties {
  const { no_tax, ...own } = issuer.e_invoice ?? BLANK_SELLER;
  const { legal_name: name, tax_id, email, phone, address } = issuer;
  const { partner_id: _, e_invoice: __, currency: ___, ...theirs } = buyer;
  return { seller: { name, ...address, tax_id, ...own, email, phone }, buyer: theirs, no_tax };
}

export function frozenParties(document: DocumentRow): Parties {
  const { seller, ...parties } = presentParties(document, {
    partner_id: document.partner_id,
    e_invoice: document.e_invoice,
    currency: document.currency,
    name: document.partner_name,
    contact_name: document.contact_name,
    ...partnerAddress(document),
    tax_id: document.tax_id,
    purchase_order: document.purchase_order,
    buyer_reference: document.buyer_reference,
    electronic_address: document.electronic_address,
  });
  return { ...parties, seller: registeredAs(seller, document.taxes[0]?.registration) };
}

/** The seller, with the tax number that it has in the buyer's country, if that number is different. */
const registeredAs = (seller: Seller, registration = ''): Seller => ({
  ...seller,
  tax_id: registration || seller.tax_id,
});

/** Frozen data, whose blanks current data fills. */
export function completed(frozen: Parties, present: Parties): Parties {
  return {
    seller: filled(frozen.seller, present.seller),
    buyer: filled(frozen.buyer, present.buyer),
    no_tax: frozen.no_tax ?? present.no_tax,
  };
}

const filled = <P extends { readonly [K in keyof P]: string }>(frozen: P, present: P) =>
  Object.fromEntries(Object.entries(frozen).map(([field, text]) => [field, text || present[field as keyof P]])) as P;

type EInvoiceRequest = Readonly<{
  format: EInvoiceFormat;
  parties: Parties;
  currency: string;
  /** The tax categories of a document with tax; undefined without tax. */
  taxes: readonly TaxCategory[] | undefined;
  instructions: Instructions | null;
}>;

/** The data that a partner's first e-invoice would lack. */
export function lacksOfPartner(settings: Settings, buyer: PresentBuyer): Lack[] {
  const { e_invoice: format, currency } = buyer;
  if (format === 'none') return [];
  const hasAccount = namesAccount(instructionsFor(settings, currency));
  const { seller, ...others } = presentParties(settings, buyer);
  const parties = { ...others, seller: registeredAs(seller, settings.tax?.countries[buyer.country]?.registration) };
  // All rules but one require the seller's tax number.
  const categories = settings.tax === null ? categoriesOf(undefined, parties.no_tax) : (['S'] as const);
  return lackingOf({ format, parties, currency, categories, hasAccount });
}

const namesAccount = ({ wire, ach }: Instructions = {}) =>
  (wire?.iban ?? wire?.account_number ?? ach?.account_number) !== undefined;

function whyNoEInvoice({ format, parties, currency, taxes, instructions }: EInvoiceRequest) {
  const name = FORMAT_NAMES[format];
  const hasAccount = instructions === null || namesAccount(instructions);
  const categories = categoriesOf(taxes, parties.no_tax);
  if (categories.includes('O') && categories.some((each) => each !== 'O')) {
    const cure = 'Correct the tax rules in settings.json, and rerun it';
    return `its e-invoice (${name}) cannot be written: EN 16931 does not allow sales outside the scope of tax and other sales in one document (BR-O-11). ${cure}`;
  }
  const lacks = lackingOf({ format, parties, currency, categories, hasAccount });
  if (lacks.length === 0) return undefined;
  // The format of an issued document is fixed.
  if (lacks.some(({ term }) => term === CURRENCY_TERM)) {
    const cure = 'Set e_invoice to none in partners.json, and rerun the issued documents';
    return `its e-invoice (${name}) cannot be written: EN 16931 has two decimals, and ${currency} has more. ${cure}`;
  }
  const steps = lacks.some(({ file }) => file === 'partners.json') ? 'Fill it in, import partners.json' : 'Fill it in';
  const cure = `${steps} and deliver it; errors on the document itself are corrected by a rerun`;
  return `its e-invoice (${name}) lacks ${lackingText(lacks)}. ${cure}`;
}

/** The e-invoice of a document; undefined if the partner wants no e-invoices. */
export function eInvoiceFor(
  document: DocumentRow,
  snapshot: DocumentSnapshot,
  settings: Settings,
  buyer: PresentBuyer | undefined,
): EInvoiceToKeep | undefined {
  const { e_invoice: format, currency } = document;
  if (format === 'none') return undefined;
  if (buyer === undefined) throw new Error(`${document.number} has no partner`);
  const parties = completed(frozenParties(document), presentParties(settings, buyer));
  const taxes = snapshot.taxTotals?.map(({ category }) => category);
  const instructions = isDue(snapshot) ? (snapshot.instructions ?? {}) : null;
  const reason = whyNoEInvoice({ format, parties, currency, taxes, instructions });
  if (reason !== undefined) throw new HoldReason(reason);
  const xml = drawEInvoice(snapshot, { format, parties, corrects_issued_on: document.corrects_issued_on });
  const sha256 = hash('sha256', xml);
  return { writerVersion: E_INVOICE_WRITER_VERSION, parties, sha256, xml };
}

const isDue = ({ document, amount_due, currency }: DocumentSnapshot) =>
  document === 'invoice' && !Amount.of(amount_due, currency).isZero();
