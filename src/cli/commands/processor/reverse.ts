/** `reckoner processor reverse`. */
import { EXIT } from '../../../errors/refusals.ts';
import { type ReversalReport, reverseByPerson } from '../../../splits/reverse.ts';
import { withContext } from '../../context.ts';
import type { Definition } from '../../define.ts';
import { type Output, printable } from '../../output.ts';
import { ACCOUNT } from './match.ts';

export const defineReverse: Definition = (processor, act) => {
  processor
    .command('reverse')
    .argument('<transaction>', 'the transfer reversal')
    .description('Record a reversed transfer as a reversal in the ledger')
    .requiredOption('--spot-price <amount>', 'the part of the price that the customer got back')
    .option(...ACCOUNT)
    .action(act(processorReverse));
};

export async function processorReverse(
  output: Output,
  movement: string,
  { account, spotPrice }: { account?: string; spotPrice: string },
): Promise<number> {
  return withContext(
    async (context) => {
      const report = await context.database.transaction((tx) =>
        reverseByPerson(tx, context, { movement, account, spotPrice }),
      );
      output.print(report, () => describedReversals(report));
      return report.for_person.length > 0 ? EXIT.attention : EXIT.done;
    },
    { by: output.by },
  );
}

export function describedReversals({ recorded, for_person }: ReversalReport): string {
  return [
    ...recorded.map(
      (each) =>
        `Quote ${each.quote_id} of ${each.partner_id}: reversal ${each.reversal_id} of ${each.currency} ` +
        `${each.spotPrice} = ${each.partnerCut} + ${each.invoiceAmount} is in the ledger.`,
    ),
    ...for_person.map(
      (each) =>
        `Quote ${each.quote_id} of ${each.partner_id}: ${each.currency} ${each.amount} was pulled back ` +
        `(${printable(each.movement)}), and ${each.reason}.`,
    ),
  ].join('\n');
}
