/** Amounts and dates as documents write them: in English, whatever the partner's country. */
import { describe, expect, test } from 'vitest';
import { localeOf } from '../../src/documents/locale.ts';
import { readTemplate } from '../../src/documents/pdf/template.ts';
import { Amount } from '../../src/money.ts';

describe('an amount', () => {
  test('is written the same for every country: the words around it are English', () => {
    const countries = [...Object.keys(readTemplate().countries), ''];
    expect(countries.length).toBeGreaterThan(240);
    const written = countries.map((country) => localeOf(country).amount(Amount.of('12345678.90', 'USD')));
    expect(new Set(written)).toEqual(new Set(['USD 12,345,678.90']));
  });

  test('keeps the digits that it has', () => {
    const { number } = localeOf('DE');
    expect(['0', '7', '-7', '999', '1000', '-100000', '0.000', '1234.1255'].map((each) => number(each))).toEqual([
      '0',
      '7',
      '-7',
      '999',
      '1,000',
      '-100,000',
      '0.000',
      '1,234.1255',
    ]);
  });

  test('has its currency’s code, after the minus sign', () => {
    expect(localeOf('JP').amount(Amount.of('1234', 'JPY'))).toBe('JPY 1,234');
    expect(localeOf('DE').amount(Amount.of('-9.72', 'USD'))).toBe('-USD 9.72');
    expect(localeOf('US').amount(Amount.of('0', 'USD').negated())).toBe('USD 0.00');
  });
});

test.each([
  ['US', 'December 1, 2026'],
  ['CA', 'December 1, 2026'],
  ['PH', 'December 1, 2026'],
  ['GB', '1 December 2026'],
  ['DE', '1 December 2026'],
  ['JP', '1 December 2026'],
  ['', '1 December 2026'],
])('a date in %s is %s', (country, date) => {
  expect(localeOf(country).date('2026-12-01')).toBe(date);
});
