import { amount, choice, date, defineAction, reason, text, whole } from '#actions/action';
import { BANK_LINE } from '#actions/bank';
import { enteredLater } from '#payments/context';
import { REVERSAL_KINDS } from '#payments/enums';
import { reversePayment, whatIsOwedAgain } from '#payments/reverse';
import { movedOf, OF_PAYMENT, onePayment, reportPayment } from './describe.ts';

export const paymentReverse = defineAction({
  name: 'payment.reverse',
  title: 'Reverse a payment',
  command: {
    summary: 'Reverse a payment and reopen the invoices it paid',
    arguments: { paymentId: '<id>' },
    options: { kind: '--as <kind>', duplicateOf: '--duplicate-of <id>' },
    help: `--as and --reason are always required, even for a duplicate:
  reckoner payment reverse 24 --as duplicate --duplicate-of 23 --reason 'recorded twice'
Money that is not from a customer stays in the bank and is posted to an account:
  reckoner payment reverse 25 --as other --account income:interest --reason 'bank interest'`,
  },
  role: 'finance',
  input: {
    paymentId: whole('Payment', 'The payment.'),
    kind: choice('As', 'Why it is reversed.', REVERSAL_KINDS),
    reason: reason(),
    code: text('Return code', "The bank's return code, such as R01.").optional(),
    amount: amount('Amount', 'The amount. Default: all that remains.').optional(),
    on: date('On', 'The date of the reversal. Default: today; for duplicate and other, the date received.').optional(),
    account: text(
      'Account',
      'With other: the ledger account for money that is not from a customer, such as income:interest.',
    ).optional(),
    bankLineId: BANK_LINE('The debit that returned the payment.').optional(),
    duplicateOf: whole('Duplicate of', 'The payment that this one duplicates.').optional(),
  },
  ...OF_PAYMENT,
  perform: reversePayment,
  amounts: (seen, { paymentId }) => movedOf(seen, paymentId, 'reversed').map((sum) => sum.negated()),
  async report({ input: { paymentId, kind, account }, result: { amount, reopened } }, _context, tx) {
    const { amount: whole, reversals } = await onePayment(tx, paymentId);
    const reversal = reversals.at(-1);
    const later = reversal === undefined ? undefined : enteredLater(reversal.reversed_on, reversal.entry_on);
    const what = amount.toString() === whole ? `Payment ${paymentId}` : `${amount.forPeople()} of payment ${paymentId}`;
    const done = `${what} is ${kind === 'other' ? `booked to ${account}` : 'reversed'}; ${whatIsOwedAgain(reopened)}.`;
    return reportPayment(tx, paymentId, [done, ...(later === undefined ? [] : [later])].join('\n'));
  },
});
