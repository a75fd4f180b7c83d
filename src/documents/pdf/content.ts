/**
 * The complete content of a document's PDF, as finished text. The drawing code needs neither the snapshot nor formats.
 */
import { Logo } from '#config/logo';
import { Issuer } from '#config/settings';
import { Address } from '#config/validation';
import { addressLines, Fact, grossOf, Presentation, present } from '#documents/present';
import { DocumentSnapshot, SnapshotLine, VoidMark } from '#documents/snapshot';
import { Amount, Month, monthName, plural } from '#values';
import { Payment, paymentOf } from './payment-content.ts';
import { fill, Labels, readTemplate, Template } from './template.ts';
import { printable } from './text.ts';

/** The running head and foot, which every page repeats. */
export type Running = Readonly<{
  /** The text at the top of each page after the first. */
  continued: string;
  about: string;
  foot: string;
  /** The mark of a void or sandbox document; null for other documents. */
  mark: Mark | null;
}>;

/** A banner at the top of each page, and large words across the page. */
export type Mark = Readonly<{
  banner: string;
  across: string;
  style: 'watermark' | 'void_mark';
  /** The pages on which screen readers read the banner. */
  spoken: 'first' | 'every';
}>;

export type Names = Readonly<{
  title: string;
  number: string;
  issuer: string;
  logo: Logo | null;
  /** Address, contact, and the tax number in the partner's country. */
  details: readonly string[];
}>;

export type Headline = Readonly<{
  label: string;
  /** The value of `{amount}`, the only emphasized part. */
  amount: string;
  values: Readonly<Record<string, string>>;
  sentence: string;
}>;

export type Addressee = Readonly<{
  heading: string;
  name: string;
  /** The contact's name, and the address. */
  lines: readonly string[];
  taxId: string;
  /** Printed beside the addressee. Facts without a value are omitted. */
  facts: readonly Fact[];
}>;

export type Notice = Readonly<{
  title: string;
  text: string;
}>;

export type Step = Readonly<{
  label: string;
  amount: string;
}>;

export type Sums = Readonly<{
  label: string;
  amounts: readonly string[];
}>;

export type TableLine = Readonly<{
  policy: string;
  what: string;
  count: string;
  amounts: readonly string[];
}>;

export type Section = Readonly<{
  /** The month's name; empty for the document's own month. */
  heading: string;
  /** The heading at the top of a further page. */
  continued: string;
  lines: readonly TableLine[];
  subtotal: Sums;
}>;

export type Table = Readonly<{
  heading: string;
  /** The currency of all amounts, and the meaning of their signs. */
  note: string;
  amounts: readonly string[];
  sections: readonly Section[];
  total: Sums;
  /** From the total of the lines to the amount due, which is the last step. */
  steps: readonly Step[];
}>;

export type Adjustment = Readonly<{
  heading: string;
  currency: string;
  reason: string;
  line: Step;
  steps: readonly Step[];
}>;

export type Content = Readonly<{
  name: string;
  issuedOn: string;
  size: readonly [width: number, height: number];
  running: Running;
  names: Names;
  notice: Notice | null;
  headline: Headline;
  addressee: Addressee;
  /** The credit of an adjustment, or the lines of any other kind. */
  body: { readonly adjustment: Adjustment } | { readonly table: Table };
  /** Small print before the payment instructions; may be empty. */
  notes: readonly string[];
  /** The payment instructions; null if nothing is due. */
  payment: Payment | null;
  /** The last checkpoint that closed a month before the document was issued; may be empty. */
  checkpoint: string;
}>;

