import { Amount } from '../../money.ts';
import { refundCredit, returnRefund } from '../../payments/refund.ts';
import { choiceArgument, dateArgument, reasonArgument } from '../arguments.ts';
import { acting, type CommandContext, type Definition } from '../define.ts';

export const define: Definition = (credit, act) => {
  credit
    .command('refund <number>')
    .description('Record that the open credit of a credit note was paid out to the partner')
    .option('--method <method>', 'ach, wire or other', choiceArgument('--method', ['ach', 'wire', 'other']), 'other')
    .option('--reference <reference>', "the bank's reference", '')
    .option('--on <date>', 'the date of the refund (default: today)', dateArgument('--on'))
    .option('--returned <reason>', 'the latest refund came back: reopen its credit', reasonArgument)
    .action(act(acting(creditRefund)));
};

async function creditRefund(
  context: CommandContext,
  number: string,
  options: { method: 'ach' | 'wire' | 'other'; reference: string; on?: string; returned?: string },
): Promise<void> {
  const { database, output } = context;
  const { returned, ...request } = options;
  const refund = await database.transaction((tx) =>
    returned === undefined
      ? refundCredit(tx, context, { number, ...request })
      : returnRefund(tx, context, { number, reason: returned, on: options.on }),
  );
  const amount = Amount.of(refund.amount, refund.currency);
  output.print({ ...refund, amount: amount.toString(), returned: returned !== undefined }, () =>
    returned === undefined
      ? `${amount.forPeople()} of ${number} was paid out to ${refund.partner_id}. The credit is used up.`
      : `The refund of ${amount.forPeople()} was returned: ${number} is open again.`,
  );
}
