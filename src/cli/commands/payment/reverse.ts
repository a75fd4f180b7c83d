/** `reckoner payment reverse`. */
import type { ReversalKind } from '../../../payments/enums.ts';
import { REVERSAL_KINDS } from '../../../payments/enums.ts';
import { reversePayment, whatIsOwedAgain } from '../../../payments/reverse.ts';
import { choiceArgument, dateArgument, idArgument } from '../../arguments.ts';
import { acting } from '../../context.ts';
import { type Definition, REASON } from '../../define.ts';
import type { Output } from '../../output.ts';
import { onePayment, show } from './describe.ts';

export const defineReverse: Definition = (payment, act) => {
  payment
    .command('reverse')
    .argument('<id>', 'the payment', idArgument('payment'))
    .description('Reverse a payment: the invoices it paid are open again')
    .requiredOption('--as <kind>', REVERSAL_KINDS.join(', '), choiceArgument('--as', REVERSAL_KINDS))
    .requiredOption(...REASON)
    .option('--code <code>', "the bank's return code, such as R01")
    .option('--amount <amount>', 'how much (default: all that remains)')
    .option('--on <date>', 'the date of the reversal (default: today)', dateArgument('--on'))
    .option('--duplicate-of <id>', 'the payment that this one duplicates', idArgument('--duplicate-of'))
    .action(act(paymentReverse));
};

export interface PaymentReverseOptions {
  readonly as: ReversalKind;
  readonly reason: string;
  readonly code?: string;
  readonly amount?: string;
  readonly on?: string;
  readonly duplicateOf?: number;
}

async function paymentReverse(output: Output, paymentId: number, options: PaymentReverseOptions): Promise<number> {
  const { as: kind, ...request } = options;
  return acting(output, async (context) => {
    const { amount, reopened } = await context.database.transaction((tx) =>
      reversePayment(tx, context, { paymentId, kind, ...request }),
    );
    const { amount: whole } = await onePayment(context, paymentId);
    const what = amount.toString() === whole ? `Payment ${paymentId}` : `${amount.forPeople()} of payment ${paymentId}`;
    return show(output, context, paymentId, `${what} is reversed; ${whatIsOwedAgain(reopened)}.`);
  });
}
