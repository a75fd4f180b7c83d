/** Limits for reading a file. Refusal: file_items_too_many. */
import { refuse } from '../errors/refusals.ts';

/** The most items in one file; more need several files. The largest bank file that we have seen has 151,700 entries. */
export const MOST_ITEMS = 200_000;

/** The most problems that a refusal lists. A reader stops when it has found that many. */
export const PROBLEMS_TOLD = 20;

/** The longest line of a CSV. No real one comes close. */
const LONGEST_LINE = 100_000;
export const LINE_TOO_LONG = `is longer than ${LONGEST_LINE} characters: a CSV line cannot be that long`;

/** The number of the first line that is too long for a CSV; undefined if none is. */
export function tooLongLine(text: string): number | undefined {
  let number = 1;
  for (let at = 0; at < text.length; number += 1) {
    const end = text.indexOf('\n', at);
    if ((end === -1 ? text.length : end) - at > LONGEST_LINE) return number;
    if (end === -1) return undefined;
    at = end + 1;
  }
  return undefined;
}

export function refuseTooMany(file: string, items: number, most = MOST_ITEMS): void {
  if (items > most) throw refuse('file_items_too_many', { file, most });
}

/** The lines that are not blank, with their numbers. Refuses more than MOST_ITEMS before any is read. */
export function linesOf(file: string, text: string): { readonly number: number; readonly text: string }[] {
  refuseTooMany(file, countLines(text));
  return text
    .split('\n')
    .map((line, index) => ({ number: index + 1, text: line }))
    .filter((line) => line.text.trim() !== '');
}

/** Reads items in order until as many are wrong as a refusal lists. `read` adds to the problems. */
export function readUntilTold<Item, Read>(
  items: Iterable<Item>,
  problems: readonly unknown[],
  read: (item: Item, index: number) => Read | undefined,
): Read[] {
  const done: Read[] = [];
  let index = 0;
  for (const item of items) {
    const one = read(item, index);
    if (one !== undefined) done.push(one);
    if (problems.length >= PROBLEMS_TOLD) break;
    index += 1;
  }
  return done;
}

export function countLines(content: { indexOf(text: string, from: number): number }): number {
  let count = 1;
  for (let at = content.indexOf('\n', 0); at !== -1; at = content.indexOf('\n', at + 1)) count += 1;
  return count;
}
