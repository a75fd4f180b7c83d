import { Amount } from '../../../money.ts';
import { type Matched, matchBalanceTransaction, unmatchBalanceTransaction } from '../../../splits/match.ts';
import { acting, type CommandContext, type Definition, REASON } from '../../define.ts';
import { printable } from '../../output.ts';

const TRANSACTION = ['<transaction>', 'the balance transaction'] as const;
const QUOTE = ['--quote <id>', 'the quote'] as const;
const PARTNER = ['--partner <id>', 'required if several partners have a quote with this id'] as const;
export const ACCOUNT = ['--account <id>', 'required if several accounts have a transaction with this id'] as const;

export const define: Definition = (processor, act) => {
  processor
    .command('match')
    .argument(...TRANSACTION)
    .description('Match a balance transaction to a quote')
    .requiredOption(...QUOTE)
    .option(...PARTNER)
    .option(...ACCOUNT)
    .option('--amount <amount>', 'match only this part (default: all that is unmatched)')
    .requiredOption(...REASON)
    .action(act(acting(processorMatch(matchBalanceTransaction))));
  processor
    .command('unmatch')
    .argument(...TRANSACTION)
    .description('Undo a match')
    .requiredOption(...QUOTE)
    .option(...PARTNER)
    .option(...ACCOUNT)
    .requiredOption(...REASON)
    .action(act(acting(processorMatch(unmatchBalanceTransaction))));
};

const processorMatch =
  (change: typeof matchBalanceTransaction) =>
  async (
    context: CommandContext,
    balance_transaction: string,
    options: { quote: string; partner?: string; account?: string; amount?: string; reason: string },
  ): Promise<void> => {
    const { quote: quoteId, partner: partnerId, ...others } = options;
    const request = { balance_transaction, quoteId, partnerId, ...others };
    const matched = await context.database.transaction((tx) => change(tx, context, request));
    context.output.print(matched, () => describedMatch(matched));
  };

function describedMatch({ balance_transaction, quote_id, partner_id, currency, amount, unexplained }: Matched): string {
  const whole = Amount.of(amount, currency);
  return (
    `${whole.forPeople()} of ${printable(balance_transaction)} is now matched to quote ${quote_id} of ${partner_id}; ` +
    `${Amount.of(unexplained, currency).forPeople()} of it is still unmatched.`
  );
}
