/**
 * Finance decides about balance transactions: a balance transaction is matched to a quote, a match is undone, or
 * balance transactions without a quote are closed. Refusals: balance_transaction_unknown, account_needed,
 * split_quote_unknown, split_partner_needed, argument_invalid, balance_transaction_matched, quote_not_matchable,
 * share_paid_back, balance_transaction_not_open.
 */

import { Transaction } from '#database/transaction';
import { IssueContext } from '#documents/issue/context';
import { typedAmount } from '#errors/amounts';
import { refuse, refuseField } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { fieldName } from '#field-names';
import { Amount, sumsOf } from '#money';
import { Remedy, toDo } from '#remedy';
import { beginRecording } from './import.ts';
import { payBilledShares } from './late-transfers.ts';
import {
  BalanceTransactionState,
  insertBalanceTransactionClosings,
  insertManualAllocation,
  MatchableQuote,
  readBalanceTransactions,
  readMatchableQuotes,
  readPaymentsLeft,
  readShareOf,
  readUnexplained,
} from './match.sql.ts';

export type MatchRequest = Readonly<{
  balance_transaction: string;
  account?: string | undefined;
  quoteId: string;
  partnerId?: string | undefined;
  /** The part to match, in the currency of the balance transaction. The default is the whole unexplained amount. */
  amount?: string | undefined;
  /** The value of that part in the quote's currency. The default is the amount sent. */
  countsAs?: string | undefined;
  /** Allows a quote whose partner never had the account that received the money. */
  otherAccount?: boolean | undefined;
  reason: string;
}>;

export type MatchResult = Readonly<{
  balance_transaction: string;
  account: string;
  partner_id: string;
  quote_id: string;
  currency: string;
  amount: string;
  /** The currency of the balance transaction. */
  settled_currency: string;
  settled_amount: string;
  /** The remaining part that no quote explains, in the currency of the balance transaction. */
  unexplained: string;
}>;

type Part = Readonly<{
  settled: Amount;
  amount: Amount;
}>;

export async function matchBalanceTransaction(
  tx: Transaction,
  acting: IssueContext,
  request: MatchRequest,
): Promise<MatchResult> {
  const { recording, balance_transaction, quote } = await begin(tx, acting, request, 'processor.match');
  refuseUnmatchable(balance_transaction, quote, request.otherAccount ?? false);
  const unexplained = Amount.of(balance_transaction.unexplained, balance_transaction.currency);
  if (unexplained.isZero())
    throw refuse('balance_transaction_matched', { balance_transaction: balance_transaction.id });
  const settled = partOf(request.amount, unexplained);
  const part = { settled, amount: countedAs(request.countsAs, settled, { balance_transaction, quote }) };
  return insert(tx, acting, recording, { request, balance_transaction, quote, part });
}

/** Undoes an automatic or manual match by recording the opposite amount. */
export async function unmatchBalanceTransaction(
  tx: Transaction,
  acting: IssueContext,
  request: Omit<MatchRequest, 'amount' | 'countsAs' | 'otherAccount'>,
): Promise<MatchResult> {
  const { recording, balance_transaction, quote } = await begin(tx, acting, request, 'processor.unmatch');
  const { balance_transaction_id: balanceTransactionId, currency } = balance_transaction;
  const { quoteId } = request;
  const share = await readShareOf(tx, { balanceTransactionId, partnerId: quote.partner_id, quoteId });
  const amount = Amount.of(share.amount, quote.currency);
  if (amount.isZero()) {
    const reason = `has no part of ${balance_transaction.id}, so there is no match to undo`;
    throw refuseField('quoteId', quoteId, reason);
  }
  const part = { settled: Amount.of(share.settled, currency).negated(), amount: amount.negated() };
  const undone = await insert(tx, acting, recording, { request, balance_transaction, quote, part });
  // The payment that the match caused must be reversed first. Until then, both the processor and the partner would owe
  // the quote.
  const payments = await readPaymentsLeft(tx, { balanceTransactionId, partnerId: quote.partner_id, quoteId });
  if (payments.length > 0) {
    throw refuse('share_paid_back', { balance_transaction: balance_transaction.id, quote_id: quoteId, payments });
  }
  return undone;
}

