/**
 * Settling payouts: recording which payments, or which payout of a connected account, a payout in the bank consists of.
 * Payouts of connected accounts are settled by themselves where that is certain.
 * Refusals: payout_unknown, payout_settled, payout_not_settled.
 */
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { Amount } from '../money.ts';
import { type Caller, lockPayments, openPaymentContext, type PaymentContext } from './context.ts';
import {
  type AccountPayout,
  insertAccountPayouts,
  insertSettlements,
  isConnectedAccount,
  readAccountPayouts,
  readPayouts,
  readWithProcessor,
} from './payouts.sql.ts';

export interface SettleRequest {
  readonly payoutId: number;
  readonly paymentIds: readonly number[];
  /** Instead of payments: the connected account that paid it out. */
  readonly account?: string | undefined;
  /** Which of its payouts, by the processor's id; left out: the only one that fits, if any is known. */
  readonly payout?: string | undefined;
}

export async function settlePayout(tx: Transaction, caller: Caller, request: SettleRequest): Promise<void> {
  await lockPayments(tx);
  const { payoutId } = request;
  const refuseIt = (reason: string) => refuse('payout_not_settled', { payout_id: payoutId, reason });
  const [payout] = await readPayouts(tx, payoutId);
  if (payout === undefined) throw refuse('payout_unknown', { payout_id: payoutId });
  if (payout.gross !== null) throw refuse('payout_settled', { payout_id: payoutId });
  const { account, paymentIds } = request;
  if (account !== undefined) {
    if (paymentIds.length > 0) throw refuseIt('name either its payments or a connected account, not both');
    if (!(await isConnectedAccount(tx, account))) throw refuseIt(`no partner has ever had the account ${account}`);
    const told = (await readAccountPayouts(tx, caller.environment.now().toISO())).filter(
      (each) => each.payout_id === payoutId && each.account === account,
    );
    const ofThem = told.filter((each) => request.payout === undefined || each.payout === request.payout);
    if (request.payout !== undefined && ofThem.length === 0) {
      throw refuseIt(`${account} has no open payout ${request.payout} of that amount and date`);
    }
    if (ofThem.length > 1) {
      throw refuseIt(
        `it could be ${ofThem.map((each) => each.payout ?? '?').join(' or ')} of ${account}; choose one with --of`,
      );
    }
    const [of] = ofThem;
    const context = await openPaymentContext(tx, caller, {
      action: 'payment.settle',
      subject: String(payoutId),
      details: { account, payout: of?.payout ?? null },
    });
    const { currency, amount } = payout;
    await settleAs(context, [
      {
        payout_id: payoutId,
        account,
        currency,
        amount,
        balance_transaction_id: of?.balance_transaction_id ?? null,
        fees: of?.fees ?? '0',
        why: 'settled by hand',
      },
    ]);
    return;
  }
  if (paymentIds.length === 0) throw refuseIt('name its payments, or --account');
  const wanted = new Set(paymentIds);
  const waiting = (await readWithProcessor(tx, payout.currency, payout.received_on)).filter((each) =>
    wanted.has(each.payment_id),
  );
  const missing = [...wanted].filter((id) => !waiting.some((each) => each.payment_id === id));
  if (missing.length > 0) {
    throw refuseIt(
      `payment ${missing.join(', ')} is not a link payment in ${payout.currency} that waits for its payout`,
    );
  }
  const gross = waiting.reduce((sum, each) => sum.plus(each.amount), Amount.zero(payout.currency));
  const fees = gross.minus(Amount.of(payout.amount, payout.currency));
  if (fees.isNegative()) {
    throw refuseIt(
      `these payments add up to ${gross.forPeople()}, less than the ${payout.amount} ${payout.currency} that arrived`,
    );
  }
  const context = await openPaymentContext(tx, caller, {
    action: 'payment.settle',
    subject: String(payoutId),
    details: { payments: [...wanted], fees: fees.toString() },
  });
  await insertSettlements(context, [
    {
      payout_id: payoutId,
      gross: gross.toString(),
      fees: fees.toString(),
      why: 'settled by hand',
      payments: waiting.map(({ payment_id, amount }) => ({ payment_id, amount: amount.toString() })),
    },
  ]);
}

/**
 * Settles the payouts that certainly come from a connected account. Gives everything that unsettled payouts may be: what
 * is not certain is left for finance, and is never settled with link payments.
 */
export async function settleReportedPayouts(context: PaymentContext): Promise<readonly AccountPayout[]> {
  const told = await readAccountPayouts(context.tx, context.now);
  await settleAs(
    context,
    told
      .filter(({ certain }) => certain)
      .map((each) => ({ ...each, why: `${each.payout ?? 'a payout'} of ${each.account}, of that amount and time` })),
  );
  return told;
}

/** The same, after balance transactions were imported. */
export async function settlePayoutsOfAccounts(tx: Transaction, caller: Caller): Promise<void> {
  const now = caller.environment.now().toISO();
  if (!(await readAccountPayouts(tx, now)).some(({ certain }) => certain)) return;
  await lockPayments(tx);
  const details = { by: 'payouts of connected accounts' };
  await settleReportedPayouts(
    await openPaymentContext(tx, caller, { action: 'payment.settle', subject: 'payouts', details }),
  );
}

interface SettledAs {
  readonly payout_id: number;
  readonly account: string;
  readonly currency: string;
  readonly amount: string;
  readonly fees: string;
  readonly balance_transaction_id: number | null;
  readonly why: string;
}

async function settleAs(context: PaymentContext, payouts: readonly SettledAs[]): Promise<void> {
  await insertSettlements(
    context,
    payouts.map(({ payout_id, currency, amount, fees, why }) => ({
      payout_id,
      gross: Amount.of(amount, currency).plus(Amount.of(fees, currency)).toString(),
      fees,
      why,
      payments: [],
    })),
  );
  await insertAccountPayouts(
    context,
    payouts.map(({ payout_id, account, currency, balance_transaction_id }) => ({
      payout_id,
      account,
      currency,
      balance_transaction_id,
    })),
  );
}
