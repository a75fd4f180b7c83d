/**
 * Writes the file of rejected rows, each with its place and the reason. As NDJSON, a line contains the row exactly as
 * in its file. As CSV, the file has the columns of an import, so that it can be corrected in a spreadsheet and imported
 * again.
 */
import { createWriteStream, statSync } from 'node:fs';
import { finished } from 'node:stream/promises';
import { stringify } from 'csv-stringify/sync';
import { Transaction } from '#database/transaction';
import { reasonOf, refuse } from '#errors/refusals';
import { cellOf } from '#text';
import { RowFormat, SourceFile, SourceRecord } from './read.ts';
import { REJECT_FIELDS, ROW_FIELDS } from './row.ts';
import { BadRow, readBadRows } from './rows.sql.ts';

/**
 * The format follows from the path's extension. With an unknown extension, the file is CSV if all imported files are
 * CSV.
 */
export function rejectFormat(path: string, files: readonly SourceFile[]): RowFormat {
  if (/\.csv$/i.test(path)) return 'csv';
  if (/\.(ndjson|jsonl)$/i.test(path)) return 'ndjson';
  return files.every(({ format }) => format === 'csv') ? 'csv' : 'ndjson';
}

/**
 * The part of a record that the file of rejects needs. A CSV file needs the record's cells, or the whole text if the
 * cells cannot be separated.
 */
export const rejectedRow =
  (format: RowFormat) =>
  ({ texts, raw, problem }: SourceRecord) =>
    format === 'ndjson'
      ? raw
      : JSON.stringify([...ROW_FIELDS.map((field) => texts[field]), problem === undefined ? '' : raw]);

const csvLine = (cells: readonly unknown[]) => stringify([cells.map(cellOf)], { record_delimiter: 'windows' });

function csvReject({ file, line, field, code, reason, row }: RejectedRow) {
  const cells = JSON.parse(row) as string[];
  return csvLine([...cells.slice(0, -1), file, line, field, code, reason, cells.at(-1)]);
}

type RejectedRow = Omit<BadRow, 'file'> & Readonly<{ file: string; row: string }>;

/** Writes every bad row of this import, in file order. Refuses file_unwritable before anything is recorded. */
export async function writeRejects(tx: Transaction, path: string, files: readonly SourceFile[]) {
  const unwritable = (reason: string, cause?: unknown) => refuse('file_unwritable', { file: path, reason }, cause);
  if (files.some(({ name }) => isSameFile(name, path))) throw unwritable('it is one of the files to import');
  const isCsv = rejectFormat(path, files) === 'csv';
  const written = (row: RejectedRow) => (isCsv ? csvReject(row) : `${JSON.stringify(row)}\n`);
  const output = createWriteStream(path);
  const ended = finished(output).catch((error) => {
    throw unwritable(reasonOf(error), error);
  });
  ended.catch(() => {}); // awaited below
  try {
    if (isCsv) output.write(csvLine([...ROW_FIELDS, ...REJECT_FIELDS]));
    for await (const rows of readBadRows(tx)) {
      const lines = rows.map((row) => written({ ...row, file: (files[row.file] as SourceFile).name }));
      const drained = new Promise<void>((resolve) => output.once('drain', () => resolve()));
      if (!output.write(lines.join(''))) await Promise.race([drained, ended]);
    }
    output.end();
    await ended;
  } finally {
    output.destroy();
  }
}

function isSameFile(one: string, other: string) {
  try {
    const [a, b] = [statSync(one), statSync(other)];
    return a.dev === b.dev && a.ino === b.ino;
  } catch {
    return false; // Opening the path will report a missing file.
  }
}
