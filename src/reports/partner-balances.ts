/**
 * The amounts that partners owe today, by currency: open invoices, their overdue part, open credit and unapplied cash.
 * The figures are the same as in today's aging.
 */
import type { Transaction } from '../database/transaction.ts';
import { Amount } from '../money.ts';
import type { Scope } from '../people/scope.ts';
import { readPresentDay } from './balances.sql.ts';
import { type OpenItem, readOpenItems, readUnappliedCash } from './open-items.sql.ts';

export interface PartnerBalance {
  readonly partner_id: string;
  readonly currency: string;
  readonly open: string;
  /** The part of `open` that is past its due date. */
  readonly overdue: string;
  readonly credit: string;
  readonly unapplied: string;
  /** `open`, less credit and unapplied cash. */
  readonly net: string;
}

interface PartnerBalances {
  readonly as_of: string;
  readonly balances: readonly PartnerBalance[];
  readonly items: readonly OpenItem[];
}

export async function readPartnerBalances(
  tx: Transaction,
  { today, scope }: { today: string; scope: Scope },
): Promise<PartnerBalances> {
  const asOf = await readPresentDay(tx, today);
  const items = await readOpenItems(tx, asOf, scope);
  const cash = await readUnappliedCash(tx, asOf, scope);
  const keys = [...items, ...cash].map(({ partner_id, currency }) => JSON.stringify([partner_id, currency]));
  const balances = [...new Set(keys)].sort().flatMap((key): PartnerBalance[] => {
    const [partner_id, currency] = JSON.parse(key) as [string | null, string];
    if (partner_id === null) return [];
    const sum = (amounts: readonly string[]) =>
      amounts.reduce((total, each) => total.plus(Amount.of(each, currency)), Amount.zero(currency));
    const own = items.filter((each) => each.partner_id === partner_id && each.currency === currency);
    const balancesOf = (isIn: (item: OpenItem) => boolean) => sum(own.filter(isIn).map(({ balance }) => balance));
    const open = balancesOf(({ document }) => document === 'invoice');
    const credit = balancesOf(({ document }) => document === 'credit_note');
    const unapplied = sum(
      cash.filter((each) => each.partner_id === partner_id && each.currency === currency).map(({ amount }) => amount),
    );
    return [
      {
        partner_id,
        currency,
        open: open.toString(),
        overdue: balancesOf(({ due_on }) => due_on !== null && due_on < asOf).toString(),
        credit: credit.toString(),
        unapplied: unapplied.toString(),
        net: open.minus(credit).minus(unapplied).toString(),
      },
    ];
  });
  return { as_of: asOf, balances, items };
}
