/** SQL over the accounts that payers are known by. */
import { execute, query, type Transaction } from '../database/transaction.ts';
import type { PaymentContext } from './context.ts';

export interface PayerAccount {
  readonly payer_account: string;
  /** Of several partners: the account tells nothing. */
  readonly partners: readonly string[];
  readonly names: readonly string[];
  /** How many payments it was learned from. */
  readonly payments: number;
  readonly last_received_on: string;
}

/** All, or those of these accounts that are known. */
export function readPayerAccounts(tx: Transaction, accounts: readonly string[] | null = null): Promise<PayerAccount[]> {
  return query(
    tx,
    `SELECT a.payer_account, a.partners,
            ARRAY(SELECT p.name FROM partners p WHERE p.partner_id = ANY (a.partners) ORDER BY p.partner_id) AS names,
            a.payments, a.last_received_on
     FROM payer_accounts a
     WHERE :accounts::text[] IS NULL OR a.payer_account = ANY (:accounts::text[])
     ORDER BY a.payer_account`,
    { accounts },
  );
}

export async function insertForgottenAccount({ tx, now, eventId }: PaymentContext, account: string): Promise<void> {
  await execute(
    tx,
    `INSERT INTO forgotten_payer_accounts (payer_account, recorded_at, event_id)
     VALUES (:account, :now::timestamptz, :eventId::bigint)`,
    { account, now, eventId },
  );
}
