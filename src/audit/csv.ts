/** CSV for exports (RFC 4180), safe to open in a spreadsheet. */
import { stringify } from 'csv-stringify/sync';

export const csvLine = (cells: readonly string[]): string => stringify([[...cells]]);

/**
 * A cell of CSV. A text that a spreadsheet could read as a formula, or that begins with an apostrophe, gets an apostrophe
 * in front, so removing one leading apostrophe restores every text. Numbers stay as they are.
 */
export function cellOf(value: unknown): string {
  const text = value === null || value === undefined ? '' : String(value);
  return /^['=+@\t\r-]/.test(text) && !/^-?\d+(\.\d+)?$/.test(text) ? `'${text}` : text;
}
