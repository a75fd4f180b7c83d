/** Converts the balances of a trial balance to one currency. */

import { Block } from '#blocks';
import { Amount, dateName, groupThousands } from '#values';
import { Rates, ratesOf } from './rates.ts';

/** An amount on the debit side or on the credit side. The opposite side is zero. */
type Sides = Readonly<{
  debit: string;
  credit: string;
}>;

export type Presentation = Readonly<{
  currency: string;
  source: string;
  date: string;
  /** The value of one unit of each currency that has a balance. */
  rates: Readonly<Record<string, string>>;
  accounts: readonly (Sides & { readonly account: string })[];
  /** The rounding difference of the accounts, which makes the totals balance. */
  rounding: Sides;
  total: Sides;
}>;

/** The debit and credit of an amount; one of the two is zero. */
export const sidesOf = (amount: Amount): Readonly<{ debit: Amount; credit: Amount }> => {
  const zero = Amount.zero(amount.currency);
  return amount.isNegative() ? { debit: zero, credit: amount.negated() } : { debit: amount, credit: zero };
};

const textsOf = (amount: Amount) => {
  const { debit, credit } = sidesOf(amount);
  return { debit: debit.toString(), credit: credit.toString() };
};

type Balance = Sides &
  Readonly<{
    account: string;
    currency: string;
  }>;

/**
 * Sums each account over all its currencies, converts it exactly and rounds it once. The rounding line is the exact
 * total less the sum of the rounded lines. If the books balance, the lines then also balance exactly. Refusal:
 * rates_missing.
 */
export function presented(balances: readonly Balance[], given: Rates): Presentation {
  const { currency, source, date } = given;
  const rates = ratesOf(given, [...new Set(balances.map((each) => each.currency))].sort());
  const inOne = (own: readonly Balance[]) =>
    Amount.converted(
      own.map(({ debit, credit, currency: from }) => ({
        amount: Amount.of(debit, from).minus(Amount.of(credit, from)),
        rate: rates.get(from) as string,
      })),
      currency,
    );
  const byAccount = new Map<string, Balance[]>();
  for (const balance of balances) {
    const known = byAccount.get(balance.account);
    if (known === undefined) byAccount.set(balance.account, [balance]);
    else known.push(balance);
  }
  const accounts = [...byAccount]
    .map(([account, own]) => ({ account, amount: inOne(own) }))
    .filter(({ amount }) => !amount.isZero());
  const rounding = accounts.reduce((left, { amount }) => left.minus(amount), inOne(balances));
  const lines = [...accounts.map(({ amount }) => amount), rounding].map(sidesOf);
  const sum = (side: 'debit' | 'credit') => Amount.sum(currency, lines, (each) => each[side]).toString();
  return {
    ...{ currency, source, date, rates: Object.fromEntries(rates) },
    accounts: accounts.map(({ account, amount }) => ({ account, ...textsOf(amount) })),
    rounding: textsOf(rounding),
    total: { debit: sum('debit'), credit: sum('credit') },
  };
}

const ROUNDING = 'rounding';

export const presentedLines = ({ accounts, rounding }: Presentation): (Sides & { readonly account: string })[] => [
  ...accounts,
  ...(rounding.debit === rounding.credit ? [] : [{ account: ROUNDING, ...rounding }]),
];

const shown = (amount: string) => (/[1-9]/.test(amount) ? groupThousands(amount) : '');

export function presentationBlock(presentation: Presentation, asOf: string): Block {
  const { currency, source, date, rates, total } = presentation;
  const used = Object.entries(rates).filter(([from]) => from !== currency);
  return {
    title: `In ${currency}, at the rates of ${source} of ${dateName(date)}`,
    lines: [
      ...used.map(([from, rate]) => `1 ${from} = ${rate} ${currency}`),
      ...(date === asOf ? [] : [`The rates are not from the date of the balances, ${dateName(asOf)}.`]),
    ],
    table: {
      headings: [`~account, ${currency}`, '>debit', '>credit'],
      rows: presentedLines(presentation).map((each) => [each.account, shown(each.debit), shown(each.credit)]),
      foot: [['total', groupThousands(total.debit), groupThousands(total.credit)]],
    },
  };
}
