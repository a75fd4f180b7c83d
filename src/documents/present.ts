/**
 * The content of a document: its title, facts, amounts and payment instructions, in the words of
 * templates/document.json and the locale of the partner's country. The PDF, the payment page, the e-mail and the
 * command line only lay it out.
 */
import { AchInstructions, Instructions, WireInstructions } from '#config/instructions';
import { Address } from '#config/validation';
import { Amount, monthName } from '#values';
import { inFours } from './creditor-reference.ts';
import { Locale, localeOf } from './locale.ts';
import { fill, Labels, readTemplate, Template } from './pdf/template.ts';
import { PresentedTax, taxOf } from './present-tax.ts';
import { DocumentKind, DocumentSnapshot, RowKind } from './snapshot.ts';

/** Why a document asks for money or does not. */
type Situation = 'due' | 'nothing_due' | 'covered_by_credit' | 'credit_note' | 'adjustment' | 'statement';

/** Makes a text from a partner or the settings safe for its destination. */
type Clean = (text: string) => string;

export type Fact = Readonly<{
  label: string;
  value: string;
}>;

type Total = Readonly<{
  label: string;
  amount: Amount;
}>;

export type PaymentField = Extract<
  keyof Labels['payment'],
  | 'account_holder'
  | 'bank'
  | 'routing_number_ach'
  | 'routing_number_wire'
  | 'account_number'
  | 'account_type'
  | 'iban'
  | 'bic'
  | 'intermediary'
  | 'intermediary_bic'
>;

export type PaymentFact = Fact &
  Readonly<{
    field: PaymentField;
    /** An account holder or a bank, a number that payers copy, or a word. */
    kind: 'party' | 'number' | 'word';
    /** The address of a party; null for other kinds. */
    address: Address | null;
  }>;

export type Presentation = Readonly<{
  locale: Locale;
  situation: Situation;
  /** The values of the labels' placeholders. */
  values: Readonly<Record<string, string>>;
  title: string;
  number: string;
  /** The month, such as `October 2026`. */
  month: string;
  issuedOn: string;
  /** Empty if nothing is due. */
  dueOn: string;
  /** Whether it is the replaced invoice's due date. */
  dueDateKept: boolean;
  /** Due on an invoice, owed to the partner on a credit note, or routed by the processor on a statement. */
  amount: string;
  /**
   * Whether the sales and the partner's share are shown. An invoice for missing shares bills only our share: the
   * partner has kept its own.
   */
  showsSales: boolean;
  total: Total;
  tax: PresentedTax;
  credit: readonly Total[];
  /** For an adjustment, what is left to pay on its invoice; otherwise empty. */
  leaves: string;
  replaces: string;
  credits: string;
  reason: string;
  issuer: string;
  partner: Readonly<{ name: string; purchaseOrder: string }>;
  /** The issuer's e-mail and phone; may be empty. */
  reach: string;
  /** The ways to pay by bank, if something is due. */
  ach: readonly PaymentFact[] | null;
  wire: readonly PaymentFact[] | null;
  /** In groups of four; empty if there is none. */
  creditorReference: string;
}>;

/** With `isVoid`, presents the copy of a void document, on which nothing is due. */
export function present(
  snapshot: DocumentSnapshot,
  clean: Clean = (text) => text,
  { isVoid = false } = {},
): Presentation {
  const { labels } = readTemplate();
  const { currency, issuer, partner, instructions } = snapshot;
  const locale = localeOf(partner.address.country);
  const situation = situationOf(snapshot);
  const amount = (text: string) => Amount.of(text, currency);
  const isDue = situation === 'due' && !isVoid;
  const values = {
    amount: locale.amount(amount(snapshot.document === 'invoice' ? snapshot.amount_due : grossOf(snapshot))),
    credit: locale.amount(amount(snapshot.credit_applied)),
    credits: clean(snapshot.credits ?? ''),
    currency,
    due_on: snapshot.due_on === null ? '' : locale.date(snapshot.due_on),
    issuer: clean(issuer.legal_name),
    month: monthName(snapshot.month),
    number: clean(snapshot.number),
    partner: clean(partner.name),
    replaces: clean(snapshot.replaces ?? ''),
  };
  const issuedOn = locale.date(snapshot.issued_on);
  const dueOn = isDue ? values.due_on : '';
  const dueDateKept = isDue && snapshot.due_date_kept === true;
  const purchaseOrder = clean(partner.purchase_order);
  const reach = [issuer.email, issuer.phone].map(clean).filter(Boolean).join(labels.or);
  const tax = taxOf(snapshot, labels, locale, clean);
  return {
    locale,
    situation,
    values,
    title: labels.title[snapshot.document],
    number: values.number,
    month: values.month,
    issuedOn,
    dueOn,
    dueDateKept,
    amount: values.amount,
    showsSales: snapshot.purpose !== 'missing_shares',
    total: { label: tax.label, amount: amount(snapshot.invoiceAmount) },
    tax,
    credit: creditOf(snapshot, labels, clean),
    leaves: leavesOf(snapshot, labels, values, locale),
    replaces: values.replaces,
    credits: values.credits,
    reason: clean(snapshot.reason ?? ''),
    issuer: values.issuer,
    partner: { name: values.partner, purchaseOrder },
    reach,
    ...bankDetails(isDue ? instructions : null, clean),
    creditorReference: isDue ? inFours(snapshot.creditor_reference ?? '') : '',
  };
}

/** The amount owed, including tax. */
export const grossOf = ({ gross, invoiceAmount }: Pick<DocumentSnapshot, 'gross' | 'invoiceAmount'>) =>
  gross ?? invoiceAmount;

