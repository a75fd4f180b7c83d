/** `reckoner payment apply` and `reckoner payment unapply`. */
import { applyPayment, unapplyPayment } from '../../../payments/apply.ts';
import { idArgument } from '../../arguments.ts';
import { acting } from '../../context.ts';
import type { Definition } from '../../define.ts';
import type { Output } from '../../output.ts';
import { show } from './describe.ts';

export const defineApply: Definition = (payment, act) => {
  payment
    .command('apply')
    .argument('<id>', 'the payment', idArgument('payment'))
    .description('Apply a payment to an invoice; also accepts a suggestion')
    .requiredOption('--invoice <number>', 'the invoice')
    .option('--amount <amount>', 'how much (default: as much as possible)')
    .action(act(paymentApply));
  payment
    .command('unapply')
    .argument('<id>', 'the payment', idArgument('payment'))
    .description('Turn the applied part of a payment back into unapplied cash')
    .option('--invoice <number>', 'only from this invoice')
    .action(act(paymentUnapply));
};

async function paymentApply(
  output: Output,
  paymentId: number,
  options: { invoice: string; amount?: string },
): Promise<number> {
  return acting(output, async (context) => {
    await context.database.transaction((tx) =>
      applyPayment(tx, context, { paymentId, number: options.invoice, amount: options.amount }),
    );
    return show(output, context, paymentId, `Payment ${paymentId} is applied to ${options.invoice}.`);
  });
}

async function paymentUnapply(output: Output, paymentId: number, options: { invoice?: string }): Promise<number> {
  return acting(output, async (context) => {
    await context.database.transaction((tx) => unapplyPayment(tx, context, { paymentId, number: options.invoice }));
    return show(
      output,
      context,
      paymentId,
      `Payment ${paymentId} is unapplied cash again, and the invoices it paid are open.`,
    );
  });
}
