import { creditRefund, creditRefundReturned } from '#actions/credit';
import { choiceArgument, Definition, dateArgument, lineArgument, Output, wholeNumberArgument } from '#cli/command';
import { doing } from '#cli/run-action';
import { REFUND_METHODS, RefundMethod } from '#payments/enums';

export const define: Definition = (credit, action) => {
  credit
    .command('refund <credit-note>')
    .description('Record that open credit was paid out to the partner')
    .option('--amount <amount>', 'how much (default: all open credit)')
    .option('--method <method>', 'ach, wire, check or other', choiceArgument('--method', REFUND_METHODS), 'other')
    .option('--reference <reference>', "the bank's reference", '')
    .option('--on <YYYY-MM-DD>', 'the date of the refund (default: today)', dateArgument('--on'))
    .option('--again', 'record it even if the same amount was already refunded with that reference')
    .option(
      '--returned <reason>',
      'the bank returned the latest refund (with --amount: the latest of that amount); reopen its credit',
      lineArgument('--returned'),
    )
    .option(
      '--bank-line <id>',
      'with --returned: the credit line that returned it',
      wholeNumberArgument('--bank-line', 1, 999_999_999),
    )
    .action(action(refund));
};

type RefundOptions = Readonly<{
  amount?: string;
  method: RefundMethod;
  reference: string;
  on?: string;
  again?: boolean;
  returned?: string;
  bankLine?: number;
}>;

function refund(output: Output, number: string, { returned: reason, bankLine: bankLineId, ...options }: RefundOptions) {
  const { amount, on } = options;
  return reason === undefined
    ? doing(creditRefund, () => ({ number, ...options }))(output)
    : doing(creditRefundReturned, () => ({ number, reason, amount, bankLineId, on }))(output);
}
