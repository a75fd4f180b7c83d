/** `reckoner payment record`. */
import { paymentRecord } from '../../../acts/payment/record.ts';
import { METHODS } from '../../../payments/enums.ts';
import type { RecordRequest } from '../../../payments/record.ts';
import { choiceArgument, dateArgument } from '../../arguments.ts';
import type { Definition } from '../../define.ts';
import { doing } from '../../run-act.ts';

interface RecordOptions extends Omit<RecordRequest, 'number' | 'partnerId'> {
  readonly invoice?: string;
  readonly partner?: string;
}

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
    .action(
      act(
        doing(paymentRecord, ({ invoice, partner, ...options }: RecordOptions) => ({
          ...{ ...options, number: invoice, partnerId: partner },
        })),
      ),
    );
};
