/** Amounts: which texts are amounts, that none is ever rounded, and that they come out as they went in. */
import { Decimal as SharedDecimal } from 'decimal.js';
import { describe, expect, test } from 'vitest';
import { Amount, amountProblem, groupThousands, isCurrency, isZero, MINOR_DIGITS, minorDigits } from '../src/money.ts';
import fc from './support/property.ts';

/** An oracle of its own precision; a constructed Decimal keeps all digits. */
const Decimal = SharedDecimal.clone({ precision: 400 });

/** What the contract says, by decimal arithmetic and not by looking at characters. */
function oracle(text: string, digits: number): string | undefined {
  if (!/^-?[0-9]+(\.[0-9]+)?$/.test(text)) return 'amount_malformed';
  const value = new Decimal(text);
  if (!value.times(new Decimal(10).pow(digits)).isInteger()) return 'amount_too_precise';
  if (value.abs().greaterThanOrEqualTo('1e15')) return 'amount_too_large';
  return undefined;
}

const digits = fc.constantFrom(0, 2, 3, 4);
const plain = fc
  .tuple(
    fc.constantFrom('', '-'),
    fc.stringMatching(/^\d{1,20}$/),
    fc.constantFrom('', '.'),
    fc.stringMatching(/^\d{0,8}0{0,6}$/),
  )
  .map((parts) => parts.join(''));
const nearlyPlain = fc.string({ unit: fc.constantFrom(...'0123456789.-+eE, '), maxLength: 20 });
/** An amount of a currency as its smallest units. */
const money = fc.record({
  currency: fc.constantFrom('JPY', 'USD', 'KWD', 'CLF'),
  units: fc.bigInt({ min: -(10n ** 15n) + 1n, max: 10n ** 15n - 1n }),
});

/** The text of so many smallest units, by text alone. */
function written(units: bigint, currency: string): string {
  const places = minorDigits(currency) ?? 0;
  const text = String(units < 0n ? -units : units).padStart(places + 1, '0');
  const whole = text.slice(0, text.length - places);
  const sign = units < 0n ? '-' : '';
  return places === 0 ? `${sign}${whole}` : `${sign}${whole}.${text.slice(-places)}`;
}

describe('an amount is', () => {
  test.each([
    ['12.50', 2],
    ['0', 0],
    ['-0', 2],
    ['-0.00', 2],
    ['0.1', 2],
    ['0.30', 2],
    ['9999999999999.99', 2],
    ['999999999999999.99', 2],
    ['999999999999999', 0],
    ['1357.850', 2],
    ['1357.85000000000000000000', 2],
    ['100.000', 0],
    ['0.001', 3],
    ['0.0001', 4],
    ['0.0000', 0],
    ['007', 0],
    ['000000000000000000001.5', 2],
  ])('%s with %i minor digits', (text, places) => {
    expect(amountProblem(text, places)).toBeUndefined();
    expect(oracle(text, places)).toBeUndefined();
  });

  test.each(
    ['1e2', '1E2', '+1', '--1', '-', '', '.', '.5', '5.', '1.2.3', '1,000', '1 000', '1_000', ' 1', '1 ', '1\n'].concat(
      ['NaN', 'Infinity', '-Infinity', '0x10', '$1', '1$', 'USD 1', '１', '٣', '1\u00a0000', '−1', '1/2', '(1)'],
    ),
  )('not %j', (text) => {
    expect(amountProblem(text, 2)?.code).toBe('amount_malformed');
  });

  test.each([
    ['0.5', 0],
    ['0.001', 2],
    ['1357.851', 2],
    ['0.0001', 3],
    ['0.00001', 4],
    ['-0.001', 2],
    ['0.30000000000000004', 2],
    ['1000000000000000.001', 2],
  ])('too precise at %s for %i minor digits', (text, places) => {
    expect(amountProblem(text, places)?.code).toBe('amount_too_precise');
  });

  test.each(['1000000000000000', '-1000000000000000', '1000000000000000.00', '9'.repeat(40), `000${'9'.repeat(16)}`])(
    'too large at %s',
    (text) => {
      expect(amountProblem(text, 2)?.code).toBe('amount_too_large');
    },
  );

  test('judged as decimal arithmetic judges it, whatever the text', () => {
    fc.assert(
      fc.property(fc.oneof(plain, nearlyPlain), digits, (text, places) => {
        expect(amountProblem(text, places)?.code).toBe(oracle(text, places));
      }),
      { numRuns: 3000 },
    );
  });
});

