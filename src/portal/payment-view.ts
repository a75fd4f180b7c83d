/**
 * What the payment page shows of an invoice: its balance and how it came about, what to do now, and the bank details that
 * are valid today, which may differ from those on the invoice.
 */
import { type Instructions, sameInstructions } from '../config/instructions.ts';
import { documentSnapshot } from '../documents/document.ts';
import { fill, type Labels, readTemplate } from '../documents/pdf/template.ts';
import {
  addressLine,
  type Fact,
  type PaymentFact,
  type Presentation,
  present,
  rowKindName,
  type Total,
} from '../documents/present.ts';
import { Amount } from '../money.ts';
import { daysBetween, monthName } from '../month.ts';
import type { PaymentPage } from './invoice.sql.ts';

interface PageFact extends Fact {
  /** A number that payers copy: one click selects all of it. */
  readonly copy: boolean;
}

interface Notice {
  readonly title: string;
  readonly text: string;
}

export interface PaymentView {
  readonly title: string;
  readonly sandbox: boolean;
  readonly heading: string;
  readonly number: string;
  /** Empty for an invoice of the previous system, which is of no month here. */
  readonly month: string;
  readonly issuer: { readonly name: string; readonly email: string; readonly phone: string };
  readonly partner: string;
  readonly purchaseOrder: string;
  readonly issuedOn: string;
  readonly isDue: boolean;
  readonly isVoid: boolean;
  /** What the invoice is, if nothing is to be paid; empty otherwise. */
  readonly standing: string;
  /** Says that a payment is on its way, so that nobody pays again; empty otherwise. */
  readonly ordered: string;
  readonly balance: string;
  readonly dueOn: string;
  readonly dueDateKept: boolean;
  /** How long it is overdue; empty if it is not. */
  readonly overdue: string;
  /** What an invoice of the previous system is, of which there is no PDF here; empty for ours. */
  readonly carriedOver: string;
  /** The original amount and what was paid of it; empty if nothing was. */
  readonly partlyPaid: string;
  /** The number alone: who may see the replacement was sent its own link. */
  readonly replacement: string | null;
  readonly processorUrl: string;
  /** A warning above the bank details, if they have changed. */
  readonly changed: Notice | null;
  readonly reference: string;
  readonly ach: readonly PageFact[] | null;
  readonly wire: readonly PageFact[] | null;
  /** Says that the bank details are those on the invoice; empty if they are not. */
  readonly sameDetails: string;
  /** Whom to ask how to pay, if the page does not say so itself; empty otherwise. */
  readonly ask: string;
  readonly lines: readonly { policy: string; month: string; rows: string; amount: string }[];
  readonly totals: readonly { label: string; amount: string }[];
  /** Why sales bear no tax, and what the mark of a reduced rate means. */
  readonly taxNotes: readonly string[];
  readonly pdf: string;
  readonly pdfNote: string;
  /** Where its e-invoice is; empty if its partner asked for none. */
  readonly eInvoice: string;
  readonly eInvoiceNote: string;
  readonly rows: string;
  readonly rowsNote: string;
  /** Where the partner's contact asks for a link to all of its invoices; empty if there is no such place. */
  readonly place: string;
}

interface PaymentViewContext {
  readonly token: string;
  /** The bank details that are valid today, in the document's currency. */
  readonly instructions: Instructions | undefined;
  /** `YYYY-MM-DD` in the issuer's zone. */
  readonly today: string;
  /** Whether the partner's contact can sign in. */
  readonly hasPlace?: boolean;
}

export function viewOf(
  found: PaymentPage,
  { token, instructions, today, hasPlace = false }: PaymentViewContext,
): PaymentView {
  const { document } = found;
  const { currency, issuer } = document;
  const { labels } = readTemplate();
  const presented = present(
    documentSnapshot(document, {
      paymentLink: found.processor_url,
      instructions: instructions ?? null,
      instructionsChanged: false,
    }),
  );
  const { locale, title: heading } = presented;
  const isVoid = document.status === 'void';
  const isDue = document.status === 'open';
  const ordered = isDue ? found.ordered : null;
  const asks = isDue && ordered === null;
  const processorUrl = asks ? (found.processor_url ?? '') : '';
  const ach = asks && presented.ach ? presented.ach.flatMap(pageFacts) : null;
  const wire = asks && presented.wire ? presented.wire.flatMap(pageFacts) : null;
  const moved = isDue && found.instructions !== null && !sameInstructions(found.instructions, instructions);
  const hasFiles = !isVoid && document.pdf_sha256 !== null;
  return {
    title: `${heading} ${document.number}`,
    sandbox: document.sandbox,
    heading,
    number: document.number,
    month: document.carried_over_on === null ? presented.month : '',
    issuer: { name: issuer.legal_name, email: issuer.email, phone: issuer.phone },
    partner: document.partner_name,
    purchaseOrder: document.purchase_order,
    issuedOn: presented.issuedOn,
    isDue,
    isVoid,
    dueDateKept: presented.dueDateKept,
    standing: isDue ? '' : standingOf(found, labels),
    ordered:
      ordered === null
        ? ''
        : fill(labels.payment_page.ordered, {
            amount: locale.amount(Amount.of(ordered.amount, currency)),
            on: locale.date(ordered.on),
          }),
    balance: locale.amount(Amount.of(document.balance, currency)),
    carriedOver: isVoid ? '' : carriedOver(document, presented, labels),
    ...(isDue ? dueView(found, presented, labels, today) : { dueOn: '', overdue: '', partlyPaid: '' }),
    replacement: found.replacement_number,
    processorUrl,
    changed: ach || wire ? noticeOf({ moved, changed: found.instructions_changed }, labels) : null,
    reference: document.number,
    ach,
    wire,
    // What an invoice of the previous system printed is not known here.
    sameDetails: moved || found.instructions === null ? '' : labels.payment_page.same_details,
    ask:
      asks && !(ach || wire || processorUrl) && presented.reach !== ''
        ? fill(labels.payment.none, { contact: presented.reach })
        : '',
    lines: document.lines.map((line) => ({
      policy: line.policy_name,
      month: monthName(line.month),
      rows: `${locale.number(String(line.count))} ${rowKindName(line.kind, line.count)}`,
      amount: locale.amount(Amount.of(line.invoice_amount, currency)),
    })),
    totals: totalsOf(found, presented, labels).map(({ label, amount }) => ({ label, amount: locale.amount(amount) })),
    taxNotes: presented.tax.notes,
    pdf: hasFiles ? `/pay/${token}/invoice.pdf` : '',
    pdfNote: moved ? labels.payment_page.pdf_outdated : labels.payment_page.pdf,
    eInvoice: hasFiles && document.e_invoice !== 'none' ? `/pay/${token}/e-invoice.xml` : '',
    eInvoiceNote: labels.payment_page.e_invoice,
    rows: !isVoid && document.lines.length > 0 ? `/pay/${token}/rows.csv` : '',
    place: hasPlace ? `/place/ask/${token}` : '',
    rowsNote: labels.payment_page[presented.showsSales ? 'rows' : 'rows_missing_shares'],
  };
}

