import { execute, querying, Transaction } from '#database/transaction';
import { PaymentContext } from './context.ts';

type AccountUse = Readonly<{
  payer_account: string;
  partner_id: string;
  partner_name: string;
  payer_name: string | null;
  /** Whether finance named the payer of a payment from the account. */
  by_finance: boolean;
  payments: number;
  last_received_on: string;
}>;

export const readAccountUses = querying<AccountUse, { accounts: readonly string[] | null }>(`
  SELECT a.payer_account, a.partner_id, p.name AS partner_name, a.payer_name, a.by_finance, a.payments,
         a.last_received_on
  FROM payer_accounts a JOIN partners p USING (partner_id)
  WHERE :accounts::text[] IS NULL OR a.payer_account = ANY (:accounts::text[])
  ORDER BY a.payer_account, a.partner_id, a.payer_name`);

export async function insertForgottenAccount(tx: Transaction, { now, eventId }: PaymentContext, account: string) {
  await execute(
    tx,
    `INSERT INTO forgotten_payer_accounts (payer_account, recorded_at, event_id)
     VALUES (:account, :now::timestamptz, :eventId::bigint)`,
    { account, now, eventId },
  );
}
