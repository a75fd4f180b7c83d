/**
 * Formats amounts and dates for documents. Documents are in English; only the order of a date depends on the country.
 * The JavaScript engine's tables are not used, because they change with its version and would change the bytes of
 * documents. Minus signs are hyphens, which spreadsheets read. A month is always a word, so that no date is ambiguous.
 */
import { Amount, dateName, groupThousands } from '#values';

/** Countries that write December 1, 2026 (Unicode CLDR 48), not 1 December 2026. */
const MONTH_FIRST: ReadonlySet<string> = new Set('AS CA FM GU MH MP PH PR PW UM US VI'.split(' '));

export type Locale = ReturnType<typeof localeOf>;

/** `country` is an ISO 3166 code, or empty. */
export const localeOf = (country: string) => ({
  /** Formats `-1234567.50` as `-1,234,567.50`. */
  number: groupThousands,

  /** `EUR 1,234.50`, or `-EUR 1,234.50`. A symbol such as the dollar's would be ambiguous. */
  amount(amount: Amount) {
    const [sign, size] = amount.isNegative() ? ['-', amount.negated()] : ['', amount];
    return `${sign}${amount.currency} ${groupThousands(size.toString())}`;
  },

  /** Formats `2026-12-01` as "1 December 2026" or "December 1, 2026". */
  date: (date: string) => dateName(date, MONTH_FIRST.has(country) ? 'month' : 'day'),
});
