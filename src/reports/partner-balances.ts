/**
 * The amounts that partners owe today, by currency: open invoices, their overdue part, open credit and unapplied cash.
 * The figures are those of today's aging.
 */
import { Transaction } from '#database/transaction';
import { Scope } from '#people/scope';
import { AgingRow, agingOf, overdueIn } from './aging.ts';
import { readPresentDay } from './balances.sql.ts';
import { OpenItem, readOpenItems, readUnappliedCash } from './open-items.sql.ts';

export type PartnerBalance = Pick<AgingRow, 'currency' | 'open' | 'credit' | 'unapplied' | 'net'> &
  Readonly<{
    partner_id: string;
    /** The part of `open` that is past its due date. */
    overdue: string;
  }>;

type PartnerBalances = Readonly<{
  as_of: string;
  balances: readonly PartnerBalance[];
  items: readonly OpenItem[];
}>;

export async function readPartnerBalances(
  tx: Transaction,
  { today, scope }: { today: string; scope: Scope },
): Promise<PartnerBalances> {
  const asOf = await readPresentDay(tx, today);
  const items = await readOpenItems(tx, asOf, scope);
  const { partners } = agingOf(asOf, items, await readUnappliedCash(tx, asOf, scope), [], new Map());
  const balances = partners.flatMap((row) => {
    const { partner_id, currency, open, credit, unapplied, net } = row;
    const overdue = overdueIn(row, currency).toString();
    return partner_id === null ? [] : [{ partner_id, currency, open, overdue, credit, unapplied, net }];
  });
  return { as_of: asOf, balances, items };
}
