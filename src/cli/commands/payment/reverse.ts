/** `reckoner payment reverse`. */
import { enteredLater } from '../../../payments/context.ts';
import { REVERSAL_KINDS, type ReversalKind } from '../../../payments/enums.ts';
import { type ReverseRequest, reversePayment, whatIsOwedAgain } from '../../../payments/reverse.ts';
import { choiceArgument, dateArgument, idArgument } from '../../arguments.ts';
import { acting, type CommandContext, type Definition, REASON } from '../../define.ts';
import { onePayment, show } from './describe.ts';

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
    .action(act(acting(paymentReverse)));
};

async function paymentReverse(
  context: CommandContext,
  paymentId: number,
  { as: kind, ...options }: { as: ReversalKind } & Omit<ReverseRequest, 'paymentId' | 'kind'>,
): Promise<void> {
  const { amount, reopened } = await context.database.transaction((tx) =>
    reversePayment(tx, context, { paymentId, kind, ...options }),
  );
  const { amount: whole, reversals } = await onePayment(context, paymentId);
  const reversal = reversals.at(-1);
  const later = reversal === undefined ? undefined : enteredLater(reversal.reversed_on, reversal.entry_on);
  const what = amount.toString() === whole ? `Payment ${paymentId}` : `${amount.forPeople()} of payment ${paymentId}`;
  return show(
    context,
    paymentId,
    [
      `${what} is ${kind === 'other' ? `booked to ${options.account}` : 'reversed'}; ${whatIsOwedAgain(reopened)}.`,
      ...(later === undefined ? [] : [later]),
    ].join('\n'),
  );
}
