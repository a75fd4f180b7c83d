/** The trial balance: every account's balance on a date. Debits must equal credits. */

import { Transaction } from '#database/transaction';
import { Amount, compare, groupThousands } from '#values';
import { Balance, readBalances, readPresentDay } from './balances.sql.ts';
import { BooksOfDay, readBooksOfDay } from './preliminary.ts';

export type TrialBalance = BooksOfDay &
  Readonly<{
    as_of: string;
    accounts: readonly Readonly<{
      account: string;
      currency: string;
      debit: string;
      credit: string;
    }>[];
    totals: readonly Readonly<{ currency: string; debit: string; credit: string }>[];
    balanced: boolean;
  }>;

/** Lists control accounts or, with `detail`, every subaccount (partner, policy or bank account). */
export async function readTrialBalance(
  tx: Transaction,
  { asOf, today, detail }: { asOf?: string | undefined; today: string; detail: boolean },
): Promise<TrialBalance> {
  const day = asOf ?? (await readPresentDay(tx, today));
  return { ...trialBalanceOf(day, await readBalances(tx, day), detail), ...(await readBooksOfDay(tx, day)) };
}

/** The debit and credit of an amount; one of the two is zero. */
function sidesOf(amount: Amount) {
  const zero = Amount.zero(amount.currency);
  return amount.isNegative() ? { debit: zero, credit: amount.negated() } : { debit: amount, credit: zero };
}

/**
 * The balance of an account is on one side only. Subaccounts are summed before the side is chosen. The function is
 * pure.
 */
function trialBalanceOf(asOf: string, balances: readonly Balance[], detail: boolean) {
  const sums = new Map<string, { account: string; amount: Amount }>();
  for (const balance of balances) {
    const account = detail ? balance.account : balance.control;
    const key = JSON.stringify([account, balance.currency]);
    const amount = Amount.of(balance.amount, balance.currency);
    const known = sums.get(key);
    sums.set(key, { account, amount: known ? known.amount.plus(amount) : amount });
  }
  const accounts = [...sums.values()]
    .filter(({ amount }) => !amount.isZero())
    .map(({ account, amount }) => ({ account, currency: amount.currency, ...sidesOf(amount) }))
    .sort((a, b) => (a.account === b.account ? compare(a.currency, b.currency) : compare(a.account, b.account)));
  const currencies = [...new Set(accounts.map((each) => each.currency))].sort();
  const totals = currencies.map((currency) => {
    const own = accounts.filter((each) => each.currency === currency);
    const sum = (side: 'debit' | 'credit') => Amount.sum(currency, own, (each) => each[side]);
    return { currency, debit: sum('debit'), credit: sum('credit') };
  });
  const texts = <Row extends { debit: Amount; credit: Amount }>(row: Row) => ({
    ...row,
    debit: row.debit.toString(),
    credit: row.credit.toString(),
  });
  return {
    as_of: asOf,
    accounts: accounts.map(texts),
    totals: totals.map(texts),
    balanced: totals.every((each) => each.debit.equals(each.credit)),
  };
}

/** The accounts of each currency. */
export const trialBlocks = ({ accounts, totals }: TrialBalance) =>
  totals.map(({ currency, debit, credit }) => {
    const shown = (amount: string) => (Number(amount) === 0 ? '' : groupThousands(amount));
    return {
      title: `Trial balance in ${currency}`,
      table: {
        headings: [`~account, ${currency}`, '>debit', '>credit'],
        rows: accounts
          .filter((each) => each.currency === currency)
          .map((each) => [each.account, shown(each.debit), shown(each.credit)]),
        foot: [['total', groupThousands(debit), groupThousands(credit)]],
      },
    };
  });
