/**
 * Accounts that identify payers. An account is learned from payments that were applied, or whose payer was named. The
 * payer's name must be the partner's own; if the bank gives no name, finance must have named the payer. An account can
 * be forgotten, and a later application makes it known again. Refusal: payer_account_unknown.
 */
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { Caller, lockPayments, openPaymentContext } from './context.ts';
import { readPayers } from './open-items.sql.ts';
import { KnownPayer } from './open-items.ts';
import { insertForgottenAccount, readAccountUses } from './payer-accounts.sql.ts';
import { PayerNames } from './payer-names.ts';

export type PayerAccount = Readonly<{
  payer_account: string;
  /** An account that several partners use identifies none of them. */
  partners: readonly string[];
  names: readonly string[];
  payments: number;
  last_received_on: string;
}>;

/**
 * Reads the known accounts among the given ones, by default all. An account under a name other than its partner's
 * belongs to a payment provider and is left out. `payers` are all partners, if the caller has already read them.
 */
export async function readPayerAccounts(
  tx: Transaction,
  accounts: readonly string[] | null = null,
  payers?: readonly KnownPayer[],
): Promise<PayerAccount[]> {
  const names = new PayerNames(payers ?? (await readPayers(tx)));
  const known = new Map<string, PayerAccount>();
  const learned = new Set<string>();
  for (const use of await readAccountUses(tx, { accounts })) {
    const { payer_account, partner_id, partner_name, payments } = use;
    if (names.teaches(partner_id, use)) learned.add(payer_account);
    const before = known.get(payer_account);
    const last = before?.last_received_on ?? '';
    known.set(payer_account, {
      payer_account,
      partners: [...new Set([...(before?.partners ?? []), partner_id])],
      names: [...new Set([...(before?.names ?? []), partner_name])],
      payments: (before?.payments ?? 0) + payments,
      last_received_on: last > use.last_received_on ? last : use.last_received_on,
    });
  }
  return [...known.values()].filter(({ payer_account }) => learned.has(payer_account));
}

export async function forgetAccount(tx: Transaction, caller: Caller, account: string): Promise<PayerAccount> {
  await lockPayments(tx);
  const [known] = await readPayerAccounts(tx, [account]);
  if (known === undefined) throw refuse('payer_account_unknown', { account });
  const context = await openPaymentContext(tx, caller, {
    action: 'payment.forget_account',
    subject: account,
    details: { partners: known.partners, payments: known.payments },
  });
  await insertForgottenAccount(tx, context, account);
  return known;
}
