/** `reckoner processor reverse`. */
import { EXIT } from '../../../errors/refusals.ts';
import { type ReversalReport, reverseManually } from '../../../splits/reverse.ts';
import { acting, type CommandContext, type Definition } from '../../define.ts';
import { printable } from '../../output.ts';
import { ACCOUNT } from './match.ts';

export const define: Definition = (processor, act) => {
  processor
    .command('reverse')
    .argument('<transaction>', 'the transfer reversal')
    .description('Record a reversed transfer as a reversal in the ledger')
    .requiredOption('--spot-price <amount>', 'the part of the price that the customer got back')
    .option(...ACCOUNT)
    .action(act(acting(processorReverse)));
};

async function processorReverse(
  context: CommandContext,
  balance_transaction: string,
  { account, spotPrice }: { account?: string; spotPrice: string },
): Promise<number> {
  const { database, output } = context;
  const report = await database.transaction((tx) =>
    reverseManually(tx, context, { balance_transaction, account, spotPrice }),
  );
  output.print(report, () => describedReversals(report));
  return report.manual_review.length > 0 ? EXIT.attention : EXIT.done;
}

export function describedReversals({ recorded, manual_review }: ReversalReport): string {
  return [
    ...recorded.map(
      (each) =>
        `Quote ${each.quote_id} of ${each.partner_id}: reversal ${each.reversal_id} of ${each.currency} ` +
        `${each.spotPrice} = ${each.partnerCut} + ${each.invoiceAmount} was recorded in the ledger.`,
    ),
    ...manual_review.map(
      (each) =>
        `Quote ${each.quote_id} of ${each.partner_id}: ${each.currency} ${each.amount} was reversed ` +
        `(${printable(each.balance_transaction)}), and ${each.reason}.`,
    ),
  ].join('\n');
}
