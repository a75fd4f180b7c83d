/**
 * How documents write amounts and dates: in English, like all their words. Only the order of a date depends on the
 * country, because English dates are written differently there. The tables of the JavaScript engine are not used: they
 * change with its version and would change the bytes of documents. Minus signs are hyphens, which spreadsheets read; a
 * month is always a word, so that no date is ambiguous.
 */
import { type Amount, groupThousands } from '../money.ts';
import { dateName } from '../month.ts';

/** Countries that write December 1, 2026; all others write 1 December 2026. Unicode CLDR 48. */
const MONTH_FIRST: ReadonlySet<string> = new Set('AS CA FM GU MH MP PH PR PW UM US VI'.split(' '));

export class Locale {
  private readonly monthFirst: boolean;

  /** `country`: ISO 3166, or empty. */
  constructor(country: string) {
    this.monthFirst = MONTH_FIRST.has(country);
  }

  /** `-1234567.50` as `-1,234,567.50`, with any number of digits. */
  number(plain: string): string {
    return groupThousands(plain);
  }

  /** `EUR 1,234.50`, or `-EUR 1,234.50`. A code, because a symbol such as the dollar's is ambiguous. */
  amount(amount: Amount): string {
    const [sign, size] = amount.isNegative() ? ['-', amount.negated()] : ['', amount];
    return `${sign}${amount.currency} ${groupThousands(size.toString())}`;
  }

  /** `2026-12-01` as "1 December 2026" or "December 1, 2026". */
  date(date: string): string {
    return dateName(date, this.monthFirst ? 'month' : 'day');
  }
}

export const localeOf = (country: string): Locale => new Locale(country);