function situationOf({ document, purpose, ...snapshot }: DocumentSnapshot): Situation {
  const isZero = (text: string) => Amount.of(text, snapshot.currency).isZero();
  if (document === 'credit_note') return purpose === 'adjustment' ? 'adjustment' : 'credit_note';
  if (document === 'statement') return 'statement';
  if (!isZero(snapshot.amount_due)) return 'due';
  return isZero(snapshot.credit_applied) ? 'nothing_due' : 'covered_by_credit';
}

/** If more credit notes than this were applied, one row states their sum. */
const MOST_CREDIT_NOTES = 5;

function creditOf(snapshot: DocumentSnapshot, { totals }: Labels, clean: Clean): Total[] {
  const { currency, credit_applied, credit_notes: notes = [] } = snapshot;
  const credit = Amount.of(credit_applied, currency);
  if (credit.isZero()) return [];
  if (notes.length === 0) return [{ label: totals.credit_applied, amount: credit.negated() }];
  if (notes.length > MOST_CREDIT_NOTES) {
    return [{ label: fill(totals.credit_of_notes, { count: String(notes.length) }), amount: credit.negated() }];
  }
  return notes.map(({ number, amount }) => ({
    label: fill(totals.credit_of_note, { number: clean(number) }),
    amount: Amount.of(amount, currency).negated(),
  }));
}

/** For an adjustment: what is deducted from its invoice, left to pay on it, and open credit. */
function leavesOf(
  { lowered, ...snapshot }: DocumentSnapshot,
  { adjustment }: Labels,
  values: Readonly<Record<string, string>>,
  locale: Locale,
) {
  if (!lowered) return '';
  const { currency } = snapshot;
  const by = Amount.of(lowered.by, currency);
  const open = Amount.of(grossOf(snapshot), currency).minus(by);
  const amounts = {
    ...values,
    by: locale.amount(by),
    left: locale.amount(Amount.of(lowered.left, currency)),
    open: locale.amount(open),
  };
  return [
    fill(by.isZero() ? adjustment.paid_already : adjustment.leaves, amounts),
    ...(open.isZero() ? [] : [fill(adjustment.open_credit, amounts)]),
  ].join(' ');
}

// --- Payment instructions ---

function paymentFacts(labels: Labels, clean: Clean) {
  const row =
    (kind: PaymentFact['kind']) =>
    (field: PaymentField, text: string | undefined, address: Address | null = null): PaymentFact[] =>
      text === undefined ? [] : [{ field, kind, label: labels.payment[field], value: clean(text), address }];
  return { party: row('party'), number: row('number'), word: row('word') };
}

/** Bank details as labeled facts; null if the instructions lack them. */
export function bankDetails(
  instructions: Instructions | null,
  clean: Clean = (text) => text,
): Pick<Presentation, 'ach' | 'wire'> {
  const { labels } = readTemplate();
  return {
    ach: instructions?.ach ? achFacts(instructions.ach, labels, clean) : null,
    wire: instructions?.wire ? wireFacts(instructions.wire, labels, clean) : null,
  };
}

function achFacts(ach: AchInstructions, labels: Labels, clean: Clean): PaymentFact[] {
  const { party, number, word } = paymentFacts(labels, clean);
  return [
    ...party('account_holder', ach.account_holder, ach.account_holder_address),
    ...party('bank', ach.bank_name, ach.bank_address),
    ...number('routing_number_ach', ach.routing_number),
    ...number('account_number', ach.account_number),
    ...word('account_type', ach.account_type),
  ];
}

function wireFacts({ intermediary, ...wire }: WireInstructions, labels: Labels, clean: Clean): PaymentFact[] {
  const { party, number } = paymentFacts(labels, clean);
  return [
    ...party('account_holder', wire.account_holder, wire.account_holder_address),
    ...party('bank', wire.bank_name, wire.bank_address),
    ...number('routing_number_wire', wire.routing_number),
    ...number('account_number', wire.account_number),
    ...number('iban', wire.iban),
    ...number('bic', wire.bic),
    ...party('intermediary', intermediary?.bank_name, intermediary?.bank_address ?? null),
    ...number('intermediary_bic', intermediary?.bic),
  ];
}

// --- Names and addresses ---

export const documentTitle = (document: DocumentKind) => readTemplate().labels.title[document];

const ROW_KIND_NAMES: Readonly<Record<RowKind, string>> = {
  quote_accepted: 'enrollment',
  requote_accepted: 'requote',
  reversal: 'reversal',
};

/** A kind of ledger row, in the plural unless the count is 1: `enrollments`. */
export const rowKindName = (kind: RowKind, count?: number) => `${ROW_KIND_NAMES[kind]}${count === 1 ? '' : 's'}`;

/** An address in one line: `350 Fifth Avenue, New York, NY 10118, US`. */
export function addressLine(
  { line1, line2, city, region, postal_code, country }: Address,
  clean: Clean = (text) => text,
) {
  return listed(...[line1, line2, city, spaced(region, postal_code), country].filter(Boolean).map(clean));
}

/** An address as the lines of an envelope, with the country's name. */
export function addressLines(address: Address, { theme, countries }: Template, clean: Clean) {
  const { line1, line2, city, region, postal_code, country } = address;
  const town = theme.postal_code_after_town.includes(country)
    ? spaced(listed(city, region), postal_code)
    : listed(spaced(postal_code, city), region);
  return [line1, line2, town, countries[country] ?? country].map(clean).filter(Boolean);
}

const spaced = (...parts: string[]) => parts.filter(Boolean).join(' ');
const listed = (...parts: string[]) => parts.filter(Boolean).join(', ');
