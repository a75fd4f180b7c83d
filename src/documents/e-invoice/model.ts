/**
 * The semantic model of EN 16931, as far as our documents need it. BT and BG are terms of EN 16931. Each syntax is
 * written from a value of this model, and equal values give equal bytes.
 */

import { electronicFormatIBAN } from 'ibantools';
import { COUNTRIES, EInvoiceFormat, NoTax } from '#config/e-invoice';
import { Instructions } from '#config/instructions';
import { TaxCategory, VAT_CATEGORIES, VatCategory } from '#config/tax';
import { TaxTotal as DocumentTaxTotal, TaxRate } from '#documents/document-tax';
import { DocumentSnapshot, RowKind, SnapshotLine } from '#documents/snapshot';
import { Amount, lastDay, Month, monthName } from '#values';

/** An empty text means that the value is unknown. */
export type Party = Readonly<{
  name: string;
  line1: string;
  line2: string;
  city: string;
  region: string;
  postal_code: string;
  country: string;
  tax_id: string;
  contact_name: string;
  electronic_address: string;
}>;
export type Seller = Party &
  Readonly<{
    registration_id: string;
    email: string;
    phone: string;
  }>;
export type Buyer = Party &
  Readonly<{
    buyer_reference: string;
    purchase_order: string;
  }>;

/** The data recorded with an e-invoice. With the frozen document, it is the e-invoice's whole content. */
export type Parties = Readonly<{
  seller: Seller;
  buyer: Buyer;
  /** Why the document charges no tax; null if not stated. */
  no_tax: NoTax | null;
}>;

export type Tax = Readonly<{
  category: VatCategory;
  /** The rate in percent. The rate of category O is written only in the totals of UBL. */
  rate: string;
  reason: string;
  reason_code: string;
}>;

export type EInvoiceLine = Readonly<{
  id: string;
  name: string;
  description: string;
  /** Our id of the policy (BT-155); may be empty. */
  item_id: string;
  /** The quantity, and the quantity to which the price applies. Their ratio is 1 or -1, so nothing is rounded. */
  quantity: string;
  base_quantity: string;
  price: string;
  amount: string;
  period: Period | null;
  tax: Tax;
}>;

type TaxTotal = Tax &
  Readonly<{
    taxable: string;
    amount: string;
  }>;

export type Period = Readonly<{
  from: string;
  to: string;
}>;

type Payment = Readonly<{
  /** UNTDID 4461: 58 SEPA credit transfer, 30 credit transfer, 97 clearing between partners. */
  code: '30' | '58' | '97';
  reference: string;
  /** The account to pay into; null if nothing is due. */
  account: Readonly<{
    id: string;
    isIban: boolean;
    holder: string;
    bic: string;
  }> | null;
}>;

export type EInvoice = Readonly<{
  format: EInvoiceFormat;
  document: 'invoice' | 'credit_note';
  number: string;
  issued_on: string;
  due_on: string | null;
  currency: string;
  note: string;
  /** BT-7; null if the tax is due by the day of issue, or if there is none. */
  tax_point: string | null;
  period: Period;
  /** The invoice that this document corrects (BG-3). */
  corrects: Readonly<{ number: string; issued_on: string }> | null;
  seller: Seller;
  buyer: Buyer;
  payment: Payment | null;
  lines: readonly EInvoiceLine[];
  taxes: readonly TaxTotal[];
  totals: Readonly<{
    lines: string;
    tax: string;
    gross: string;
    prepaid: string;
    due: string;
  }>;
}>;

/** What an e-invoice needs in addition to the snapshot. */
export type EInvoiceFacts = Readonly<{
  format: EInvoiceFormat;
  parties: Parties;
  /** The day of issue of the document that this document corrects; null if it corrects none. */
  corrects_issued_on: string | null;
}>;

const KINDS: Readonly<Record<RowKind, string>> = {
  quote_accepted: 'Quotes accepted',
  requote_accepted: 'Requotes accepted',
  reversal: 'Reversals',
};

