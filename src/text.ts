/** Returns `1,234`. */
export const counted = (count: number) => count.toLocaleString('en-US');

export const capitalized = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

/** Lowers the first letter. An abbreviation such as DSO keeps its capitals. */
export const uncapitalized = (text: string) => text.replace(/^[A-Z](?![A-Z])/, (letter) => letter.toLowerCase());

/** Returns `1 row`, `2 rows` or `1,234 rows`. Nouns with an irregular plural need `nouns`. */
export function plural(count: number, noun: string, nouns = `${noun}s`) {
  return `${counted(count)} ${count === 1 ? noun : nouns}`;
}

const NAMED = 10;

/** Returns up to ten names, or `INV-2026-000001 and 39 more`. */
export const inShort = (all: readonly string[]): string =>
  all.length > NAMED ? `${all[0]} and ${counted(all.length - 1)} more` : all.join(' ');

/** Returns `2026-08-01 11:00 UTC` for an ISO instant in UTC. */
export const minuteOf = (instant: string) => `${instant.slice(0, 16).replace('T', ' ')} UTC`;

/**
 * Returns a text such as `40 days`. The unit is the largest unit of which there is at least 1, and the count is rounded
 * down.
 */
export function duration(seconds: number) {
  const units = [
    ['day', 86_400],
    ['hour', 3_600],
    ['minute', 60],
  ] as const;
  const [unit, size] = units.find(([, length]) => seconds >= length) ?? (['second', 1] as const);
  return plural(Math.floor(seconds / size), unit);
}

/** Spreadsheets ignore blanks before a sign. East Asian versions also accept full-width signs. */
const FORMULA = /^([\t\r\n]|[ \t\r\n]*[=+@＝＋－＠-])/;

/** Returns whether a spreadsheet could read a text as a formula. Numbers are safe. */
export const couldRun = (text: string) => FORMULA.test(text) && !/^-?\d+(\.\d+)?$/.test(text);

/**
 * Returns a cell of CSV. Text that could be a formula, or that begins with an apostrophe, gets a leading apostrophe.
 * Therefore, every original text can be restored by removing one leading apostrophe.
 */
export function cellOf(value: unknown) {
  const text = value === null || value === undefined ? '' : String(value);
  return text.startsWith("'") || couldRun(text) ? `'${text}` : text;
}

/** Compares texts by UTF-16 units, for `sort`. */
export const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

/** The names in texts such as `number status balance`. */
export type NamesIn<Text extends string, Found = never> = Text extends `${infer First} ${infer Rest}`
  ? NamesIn<Rest, Found | First>
  : Found | Text;

/** Returns the names in texts such as `number status balance`, with their types. */
export const names = <const Texts extends readonly string[]>(...texts: Texts): NamesIn<Texts[number]>[] =>
  texts.join(' ').split(' ') as NamesIn<Texts[number]>[];

/** The items of a list are separated by semicolons, the fields of an object by commas. */
export function inWords(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value)) return value.map(inWords).join('; ') || 'none';
  if (typeof value !== 'object' || value === null) return String(value ?? '') || 'none';
  return Object.entries(value)
    .filter(([, each]) => each !== null)
    .map(([name, each]) => `${name.replaceAll('_', ' ')} ${inWords(each)}`)
    .join(', ');
}