describe('an Amount', () => {
  test("comes out with exactly its currency's digits and reads back as itself", () => {
    fc.assert(
      fc.property(money, fc.nat({ max: 6 }), ({ units, currency }, zeros) => {
        const text = written(units, currency);
        const padded = zeros === 0 ? text : `${text}${text.includes('.') ? '' : '.'}${'0'.repeat(zeros)}`;
        const amount = Amount.of(padded, currency);
        expect(amount.toString()).toBe(text);
        expect(JSON.stringify({ amount })).toBe(`{"amount":"${text}"}`);
        expect(Amount.of(amount.toString(), currency).equals(amount)).toBe(true);
      }),
    );
  });

  test('adds and subtracts as whole numbers of the smallest unit do, over sums of any size', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('JPY', 'USD', 'KWD', 'CLF'),
        fc.array(money, { maxLength: 40 }),
        (currency, moneys) => {
          const sum = moneys.reduce((total, { units }) => total + units, 0n);
          const amounts = moneys.map(({ units }) => Amount.of(written(units, currency), currency));
          const zero = Amount.zero(currency);
          expect(amounts.reduce((total, each) => total.plus(each), zero).toString()).toBe(written(sum, currency));
          expect(amounts.reduce((total, each) => total.minus(each), zero).toString()).toBe(written(-sum, currency));
        },
      ),
    );
  });

  test('knows its sign, and zero has none', () => {
    for (const text of ['0', '-0', '0.00', '-0.00']) {
      const zero = Amount.of(text, 'USD');
      expect([zero.isZero(), zero.isNegative(), zero.isPositive(), zero.toString()]).toEqual([
        true,
        false,
        false,
        '0.00',
      ]);
      expect(zero.negated().toString()).toBe('0.00');
      expect(isZero(text)).toBe(true);
    }
    expect([isZero('-0.01'), isZero('1000000000000000.10')]).toEqual([false, false]);
    expect(() => isZero('')).toThrow(TypeError);
    expect(Amount.of('-0.01', 'USD').isNegative()).toBe(true);
    expect(Amount.of('0.01', 'USD').isPositive()).toBe(true);
  });

  test('of 0.1 and one of 0.2 make 0.30', () => {
    expect(Amount.of('0.1', 'USD').plus(Amount.of('0.2', 'USD')).toString()).toBe('0.30');
  });

  test('never adds to one of another currency', () => {
    const [dollar, euro] = [Amount.of('1', 'USD'), Amount.of('1', 'EUR')];
    const share = [() => dollar.prorated(euro, dollar), () => dollar.prorated(dollar, euro)];
    for (const action of [() => dollar.plus(euro), () => dollar.minus(euro), () => dollar.equals(euro), ...share]) {
      expect(action).toThrow(TypeError);
    }
  });

  test('is never made of an exponent, a fraction of a cent or a currency nobody has', () => {
    expect(() => Amount.of('1e2', 'USD')).toThrow(TypeError);
    expect(() => Amount.of('0.001', 'USD')).toThrow(RangeError);
    expect(() => Amount.of('1', 'XYZ')).toThrow(TypeError);
  });

  test('is written for people with its currency and commas', () => {
    expect(Amount.of('1234567.5', 'USD').forPeople()).toBe('1,234,567.50 USD');
    expect(Amount.of('-1234', 'JPY').forPeople()).toBe('-1,234 JPY');
    expect([groupThousands('999'), groupThousands('-1000.123'), groupThousands('0.1234')]).toEqual([
      '999',
      '-1,000.123',
      '0.1234',
    ]);
  });
});

describe('currencies', () => {
  test('have the minor digits of ISO 4217', () => {
    expect(['JPY', 'USD', 'KWD', 'CLF', 'UYW', 'ISK', 'HUF', 'TND'].map(minorDigits)).toEqual([0, 2, 3, 4, 4, 0, 2, 3]);
  });

  test('are each listed once, and nothing else is one', () => {
    const all = [...MINOR_DIGITS.keys()];
    expect(all.length).toBeGreaterThan(150);
    expect(new Set(all).size).toBe(all.length);
    expect(all.every((code) => /^[A-Z]{3}$/.test(code) && isCurrency(code))).toBe(true);
    for (const code of ['', 'usd', 'US', 'USDD', 'XXX', 'XTS', 'XAU', 'constructor', '__proto__', 'USD ']) {
      expect(isCurrency(code)).toBe(false);
    }
  });
});
