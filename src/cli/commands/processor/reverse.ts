/** `reckoner processor reverse`. */
import { processorReverse } from '../../../acts/processor/reverse.ts';
import type { Definition } from '../../define.ts';
import { doing } from '../../run-act.ts';
import { ACCOUNT } from './match.ts';

export const define: Definition = (processor, act) => {
  processor
    .command('reverse')
    .argument('<transaction>', 'the transfer reversal')
    .description('Record a reversed transfer as a reversal in the ledger')
    .requiredOption('--spot-price <amount>', 'the part of the price that the customer got back')
    .option(...ACCOUNT)
    .action(
      act(
        doing(processorReverse, (balance_transaction: string, options: { account?: string; spotPrice: string }) => ({
          ...{ balance_transaction, ...options },
        })),
      ),
    );
};