/** The content of a document or, with `voided`, of its void copy, which does not ask for payment. */
export function contentOf(snapshot: DocumentSnapshot, voided?: VoidMark): Content {
  const template = readTemplate();
  const { labels, theme } = template;
  const isVoid = voided !== undefined;
  const presentation = present(snapshot, printable, { isVoid });
  const { situation, title, number, locale, tax, reach, credits, month } = presentation;
  const steps = stepsOf(snapshot, presentation, labels, isVoid);
  const isDue = situation === 'due' && !isVoid;
  const currency = fill(labels.lines.currency, { currency: snapshot.currency });
  const contact = reach === '' ? '' : fill(labels.contact, { contact: reach });
  return {
    name: isVoid ? fill(labels.void.document_title, { title, number }) : `${title} ${number}`,
    issuedOn: snapshot.issued_on,
    size: paperSize(theme, snapshot),
    running: {
      continued: fill(labels.running.continued, { title, number }),
      about: presentation.partner.name,
      foot: [presentation.issuer, contact].filter(Boolean).join('  ·  '),
      mark: markOf(snapshot, labels, voided && locale.date(voided.on)),
    },
    names: { title, number, ...issuerNames(snapshot.issuer, template, tax.registration) },
    notice: voided === undefined ? null : voidNotice(snapshot, voided, presentation, labels),
    headline: {
      label: headlineOf(snapshot, situation, labels, isVoid),
      amount: presentation.amount,
      values: presentation.values,
      sentence: sentenceOf(snapshot, presentation, labels, isVoid),
    },
    addressee: {
      heading: labels.addressee[snapshot.document],
      name: presentation.partner.name,
      lines: addresseeLines(snapshot.partner.contact_name, snapshot.partner.address, template),
      taxId: printable(snapshot.partner.tax_id),
      facts: factsOf(snapshot, presentation, labels, isDue),
    },
    body:
      situation === 'adjustment'
        ? {
            adjustment: {
              heading: fill(labels.adjustment.heading, { credits }),
              currency,
              reason: presentation.reason === '' ? '' : fill(labels.adjustment.reason, { reason: presentation.reason }),
              line: {
                label: fill(labels.adjustment.line, { credits }),
                amount: locale.number(presentation.total.amount.toString()),
              },
              steps,
            },
          }
        : { table: { ...tableOf(snapshot, presentation, labels, { currency, month }), steps } },
    notes: [...tax.notes, printable(snapshot.partner.legal_note)],
    payment: isDue ? paymentOf(snapshot, presentation, labels) : null,
    checkpoint: checkpointOf(snapshot, labels),
  };
}

function checkpointOf({ checkpoint }: DocumentSnapshot, labels: Labels) {
  if (checkpoint === null) return '';
  const { month, size, root } = checkpoint;
  return fill(labels.checkpoint, { month: monthName(month), facts: plural(size, 'fact'), root: printable(root) });
}

/** Letter or A4, whichever is usual in the partner's country or, if that is unknown, in the issuer's. */
export function paperSize(
  { paper, letter_countries: letterCountries }: Template['theme'],
  { partner, issuer }: Readonly<{ partner: { readonly address: Address }; issuer: { readonly address: Address } }>,
): readonly [width: number, height: number] {
  return letterCountries.includes(partner.address.country || issuer.address.country) ? paper.letter : paper.a4;
}

/** Screen readers read the mark of a void document on every page, because its pages can be separated. */
function markOf({ document, sandbox }: DocumentSnapshot, labels: Labels, voidedOn: string | undefined): Mark | null {
  const marked = labels.sandbox[document];
  if (voidedOn === undefined) {
    return sandbox ? { banner: marked, across: marked, style: 'watermark', spoken: 'first' } : null;
  }
  const banner = fill(labels.void.banner, { on: voidedOn });
  return {
    banner: [banner, ...(sandbox ? [marked] : [])].join(' · '),
    across: labels.void.mark,
    style: 'void_mark',
    spoken: 'every',
  };
}

// --- Head ---

/** The last lines of an address. */
const TOWN_AND_COUNTRY = 2;