export type ClosingResult = Readonly<{
  balance_transactions: readonly string[];
  /**
   * The amount on our accounts without a quote, by currency. The amount is zero if receipts and reversals cancel each
   * other out.
   */
  left: readonly Readonly<{ currency: string; amount: string }>[];
}>;

/**
 * Closes the unexplained part of balance transactions, because finance decided that it was refunded or settled
 * elsewhere.
 */
export async function closeBalanceTransactions(
  tx: Transaction,
  acting: IssueContext,
  request: { balance_transactions: readonly string[]; account?: string | undefined; reason: string },
): Promise<ClosingResult> {
  const { account, reason } = request;
  const ids = [...new Set(request.balance_transactions)];
  const details = { balance_transactions: ids, account: account ?? null, reason };
  const recording = await beginRecording(tx, acting, { action: 'processor.close', subject: ids[0] ?? '', details });
  const found: BalanceTransactionState[] = [];
  for (const id of ids) found.push(await findBalanceTransaction(tx, { balance_transaction: id, account }));
  const open = await readUnexplained(tx, { ids: found.map((each) => each.balance_transaction_id) });
  const ended = found.find(
    ({ balance_transaction_id: id }) => !open.some((each) => each.balance_transaction_id === id),
  );
  if (ended !== undefined) throw refuse('balance_transaction_not_open', { balance_transaction: ended.id });
  await insertBalanceTransactionClosings(tx, {
    closings: open.map(({ unexplained, ...each }) => ({ ...each, amount: unexplained, reason })),
    ...recording,
  });
  failpoint('processor.closed');
  const sums = sumsOf(open.map(({ currency, unexplained }) => Amount.of(unexplained, currency)));
  const left = sums.map((sum) => ({ currency: sum.currency, amount: sum.toString() }));
  return { balance_transactions: found.map(({ id }) => id), left };
}

/** Returns a balance transaction. If two accounts have the same id, the account is required. */
export async function findBalanceTransaction(
  tx: Transaction,
  { balance_transaction: id, account }: { balance_transaction: string; account?: string | undefined },
): Promise<BalanceTransactionState> {
  const found = await readBalanceTransactions(tx, { id, account });
  const [balance_transaction] = found;
  if (balance_transaction === undefined) throw refuse('balance_transaction_unknown', { balance_transaction: id });
  if (found.length > 1) {
    throw refuse('account_needed', { balance_transaction: id, accounts: found.map((each) => each.account) });
  }
  return balance_transaction;
}

async function begin(tx: Transaction, acting: IssueContext, request: MatchRequest, action: string) {
  const { quoteId, partnerId = null, amount = null, countsAs = null, otherAccount = false, reason } = request;
  const recording = await beginRecording(tx, acting, {
    action,
    subject: request.balance_transaction,
    details: {
      quote_id: quoteId,
      amount,
      reason,
      ...(countsAs !== null && { counts_as: countsAs }),
      ...(otherAccount && { other_account: true }),
    },
  });
  const balance_transaction = await findBalanceTransaction(tx, request);
  const { account } = balance_transaction;
  const quotes = await readMatchableQuotes(tx, { quoteId, partnerId, account });
  const [quote, ...others] = quotes;
  if (quote === undefined) throw refuse('split_quote_unknown', { quote_id: quoteId, partner_id: partnerId });
  if (others.length > 0) {
    throw refuse('split_partner_needed', { quote_id: quoteId, partners: quotes.map((each) => each.partner_id) });
  }
  return { recording, balance_transaction, quote };
}

/**
 * Refuses a quote that is not routed, because such a quote belongs to its invoice. A quote whose partner never had the
 * account needs `otherAccount`.
 */
