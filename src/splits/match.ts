/**
 * Manual matching of a balance transaction to a quote, and undoing it. Refusals: balance_transaction_unknown,
 * account_needed, split_quote_unknown, split_partner_needed, argument_invalid, balance_transaction_matched, share_paid_back.
 */

import type { Transaction } from '../database/transaction.ts';
import type { IssueContext } from '../documents/issue/context.ts';
import { typedAmount } from '../errors/amounts.ts';
import { refuse } from '../errors/refusals.ts';
import { Amount } from '../money.ts';
import { readAcceptances } from './accepted.sql.ts';
import { beginRecording } from './import.ts';
import { payBilledShares } from './late-transfers.ts';
import {
  type BalanceTransactionState,
  insertManualAllocation,
  readBalanceTransactions,
  readPaymentsLeft,
  readShareOf,
} from './match.sql.ts';

export interface MatchRequest {
  readonly balance_transaction: string;
  readonly account?: string | undefined;
  readonly quoteId: string;
  readonly partnerId?: string | undefined;
  /** A part of it; by default everything that no quote explains. */
  readonly amount?: string | undefined;
  readonly reason: string;
}

export interface Matched {
  readonly balance_transaction: string;
  readonly account: string;
  readonly partner_id: string;
  readonly quote_id: string;
  readonly currency: string;
  readonly amount: string;
  /** The part that no quote explains afterwards. */
  readonly unexplained: string;
}

export async function matchBalanceTransaction(
  tx: Transaction,
  acting: IssueContext,
  request: MatchRequest,
): Promise<Matched> {
  const { recording, balance_transaction, partnerId } = await begin(tx, acting, request, 'processor.match');
  const unexplained = Amount.of(balance_transaction.unexplained, balance_transaction.currency);
  if (unexplained.isZero())
    throw refuse('balance_transaction_matched', { balance_transaction: balance_transaction.id });
  const amount = partOf(request.amount, unexplained);
  return insert(tx, acting, recording, { request, balance_transaction, partnerId, amount });
}

/** Undoes a match, automatic or manual, by another of the opposite amount. */
export async function unmatchBalanceTransaction(
  tx: Transaction,
  acting: IssueContext,
  request: Omit<MatchRequest, 'amount'>,
): Promise<Matched> {
  const { recording, balance_transaction, partnerId } = await begin(tx, acting, request, 'processor.unmatch');
  const { balance_transaction_id: balanceTransactionId, currency } = balance_transaction;
  const { quoteId } = request;
  const amount = Amount.of(await readShareOf(tx, { balanceTransactionId, partnerId, quoteId }), currency);
  if (amount.isZero()) {
    const reason = `has no part of ${balance_transaction.id}, so there is no match to undo`;
    throw refuse('argument_invalid', { argument: '--quote', value: quoteId, reason });
  }
  const undone = await insert(tx, acting, recording, {
    request,
    balance_transaction,
    partnerId,
    amount: amount.negated(),
  });
  // What it paid must be taken back as well, or its quote would be owed twice: by the processor and by the partner.
  const payments = await readPaymentsLeft(tx, { balanceTransactionId, partnerId, quoteId });
  if (payments.length > 0) {
    throw refuse('share_paid_back', { balance_transaction: balance_transaction.id, quote_id: quoteId, payments });
  }
  return undone;
}

/** The balance transaction of an id. Two accounts may have the same id: then the account is needed. */
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
  const { quoteId, reason } = request;
  const recording = await beginRecording(tx, acting, {
    action,
    subject: request.balance_transaction,
    details: { quote_id: quoteId, amount: request.amount ?? null, reason },
  });
  const balance_transaction = await findBalanceTransaction(tx, request);
  const accepted = await readAcceptances(tx, { quoteId, partnerId: request.partnerId });
  const partners = [...new Set(accepted.map((row) => row.partner_id))];
  const [partnerId] = partners;
  if (partnerId === undefined) {
    throw refuse('split_quote_unknown', { quote_id: quoteId, partner_id: request.partnerId ?? null });
  }
  if (partners.length > 1) throw refuse('split_partner_needed', { quote_id: quoteId, partners });
  return { recording, balance_transaction, partnerId };
}

/** Of what is unexplained at most, and to the same side. */
function partOf(text: string | undefined, unexplained: Amount): Amount {
  if (text === undefined) return unexplained;
  const { currency } = unexplained;
  const part = typedAmount(text, currency);
  const rest = unexplained.minus(part);
  const sameSide = part.isNegative() === unexplained.isNegative() && !part.isZero();
  if (sameSide && (rest.isZero() || rest.isNegative() === unexplained.isNegative())) return part;
  const reason = `must be part of the ${unexplained.forPeople()} that is not matched yet`;
  throw refuse('argument_invalid', { argument: '--amount', value: text, reason });
}

async function insert(
  tx: Transaction,
  acting: IssueContext,
  recording: Awaited<ReturnType<typeof beginRecording>>,
  {
    request,
    balance_transaction,
    partnerId,
    amount,
  }: { request: MatchRequest; balance_transaction: BalanceTransactionState; partnerId: string; amount: Amount },
): Promise<Matched> {
  const { quoteId, reason } = request;
  const share = {
    balanceTransactionId: balance_transaction.balance_transaction_id,
    partnerId,
    quoteId,
    amount: amount.toString(),
    reason,
  };
  if ((await insertManualAllocation(tx, share, recording)) !== 1) {
    const why = `is no quote whose share comes to ${balance_transaction.account} in ${balance_transaction.currency}`;
    throw refuse('argument_invalid', { argument: '--quote', value: quoteId, reason: why });
  }
  await payBilledShares(tx, acting, recording);
  return {
    balance_transaction: balance_transaction.id,
    account: balance_transaction.account,
    partner_id: partnerId,
    quote_id: quoteId,
    currency: balance_transaction.currency,
    amount: amount.toString(),
    unexplained: Amount.of(balance_transaction.unexplained, balance_transaction.currency).minus(amount).toString(),
  };
}
