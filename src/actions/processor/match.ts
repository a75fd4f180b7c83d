import { amount, defineAction, flag, Partners, partner, reason, several, text } from '#actions/action';
import { Transaction } from '#database/transaction';
import { NOBODY } from '#people/roles';
import { toDo } from '#remedy';
import { readAccountOwners } from '#splits/accounts.sql';
import {
  ClosingResult,
  closeBalanceTransactions,
  MatchResult,
  matchBalanceTransaction,
  unmatchBalanceTransaction,
} from '#splits/match';
import { readBalanceTransactions } from '#splits/match.sql';
import { recordRequestedReversals } from '#splits/requested';
import { printable } from '#text-table';
import { Amount, plural } from '#values';

const TRANSACTION = () => text('Balance transaction', 'The balance transaction.');
const QUOTE = () => text('Quote', 'The quote.');
const PARTNER = () => partner('Required if several partners have a quote with this id.').optional();
export const ACCOUNT = () =>
  text('Account', 'Required if several accounts have a transaction with this id.', { value: 'id' }).optional();

/**
 * Returns the partner and all partners who share the account. Money without a known partner is for users who see every
 * partner.
 */
async function partnersOfMatch(
  tx: Transaction,
  { balance_transaction: id, account, partnerId }: MatchedInput,
): Promise<Partners> {
  if (partnerId === undefined) return 'all';
  const found = await readBalanceTransactions(tx, { id, account });
  const partners = [partnerId, ...(found.length === 0 ? [NOBODY] : [])];
  for (const each of found) {
    partners.push(...(await readAccountOwners(tx, { account: each.account })).map(({ partner_id }) => partner_id));
  }
  return [...new Set(partners)];
}

type MatchedInput = Readonly<{
  balance_transaction: string;
  account?: string | undefined;
  partnerId?: string | undefined;
}>;

const sumOf = ({ settled_amount, settled_currency }: MatchResult) => {
  const sum = Amount.of(settled_amount, settled_currency);
  return sum.isNegative() ? sum.negated() : sum;
};

const OF_MATCH = {
  role: 'finance',
  subject: ({ balance_transaction }: MatchedInput) => balance_transaction,
  partners: partnersOfMatch,
  amounts: (_seen: unknown, _input: unknown, matched: MatchResult) => [sumOf(matched)],
} as const;

export const processorMatch = defineAction({
  name: 'processor.match',
  title: 'Match a balance transaction to a quote',
  command: { summary: 'Match a balance transaction to a quote', arguments: { balance_transaction: '<transaction>' } },
  ...OF_MATCH,
  input: {
    balance_transaction: TRANSACTION(),
    quoteId: QUOTE(),
    partnerId: PARTNER(),
    account: ACCOUNT(),
    amount: amount('Amount', 'Match only this amount. Default: all that is unmatched.').optional(),
    countsAs: amount(
      'Counts as',
      "The transaction's value in the quote's currency. Default: the amount sent.",
    ).optional(),
    otherAccount: flag('Other account', "Match it even though the account was never the partner's.").optional(),
    reason: reason(),
  },
  perform: matchBalanceTransaction,
  async committed(context) {
    await context.database.transaction((tx) => recordRequestedReversals(tx, context));
  },
  facts: async (_tx, { balance_transaction }, matched) => ({
    [balance_transaction]: { 'matched to': matched === undefined ? null : quoteOf(matched) },
  }),
  report: async ({ input: { balance_transaction, quoteId }, result: matched }) => ({
    ...{ json: matched, text: describedMatch(matched, false) },
    remedies: [toDo('Undo', 'processor.unmatch', { balance_transaction, quoteId })],
  }),
});

export const processorUnmatch = defineAction({
  name: 'processor.unmatch',
  title: 'Undo the match of a balance transaction',
  command: { summary: 'Undo a match', arguments: { balance_transaction: '<transaction>' } },
  ...OF_MATCH,
  input: {
    balance_transaction: TRANSACTION(),
    quoteId: QUOTE(),
    partnerId: PARTNER(),
    account: ACCOUNT(),
    reason: reason(),
  },
  perform: unmatchBalanceTransaction,
  facts: async (_tx, { balance_transaction, quoteId }, unmatched) => ({
    [balance_transaction]: { 'matched to': unmatched === undefined ? `quote ${quoteId}` : null },
  }),
  report: async ({ result: matched }) => ({ json: matched, text: describedMatch(matched, true) }),
});

export const processorClose = defineAction({
  name: 'processor.close',
  title: 'Close unmatched balance transactions',
  command: {
    summary: 'Close unmatched balance transactions (returned, or settled elsewhere)',
    arguments: { balance_transactions: '<transactions...>' },
  },
  role: 'finance',
  input: {
    balance_transactions: several(
      text('Balance transaction', 'A balance transaction to close, which belongs to no quote.'),
    ),
    account: ACCOUNT(),
    reason: reason(),
  },
  subject: ({ balance_transactions }) => balance_transactions.join(' '),
  perform: closeBalanceTransactions,
  facts: async (_tx, { balance_transactions }, closed) =>
    Object.fromEntries(
      balance_transactions.map((each) => [each, { status: closed === undefined ? 'open' : 'closed' }]),
    ),
  amounts: (_seen, _input, { left }) => left.map(({ currency, amount }) => Amount.of(amount, currency)),
  report: async ({ result: closed }) => ({ json: closed, text: describedClosing(closed) }),
});

const quoteOf = ({ quote_id, partner_id }: MatchResult) => `quote ${quote_id} of ${partner_id}`;

function describedClosing({ balance_transactions, left }: ClosingResult) {
  const sums = left.map(({ currency, amount }) => Amount.of(amount, currency)).filter((sum) => !sum.isZero());
  const rest =
    sums.length === 0
      ? 'They sum to zero.'
      : `They leave ${sums.map((sum) => sum.forPeople()).join(' and ')} not explained by any quote or journal entry.`;
  return `Closed ${plural(balance_transactions.length, 'balance transaction')}. ${rest}`;
}

function describedMatch(matched: MatchResult, undone: boolean) {
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
