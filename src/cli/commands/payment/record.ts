/** `reckoner payment record`. */
import { EXIT, refuse } from '../../../errors/refusals.ts';
import { enteredLater } from '../../../payments/context.ts';
import { METHODS } from '../../../payments/enums.ts';
import { type RecordRequest, recordPayment } from '../../../payments/record.ts';
import { choiceArgument, dateArgument } from '../../arguments.ts';
import { acting, type Definition, type Done } from '../../define.ts';
import type { Output } from '../../output.ts';
import { described, labelled, onePayment } from './describe.ts';

export const define: Definition = (payment, act) => {
  payment
    .command('record')
    .description('Record a payment by hand; a payment that is already recorded is not recorded twice')
    .requiredOption('--amount <amount>', 'the amount received')
    .requiredOption('--currency <code>', 'ISO 4217 currency code')
    .requiredOption('--method <method>', METHODS.join(', '), choiceArgument('--method', METHODS))
    .requiredOption('--received-on <date>', 'the date it arrived, YYYY-MM-DD', dateArgument('--received-on'))
    .requiredOption('--reference <reference>', "the bank's or processor's reference")
    .option('--account <account>', 'our bank account that received it, as bank files name it')
    .option('--invoice <number>', 'apply it to this invoice; any excess stays unapplied cash')
    .option('--partner <id>', 'keep it as unapplied cash of this partner')
    .action(act(paymentRecord));
};

function paymentRecord(
  output: Output,
  {
    invoice,
    partner,
    ...request
  }: Omit<RecordRequest, 'number' | 'partnerId'> & { invoice?: string; partner?: string },
): Done {
  if ((invoice === undefined) === (partner === undefined)) {
    throw refuse('usage', { reason: "'payment record' takes either --invoice or --partner" });
  }
  return acting(async (context) => {
    const { paymentId, duplicate, possibleDuplicates, kept } = await context.database.transaction((tx) =>
      recordPayment(tx, context, { ...request, number: invoice, partnerId: partner }),
    );
    const payment = await onePayment(context, paymentId);
    // A payment that paid its invoice whole keeps no suggestions, so its possible duplicates are listed here.
    const unlisted = possibleDuplicates.filter((id) => !payment.suggestions.some((each) => each.same_as === id));
    const later = enteredLater(payment.received_on, payment.entry_on);
    output.print({ ...payment, duplicate, possible_duplicates: possibleDuplicates, kept: kept ?? null }, () =>
      [
        duplicate
          ? `Payment ${paymentId} is already recorded: nothing was added.`
          : `Payment ${paymentId} is recorded${kept === undefined ? '' : `; ${kept}: it is kept as unapplied cash`}.`,
        ...(later === undefined ? [] : [later]),
        described(payment),
        ...unlisted.flatMap((id) => labelled('perhaps', `the same as payment ${id}, which has its amount`)),
      ].join('\n'),
    );
    const needsReview = payment.suggestions.length > 0 || possibleDuplicates.length > 0 || kept !== undefined;
    return needsReview ? EXIT.attention : EXIT.done;
  })(output);
}
