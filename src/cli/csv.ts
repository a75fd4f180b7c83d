/** Tables as CSV on stdout, for spreadsheets and other programs. */
import { stringify } from 'csv-stringify/sync';

/**
 * A header and the rows, lines ended as RFC 4180 has them. Text that a spreadsheet would take for a formula gets an
 * apostrophe before it; an amount below zero is a number and stays one.
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
