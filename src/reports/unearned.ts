/**
 * Unearned sales as of a day, by partner, policy and currency (docs/revenue.md). The report states whether its sums equal
 * the balances of `liabilities:unearned`.
 */
import { Block } from '#blocks';
import { Transaction } from '#database/transaction';
import { columnsOf, Sheet } from '#sheet';
import { Amount } from '#values';
import { readBalances } from './balances.sql.ts';
import { BooksOfDay, readBooksOfDay } from './preliminary.ts';
import { readUnearnedLines, UnearnedLine } from './unearned.sql.ts';

type UnearnedReport = BooksOfDay &
  Readonly<{
    as_of: string;
    lines: readonly UnearnedLine[];
    totals: Readonly<Record<string, string>>;
    totals_within_a_year: Readonly<Record<string, string>>;
    ties: boolean;
  }>;

export async function readUnearned(tx: Transaction, asOf: string): Promise<UnearnedReport> {
  const lines = (await readUnearnedLines(tx, { asOf })).map((line) => ({
    ...line,
    unearned: Amount.of(line.unearned, line.currency).toString(),
    within_a_year: Amount.of(line.within_a_year, line.currency).toString(),
  }));
  const posted = (await readBalances(tx, asOf)).filter(({ control }) => control === 'liabilities:unearned');
  // By partner and currency, what the lines have less what was posted.
  const off = new Map<string, Amount>();
  const totals = new Map<string, Amount>();
  const within = new Map<string, Amount>();
  const add = (sums: Map<string, Amount>, key: string, amount: Amount) =>
    sums.set(key, sums.get(key)?.plus(amount) ?? amount);
  for (const { partner_id, currency, unearned, within_a_year } of lines) {
    add(off, `${partner_id} ${currency}`, Amount.of(unearned, currency));
    add(totals, currency, Amount.of(unearned, currency));
    add(within, currency, Amount.of(within_a_year, currency));
  }
  for (const { control, account, currency, amount } of posted) {
    add(off, `${account.slice(control.length + 1)} ${currency}`, Amount.of(amount, currency));
  }
  return {
    as_of: asOf,
    lines,
    totals: textsOf(totals),
    totals_within_a_year: textsOf(within),
    ties: [...off.values()].every((each) => each.isZero()),
    ...(await readBooksOfDay(tx, asOf)),
  };
}

const textsOf = (sums: ReadonlyMap<string, Amount>) =>
  Object.fromEntries([...sums].map(([currency, sum]) => [currency, sum.toString()]));

const totalsOf = ({ totals, totals_within_a_year }: UnearnedReport) =>
  Object.entries(totals).map(([currency, unearned]) => ({
    name: 'Total',
    currency,
    unearned,
    within_a_year: totals_within_a_year[currency] ?? '',
  }));

export const unearnedSheet = (found: UnearnedReport): Sheet => ({
  name: 'Unearned',
  columns: columnsOf('partner_id name policy_id currency unearned:amount within_a_year:amount earned_by'),
  rows: found.lines,
  totals: totalsOf(found).map((row) => ({ row, months: {} })),
});

export function unearnedBlocks(found: UnearnedReport): Block[] {
  const { lines } = found;
  if (lines.length === 0) return [];
  const money = (amount: string, currency: string) => Amount.of(amount, currency);
  return [
    {
      title: 'By partner and policy',
      table: {
        headings: ['~partner', 'policy', '>unearned', '>within a year', 'earned by'],
        rows: lines.map(({ partner_id, name, policy_id, currency, unearned, within_a_year, earned_by }) => [
          { text: name, page: `/console/partners/${partner_id}` },
          ...[policy_id, money(unearned, currency), money(within_a_year, currency), earned_by],
        ]),
        foot: totalsOf(found).map(({ name, currency, unearned, within_a_year }) => [
          ...[name, '', money(unearned, currency), money(within_a_year, currency), ''],
        ]),
      },
    },
  ];
}
