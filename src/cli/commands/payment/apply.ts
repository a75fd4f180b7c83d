/** `reckoner payment apply` and `reckoner payment unapply`. */
import { paymentApply, paymentUnapply } from '../../../acts/payment/apply.ts';
import { idArgument, repeatedArgument } from '../../arguments.ts';
import type { Definition } from '../../define.ts';
import { doing } from '../../run-act.ts';

const HELP = `
Repeat --invoice to pay several invoices with one payment, all of them or none.
They may be of several partners: what pays another partner's invoice is assigned
to that partner, and the payer stays.
With --fee the payment and the fee must be all that is open on the invoices, but
for a small difference.`;

interface ApplyOptions {
  readonly invoice: string[];
  readonly amount?: string;
  readonly fee?: string;
  readonly credit?: string[];
}

export const define: Definition = (payment, act) => {
  payment
    .command('apply')
    .argument('<id>', 'the payment', idArgument('payment'))
    .description('Apply a payment to one or more invoices; also accepts a suggestion')
    .requiredOption('--invoice <number>', 'the invoice; may be repeated', repeatedArgument)
    .option('--amount <amount>', 'how much, for one invoice (default: as much as possible)')
    .option('--fee <amount>', 'what a bank kept of it: written to bank charges')
    .option('--credit <number>', 'a credit note that pays the rest of the invoice; may be repeated', repeatedArgument)
    .addHelpText('after', HELP)
    .action(
      act(
        doing(paymentApply, (paymentId: number, { invoice: numbers, credit: creditNotes, ...rest }: ApplyOptions) => ({
          ...{ paymentId, numbers, creditNotes, ...rest },
        })),
      ),
    );
  payment
    .command('unapply')
    .argument('<id>', 'the payment', idArgument('payment'))
    .description('Turn the applied part of a payment back into unapplied cash')
    .option('--invoice <number>', 'only from this invoice')
    .action(
      act(
        doing(paymentUnapply, (paymentId: number, options: { invoice?: string }) => ({
          ...{ paymentId, number: options.invoice },
        })),
      ),
    );
};
