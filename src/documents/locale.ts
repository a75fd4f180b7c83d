/**
 * Amounts and dates as the partner's country writes them; words stay English. The table in templates/locales.json is our
 * own, because the JavaScript engine's tables change with its version and would change the bytes of documents.
 *
 * Minus signs are hyphens, which spreadsheets read; digits are always grouped, so that columns look alike; a month is
 * always a word, so that no date is ambiguous.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DateTime } from 'luxon';
import { z } from 'zod';
import type { Amount } from '../money.ts';
import { dateName } from '../month.ts';
import { packageRoot } from '../package.ts';

interface NumberForm {
  readonly group: string;
  readonly decimal: string;
  /** Digits in each group except the last, which has three. */
  readonly upperGroupSize: 2 | 3;
}

export class Locale {
  private readonly form: NumberForm;
  private readonly monthFirst: boolean;

  constructor(form: NumberForm, monthFirst: boolean) {
    this.form = form;
    this.monthFirst = monthFirst;
  }

  /** `-1234567.50` as `-1.234.567,50`, with any number of digits. */
  number(plain: string): string {
    const { group, decimal, upperGroupSize } = this.form;
    const [whole = '', fraction] = plain.split('.');
    const last = whole.slice(-3);
    const upper = whole.slice(0, -3).replace(upperGroupSize === 2 ? /\B(?=(\d{2})+$)/g : /\B(?=(\d{3})+$)/g, group);
    const grouped = /\d/.test(upper) ? `${upper}${group}${last}` : upper + last;
    return fraction === undefined ? grouped : `${grouped}${decimal}${fraction}`;
  }

  /** `EUR 1.234,50`: a symbol is ambiguous, as that of the dollar. */
  amount(amount: Amount): string {
    return `${amount.currency} ${this.number(amount.toString())}`;
  }

  /** `2026-12-01` as "1 December 2026" or "December 1, 2026". */
  date(date: string): string {
    if (!this.monthFirst) return dateName(date);
    return DateTime.fromISO(date, { zone: 'utc' }).setLocale('en').toFormat('LLLL d, yyyy');
  }
}

/** The locale of countries that are not listed. */
export const PLAIN = new Locale({ group: ',', decimal: '.', upperGroupSize: 3 }, false);

const countryList = z
  .array(z.string().regex(/^[A-Z]{2}( [A-Z]{2})*$/))
  .transform((lines) => lines.join(' ').split(' '));
const localesSchema = z.strictObject({
  source: z.string(),
  /** The CLDR release that a test compares with, if the JavaScript engine has the same. */
  cldr: z.string(),
  amounts: z.array(
    z.strictObject({
      group: z.string().length(1),
      decimal: z.string().length(1),
      upper_group_size: z.union([z.literal(2), z.literal(3)]),
      countries: countryList,
    }),
  ),
  /** Countries that write December 1, 2026; all others write 1 December 2026. */
  month_first: countryList,
});

let locales: ReadonlyMap<string, Locale> | undefined;

function readLocales(): ReadonlyMap<string, Locale> {
  const file = join(packageRoot, 'templates', 'locales.json');
  const { amounts, month_first } = localesSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  return new Map(
    amounts.flatMap(({ group, decimal, upper_group_size: upperGroupSize, countries }) =>
      countries.map((country) => [
        country,
        new Locale({ group, decimal, upperGroupSize }, month_first.includes(country)),
      ]),
    ),
  );
}

/** The locale of an ISO 3166 country. */
export function localeOf(country: string): Locale {
  locales ??= readLocales();
  return locales.get(country) ?? PLAIN;
}
