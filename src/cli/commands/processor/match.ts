/** `reckoner processor match` and `reckoner processor unmatch`. */
import { EXIT } from '../../../errors/refusals.ts';
import { Amount } from '../../../money.ts';
import { type Matched, matchBalanceTransaction, unmatchBalanceTransaction } from '../../../splits/match.ts';
import { withContext } from '../../context.ts';
import { type Definition, REASON } from '../../define.ts';
import { type Output, printable } from '../../output.ts';

const TRANSACTION = ['<transaction>', 'the balance transaction'] as const;
const QUOTE = ['--quote <id>', 'the quote'] as const;
const PARTNER = ['--partner <id>', 'required if several partners have a quote with this id'] as const;
export const ACCOUNT = ['--account <id>', 'required if several accounts have a transaction with this id'] as const;

export const defineMatch: Definition = (processor, act) => {
  processor
    .command('match')
    .argument(...TRANSACTION)
    .description('Match a balance transaction to a quote')
    .requiredOption(...QUOTE)
    .option(...PARTNER)
    .option(...ACCOUNT)
    .option('--amount <amount>', 'match only this part (default: all that is unmatched)')
    .requiredOption(...REASON)
    .action(
      act((output, transaction: string, options: MatchOptions) =>
        processorMatch(output, transaction, options, 'match'),
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
      act((output, transaction: string, options: MatchOptions) =>
        processorMatch(output, transaction, options, 'unmatch'),
      ),
    );
};

export interface MatchOptions {
  readonly quote: string;
  readonly partner?: string;
  readonly account?: string;
  readonly amount?: string;
  readonly reason: string;
}

async function processorMatch(
  output: Output,
  balance_transaction: string,
  { quote, partner, account, amount, reason }: MatchOptions,
  act: 'match' | 'unmatch',
): Promise<number> {
  return withContext(
    async (context) => {
      const request = { balance_transaction, account, quoteId: quote, partnerId: partner, reason };
      const matched = await context.database.transaction((tx) =>
        act === 'match'
          ? matchBalanceTransaction(tx, context, { ...request, amount })
          : unmatchBalanceTransaction(tx, context, request),
      );
      output.print(matched, () => describedMatch(matched));
      return EXIT.done;
    },
    { by: output.by },
  );
}

function describedMatch({ balance_transaction, quote_id, partner_id, currency, amount, unexplained }: Matched): string {
  const whole = Amount.of(amount, currency);
  return (
    `${whole.forPeople()} of ${printable(balance_transaction)} is now matched to quote ${quote_id} of ${partner_id}; ` +
    `${Amount.of(unexplained, currency).forPeople()} of it is still unmatched.`
  );
}
