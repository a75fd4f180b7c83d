/** Tables as CSV, for spreadsheets and other programs. */
import { stringify } from 'csv-stringify/sync';

/**
 * A header and the rows, with the line ends of RFC 4180. Text that a spreadsheet would read as a formula gets a leading
 * apostrophe; negative numbers do not.
 */
export function csv(
  columns: readonly string[],
  rows: readonly Readonly<Record<string, string | number | null>>[],
): string {
  const written = rows.map((row) => columns.map((column) => cell(row[column] ?? '')));
  return stringify([columns, ...written], { record_delimiter: 'windows' });
}

const NUMBER = /^-?\d+(\.\d+)?$/;

function cell(value: string | number): string {
  const text = String(value);
  return /^[=+\-@\t\r]/.test(text) && !NUMBER.test(text) ? `'${text}` : text;
}
