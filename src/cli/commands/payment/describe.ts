/** How the payment commands show a payment. */
import { refuse } from '../../../errors/refusals.ts';
import { groupThousands, isZero } from '../../../money.ts';
import { type PaymentJson, paymentJson } from '../../../payments/payment.ts';
import { readPayments } from '../../../payments/queries.ts';
import { withCode } from '../../../payments/reverse.ts';
import type { CommandContext, Context } from '../../context.ts';
import { printable, wrapped } from '../../output.ts';

export async function onePayment({ database }: Context, paymentId: number): Promise<PaymentJson> {
  const [row] = await database.reading((tx) => readPayments(tx, { ids: [paymentId] }));
  if (row === undefined) throw refuse('payment_unknown', { payment_id: paymentId });
  return paymentJson(row);
}

export const amountOf = (payment: { currency: string }, amount: string): string =>
  `${groupThousands(amount)} ${payment.currency}`;

export function described(payment: PaymentJson): string {
  const lines: [string, string][] = [
    ['amount', amountOf(payment, payment.amount)],
    ['payer', payment.partner_id ?? 'unknown'],
    ['received on', `${payment.received_on} by ${payment.method}, reference ${payment.reference}`],
  ];
  for (const each of payment.applications.filter(({ unapplied_on }) => unapplied_on === null)) {
    const charges =
      each.small_difference === null ? '' : `, and ${amountOf(payment, each.small_difference)} to bank charges`;
    const of = each.partner_id === payment.partner_id ? '' : ` of ${each.partner_id}`;
    lines.push(['applied', `${amountOf(payment, each.amount)} to ${each.number}${of}${charges}`]);
  }
  for (const each of payment.reversals) {
    const back = each.reinstated_on === null ? '' : `, reinstated on ${each.reinstated_on}`;
    lines.push([
      each.kind,
      `${amountOf(payment, each.amount)}${each.booked_to === null ? '' : ` to ${each.booked_to}`} on ${each.reversed_on}: ${withCode(each.code, each.reason)}${back}`,
    ]);
  }
  if (!isZero(payment.unapplied)) lines.push(['unapplied', amountOf(payment, payment.unapplied)]);
  for (const each of payment.suggestions) {
    const of =
      each.number === null
        ? `the same as payment ${each.same_as}`
        : `${each.number}, ${amountOf(payment, each.amount)}`;
    lines.push(['perhaps', `${of}: ${each.why}`]);
  }
  return lines.flatMap(([label, value]) => labelled(label, value)).join('\n');
}

/** `  label        value`, wrapped at 80 columns. */
export const labelled = (label: string, value: string): string[] =>
  wrapped(printable(value), 65).map((line, index) => `  ${(index === 0 ? label : '').padEnd(12)} ${line}`);

export async function show(context: CommandContext, paymentId: number, sentence: string): Promise<void> {
  const payment = await onePayment(context, paymentId);
  context.output.print(payment, () => `${sentence}\n${described(payment)}`);
}
