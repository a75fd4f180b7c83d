/** A document as its partner sees it, as finished texts for the payment page and the partner's place. */
import { Environment } from '#config/environment';
import { instructionsFor, sameInstructions } from '#config/instructions';
import { Settings } from '#config/settings';
import { Transaction } from '#database/transaction';
import { InvoiceInCheckout } from '#delivery/checkouts/checkouts.sql';
import { documentSnapshot } from '#documents/document';
import { DocumentRow } from '#documents/documents.sql';
import { daysOverdue } from '#documents/overdue';
import { fill, Labels, readTemplate } from '#documents/pdf/template';
import { addressLine, Fact, PaymentFact, Presentation, present, rowKindName } from '#documents/present';
import { lineTaxText } from '#documents/present-tax';
import { partnersStanding } from '#lists/invoices';
import { Mark } from '#lists/list';
import { Amount, monthName } from '#values';
import { InvoiceFacts, isAskedFor, readInvoiceFacts, WhichInvoice } from './invoice.sql.ts';

export type FileKind = 'pdf' | 'e-invoice.xml' | 'rows.csv';

type PageFact = Fact &
  Readonly<{
    /** Whether one click selects the value, which payers copy. */
    copy: boolean;
  }>;

type HowToPay = Readonly<{
  /** The URL of the processor's page, or empty if there is none. */
  url: string;
  ach: readonly PageFact[] | null;
  wire: readonly PageFact[] | null;
  creditorReference: string;
  /** Above the bank details if they have changed. */
  changed: Readonly<{ title: string; text: string }> | null;
  /** That the bank details are those on the invoice, or empty if they differ. */
  sameDetails: string;
  /** Whom to ask how to pay, or empty if the page shows it. */
  ask: string;
}>;

type Due = Readonly<{
  /** `Due December 1, 2026`, or empty without a due date. */
  on: string;
  dateKept: boolean;
  /** Since the due date, or empty. */
  overdue: string;
  /** The original amount and what was paid of it, or empty. */
  partlyPaid: string;
}>;

export type InvoiceView = Pick<DocumentRow, 'number' | 'currency' | 'status' | 'sandbox'> &
  Readonly<{
    documentId: number;
    partnerId: string;
    title: string;
    issuer: Readonly<{ name: string; email: string; phone: string }>;
    partner: string;
    purchaseOrder: string;
    /** Empty for an invoice from the previous system. */
    month: string;
    issuedOn: string;
    dueOn: string;
    /** The date on which the document was settled. Null while the document is open. */
    settledOn: string | null;
    marks: readonly Mark[];
    /** Why nothing is due on an invoice, or empty. */
    standing: string;
    balance: string;
    amountDue: string;
    paid: string;
    /** Null if nothing is to be paid. */
    due: Due | null;
    /** What was open in the previous system. Empty for our own documents. */
    carriedOver: string;
    replaces: string | null;
    replacedBy: string | null;
    credits: string | null;
    /** That a payment is on its way, so that no one pays twice, or empty. */
    ordered: string;
    underWay: InvoiceInCheckout | undefined;
    /** Null if nothing is to be paid now. */
    pay: HowToPay | null;
    token: string | null;
    /** The amount and the date, or empty. */
    disputed: string;
    canDispute: boolean;
    lines: readonly Readonly<Record<'policy' | 'month' | 'rows' | 'tax' | 'amount', string>>[];
    /** The steps from the total of the lines to the balance. The step of a credit note shows the note's number. */
    totals: readonly Readonly<{ label: string; amount: string; creditNote: string | null }>[];
    /** Why sales carry no tax, and what the mark of a reduced rate means. */
    taxNotes: readonly string[];
    files: readonly Readonly<{ kind: FileKind; name: string; note: string }>[];
  }>;

type ReadingContext = Readonly<{
  environment: Environment;
  settings: Settings;
  /** In the issuer's time zone. */
  today: string;
}>;

/** Returns undefined if there is no such document, or if it belongs to another partner. */
export async function readInvoice(tx: Transaction, which: WhichInvoice, context: ReadingContext) {
  const facts = await readInvoiceFacts(tx, which, context.environment.now().toISO());
  return facts && viewOf(facts, context);
}

type Parts = ReadingContext &
  Readonly<{
    facts: InvoiceFacts;
    presented: Presentation;
    labels: Labels['payment_page'];
    money: (amount: string) => Amount;
    text: (amount: string) => string;
    date: (date: string | null) => string;
    /** Whether the bank details differ from those on the invoice. */
    moved: boolean;
  }>;