/** `registration` is the issuer's tax number in the partner's country, which replaces the general one; may be empty. */
export function issuerNames(
  issuer: Pick<Issuer, 'legal_name' | 'address' | 'email' | 'phone' | 'tax_id' | 'logo'>,
  template: Template,
  registration = '',
): Omit<Names, 'title' | 'number'> {
  const taxId = printable(issuer.tax_id);
  const contact = [issuer.email, issuer.phone].map(printable).filter(Boolean);
  if (registration === '' && taxId !== '') contact.push(`${template.labels.facts.tax_id} ${taxId}`);
  const address = addressLines(issuer.address, template, printable);
  // One line each, because payers rarely need the issuer's address.
  const street = address.slice(0, -TOWN_AND_COUNTRY).join(', ');
  const town = address.slice(-TOWN_AND_COUNTRY).join(', ');
  return {
    issuer: printable(issuer.legal_name),
    logo: issuer.logo,
    // On its own line, because the name of a tax can be long.
    details: [street, town, contact.join('  ·  '), ...(registration === '' ? [] : [registration])],
  };
}

export function addresseeLines(contactName: string, address: Address, template: Template) {
  const contact = printable(contactName);
  const attention = contact === '' ? [] : [fill(template.labels.attention, { contact })];
  return [...attention, ...addressLines(address, template, printable)];
}

function voidNotice(
  { document }: DocumentSnapshot,
  { on, reason, replacedBy }: VoidMark,
  { locale }: Presentation,
  { void: labels }: Labels,
): Notice {
  const after = replacedBy === null ? labels.not_replaced : fill(labels.replaced, { number: printable(replacedBy) });
  const text = fill(labels.text, { on: locale.date(on), after, reason: printable(reason) });
  return { title: labels.title[document], text };
}

function headlineOf(
  { document, due_on: dueOn }: DocumentSnapshot,
  situation: Presentation['situation'],
  { headline, void: voided }: Labels,
  isVoid: boolean,
) {
  if (isVoid) return document === 'credit_note' ? voided.headline_credit_note : voided.headline;
  switch (situation) {
    case 'due':
      return dueOn === null ? headline.due_undated : headline.due;
    case 'credit_note':
      return headline.owed;
    case 'adjustment':
      return headline.credited;
    case 'nothing_due':
    case 'covered_by_credit':
    case 'statement':
      return headline.nothing_due;
  }
}

function sentenceOf(
  { purpose, replaces }: DocumentSnapshot,
  { situation, values, leaves }: Presentation,
  labels: Labels,
  isVoid: boolean,
) {
  const missing = situation === 'due' && purpose === 'missing_shares';
  const sentences = [
    // The others explain a credit or a payment; neither applies to a void document.
    ...(isVoid && situation !== 'due' ? [] : [labels.sentence[missing ? 'missing_shares' : situation]]),
    ...(replaces === null ? [] : [labels.replaces]),
  ];
  return [...sentences.map((each) => fill(each, values)), leaves].filter(Boolean).join(' ');
}

function factsOf(
  { terms_days: days, terms_end_of_month: endOfMonth, terms_day: day, enrollments, partner }: DocumentSnapshot,
  { situation, locale, credits, replaces, issuedOn, dueOn, dueDateKept, month, ...presented }: Presentation,
  { facts: labels, terms }: Labels,
  isDue: boolean,
): Fact[] {
  const net = days === 0 && !endOfMonth && !day ? terms.immediately : fill(terms.net, { days: String(days) });
  const inWords = [net, endOfMonth ? terms.end_of_month : '', day ? fill(terms.day, { day: String(day) }) : ''];
  const inDays = days === null ? '' : inWords.filter(Boolean).join(', ');
  return [
    { label: labels.credits, value: credits },
    { label: labels.replaces, value: replaces },
    { label: labels.issued_on, value: issuedOn },
    { label: labels.due_on, value: dueOn },
    { label: labels.terms, value: dueDateKept ? terms.replaced : isDue ? inDays : '' },
    { label: labels.month, value: month },
    { label: labels.enrollments, value: situation === 'adjustment' ? '' : locale.number(String(enrollments)) },
    { label: labels.partner_id, value: printable(partner.partner_id) },
    { label: labels.purchase_order, value: presented.partner.purchaseOrder },
  ];
}

