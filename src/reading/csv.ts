/** Reads CSV files from people and other systems. Blank lines, and spaces around a cell, have no meaning. */
import { CsvError, parse } from 'csv-parse/sync';
import { reasonOf } from '#errors/refusals';
import { LINE_TOO_LONG, tooLongLine } from './limits.ts';

/** Takes a problem of a line, or of the whole file. */
type Complain = (reason: string, line: number | null) => void;

export interface CsvRecord {
  readonly line: number;
  readonly cells: readonly string[];
}

/** Reads the records, the header first, or the first `most` of them. A text that is not CSV has no records. */
export function csvRecords(text: string, complain: Complain, most?: number): CsvRecord[] {
  const long = tooLongLine(text);
  if (long !== undefined) {
    complain(LINE_TOO_LONG, long);
    return [];
  }
  try {
    const options = { bom: true, info: true, relax_column_count: true, skip_empty_lines: true, trim: true };
    const records = parse(text, { ...options, to: most ?? null }) as unknown as {
      record: string[];
      info: { lines: number };
    }[];
    return records.map(({ record, info }) => ({ line: info.lines, cells: record }));
  } catch (error) {
    const line = error instanceof CsvError && typeof error['lines'] === 'number' ? error['lines'] : null;
    complain(`is not CSV: ${reasonOf(error)}`, line);
    return [];
  }
}

type Columns<Name extends string> = Readonly<{
  needed: readonly Name[];
  /** The only other columns. Without it, all others are ignored. */
  optional?: readonly string[];
  most?: number;
}>;

/** Reads the lines below the header, with the names of the columns. Without a header, there are no lines. */
export function csvLines<Name extends string>(
  text: string,
  { needed, optional, most }: Columns<Name>,
  complain: Complain,
): Readonly<{ line: number; cells: Readonly<Record<Name, string>> }>[] {
  const [header, ...rest] = csvRecords(text, complain, most);
  if (header === undefined) return [];
  const names = header.cells;
  const known: readonly string[] = [...needed, ...(optional ?? [])];
  for (const each of needed) if (!names.includes(each)) complain(`has no column '${each}'`, header.line);
  for (const [index, each] of names.entries()) {
    if (known.includes(each)) {
      if (names.indexOf(each) !== index) complain(`has the column '${each}' twice`, header.line);
    } else if (optional !== undefined) {
      complain(`has the column '${each}', which is not one of ${known.join(', ')}`, header.line);
    }
  }
  for (const { line, cells } of rest) {
    if (cells.length === names.length) continue;
    complain(`has ${cells.length} fields, but the first line has ${names.length}`, line);
  }
  return rest.map(({ line, cells }) => ({
    line,
    cells: Object.fromEntries(names.map((name, index) => [name, cells[index] ?? ''])) as Record<Name, string>,
  }));
}