/** The e-invoice of an invoice or credit note; statements have none. Throws if the tax category is unknown. */
export function eInvoiceOf(snapshot: DocumentSnapshot, facts: EInvoiceFacts): EInvoice {
  const { currency, document } = snapshot;
  if (document === 'statement') throw new TypeError(`${snapshot.number} is a statement`);
  const { format, parties } = facts;
  const taxes = taxesOf(snapshot, parties.no_tax);
  const lines = linesOf(snapshot, taxes);
  const net = snapshot.invoiceAmount;
  const gross = snapshot.gross ?? net;
  const corrected = snapshot.credits ?? snapshot.replaces;
  return {
    format,
    document,
    number: snapshot.number,
    issued_on: snapshot.issued_on,
    due_on: snapshot.due_on,
    currency,
    note: [snapshot.reason ?? '', snapshot.partner.legal_note].filter((text) => text.trim() !== '').join('\n'),
    tax_point: hasTaxPoint(snapshot) ? lastDay(snapshot.month) : null,
    period: periodOf(snapshot.month, lines),
    corrects:
      corrected === null || facts.corrects_issued_on === null
        ? null
        : { number: corrected, issued_on: facts.corrects_issued_on },
    seller: parties.seller,
    buyer: parties.buyer,
    payment: paymentOf(snapshot, facts),
    lines,
    taxes,
    totals: {
      lines: net,
      tax: snapshot.tax ?? Amount.zero(currency).toString(),
      gross,
      prepaid: snapshot.credit_applied,
      due: Amount.of(gross, currency).minus(Amount.of(snapshot.credit_applied, currency)).toString(),
    },
  };
}

/** A month's sales have a tax point, unless they are outside the scope of tax. A credit has the day of its issue. */
const hasTaxPoint = ({ credits, taxTotals = [] }: DocumentSnapshot) =>
  credits === null && taxTotals.some(({ category }) => category !== 'outside_scope');

/** A document without tax has a single total that states the reason. */
function taxesOf({ number, currency, invoiceAmount, taxTotals }: DocumentSnapshot, noTax: NoTax | null) {
  if (taxTotals !== undefined) return oncePerRate(taxTotals, currency);
  if (noTax === null) throw new TypeError(`${number} does not state why it charges no tax`);
  return [{ ...noTax, rate: '0', taxable: invoiceAmount, amount: Amount.zero(currency).toString() }];
}

/** Adds up countries and reduced rates, because EN 16931 has one total for each category and rate. */
function oncePerRate(totals: readonly DocumentTaxTotal[], currency: string) {
  const found = new Map<string, TaxTotal>();
  const sum = (one: string, other: string) => Amount.of(one, currency).plus(Amount.of(other, currency)).toString();
  for (const total of totals) {
    const { taxable, tax: amount, ...rate } = total;
    const key = `${rate.category} ${rate.rate}`;
    const before = found.get(key);
    if (before === undefined) {
      found.set(key, { ...vatOf(rate), taxable, amount });
      continue;
    }
    const reasons = new Set([before.reason, rate.reason].flatMap((reason) => reason.split('; ')));
    found.set(key, {
      ...before,
      reason: [...reasons].join('; '),
      reason_code: before.reason_code === rate.reason_code ? rate.reason_code : '',
      taxable: sum(before.taxable, taxable),
      amount: sum(before.amount, amount),
    });
  }
  return [...found.values()];
}

const vatOf = ({ category, rate, reason, reason_code }: TaxRate): Tax => ({
  ...{ category: VAT_CATEGORIES[category], rate, reason, reason_code },
});

/** The lines of an e-invoice. A credit against an invoice has none, so it gets one for each of its tax totals. */
function linesOf(snapshot: DocumentSnapshot, taxes: readonly TaxTotal[]): EInvoiceLine[] {
  const { currency, month } = snapshot;
  if (snapshot.lines.length > 0) {
    return snapshot.lines.map((line, index) => lineOf(line, index, { currency, month }, taxes));
  }
  const name = snapshot.credits === null ? `Credit for ${monthName(month)}` : `Credit against ${snapshot.credits}`;
  return taxes.map((tax, index) => ({
    id: String(index + 1),
    name,
    description: snapshot.reason ?? '',
    item_id: '',
    ...priced(tax.taxable, 1, currency),
    period: null,
    tax,
  }));
}

function lineOf(
  line: SnapshotLine,
  index: number,
  { currency, month }: { currency: string; month: Month },
  [first]: readonly TaxTotal[],
): EInvoiceLine {
  return {
    id: String(index + 1),
    name: line.policy_name,
    description: `${KINDS[line.kind]}, ${monthName(line.month)}`,
    item_id: line.policy_id,
    ...priced(line.invoiceAmount, line.count, currency),
    period: line.month === month ? null : monthPeriod(line.month),
    tax: line.tax === undefined ? (first as TaxTotal) : vatOf(line.tax),
  };
}

