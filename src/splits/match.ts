/**
 * What a person says of a movement: the quote that it is of, or that it was not. Refusals: balance_transaction_unknown,
 * account_needed, split_quote_unknown, split_partner_needed, argument_invalid, balance_transaction_explained.
 */

import type { Transaction } from '../database/transaction.ts';
import type { IssueContext } from '../documents/issue/issue.ts';
import { refuse } from '../errors/refusals.ts';
import { Amount, amountProblem, minorDigits } from '../money.ts';
import { readAcceptances } from './accepted.sql.ts';
import { beginTaking } from './import.ts';
import { payWhatWasBilled } from './late-transfers.ts';
import { insertShareByPerson, type MovementState, readMovements, readShareOf } from './match.sql.ts';

export interface MatchRequest {
  readonly movement: string;
  readonly account?: string | undefined;
  readonly quoteId: string;
  readonly partnerId?: string | undefined;
  /** A part of it; left out, all that no quote explains. */
  readonly amount?: string | undefined;
  readonly reason: string;
}

export interface Matched {
  readonly movement: string;
  readonly account: string;
  readonly partner_id: string;
  readonly quote_id: string;
  readonly currency: string;
  readonly amount: string;
  /** What no quote explains after it. */
  readonly unexplained: string;
}

export async function matchMovement(tx: Transaction, acting: IssueContext, request: MatchRequest): Promise<Matched> {
  const { taking, movement, partnerId } = await begin(tx, acting, request, 'processor.match');
  const unexplained = Amount.of(movement.unexplained, movement.currency);
  if (unexplained.isZero()) throw refuse('balance_transaction_explained', { movement: movement.id });
  const amount = partOf(request.amount, unexplained);
  return insert(tx, acting, taking, { request, movement, partnerId, amount });
}

/** Takes a match back, whoever made it: by another of the opposite amount. */
export async function unmatchMovement(
  tx: Transaction,
  acting: IssueContext,
  request: Omit<MatchRequest, 'amount'>,
): Promise<Matched> {
  const { taking, movement, partnerId } = await begin(tx, acting, request, 'processor.unmatch');
  const share = { balanceTransactionId: movement.balance_transaction_id, partnerId, quoteId: request.quoteId };
  const amount = Amount.of(await readShareOf(tx, share), movement.currency);
  if (amount.isZero()) {
    const reason = `has nothing of ${movement.id}, so there is nothing to take back`;
    throw refuse('argument_invalid', { argument: '--quote', value: request.quoteId, reason });
  }
  return insert(tx, acting, taking, { request, movement, partnerId, amount: amount.negated() });
}

async function begin(tx: Transaction, acting: IssueContext, request: MatchRequest, action: string) {
  const { quoteId, reason } = request;
  const taking = await beginTaking(tx, acting, {
    action,
    subject: request.movement,
    details: { quote_id: quoteId, amount: request.amount ?? null, reason },
  });
  const found = await readMovements(tx, { id: request.movement, account: request.account });
  const [movement] = found;
  if (movement === undefined) throw refuse('balance_transaction_unknown', { movement: request.movement });
  if (found.length > 1) {
    throw refuse('account_needed', { movement: request.movement, accounts: found.map((each) => each.account) });
  }
  const accepted = await readAcceptances(tx, { quoteId, partnerId: request.partnerId });
  const partners = [...new Set(accepted.map((row) => row.partner_id))];
  const [partnerId] = partners;
  if (partnerId === undefined) {
    throw refuse('split_quote_unknown', { quote_id: quoteId, partner_id: request.partnerId ?? null });
  }
  if (partners.length > 1) throw refuse('split_partner_needed', { quote_id: quoteId, partners });
  return { taking, movement, partnerId };
}

/** Of what is unexplained at most, and to the same side. */
function partOf(text: string | undefined, unexplained: Amount): Amount {
  if (text === undefined) return unexplained;
  const { currency } = unexplained;
  const problem = amountProblem(text, minorDigits(currency) as number);
  if (problem === undefined) {
    const part = Amount.of(text, currency);
    const rest = unexplained.minus(part);
    const sameSide = part.isNegative() === unexplained.isNegative() && !part.isZero();
    if (sameSide && (rest.isZero() || rest.isNegative() === unexplained.isNegative())) return part;
  }
  const reason = problem?.reason ?? `must be part of the ${unexplained.forPeople()} that no quote explains`;
  throw refuse('argument_invalid', { argument: '--amount', value: text, reason });
}

async function insert(
  tx: Transaction,
  acting: IssueContext,
  taking: Awaited<ReturnType<typeof beginTaking>>,
  {
    request,
    movement,
    partnerId,
    amount,
  }: { request: MatchRequest; movement: MovementState; partnerId: string; amount: Amount },
): Promise<Matched> {
  const { quoteId, reason } = request;
  const share = {
    balanceTransactionId: movement.balance_transaction_id,
    partnerId,
    quoteId,
    amount: amount.toString(),
    reason,
  };
  if ((await insertShareByPerson(tx, share, taking)) !== 1) {
    const why = `is no quote whose share comes to ${movement.account} in ${movement.currency}`;
    throw refuse('argument_invalid', { argument: '--quote', value: quoteId, reason: why });
  }
  await payWhatWasBilled(tx, acting, taking);
  return {
    movement: movement.id,
    account: movement.account,
    partner_id: partnerId,
    quote_id: quoteId,
    currency: movement.currency,
    amount: amount.toString(),
    unexplained: Amount.of(movement.unexplained, movement.currency).minus(amount).toString(),
  };
}
