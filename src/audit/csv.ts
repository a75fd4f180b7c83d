/** CSV as exports have it (RFC 4180), safe to open in a spreadsheet. */
import { stringify } from 'csv-stringify/sync';

export const csvLine = (cells: readonly string[]): string => stringify([[...cells]]);

/**
 * A text that a spreadsheet could take for a formula gets an apostrophe in front; so does one that begins with an
 * apostrophe, which makes it reversible: one is taken away from each cell that begins with one. A number is a number.
 */
export function cellOf(value: unknown): string {
  const text = value === null || value === undefined ? '' : String(value);
  return /^['=+@\t\r-]/.test(text) && !/^-?\d+(\.\d+)?$/.test(text) ? `'${text}` : text;
}
