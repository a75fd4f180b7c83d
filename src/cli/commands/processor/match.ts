import { Amount } from '../../../money.ts';
import {
  type Closed,
  closeBalanceTransactions,
  type Matched,
  matchBalanceTransaction,
  unmatchBalanceTransaction,
} from '../../../splits/match.ts';
import { plural } from '../../../text.ts';
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
    .option('--counts-as <amount>', "what it counts as in the quote's currency (default: what was sent)")
    .option('--other-account', "it is this quote's, although the account was never the partner's")
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
  processor
    .command('close')
    .argument('<transactions...>', 'balance transactions of no quote')
    .description('Close what no quote explains: it was given back, or settled elsewhere')
    .option(...ACCOUNT)
    .requiredOption(...REASON)
    .action(act(acting(processorClose)));
};

async function processorClose(
  context: CommandContext,
  balance_transactions: string[],
  options: { account?: string; reason: string },
): Promise<void> {
  const request = { balance_transactions, ...options };
  const closed = await context.database.transaction((tx) => closeBalanceTransactions(tx, context, request));
  context.output.print(closed, () => describedClosing(closed));
}

function describedClosing({ balance_transactions, left }: Closed): string {
  const sums = left.map(({ currency, amount }) => Amount.of(amount, currency)).filter((sum) => !sum.isZero());
  const rest =
    sums.length === 0
      ? 'Together they come to zero.'
      : `They leave ${sums.map((sum) => sum.forPeople()).join(' and ')} that no quote and no entry of the journal explains.`;
  return `Closed ${plural(balance_transactions.length, 'balance transaction')}. ${rest}`;
}

const processorMatch =
  (change: typeof matchBalanceTransaction) =>
  async (
    context: CommandContext,
    balance_transaction: string,
    options: {
      quote: string;
      partner?: string;
      account?: string;
      amount?: string;
      countsAs?: string;
      otherAccount?: boolean;
      reason: string;
    },
  ): Promise<void> => {
    const { quote: quoteId, partner: partnerId, ...others } = options;
    const request = { balance_transaction, quoteId, partnerId, ...others };
    const matched = await context.database.transaction((tx) => change(tx, context, request));
    context.output.print(matched, () => describedMatch(matched, change === unmatchBalanceTransaction));
  };

function describedMatch(matched: Matched, undone: boolean): string {
  const { balance_transaction, quote_id, partner_id, settled_currency } = matched;
  const shown = (text: string, currency: string) => {
    const amount = Amount.of(text, currency);
    return (undone ? amount.negated() : amount).forPeople();
  };
  const settled = shown(matched.settled_amount, settled_currency);
  const amount =
    matched.currency === settled_currency ? settled : `${shown(matched.amount, matched.currency)} (${settled})`;
  const rest = Amount.of(matched.unexplained, settled_currency);
  return (
    `${amount} of ${printable(balance_transaction)} is ${undone ? 'no longer' : 'now'} matched to quote ${quote_id} of ` +
    `${partner_id}. ${rest.isZero() ? 'All' : rest.forPeople()} of it is ${rest.isZero() ? 'matched' : 'unmatched'}.`
  );
}
