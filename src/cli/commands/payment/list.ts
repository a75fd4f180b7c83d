import { groupThousands } from '../../../money.ts';
import { PAYMENT_STATUSES, type PaymentStatus } from '../../../payments/enums.ts';
import { type PaymentJson, paymentJson } from '../../../payments/payment.ts';
import { readPayments } from '../../../payments/queries.ts';
import { choiceArgument } from '../../arguments.ts';
import { acting, type CommandContext, type Definition } from '../../define.ts';
import { short, table } from '../../output.ts';

export const define: Definition = (payment, act) => {
  payment
    .command('list')
    .description('List payments with their applications and suggested matches')
    .option('--partner <id>', 'only payments of this partner')
    .option('--status <status>', PAYMENT_STATUSES.join(', '), choiceArgument('--status', PAYMENT_STATUSES))
    .action(act(acting(paymentList)));
};

async function paymentList(
  { database, output }: CommandContext,
  options: { partner?: string; status?: PaymentStatus },
): Promise<void> {
  const rows = await database.reading((tx) => readPayments(tx, { partnerId: options.partner, status: options.status }));
  const payments = rows.map(paymentJson);
  output.print(payments, () => (payments.length === 0 ? 'No payments found.' : listed(payments)));
}

function listed(payments: readonly PaymentJson[]): string {
  const rows = payments.map((payment) => {
    const numbers = payment.applications.filter((each) => each.unapplied_on === null).map((each) => each.number);
    const [suggestion] = payment.suggestions;
    const perhaps =
      suggestion === undefined ? '' : suggestion.number === null ? `= ${suggestion.same_as}?` : `${suggestion.number}?`;
    return [
      payment.payment_id,
      payment.received_on,
      short(payment.partner_id ?? '?', 12),
      groupThousands(payment.amount),
      payment.currency,
      payment.status === 'partly_applied' ? 'in part' : payment.status,
      short(numbers.length > 0 ? numbers.join(' ') : perhaps, 20),
    ];
  });
  return table(['>id', 'received', 'partner', '>amount', '', 'status', 'for'], rows);
}
