/**
 * Accounts that payers are known by. An account is learned from payments that were applied, or whose payer was named; it
 * may be forgotten, and is learned again from what is applied afterwards. Refusal: payer_account_unknown.
 */
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { type Caller, lockPayments, openPaymentContext } from './context.ts';
import { insertForgottenAccount, type PayerAccount, readPayerAccounts } from './payer-accounts.sql.ts';

export async function forgetAccount(tx: Transaction, caller: Caller, account: string): Promise<PayerAccount> {
  await lockPayments(tx);
  const known = (await readPayerAccounts(tx)).find((each) => each.payer_account === account);
  if (known === undefined) throw refuse('payer_account_unknown', { account });
  const context = await openPaymentContext(tx, caller, {
    action: 'payment.forget_account',
    subject: account,
    details: { partners: known.partners, payments: known.payments },
  });
  await insertForgottenAccount(context, account);
  return known;
}
