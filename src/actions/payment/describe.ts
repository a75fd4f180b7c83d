import { Facts, FactsChange, Partners, Report } from '#actions/action';
import { documentFacts } from '#actions/documents';
import { Adjustment } from '#approvals/amounts-before';
import { Block } from '#blocks';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { Amount, groupThousands, isZero } from '#money';
import { readPartnerNames, readPartners } from '#partners/partners.sql';
import { PaymentJson, paymentJson } from '#payments/payment';
import { readPayments, readSmallDifferences } from '#payments/payments.sql';
import { withCode } from '#payments/reverse';
import { NOBODY } from '#people/roles';

export async function onePayment(tx: Transaction, paymentId: number): Promise<PaymentJson> {
  const [row] = await readPayments(tx, { ids: [paymentId] });
  if (row === undefined) throw refuse('payment_unknown', { payment_id: paymentId });
  return paymentJson(row);
}

export const amountOf = (payment: { currency: string }, amount: string) =>
  `${groupThousands(amount)} ${payment.currency}`;

export async function paymentBlock(tx: Transaction, payment: PaymentJson): Promise<Block> {
  const ids = [payment.partner_id, ...payment.applications.map(({ partner_id }) => partner_id)];
  const names = await readPartnerNames(
    tx,
    ids.filter((each) => each !== null),
  );
  const nameOf = (id: string) => names.get(id) ?? id;
  const facts: [string, string][] = [
    ['amount', amountOf(payment, payment.amount)],
    ['payer', payment.partner_id === null ? 'unknown' : nameOf(payment.partner_id)],
    ['received on', `${payment.received_on} by ${payment.method}, reference ${payment.reference}`],
  ];
  for (const each of payment.applications.filter(({ unapplied_on }) => unapplied_on === null)) {
    const charges =
      each.small_difference === null ? '' : `, and ${amountOf(payment, each.small_difference)} to bank charges`;
    const of = each.partner_id === payment.partner_id ? '' : ` of ${nameOf(each.partner_id)}`;
    facts.push(['applied', `${amountOf(payment, each.amount)} to ${each.number}${of}${charges}`]);
  }
  for (const each of payment.reversals) {
    const back = each.reinstated_on === null ? '' : `, reinstated on ${each.reinstated_on}`;
    facts.push([
      each.kind,
      `${amountOf(payment, each.amount)}${each.booked_to === null ? '' : ` to ${each.booked_to}`} on ${each.reversed_on}: ${withCode(each.code, each.reason)}${back}`,
    ]);
  }
  if (!isZero(payment.unapplied)) facts.push(['unapplied', amountOf(payment, payment.unapplied)]);
  for (const each of payment.suggestions) {
    const of =
      each.number === null
        ? `the same as payment ${each.same_as}`
        : `${each.number}, ${amountOf(payment, each.amount)}`;
    facts.push(['perhaps', `${of}: ${each.why}`]);
  }
  return { title: 'The payment', facts };
}

export async function reportPayment(tx: Transaction, paymentId: number, sentence: string): Promise<Report> {
  const payment = await onePayment(tx, paymentId);
  return { json: payment, text: sentence, blocks: [await paymentBlock(tx, payment)] };
}

/**
 * Returns the payer, and the partners whose invoices the payment settles. Money from an unknown payer is for users who
 * see every partner.
 */
export async function partnersOfPayment(tx: Transaction, paymentId: number): Promise<Partners> {
  const [payment] = await readPayments(tx, { ids: [paymentId] });
  if (payment === undefined) return [NOBODY];
  if (payment.partner_id === null) return 'all';
  return [...new Set([payment.partner_id, ...payment.applications.map(({ partner_id }) => partner_id)])];
}

/** Names a payment as previews do: `payment 24`. */
export const paymentName = (paymentId: number) => `payment ${paymentId}`;

export async function paymentFacts(tx: Transaction, paymentId: number, name = paymentName(paymentId)): Promise<Facts> {
  const [payment] = await readPayments(tx, { ids: [paymentId] });
  if (payment === undefined) return {};
  const of = (text: string) => Amount.of(text, payment.currency);
  const { partner_id, amount, applied, unapplied, reversed } = payment;
  const payer = partner_id === null ? null : `${partner_id} (${(await readPartners(tx, partner_id))[0]?.name})`;
  return {
    [name]: {
      ...{ payer, amount: of(amount), applied: of(applied), unapplied: of(unapplied), reversed: of(reversed) },
    },
    ...(await documentFacts(tx, [...new Set(payment.applications.map(({ number }) => number))])),
  };
}

export const OF_PAYMENT = {
  subject: ({ paymentId }: { readonly paymentId: number }) => String(paymentId),
  partners: (tx: Transaction, { paymentId }: { readonly paymentId: number }) => partnersOfPayment(tx, paymentId),
  facts: (tx: Transaction, { paymentId }: { readonly paymentId: number }) => paymentFacts(tx, paymentId),
};

/** Returns what an event posted to bank charges, by the partner of the invoice. */
export const smallDifferencesOf = async (tx: Transaction, eventId: number | null): Promise<Adjustment[]> =>
  eventId === null
    ? []
    : (await readSmallDifferences(tx, { eventId })).map(({ partner_id: partner, currency, amount }) => ({
        ...{ partner, amount: Amount.of(amount, currency) },
      }));

export const movedOf = (seen: FactsChange, paymentId: number, field: string) =>
  fallOf(seen, paymentName(paymentId), field);

export function fallOf({ before, after }: FactsChange, thing: string, field: string) {
  const [was, is] = [before, after].map((facts) => facts[thing]?.[field]);
  return was instanceof Amount && is instanceof Amount ? [was.minus(is)] : [];
}