/**
 * The quantity carries the sign, because a price is never below zero (BR-27). The price is for the whole quantity,
 * because only the sum is known.
 */
function priced(amount: string, count: number, currency: string) {
  const total = Amount.of(amount, currency);
  const below = total.isNegative();
  return {
    amount: total.toString(),
    price: (below ? total.negated() : total).toString(),
    quantity: `${below ? '-' : ''}${count}`,
    base_quantity: String(count),
  };
}

const monthPeriod = (month: Month): Period => ({ from: `${month}-01`, to: lastDay(month) });

/**
 * The document's month, extended back to the first month of a late line, because a line's period must lie within the
 * document's (Peppol R110).
 */
function periodOf(month: Month, lines: readonly EInvoiceLine[]): Period {
  const own = monthPeriod(month);
  const from = lines
    .map(({ period }) => period?.from ?? own.from)
    .reduce((first, day) => (day < first ? day : first), own.from);
  return { from, to: own.to };
}

/** German rules require a payment method even if nothing is due (BR-DE-1). */
function paymentOf(
  { number, creditor_reference, amount_due, currency, instructions, document }: DocumentSnapshot,
  { format, parties }: EInvoiceFacts,
): Payment | null {
  if (document === 'invoice' && !Amount.of(amount_due, currency).isZero()) {
    return { reference: creditor_reference ?? number, ...transferOf(instructions, currency) };
  }
  return isGerman(format, parties) ? { code: '97', reference: number, account: null } : null;
}

function transferOf(instructions: Instructions | null, currency: string): Pick<Payment, 'code' | 'account'> {
  const { wire, ach } = instructions ?? {};
  if (wire?.iban !== undefined) {
    const account = {
      id: electronicFormatIBAN(wire.iban) ?? wire.iban,
      isIban: true,
      holder: wire.account_holder,
      bic: wire.bic ?? '',
    };
    return { code: currency === 'EUR' ? '58' : '30', account };
  }
  const { account_number: id = '', account_holder: holder = '' } = wire ?? ach ?? {};
  return { code: '30', account: id === '' ? null : { id, isIban: false, holder, bic: wire?.bic ?? '' } };
}

/** A country code followed by digits and letters. */
const VAT_ID = /^([A-Z]{2})[A-Z0-9+*]{2,13}$/;
/** Greece and Northern Ireland have prefixes that are not country codes (BR-CO-09). */
const OTHER_PREFIXES = ['EL', 'XI'];

/** The VAT identifier in a printed tax id (BT-31, BT-48), without blanks and dots; empty if it is none. */
export function vatIdOf(taxId: string) {
  const id = taxId.toUpperCase().replace(/[\s.]/g, '');
  const [, country = ''] = VAT_ID.exec(id) ?? [];
  return COUNTRIES.has(country) || OTHER_PREFIXES.includes(country) ? id : '';
}

/** Whether the rules of XRechnung apply. Peppol has the same rules if both parties are German (DE-R). */
export const isGerman = (format: EInvoiceFormat, { seller, buyer }: Pick<Parties, 'seller' | 'buyer'>) =>
  format === 'xrechnung' || (format === 'ubl' && [seller, buyer].every((party) => countryOf(party) === 'DE'));

const countryOf = ({ tax_id: taxId, country }: Party) => vatIdOf(taxId).slice(0, 2) || country;

/** The scheme and the id in a text such as `0208:0843766574`; the scheme may be empty. */
export function schemed(text: string): Readonly<{ scheme: string; id: string }> {
  const [, scheme = '', id = text] = /^([^:]+):(.*)$/.exec(text) ?? [];
  return { scheme, id };
}

/** The categories of a document with tax, or the category of a document that charges no tax. */
export const categoriesOf = (
  categories: readonly TaxCategory[] | undefined,
  noTax: NoTax | null,
): readonly VatCategory[] =>
  categories?.map((each) => VAT_CATEGORIES[each]) ?? (noTax === null ? [] : [noTax.category]);

/** Outside the scope of VAT, EN 16931 forbids the parties' VAT identifiers (BR-O-02). */
export const isOutsideScope = ({ taxes }: Pick<EInvoice, 'taxes'>) => taxes.some(({ category }) => category === 'O');
