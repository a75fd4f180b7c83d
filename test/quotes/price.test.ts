/** The arithmetic of prices, against a second one in whole numbers. */

import { expect, test } from 'vitest';
import { Amount, minorDigits } from '../../src/money.ts';
import { priceOf } from '../../src/quotes/price.ts';
import fc from '../support/property.ts';

const terms = (currency: string, rate: string, minimum: string, cut: string) => ({
  currency,
  price_rate: rate,
  price_minimum: minimum,
  partner_cut_rate: cut,
});

const written = (currency: string, insured: string, rate: string, minimum: string, cut: string) => {
  const { spotPrice, partnerCut, invoiceAmount } = priceOf(
    Amount.of(insured, currency),
    terms(currency, rate, minimum, cut),
  );
  return [spotPrice, partnerCut, invoiceAmount].map(String);
};

test.each([
  ['a plain case', 'USD', '250.00', '0.085', '2.00', '0.30', ['21.25', '6.38', '14.87']],
  ['the minimum counts where the rate gives less', 'USD', '10.00', '0.085', '2.00', '0.30', ['2.00', '0.60', '1.40']],
  ['nothing insured costs the minimum', 'USD', '0', '0.085', '2.00', '0.30', ['2.00', '0.60', '1.40']],
  ['half a cent rounds up, in the price and in the cut', 'USD', '1.00', '0.005', '0', '0.50', ['0.01', '0.01', '0.00']],
  ['yen have no decimals', 'JPY', '1250', '0.085', '0', '0.305', ['106', '32', '74']],
  ['dinars have three', 'KWD', '10.005', '0.0855', '0.100', '0.3', ['0.855', '0.257', '0.598']],
  ['a partner that keeps nothing', 'USD', '99.99', '0.1', '0', '0', ['10.00', '0.00', '10.00']],
  ['a partner that keeps everything', 'USD', '99.99', '0.1', '0', '1', ['10.00', '10.00', '0.00']],
  [
    'a price just under the limit',
    'USD',
    '999999999999999.99',
    '1',
    '0',
    '0.5',
    ['999999999999999.99', '500000000000000.00', '499999999999999.99'],
  ],
])('%s', (_, currency, insured, rate, minimum, cut, expected) => {
  expect(written(currency, insured, rate, minimum, cut)).toEqual(expected);
});

test('a price that the ledger could not hold is refused', () => {
  expect(() => written('USD', '999999999999999.99', '1.000001', '0', '0.5')).toThrow(
    expect.objectContaining({ code: 'price_too_large' }) as Error,
  );
});

/** Half up in whole numbers: numerator / denominator to the nearest, halves upwards. */
const halfUp = (numerator: bigint, denominator: bigint) => (2n * numerator + denominator) / (2n * denominator);

const units = fc.bigInt({ min: 0n, max: 10n ** 12n });
const millionths = (max: number) => fc.integer({ min: 0, max });
const currencies = fc.constantFrom('USD', 'JPY', 'KWD', 'CLF');

const text = (value: bigint, digits: number) => {
  const padded = value.toString().padStart(digits + 1, '0');
  return digits === 0 ? padded : `${padded.slice(0, -digits)}.${padded.slice(-digits)}`;
};

test('any price agrees with the same arithmetic in whole numbers, and its parts add up', () => {
  fc.assert(
    fc.property(
      currencies,
      units,
      millionths(3_000_000),
      units,
      millionths(1_000_000),
      (currency, insured, rate, minimum, cut) => {
        const digits = minorDigits(currency) as number;
        const byRate = halfUp(insured * BigInt(rate), 1_000_000n);
        const spot = byRate > minimum ? byRate : minimum;
        const share = halfUp(spot * BigInt(cut), 1_000_000n);
        expect(
          written(currency, text(insured, digits), text(BigInt(rate), 6), text(minimum, digits), text(BigInt(cut), 6)),
        ).toEqual([spot, share, spot - share].map((amount) => text(amount, digits)));
      },
    ),
  );
});

test('a higher insured amount by the same terms is lower in none of the three: a requote never takes anything back', () => {
  fc.assert(
    fc.property(units, units, millionths(3_000_000), millionths(1_000_000), (one, other, rate, cut) => {
      const [low, high] = one < other ? [one, other] : [other, one];
      const by = terms('USD', text(BigInt(rate), 6), '2.00', text(BigInt(cut), 6));
      const before = priceOf(Amount.of(text(low, 2), 'USD'), by);
      const after = priceOf(Amount.of(text(high, 2), 'USD'), by);
      for (const part of ['spotPrice', 'partnerCut', 'invoiceAmount'] as const) {
        expect(after[part].isLessThan(before[part])).toBe(false);
      }
    }),
  );
});