// --- Lines ---

const SALES = ['spotPrice', 'partnerCut'] as const;
type AmountName = (typeof SALES)[number] | 'invoiceAmount';

function tableOf(
  snapshot: DocumentSnapshot,
  { showsSales, tax, total, locale }: Presentation,
  { lines: labels }: Labels,
  { currency, month }: Readonly<{ currency: string; month: string }>,
): Omit<Table, 'steps'> {
  const { document, lines } = snapshot;
  const shown: readonly AmountName[] = [...(showsSales ? SALES : []), 'invoiceAmount'];
  const amountsOf = (row: Readonly<Record<AmountName, string>>) => shown.map((name) => locale.number(row[name]));
  const sum = (rows: readonly SnapshotLine[], name: AmountName) =>
    rows.reduce((all, row) => all.plus(Amount.of(row[name], snapshot.currency)), Amount.zero(snapshot.currency));
  const names = policyNames(lines);
  const sectionOf = (of: Month): Section => {
    const rows = lines.filter((line) => line.month === of);
    const heading = of < snapshot.month ? fill(labels.late, { month: monthName(of) }) : '';
    return {
      heading,
      continued: heading === '' ? '' : fill(labels.continued, { section: heading }),
      lines: rows.map((line) => ({
        policy: names.get(line.policy_id) ?? line.policy_id,
        what: `${labels.kind[line.kind]}${tax.ofLine(line)}`,
        count: locale.number(String(line.count)),
        amounts: amountsOf(line),
      })),
      subtotal: {
        label: fill(labels.subtotal, { month: monthName(of) }),
        amounts: shown.map((name) => locale.number(sum(rows, name).toString())),
      },
    };
  };
  return {
    heading: fill(labels.heading, { month }),
    note: [currency, ...(document === 'credit_note' && lines.length > 0 ? [labels.credit_note_signs] : [])].join('. '),
    amounts: shown.map((name) => {
      if (name === 'invoiceAmount') return labels.invoiceAmount[document];
      return name === 'partnerCut' && snapshot.by_principal === true ? labels.commission : labels[name];
    }),
    sections: [...new Set(lines.map((line) => line.month))].map(sectionOf),
    total: { label: total.label, amounts: amountsOf(snapshot) },
  };
}

/** Policies with the same name are shown with their ids. */
function policyNames(lines: readonly SnapshotLine[]): ReadonlyMap<string, string> {
  const names = new Map(
    lines.map((line) => [line.policy_id, printable(line.policy_name) || printable(line.policy_id)]),
  );
  const isShared = (name: string) => [...names.values()].filter((other) => other === name).length > 1;
  return new Map([...names].map(([id, name]) => [id, isShared(name) ? `${name} (${printable(id)})` : name]));
}

/** The steps from the total to the amount due. Only the last step shows its currency. */
function stepsOf(
  snapshot: DocumentSnapshot,
  { situation, tax, credit, locale }: Presentation,
  { totals, void: voided }: Labels,
  isVoid: boolean,
): Step[] {
  const amount = (text: string) => Amount.of(text, snapshot.currency);
  const last = (label: string, result: Amount, ...before: Presentation['credit'][number][]): Step[] => [
    ...[...tax.steps, ...before].map((each) => ({ label: each.label, amount: locale.number(each.amount.toString()) })),
    { label, amount: locale.amount(result) },
  ];
  switch (situation) {
    case 'credit_note':
      return last(totals.owed, amount(grossOf(snapshot)));
    case 'adjustment':
      return last(totals.credited, amount(grossOf(snapshot)));
    case 'statement': {
      const routed = { label: totals.routed, amount: amount(snapshot.invoiceAmount).negated() };
      return last(totals.amount_due, Amount.zero(snapshot.currency), routed);
    }
    case 'due':
    case 'nothing_due':
    case 'covered_by_credit':
      return last(isVoid ? voided.amount_due : totals.amount_due, amount(snapshot.amount_due), ...credit);
  }
}
