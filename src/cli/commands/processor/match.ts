/** `reckoner processor match|unmatch|close`. */
import { processorClose, processorMatch, processorUnmatch } from '../../../acts/processor/match.ts';
import { type Definition, REASON } from '../../define.ts';
import { doing } from '../../run-act.ts';

const TRANSACTION = ['<transaction>', 'the balance transaction'] as const;
const QUOTE = ['--quote <id>', 'the quote'] as const;
const PARTNER = ['--partner <id>', 'required if several partners have a quote with this id'] as const;
export const ACCOUNT = ['--account <id>', 'required if several accounts have a transaction with this id'] as const;

interface UnmatchOptions {
  readonly quote: string;
  readonly partner?: string;
  readonly account?: string;
  readonly reason: string;
}

interface MatchOptions extends UnmatchOptions {
  readonly amount?: string;
  readonly countsAs?: string;
  readonly otherAccount?: boolean;
}

export const define: Definition = (processor, act) => {
  processor
    .command('match')
    .argument(...TRANSACTION)
    .description('Match a balance transaction to a quote')
    .requiredOption(...QUOTE)
    .option(...PARTNER)
    .option(...ACCOUNT)
    .option('--amount <amount>', 'match only this part (default: all that is unmatched)')
    .option('--counts-as <amount>', "what it counts as in the quote's currency (default: what was sent)")
    .option('--other-account', "it is this quote's, although the account was never the partner's")
    .requiredOption(...REASON)
    .action(
      act(
        doing(processorMatch, (balance_transaction: string, { quote, partner, ...options }: MatchOptions) => ({
          ...{ balance_transaction, quoteId: quote, partnerId: partner, ...options },
        })),
      ),
    );
  processor
    .command('unmatch')
    .argument(...TRANSACTION)
    .description('Undo a match')
    .requiredOption(...QUOTE)
    .option(...PARTNER)
    .option(...ACCOUNT)
    .requiredOption(...REASON)
    .action(
      act(
        doing(processorUnmatch, (balance_transaction: string, { quote, partner, ...options }: UnmatchOptions) => ({
          ...{ balance_transaction, quoteId: quote, partnerId: partner, ...options },
        })),
      ),
    );
  processor
    .command('close')
    .argument('<transactions...>', 'balance transactions of no quote')
    .description('Close what no quote explains: it was given back, or settled elsewhere')
    .option(...ACCOUNT)
    .requiredOption(...REASON)
    .action(
      act(
        doing(processorClose, (balance_transactions: string[], options: { account?: string; reason: string }) => ({
          ...{ balance_transactions, ...options },
        })),
      ),
    );
};