/** What is said of an invoice of the previous system, which may have been paid in part there. */
function carriedOver(
  { carried_over_on: on, original_amount: original, invoice_amount: amount, currency }: PaymentPage['document'],
  { locale }: Presentation,
  { payment_page: labels }: Labels,
): string {
  if (on === null || original === null) return '';
  const [whole, open] = [original, amount].map((each) => Amount.of(each, currency)) as [Amount, Amount];
  if (whole.equals(open)) return labels.carried_over;
  const values = { original: locale.amount(whole), amount: locale.amount(open), on: locale.date(on) };
  return fill(labels.carried_over_part, values);
}

/** What an invoice is that asks for nothing. */
function standingOf({ document, reductions }: PaymentPage, { payment_page: labels, void: voidLabels }: Labels): string {
  if (document.status === 'void') return voidLabels.title[document.document];
  const kinds = new Set(reductions.map(({ kind }) => kind));
  if (kinds.has('written_off')) return labels.closed;
  if (kinds.has('payment')) return labels.paid;
  return kinds.has('credit') ? labels.credited : labels.nothing;
}

function dueView(
  { document, ordered }: PaymentPage,
  { locale, tax: { gross: total }, dueOn }: Presentation,
  { payment_page: labels }: Labels,
  today: string,
): Pick<PaymentView, 'dueOn' | 'overdue' | 'partlyPaid'> {
  const settled = total.amount.minus(Amount.of(document.balance, document.currency));
  const days = document.due_on === null ? 0 : daysBetween(document.due_on, today);
  const overdue = days === 1 ? labels.overdue_one_day : fill(labels.overdue, { days: String(days) });
  return {
    dueOn: dueOn !== '' && document.due_on === today ? labels.due_today : dueOn && fill(labels.due, { due_on: dueOn }),
    overdue: days > 0 && ordered === null ? overdue : '',
    partlyPaid: settled.isPositive()
      ? fill(labels.partly_paid, { amount: locale.amount(total.amount), settled: locale.amount(settled) })
      : '',
  };
}

/** From the total of the lines to the balance, by everything that lowered it. The rows always add up. */
function totalsOf(
  { document, reductions }: PaymentPage,
  { locale, total, tax }: Presentation,
  { payment_page: labels }: Labels,
): Total[] {
  const balance = Amount.of(document.balance, document.currency);
  const lowered = reductions.map(({ kind, on, amount, credit_note }) => ({
    label: fill(labels.reductions[kind], { on: locale.date(on), credit_note: credit_note ?? '' }),
    amount: Amount.of(amount, document.currency).negated(),
  }));
  const left = lowered.reduce((sum, { amount }) => sum.plus(amount), tax.gross.amount);
  const other = balance.minus(left);
  return [
    total,
    ...tax.steps,
    ...lowered,
    ...(other.isZero() ? [] : [{ label: other.isPositive() ? labels.credit_taken_back : labels.other, amount: other }]),
    { label: labels.balance, amount: balance },
  ];
}

/** Changed bank details are the classic invoice fraud: the page warns as the invoice does. */
function noticeOf(
  { moved, changed }: { moved: boolean; changed: boolean },
  { payment, payment_page: labels }: Labels,
): Notice | null {
  if (moved) return { title: labels.changed_since_title, text: `${labels.changed_since} ${labels.changed}` };
  return changed ? { title: payment.changed_title, text: labels.changed } : null;
}

function accountType(type: string): string {
  const { checking, savings } = readTemplate().labels.payment;
  return type === 'savings' ? savings : checking;
}

/** A row of bank details, and one for its address. */
function pageFacts({ field, kind, label, value, address }: PaymentFact): PageFact[] {
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
