/** `reckoner payment reverse`. */
import { paymentReverse } from '../../../acts/payment/reverse.ts';
import { REVERSAL_KINDS, type ReversalKind } from '../../../payments/enums.ts';
import type { ReverseRequest } from '../../../payments/reverse.ts';
import { choiceArgument, dateArgument, idArgument } from '../../arguments.ts';
import { type Definition, REASON } from '../../define.ts';
import { doing } from '../../run-act.ts';

interface ReverseOptions extends Omit<ReverseRequest, 'paymentId' | 'kind'> {
  readonly as: ReversalKind;
}

const HELP = `
--as and --reason are required, also for a duplicate:
  reckoner payment reverse 24 --as duplicate --duplicate-of 23 --reason 'recorded twice'
Money that is no customer's stays in the bank, and is booked to an account:
  reckoner payment reverse 25 --as other --account income:interest --reason 'bank interest'`;

export const define: Definition = (payment, act) => {
  payment
    .command('reverse')
    .argument('<id>', 'the payment', idArgument('payment'))
    .description('Reverse a payment: the invoices it paid are open again')
    .requiredOption('--as <kind>', REVERSAL_KINDS.join(', '), choiceArgument('--as', REVERSAL_KINDS))
    .requiredOption(...REASON)
    .option('--code <code>', "the bank's return code, such as R01")
    .option('--amount <amount>', 'how much (default: all that remains)')
    .option(
      '--on <date>',
      'the date of the reversal (default: today; of a duplicate and other its receipt)',
      dateArgument('--on'),
    )
    .option(
      '--account <account>',
      "of --as other: the ledger account of money that is no customer's, as income:interest",
    )
    .option('--duplicate-of <id>', 'the payment that this one duplicates', idArgument('--duplicate-of'))
    .addHelpText('after', HELP)
    .action(
      act(
        doing(paymentReverse, (paymentId: number, { as: kind, ...options }: ReverseOptions) => ({
          ...{ paymentId, kind, ...options },
        })),
      ),
    );
};
