/** `reckoner payment apply` and `reckoner payment unapply`. */
import { applyPayment, unapplyPayment } from '../../../payments/apply.ts';
import { idArgument, repeatedArgument } from '../../arguments.ts';
import { acting, type CommandContext, type Definition } from '../../define.ts';
import { show } from './describe.ts';

const HELP = `
Repeat --invoice to pay several invoices with one payment, all of them or none.
They may be of several partners: what pays another partner's invoice is assigned
to that partner, and the payer stays.`;

export const define: Definition = (payment, act) => {
  payment
    .command('apply')
    .argument('<id>', 'the payment', idArgument('payment'))
    .description('Apply a payment to one or more invoices; also accepts a suggestion')
    .requiredOption('--invoice <number>', 'the invoice; may be repeated', repeatedArgument)
    .option('--amount <amount>', 'how much, for one invoice (default: as much as possible)')
    .option('--credit <number>', 'a credit note that pays the rest of the invoice; may be repeated', repeatedArgument)
    .addHelpText('after', HELP)
    .action(act(acting(paymentApply)));
  payment
    .command('unapply')
    .argument('<id>', 'the payment', idArgument('payment'))
    .description('Turn the applied part of a payment back into unapplied cash')
    .option('--invoice <number>', 'only from this invoice')
    .action(act(acting(paymentUnapply)));
};

async function paymentApply(
  context: CommandContext,
  paymentId: number,
  { invoice: numbers, amount, credit: creditNotes }: { invoice: string[]; amount?: string; credit?: string[] },
): Promise<void> {
  await context.database.transaction((tx) => applyPayment(tx, context, { paymentId, numbers, amount, creditNotes }));
  const less = creditNotes === undefined ? '' : `, together with ${creditNotes.join(' and ')}`;
  return show(context, paymentId, `Payment ${paymentId} is applied to ${numbers.join(', ')}${less}.`);
}

async function paymentUnapply(
  context: CommandContext,
  paymentId: number,
  { invoice: number }: { invoice?: string },
): Promise<void> {
  await context.database.transaction((tx) => unapplyPayment(tx, context, { paymentId, number }));
  const sentence = `Payment ${paymentId} is unapplied cash again, and the invoices it paid are open.`;
  return show(context, paymentId, sentence);
}