function partsOf(facts: InvoiceFacts, context: ReadingContext): Parts {
  const { document, instructions: printed } = facts;
  const instructions = instructionsFor(context.settings, document.currency);
  const presented = present(
    documentSnapshot(document, { paymentLink: null, instructions: instructions ?? null, instructionsChanged: false }),
  );
  const money = (amount: string) => Amount.of(amount, document.currency);
  return {
    ...{ ...context, facts, presented, money },
    labels: readTemplate().labels.payment_page,
    text: (amount) => presented.locale.amount(money(amount)),
    date: (date) => (date === null ? '' : presented.locale.date(date)),
    moved: isAskedFor(document) && printed !== null && !sameInstructions(printed, instructions),
  };
}

function viewOf(facts: InvoiceFacts, context: ReadingContext): InvoiceView {
  const parts = partsOf(facts, context);
  const { presented, text, date } = parts;
  const { document, payments, dispute } = facts;
  const { issuer, number } = document;
  const ordered = orderedOf(parts);
  return {
    ...{ number, currency: document.currency, status: document.status, sandbox: document.sandbox },
    ...{ token: facts.token, settledOn: facts.settled_on },
    ...{ documentId: document.document_id, partnerId: document.partner_id, title: `${presented.title} ${number}` },
    issuer: { name: issuer.legal_name, email: issuer.email, phone: issuer.phone },
    partner: document.partner_name,
    purchaseOrder: document.purchase_order,
    month: document.carried_over_on === null ? presented.month : '',
    issuedOn: presented.issuedOn,
    dueOn: date(document.due_on),
    marks: partnersStanding({ ...document, disputed: dispute !== null }, context.today),
    standing: standingOf(facts),
    ...{ balance: text(document.balance), amountDue: text(document.amount_due), paid: text(document.amount_paid) },
    due: isAskedFor(document) ? dueOf(parts, ordered !== '') : null,
    carriedOver: carriedOver(parts),
    ...{ replaces: document.replaces, replacedBy: document.replaced_by, credits: document.credits },
    ordered,
    underWay: payments[0],
    pay: isAskedFor(document) && ordered === '' ? howToPay(parts) : null,
    disputed: disputedOf(parts),
    canDispute: isAskedFor(document) && dispute === null,
    lines: document.lines.map((line) => ({
      policy: line.policy_name,
      month: monthName(line.month),
      rows: `${presented.locale.number(String(line.count))} ${rowKindName(line.kind, line.count)}`,
      tax: lineTaxText(line, document),
      amount: text(line.invoice_amount),
    })),
    totals: totalsOf(parts),
    taxNotes: presented.tax.notes,
    files: filesOf(parts),
  };
}

function standingOf({ document, reductions }: InvoiceFacts) {
  if (document.document !== 'invoice' || document.status === 'open') return '';
  const { payment_page: labels, void: voidLabels } = readTemplate().labels;
  if (document.status === 'void') return voidLabels.title.invoice;
  const kinds = new Set(reductions.map(({ kind }) => kind));
  if (kinds.has('written_off')) return labels.closed;
  if (kinds.has('payment')) return labels.paid;
  return kinds.has('credit') ? labels.credited : labels.nothing;
}

function orderedOf({ facts, labels, date, money, text }: Parts) {
  const orders = facts.payments.filter(({ ordered_on }) => ordered_on !== null);
  const [first] = orders.map(({ ordered_on }) => ordered_on).sort();
  if (first === undefined) return '';
  const sum = orders.map(({ amount }) => money(amount)).reduce((total, each) => total.plus(each));
  return fill(labels.ordered, { amount: text(sum.toString()), on: date(first) });
}

function dueOf({ facts: { document }, presented, labels, money, text, today }: Parts, isOrdered: boolean): Due {
  const { dueOn, dueDateKept, tax } = presented;
  const days = isOrdered ? 0 : daysOverdue(document, today);
  const overdue = days === 1 ? labels.overdue_one_day : fill(labels.overdue, { days: String(days) });
  const settled = tax.gross.amount.minus(money(document.balance));
  const amounts = { amount: text(tax.gross.amount.toString()), settled: text(settled.toString()) };
  return {
    on: document.due_on === today ? labels.due_today : dueOn && fill(labels.due, { due_on: dueOn }),
    dateKept: dueDateKept,
    overdue: days > 0 ? overdue : '',
    partlyPaid: settled.isPositive() ? fill(labels.partly_paid, amounts) : '',
  };
}

/** On an invoice from the previous system, where it may have been partly paid. */
function carriedOver({ facts: { document }, labels, money, text, date }: Parts) {
  const { carried_over_on: on, original_amount: original, invoice_amount: amount, status } = document;
  if (on === null || original === null || status === 'void') return '';
  if (money(original).equals(money(amount))) return labels.carried_over;
  return fill(labels.carried_over_part, { original: text(original), amount: text(amount), on: date(on) });
}