function refuseUnmatchable({ id, account }: BalanceTransactionState, quote: MatchableQuote, otherAccount: boolean) {
  const { quote_id, partner_id } = quote;
  const because = (reason: string, ...remedies: readonly Remedy[]) =>
    refuse('quote_not_matchable', { balance_transaction: id, quote_id, reason, remedies });
  if (!quote.is_routed) {
    const where = quote.invoice === null ? 'is invoiced with its month' : `is on invoice ${quote.invoice}`;
    throw because(
      `it ${where} and is not split. Ask ${quote.own_account ? partner_id : 'its sender'} to reverse the transfer, which closes it automatically. If the money ` +
        `stays, settle it with ${partner_id}`,
      toDo('Then close it', 'processor.close', { balance_transactions: [id] }),
    );
  }
  if (!quote.own_account && !otherAccount) {
    throw because(
      `${account} was never an account of its partner ${partner_id}. If the money still belongs to this quote, ` +
        `confirm it with ${fieldName('otherAccount')}`,
    );
  }
}

function countedAs(
  text: string | undefined,
  settled: Amount,
  { balance_transaction, quote }: { balance_transaction: BalanceTransactionState; quote: MatchableQuote },
) {
  const { id, currency, unexplained, share_currency, share_unexplained } = balance_transaction;
  const invalid = (value: string, reason: string) => refuseField('countsAs', value, reason);
  if (text !== undefined) {
    const stated = typedAmount(text, quote.currency, fieldName('countsAs'));
    if (stated.isZero() || stated.isNegative() !== settled.isNegative()) {
      throw invalid(text, `must be ${settled.isNegative() ? 'below' : 'above'} zero, as ${id} is`);
    }
    if (quote.currency === currency && !stated.equals(settled)) {
      throw invalid(text, `must be ${settled.toString()}: the quote is in ${currency}, and so is ${id}`);
    }
    return stated;
  }
  if (quote.currency === currency) return settled;
  if (quote.currency === share_currency && settled.equals(Amount.of(unexplained, currency))) {
    return Amount.of(share_unexplained, share_currency);
  }
  const reason =
    `is in ${quote.currency}, and this part of ${id} is ${settled.forPeople()}. ` +
    `State its value for the quote with ${fieldName('countsAs')}`;
  throw refuseField('quoteId', quote.quote_id, reason);
}

function partOf(text: string | undefined, unexplained: Amount) {
  if (text === undefined) return unexplained;
  const { currency } = unexplained;
  const part = typedAmount(text, currency);
  const rest = unexplained.minus(part);
  const sameSide = part.isNegative() === unexplained.isNegative() && !part.isZero();
  if (sameSide && (rest.isZero() || rest.isNegative() === unexplained.isNegative())) return part;
  const reason = `must be part of the ${unexplained.forPeople()} that is not matched yet`;
  throw refuseField('amount', text, reason);
}

async function insert(
  tx: Transaction,
  acting: IssueContext,
  recording: Awaited<ReturnType<typeof beginRecording>>,
  {
    request,
    balance_transaction,
    quote,
    part,
  }: { request: MatchRequest; balance_transaction: BalanceTransactionState; quote: MatchableQuote; part: Part },
) {
  const { quoteId, reason } = request;
  const [amount, settled] = [part.amount.toString(), part.settled.toString()];
  const share = {
    balanceTransactionId: balance_transaction.balance_transaction_id,
    partnerId: quote.partner_id,
    quoteId,
    amount,
    settled,
    otherAccount: !quote.own_account,
    reason,
  };
  await insertManualAllocation(tx, { ...share, ...recording });
  failpoint('processor.matched');
  await payBilledShares(tx, acting, recording);
  return {
    balance_transaction: balance_transaction.id,
    account: balance_transaction.account,
    partner_id: quote.partner_id,
    quote_id: quoteId,
    currency: quote.currency,
    amount,
    settled_currency: balance_transaction.currency,
    settled_amount: settled,
    unexplained: Amount.of(balance_transaction.unexplained, balance_transaction.currency)
      .minus(part.settled)
      .toString(),
  };
}
