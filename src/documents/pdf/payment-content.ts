/** The payment instructions of a document's PDF, as finished text. */
import { inFours } from '#documents/creditor-reference';
import { addressLines, Fact, PaymentFact, Presentation } from '#documents/present';
import { DocumentSnapshot } from '#documents/snapshot';
import { epcTextOf } from './epc.ts';
import { Code, codeOf } from './qr-code.ts';
import { fill, Labels, readTemplate } from './template.ts';
import { printable } from './text.ts';

export type Card = Readonly<{
  title: string;
  note: string;
  facts: readonly CardFact[];
}>;

type CardFact = Fact &
  Readonly<{
    kind: PaymentFact['kind'];
    /** Empty if the party has none. */
    address: string;
  }>;

export type PaymentLink = Readonly<{
  /** The link as printed. */
  text: string;
  /** What a PDF viewer may open. */
  url: string | undefined;
  code: Code | undefined;
  /** The texts of the link and the QR code for screen readers. */
  says: string;
  scan: string;
}>;

export type Payment = Readonly<{
  heading: string;
  /** Whether the payer was given other bank details before. */
  changed: boolean;
  online: PaymentLink | null;
  cards: readonly Card[];
  /** The contact if there is no way to pay; otherwise empty. */
  none: string;
  /** What the payer should quote. */
  reference: string;
  /** The same reference with check digits, for the payer's bank; empty if there is none. */
  creditorReference: string;
  /** The transfer as a QR code for banking apps. */
  transfer: TransferCode | undefined;
}>;

export type TransferCode = Readonly<{
  code: Code;
  /** The text for screen readers. */
  says: string;
}>;

/** The payment instructions; null if there is no way to pay and no contact. */
export function paymentOf(
  snapshot: DocumentSnapshot,
  { number, reach, ach, wire, creditorReference }: Presentation,
  { payment: labels }: Labels,
): Payment | null {
  const { currency, payment_link: link, instructions_changed: changed } = snapshot;
  const cards = cardsOf({ ach, wire }, currency);
  const transfer = epcTextOf(snapshot);
  const code = transfer === undefined ? undefined : codeOf(transfer);
  const isPayable = cards.length > 0 || link !== null;
  if (!isPayable && reach === '') return null;
  return {
    heading: labels.heading,
    changed: changed && cards.length > 0,
    online: link === null ? null : linkOf(link, number, labels),
    cards,
    none: isPayable ? '' : fill(labels.none, { contact: reach }),
    ...{ reference: number, creditorReference },
    transfer: code && { code, says: fill(labels.scan_transfer_contents, { number }) },
  };
}

function linkOf(link: string, number: string, labels: Labels['payment']): PaymentLink {
  const url = webAddress(link);
  return {
    text: printable(link),
    url,
    code: url === undefined ? undefined : codeOf(url),
    says: fill(labels.online_contents, { number }),
    scan: fill(labels.scan_contents, { number }),
  };
}

/** The address if a PDF viewer may open it: ASCII, http or https only. */
export function webAddress(link: string) {
  if (!URL.canParse(link)) return undefined;
  const { protocol, href } = new URL(link);
  return protocol === 'https:' || protocol === 'http:' ? href : undefined;
}

export function cardsOf({ ach, wire }: Pick<Presentation, 'ach' | 'wire'>, currency: string): Card[] {
  const template = readTemplate();
  const { payment } = template.labels;
  const factOf = ({ label, kind, address, ...fact }: PaymentFact): CardFact => ({
    ...{ label, kind, value: shownValue(fact, payment) },
    address: address === null ? '' : addressLines(address, template, printable).join(', '),
  });
  return [
    ...(ach === null ? [] : [{ title: payment.ach, note: payment.ach_note, facts: ach.map(factOf) }]),
    ...(wire === null
      ? []
      : [{ title: payment.wire, note: fill(payment.wire_note, { currency }), facts: wire.map(factOf) }]),
  ];
}

function shownValue({ field, value }: Pick<PaymentFact, 'field' | 'value'>, labels: Labels['payment']) {
  if (field === 'iban') return inFours(value.replace(/\s/g, ''));
  return field === 'account_type' ? labels[value as 'checking' | 'savings'] : value;
}
