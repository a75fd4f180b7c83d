/** Texts for people: counts, durations, and cells of CSV. */

/** `1,234` */
export const counted = (count: number): string => count.toLocaleString('en-US');

/** `1 row`, `2 rows`, `1,234 rows`; `1 entry`, `2 entries` with a given plural. */
export function plural(count: number, noun: string, nouns = `${noun}s`): string {
  return `${counted(count)} ${count === 1 ? noun : nouns}`;
}

/** `2026-08-01 11:00 UTC`, from an ISO instant in UTC. */
export const minuteOf = (instant: string): string => `${instant.slice(0, 16).replace('T', ' ')} UTC`;

/** `40 days`, `2 hours`, `3 minutes`, `20 seconds`: in the largest unit that is at least 1, rounded down. */
export function duration(seconds: number): string {
  const units = [
    ['day', 86_400],
    ['hour', 3_600],
    ['minute', 60],
  ] as const;
  const [unit, size] = units.find(([, length]) => seconds >= length) ?? (['second', 1] as const);
  return plural(Math.floor(seconds / size), unit);
}

/** Spreadsheets skip blanks before a sign, and East Asian ones accept full-width signs. */
const FORMULA = /^([\t\r\n]|[ \t\r\n]*[=+@＝＋－＠-])/;

/** Whether a spreadsheet could read a text as a formula. A number is not one. */
export const couldRun = (text: string): boolean => FORMULA.test(text) && !/^-?\d+(\.\d+)?$/.test(text);

/**
 * A cell of CSV. A text that a spreadsheet could read as a formula, or that begins with an apostrophe, gets an apostrophe
 * in front, so removing one leading apostrophe restores every text. Numbers stay as they are.
 */
export function cellOf(value: unknown): string {
  const text = value === null || value === undefined ? '' : String(value);
  return text.startsWith("'") || couldRun(text) ? `'${text}` : text;
}
