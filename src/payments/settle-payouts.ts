/**
 * Settles payouts, by recording the contents of a payout in the bank: link payments, or one payout of a connected
 * account. Payouts of connected accounts are settled automatically if the match is certain. Refusals: payout_unknown,
 * payout_settled, payout_not_settled.
 */

import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { fieldName } from '#field-names';
import { Amount, moneyText } from '#money';
import { Caller, lockPayments, openPaymentContext, PaymentContext } from './context.ts';
import {
  AccountPayout,
  insertAccountPayouts,
  insertSettlements,
  isConnectedAccount,
  PayoutRow,
  readAccountPayouts,
  readPayouts,
  readWithProcessor,
} from './payouts.sql.ts';

type SettleRequest = Readonly<{
  payoutId: number;
  paymentIds: readonly number[];
  account?: string | undefined;
  /** The processor's id of the account's payout. The default is the only payout that matches, if any is known. */
  payout?: string | undefined;
}>;

export async function settlePayout(tx: Transaction, caller: Caller, request: SettleRequest) {
  await lockPayments(tx);
  const { payoutId: payout_id, account, paymentIds } = request;
  const [payout] = await readPayouts(tx, payout_id);
  if (payout === undefined) throw refuse('payout_unknown', { payout_id });
  if (payout.gross !== null) throw refuse('payout_settled', { payout_id });
  if (account !== undefined && paymentIds.length > 0) {
    throw notSettled(payout_id, 'name either its payments or a connected account, not both');
  }
  const open = (details: Record<string, unknown>) =>
    openPaymentContext(tx, caller, { action: 'payment.settle', subject: String(payout_id), details });
  const why = 'settled by hand';
  if (account !== undefined) {
    const of = await accountPayoutOf(tx, caller, { ...request, account });
    const context = await open({ account, payout: of?.payout ?? null });
    const { currency, amount } = payout;
    const { balance_transaction_id = null, fees = '0' } = of ?? {};
    await settleAs(tx, context, [{ payout_id, account, currency, amount, balance_transaction_id, fees, why }]);
    return;
  }
  const found = await linkPaymentsOf(tx, payout, paymentIds);
  const gross = Amount.sum(payout.currency, found, ({ amount }) => amount);
  const fees = gross.minus(Amount.of(payout.amount, payout.currency));
  if (fees.isNegative()) {
    const arrived = `${moneyText(payout.amount, payout.currency)} that arrived`;
    throw notSettled(payout_id, `these payments add up to ${gross.forPeople()}, less than the ${arrived}`);
  }
  const payments = found.map(({ payment_id, amount }) => ({ payment_id, amount: amount.toString() }));
  const context = await open({ payments: payments.map((each) => each.payment_id), fees: fees.toString() });
  await insertSettlements(tx, context, [{ payout_id, gross: gross.toString(), fees: fees.toString(), why, payments }]);
}

const notSettled = (payout_id: number, reason: string) => refuse('payout_not_settled', { payout_id, reason });

async function accountPayoutOf(
  tx: Transaction,
  caller: Caller,
  { payoutId, account, payout }: SettleRequest & { account: string },
) {
  if (!(await isConnectedAccount(tx, { account }))) {
    throw notSettled(payoutId, `no partner has ever had the account ${account}`);
  }
  const found = (await readAccountPayouts(tx, { now: caller.environment.now().toISO() })).filter(
    (each) =>
      each.payout_id === payoutId && each.account === account && (payout === undefined || each.payout === payout),
  );
  if (payout !== undefined && found.length === 0) {
    throw notSettled(payoutId, `${account} has no open payout ${payout} of that amount and date`);
  }
  if (found.length > 1) {
    const names = found.map((each) => each.payout ?? '?').join(' or ');
    throw notSettled(payoutId, `it could be ${names} of ${account}; choose one with ${fieldName('payout')}`);
  }
  return found[0];
}

async function linkPaymentsOf(
  tx: Transaction,
  { payout_id, currency, received_on }: PayoutRow,
  paymentIds: readonly number[],
) {
  if (paymentIds.length === 0) throw notSettled(payout_id, `name its payments, or ${fieldName('account')}`);
  const waiting = await readWithProcessor(tx, currency, received_on);
  const missing = paymentIds.filter((id) => !waiting.some((each) => each.payment_id === id));
  if (missing.length > 0) {
    const reason = `payment ${missing.join(', ')} is not a link payment in ${currency} waiting for its payout`;
    throw notSettled(payout_id, reason);
  }
  return waiting.filter((each) => paymentIds.includes(each.payment_id));
}

/**
 * Settles the payouts that certainly come from a connected account. Returns all candidates for unsettled payouts,
 * including the certain candidates. If all candidates of a payout are uncertain, finance settles the payout. Such a
 * payout is not settled with link payments.
 */
export async function settleReportedPayouts(
  tx: Transaction,
  context: PaymentContext,
): Promise<readonly AccountPayout[]> {
  const possible = await readAccountPayouts(tx, { now: context.now });
  const certain = possible.filter((each) => each.certain);
  const why = ({ payout, account }: AccountPayout) =>
    `${payout ?? 'a payout'} of ${account}, with the same amount and about the same time`;
  await settleAs(
    tx,
    context,
    certain.map((each) => ({ ...each, why: why(each) })),
  );
  return possible;
}

/** Settles payouts after an import of balance transactions. No audit event is recorded if no match is certain. */
export async function settlePayoutsOfAccounts(tx: Transaction, caller: Caller) {
  const now = caller.environment.now().toISO();
  if (!(await readAccountPayouts(tx, { now })).some(({ certain }) => certain)) return;
  await lockPayments(tx);
  const details = { by: 'payouts of connected accounts' };
  await settleReportedPayouts(
    tx,
    await openPaymentContext(tx, caller, { action: 'payment.settle', subject: 'payouts', details }),
  );
}

type SettledAs = Pick<AccountPayout, 'payout_id' | 'account' | 'currency' | 'amount' | 'fees'> &
  Readonly<{
    balance_transaction_id: number | null;
    why: string;
  }>;

async function settleAs(tx: Transaction, context: PaymentContext, payouts: readonly SettledAs[]) {
  const gross = ({ amount, fees, currency }: SettledAs) => Amount.of(amount, currency).plus(Amount.of(fees, currency));
  await insertSettlements(
    tx,
    context,
    payouts.map((each) => ({ ...each, gross: gross(each).toString(), payments: [] })),
  );
  await insertAccountPayouts(tx, context, payouts);
}