function disputedOf({ facts: { dispute }, text, date }: Parts) {
  if (dispute === null) return '';
  const promised = dispute.promised_on === null ? '' : `, answer promised by ${date(dispute.promised_on)}`;
  return `${text(dispute.amount)} since ${date(dispute.disputed_on)}${promised}`;
}

/**
 * From the total of the lines to the balance, so that the figures add up. A void document, or one that is not an
 * invoice, ends at its total with tax.
 */
function totalsOf({ facts: { document, reductions }, presented, labels, money, date }: Parts): InvoiceView['totals'] {
  const { locale, total, tax } = presented;
  const lowered = reductions.map(({ kind, on, amount, credit_note: creditNote }) => ({
    label: fill(labels.reductions[kind], { on: date(on), credit_note: creditNote ?? '' }),
    amount: money(amount).negated(),
    creditNote,
  }));
  const balance = money(document.balance);
  const other = lowered.reduce((left, { amount }) => left.minus(amount), balance.minus(tax.gross.amount));
  const steps = [
    ...lowered,
    ...(other.isZero() ? [] : [{ label: other.isPositive() ? labels.credit_taken_back : labels.other, amount: other }]),
    { label: labels.balance, amount: balance },
  ];
  const hasBalance = document.document === 'invoice' && document.status !== 'void';
  return [total, ...tax.steps, ...(hasBalance ? steps : [])].map(({ amount, ...step }) => ({
    creditNote: null,
    ...step,
    amount: locale.amount(amount),
  }));
}

/** None for a void document, because a recipient might pay it. */
function filesOf({ facts: { document }, labels, moved, presented }: Parts): InvoiceView['files'] {
  const { number, status, pdf_sha256, e_invoice, lines } = document;
  if (status === 'void') return [];
  const rows = labels[presented.showsSales ? 'rows' : 'rows_missing_shares'];
  const pdf = pdf_sha256 !== null;
  return [
    ...(pdf ? [{ kind: 'pdf', name: `${number}.pdf`, note: moved ? labels.pdf_outdated : labels.pdf } as const] : []),
    ...(pdf && e_invoice !== 'none'
      ? [{ kind: 'e-invoice.xml', name: `${number}.xml`, note: labels.e_invoice } as const]
      : []),
    ...(lines.length > 0 ? [{ kind: 'rows.csv', name: `${number}-rows.csv`, note: rows } as const] : []),
  ];
}

// --- How to pay ---

function howToPay(parts: Parts): HowToPay {
  const { facts, presented, labels, moved } = parts;
  const [ach, wire] = [presented.ach, presented.wire].map((facts) => facts?.flatMap(pageFacts) ?? null);
  const hasDetails = Boolean(ach || wire);
  const url = facts.processor_url ?? '';
  const { none } = readTemplate().labels.payment;
  return {
    ...{ url, ach: ach ?? null, wire: wire ?? null, creditorReference: presented.creditorReference },
    changed: hasDetails ? noticeOf(parts) : null,
    // Null for an invoice from the previous system, whose printed details are unknown here.
    sameDetails: moved || facts.instructions === null ? '' : labels.same_details,
    ask: hasDetails || url !== '' || presented.reach === '' ? '' : fill(none, { contact: presented.reach }),
  };
}

/** A warning about changed bank details, as on the invoice: a common fraud changes them. */
function noticeOf({ facts, labels, moved }: Parts): HowToPay['changed'] {
  if (moved) return { title: labels.changed_since_title, text: `${labels.changed_since} ${labels.changed}` };
  const title = readTemplate().labels.payment.changed_title;
  return facts.instructions_changed ? { title, text: labels.changed } : null;
}

function accountType(type: string) {
  const { checking, savings } = readTemplate().labels.payment;
  return type === 'savings' ? savings : checking;
}

/** Returns a row for a bank detail, and a row for its address if it has one. */
export function pageFacts({ field, kind, label, value, address }: PaymentFact): PageFact[] {
  const labels: Readonly<Record<string, unknown>> = readTemplate().labels.payment_page;
  const own = (name: string) => (typeof labels[name] === 'string' ? labels[name] : undefined);
  const addressLabel = own(`${field}_address`);
  return [
    {
      label: own(field) ?? label,
      value: field === 'account_type' ? accountType(value) : value,
      copy: kind === 'number',
    },
    ...(address && addressLabel ? [{ label: addressLabel, value: addressLine(address), copy: false }] : []),
  ].filter((fact) => fact.value !== '');
}
