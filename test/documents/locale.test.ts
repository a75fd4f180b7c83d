/** Amounts and dates as each country writes them, from our own table, which is compared with CLDR. */
import { describe, expect, test } from 'vitest';
import { type Locale, localeOf, PLAIN } from '../../src/documents/locale.ts';
import { readTemplate, readTemplateFile } from '../../src/documents/pdf/template.ts';
import { Amount } from '../../src/money.ts';

const NARROW = '\u202f';
const FIXED = '\u00a0';

describe('an amount', () => {
  test.each([
    ['US', '12,345,678.90', '-1,234.50'],
    ['CA', '12,345,678.90', '-1,234.50'],
    ['GB', '12,345,678.90', '-1,234.50'],
    ['JP', '12,345,678.90', '-1,234.50'],
    ['MX', '12,345,678.90', '-1,234.50'],
    ['DE', '12.345.678,90', '-1.234,50'],
    ['AT', '12.345.678,90', '-1.234,50'],
    ['ES', '12.345.678,90', '-1.234,50'],
    ['GR', '12.345.678,90', '-1.234,50'],
    ['VN', '12.345.678,90', '-1.234,50'],
    ['BR', '12.345.678,90', '-1.234,50'],
    ['FR', `12${NARROW}345${NARROW}678,90`, `-1${NARROW}234,50`],
    ['SE', `12${FIXED}345${FIXED}678,90`, `-1${FIXED}234,50`],
    ['PL', `12${FIXED}345${FIXED}678,90`, `-1${FIXED}234,50`],
    ['CH', '12’345’678.90', '-1’234.50'],
    ['IN', '1,23,45,678.90', '-1,234.50'],
    ['??', '12,345,678.90', '-1,234.50'],
    ['', '12,345,678.90', '-1,234.50'],
  ])('in %s is %s', (country, large, negative) => {
    const locale = localeOf(country);
    expect(locale.number('12345678.90')).toBe(large);
    expect(locale.number('-1234.50')).toBe(negative);
  });

  test('keeps its digits', () => {
    const german = localeOf('DE');
    expect(['0', '7', '-7', '999', '1000', '-100000', '0.000', '1234.1255'].map((each) => german.number(each))).toEqual(
      ['0', '7', '-7', '999', '1.000', '-100.000', '0,000', '1.234,1255'],
    );
    expect(localeOf('IN').number('-123456')).toBe('-1,23,456');
    expect(localeOf('IN').number('100')).toBe('100');
  });

  test('always has its currency’s code', () => {
    expect(localeOf('DE').amount(Amount.of('1234.5', 'USD'))).toBe('USD 1.234,50');
    expect(localeOf('JP').amount(Amount.of('1234', 'JPY'))).toBe('JPY 1,234');
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

/** Where business is done in another language than CLDR's likeliest, or in one that CLDR has no numbers for. */
const LANGUAGES: Readonly<Record<string, string>> = {
  ...{ BI: 'fr', CF: 'fr', HT: 'fr', KM: 'fr', MG: 'fr', ML: 'fr', NE: 'fr', SN: 'fr', TD: 'fr' },
  ...{ BQ: 'nl', CW: 'nl', MZ: 'pt', PY: 'es', RW: 'en', ST: 'pt', VU: 'en' },
};

function accordingToCldr(country: string): string {
  const language = LANGUAGES[country] ?? new Intl.Locale(`und-${country}`).maximize().language;
  const form = new Intl.NumberFormat([`${language}-${country}-u-nu-latn`, 'en'], {
    style: 'currency',
    currency: 'USD',
    currencyDisplay: 'code',
    useGrouping: 'always',
  });
  return form
    .formatToParts(12345678.5)
    .filter(({ type }) => ['integer', 'group', 'decimal', 'fraction'].includes(type))
    .map(({ value }) => value)
    .join('');
}

/** Differences on purpose. */
function ours(country: string, locale: Locale): string {
  const text = locale.number('12345678.50');
  // CLDR writes a typewriter's apostrophe since 48, and the Swiss a typographer's.
  if (country === 'CH' || country === 'LI') return text.replaceAll('’', "'");
  // CLDR puts the escudo's sign where the decimals begin, whatever the currency.
  return country === 'CV' ? text.replace(',', '$') : text;
}

test('every country writes amounts as CLDR says, where this engine has the same CLDR as the table', () => {
  const { cldr } = JSON.parse(readTemplateFile('locales.json').toString()) as { cldr: string };
  const countries = Object.keys(readTemplate().countries);
  expect(countries.length).toBeGreaterThan(240);
  const differences = countries
    .map((country) => ({ country, cldr: accordingToCldr(country), ours: ours(country, localeOf(country)) }))
    .filter((each) => each.cldr !== each.ours);
  if (Number.parseInt(process.versions['cldr'] ?? '', 10) === Number(cldr)) expect(differences).toEqual([]);
  else if (differences.length > 0) console.info(`CLDR ${process.versions['cldr']} differs from ${cldr}:`, differences);
});

test('every country of the table exists and occurs once, and no country uses the fallback', () => {
  const { amounts } = JSON.parse(readTemplateFile('locales.json').toString()) as { amounts: { countries: string[] }[] };
  const listed = amounts.flatMap(({ countries }) => countries.join(' ').split(' '));
  expect([...listed].sort()).toEqual(Object.keys(readTemplate().countries).sort());
  expect(listed.map(localeOf)).not.toContain(PLAIN);
});
