import { query, querying, Transaction } from '#database/transaction';
import { Scope } from '#people/scope';

export type UnappliedPayment = Readonly<{
  payment_id: number;
  reference: string;
  received_on: string;
  currency: string;
  amount: string;
}>;

export type HeldDocument = Readonly<{
  number: string;
  held_at: string;
  reason: string;
}>;

export type Child = Readonly<{
  partner_id: string;
  name: string;
}>;

export const readUnapplied = querying<UnappliedPayment, { partnerId: string }>(`
  SELECT p.payment_id, personal(p.reference) AS reference, p.received_on, p.currency, c.amount
  FROM payment_cash c JOIN payments p USING (payment_id)
  WHERE c.partner_id = :partnerId AND c.amount <> 0 ORDER BY p.received_on, p.payment_id`);

export const readHeld = querying<HeldDocument, { partnerId: string }>(`
  SELECT d.number, h.held_at, h.reason FROM current_holds h JOIN live_documents d USING (document_id)
  WHERE d.partner_id = :partnerId ORDER BY h.held_at`);

export const readChildren = querying<Child, { partnerId: string; scope: Scope }>(`
  SELECT partner_id, name FROM partners
  WHERE parent = :partnerId AND (:scope::text[] IS NULL OR partner_id = ANY (:scope::text[])) ORDER BY name`);

export async function readInactivePolicies(tx: Transaction, partnerId: string): Promise<Map<string, string>> {
  const inactive = await query<{ policy_id: string; since: string }>(
    tx,
    `SELECT policy_id, to_char(inactive_since AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS since FROM policies
     WHERE partner_id = :partnerId AND inactive_since IS NOT NULL`,
    { partnerId },
  );
  return new Map(inactive.map(({ policy_id, since }) => [policy_id, since]));
}
