/** Balances in one currency: exact rates, one rounding for each account, and what rounding leaves on a line of its own. */
import { describe, expect, test } from 'vitest';
import { Refusal } from '../../src/errors/refusals.ts';
import { presented, presentedLines } from '../../src/reports/presentation.ts';
import { type Rates, readRates } from '../../src/reports/rates.ts';

const RATES: Rates = {
  ...{ currency: 'USD', source: 'European Central Bank', date: '2026-09-30' },
  rates: { EUR: '1.0825', JPY: '0.00672' },
};

const debit = (account: string, currency: string, amount: string) => ({
  account,
  currency,
  debit: amount,
  credit: '0',
});
const credit = (account: string, currency: string, amount: string) => ({
  ...{ account, currency, debit: '0', credit: amount },
});

describe('balances in one currency', () => {
  test('an account of several currencies is converted exactly and rounded once', () => {
    // 0.005 USD and 0.005 USD: each rounded alone would come to 0.02.
    const rates = { ...RATES, rates: { EUR: '0.5', GBP: '0.5' } };
    const lines = [debit('a', 'EUR', '0.01'), debit('a', 'GBP', '0.01')];
    const against = [credit('b', 'EUR', '0.01'), credit('b', 'GBP', '0.01')];
    expect(presented([...lines, ...against], rates)).toMatchObject({
      accounts: [
        { account: 'a', debit: '0.01', credit: '0.00' },
        { account: 'b', debit: '0.00', credit: '0.01' },
      ],
      rounding: { debit: '0.00', credit: '0.00' },
      total: { debit: '0.01', credit: '0.01' },
    });
  });

  test('what rounding leaves stands on a line of its own, and debits equal credits', () => {
    const balances = [debit('a', 'JPY', '1'), debit('b', 'JPY', '1'), credit('c', 'JPY', '2')];
    const shown = presented(balances, RATES);
    // 0.00672 twice is 0.01 each, and 0.01344 is 0.01.
    expect(presentedLines(shown)).toEqual([
      { account: 'a', debit: '0.01', credit: '0.00' },
      { account: 'b', debit: '0.01', credit: '0.00' },
      { account: 'c', debit: '0.00', credit: '0.01' },
      { account: 'rounding', debit: '0.00', credit: '0.01' },
    ]);
    expect(shown.total).toEqual({ debit: '0.02', credit: '0.02' });
  });

  test('books that do not balance do not look as if rounding had done it', () => {
    const shown = presented([debit('a', 'EUR', '100.00'), credit('b', 'EUR', '90.00')], RATES);
    // They are apart by 10.825, and stay apart by that much, rounded; their lines alone would be by 10.82.
    expect(shown.rounding).toEqual({ debit: '0.01', credit: '0.00' });
    expect(shown.total).toEqual({ debit: '108.26', credit: '97.43' });
  });

  test('the currency of the rates is itself, and a half is rounded away from zero on both sides', () => {
    const rates = { ...RATES, currency: 'JPY', rates: { EUR: '162.5' } };
    const balances = [
      debit('a', 'EUR', '0.01'),
      debit('a', 'JPY', '7'),
      credit('b', 'EUR', '0.01'),
      credit('b', 'JPY', '7'),
    ];
    expect(presented(balances, rates).accounts).toEqual([
      { account: 'a', debit: '9', credit: '0' },
      { account: 'b', debit: '0', credit: '9' },
    ]);
    const half = presented([debit('a', 'EUR', '0.02'), credit('b', 'EUR', '0.02')], {
      ...rates,
      rates: { EUR: '125' },
    });
    expect(half.accounts).toEqual([
      { account: 'a', debit: '3', credit: '0' },
      { account: 'b', debit: '0', credit: '3' },
    ]);
  });

  test('digits that binary floating point would lose are kept', () => {
    const large = '123456789012345.67';
    const shown = presented([debit('a', 'EUR', large), credit('b', 'EUR', large)], {
      ...RATES,
      rates: { EUR: '1.000000000001' },
    });
    expect(shown.total.debit).toBe('123456789012469.13');
  });
});

describe('a rates file', () => {
  const reading = (content: string) => () => readRates('rates.json', Buffer.from(content));
  const problemsOf = (content: string): string[] => {
    try {
      return [JSON.stringify(reading(content)())];
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      expect(error.code).toBe('rates_invalid');
      return (error.facts['problems'] as { path: string; reason: string }[]).map(
        ({ path, reason }) => `${path}: ${reason}`,
      );
    }
  };
  const withRates = (rates: string) => `{"currency":"USD","source":"ECB","date":"2026-09-30","rates":${rates}}`;

  test('is read whole, with numbers digit by digit and its own currency at 1', () => {
    expect(reading(`\uFEFF${withRates('{"EUR":1.08250,"JPY":"0.00672","USD":"1.0"}')}`)()).toEqual({
      ...{ currency: 'USD', source: 'ECB', date: '2026-09-30' },
      rates: { EUR: '1.08250', JPY: '0.00672', USD: '1.0' },
    });
  });

  test.each([
    ['{"EUR":"0"}', 'rates.EUR: must be a plain decimal above zero such as 1.0825'],
    ['{"EUR":"-1.08"}', 'rates.EUR: must be a plain decimal above zero such as 1.0825'],
    ['{"EUR":"1,08"}', 'rates.EUR: must be a plain decimal above zero such as 1.0825'],
    ['{"EUR":1e-3}', 'rates.EUR: must be a plain decimal above zero such as 1.0825'],
    ['{"EUR":null}', 'rates.EUR: must be a string, not null'],
    ['{"EUR":"1.08","EUR":"1.09"}', 'EUR: appears twice in one object'],
    ['{"Euro":"1.08"}', 'rates.Euro: must be an ISO 4217 currency such as USD'],
    ['{"USD":"1.01"}', 'rates.USD: must be 1 or left out: the rates are in this currency'],
  ])('with rates %s is refused, and the place is named', (rates, problem) => {
    expect(problemsOf(withRates(rates))).toEqual([problem]);
  });

  test('without a real date, without a source, with an unknown field, or no JSON at all, is refused', () => {
    expect(problemsOf('{"currency":"usd","source":" ","date":"2026-02-30","rates":{},"rate":1}')).toEqual([
      'currency: must be an ISO 4217 currency such as USD',
      'source: must not be empty',
      'date: must be a date such as 2026-09-30',
      'rate: is not a known field',
    ]);
    expect(problemsOf('currency,rate')).toEqual([expect.stringMatching(/^: is not JSON: /)]);
  });
});
