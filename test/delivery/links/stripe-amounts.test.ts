/** Amounts as Stripe writes them: exactly, or not at all. */
import { expect, test } from 'vitest';
import { Amount, MINOR_DIGITS } from '../../../src/money.ts';
import { methodsFor, stripeAmount } from '../../../src/processors/stripe/amounts.ts';

const of = (text: string, currency: string) => stripeAmount(Amount.of(text, currency));

test.each([
  ['0.50', 'USD', 50],
  ['999999.99', 'USD', 99_999_999],
  ['7', 'USD', 700],
  ['0.30', 'GBP', 30],
  ['175.00', 'HUF', 17_500],
  ['50', 'JPY', 50],
  ['99999999', 'JPY', 99_999_999],
  // Without decimals in the world, and written with two.
  ['500', 'ISK', 50_000],
  ['5', 'UGX', 500],
  ['999999', 'ISK', 99_999_900],
  // With decimals in the world, and written without.
  ['1200.00', 'MGA', 1200],
  ['10.120', 'KWD', 10_120],
  ['99999.990', 'TND', 99_999_990],
])('%s %s is %i', (text, currency, unitAmount) => {
  expect(of(text, currency)).toEqual({ unitAmount });
});

test.each([
  ['0.49', 'USD', /minimum of 0\.50/],
  ['0.29', 'GBP', /minimum of 0\.30/],
  ['49', 'JPY', /minimum of 50/],
  ['1000000.00', 'USD', /more than Stripe accepts/],
  ['100000000', 'JPY', /more than Stripe accepts/],
  ['1000000', 'ISK', /more than Stripe accepts/],
  ['100000.000', 'KWD', /more than Stripe accepts/],
  ['1200.50', 'MGA', /without decimals/],
  ['10.125', 'KWD', /steps of 0\.010/],
  ['1.0000', 'CLF', /no payments in CLF/],
  ['1.0000', 'UYW', /no payments in UYW/],
])('%s %s is not asked for', (text, currency, reason) => {
  expect(of(text, currency)).toEqual({ reason: expect.stringMatching(reason) });
});

test('in every currency, what is asked for is what is owed', () => {
  let asked = 0;
  for (const [code, digits] of MINOR_DIGITS) {
    const owed = digits === 0 ? '4200' : `4200.${'0'.repeat(digits)}`;
    const answer = of(owed, code);
    if ('reason' in answer) continue;
    asked += 1;
    expect([1, 100, 1000].map((scale) => answer.unitAmount / scale)).toContain(4200);
  }
  expect(asked).toBeGreaterThan(150);
});

test('ACH debit is for US dollars; other methods are left to Stripe', () => {
  expect(methodsFor(['us_bank_account', 'card'], 'USD')).toEqual(['us_bank_account', 'card']);
  expect(methodsFor(['us_bank_account', 'card'], 'EUR')).toEqual(['card']);
  expect(methodsFor(['us_bank_account'], 'JPY')).toEqual([]);
});
