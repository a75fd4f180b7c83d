/**
 * Reading files of ledger rows, CSV with a header or NDJSON, as batches of records with their physical line. A record
 * that can't be read is a record with a problem, never an exception: the import reports it with all others.
 */
import { createReadStream } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import { type CsvError, type Info, parse } from 'csv-parse';
import { reasonOf, refuse } from '../errors.ts';
import { parseExactJson } from '../json.ts';
import { REQUIRED_FIELDS, ROW_FIELDS, type RowField, type RowProblem, type RowTexts } from './row.ts';

export type RowFormat = 'csv' | 'ndjson';

export interface SourceFile {
  /** As reports name it; `-` is standard input. */
  readonly name: string;
  readonly format: RowFormat;
}

export interface SourceRecord {
  /** Physical line in the file; the first is 1. */
  readonly line: number;
  readonly texts: RowTexts;
  /** Set where the record can't be read as a row. */
  readonly problem?: RowProblem;
  /** The record as it stood in the file. */
  readonly raw: string;
  /** Nothing after this record can be trusted (a wrong header, an open quote): the file is refused as a whole. */
  readonly fatal?: boolean;
}

/** No row is near this long; a longer line is a file of another kind. */
const LONGEST_RECORD = 1_000_000;

/** The records of a file in batches, one for each chunk read, so that memory stays constant. */
export async function* readRecords(file: SourceFile, onBytes: (bytes: number) => void): AsyncGenerator<SourceRecord[]> {
  const chunks = file.name === '-' ? process.stdin : createReadStream(file.name, { highWaterMark: 256 * 1024 });
  const counted = async function* (): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of chunks) {
        onBytes((chunk as Buffer).length);
        yield chunk as Buffer;
      }
    } catch (error) {
      throw refuse('file_unreadable', { file: file.name, reason: reasonOf(error) }, error);
    }
  };
  yield* file.format === 'csv' ? readCsv(counted()) : readNdjson(counted());
}

const NO_TEXTS: RowTexts = Object.freeze(Object.fromEntries(ROW_FIELDS.map((field) => [field, ''])) as RowTexts);

const unreadable = (line: number, raw: string, problem: RowProblem, fatal = false): SourceRecord => ({
  line,
  texts: NO_TEXTS,
  problem,
  raw: raw.slice(0, LONGEST_RECORD),
  ...(fatal ? { fatal } : {}),
});

// --- NDJSON ---------------------------------------------------------------------------------------------------------

async function* readNdjson(chunks: AsyncIterable<Buffer>): AsyncGenerator<SourceRecord[]> {
  const decoder = new StringDecoder('utf8');
  let line = 0;
  let rest = '';
  for await (const chunk of chunks) {
    const lines = (rest + decoder.write(chunk)).split('\n');
    rest = lines.pop() as string;
    const batch: SourceRecord[] = [];
    for (const text of lines) {
      line += 1;
      const record = ndjsonRecord(text, line);
      if (record) batch.push(record);
    }
    if (rest.length > LONGEST_RECORD) {
      const reason = `is longer than ${LONGEST_RECORD} characters: this is no file of ledger rows`;
      yield [...batch, unreadable(line + 1, rest, { field: '', code: 'line_too_long', reason }, true)];
      return;
    }
    yield batch;
  }
  const last = ndjsonRecord(rest + decoder.end(), line + 1);
  if (last) yield [last];
}

function ndjsonRecord(text: string, line: number): SourceRecord | undefined {
  const raw = line === 1 && text.startsWith('\uFEFF') ? text.slice(1) : text;
  if (raw.trim() === '') return undefined;
  let value: unknown;
  try {
    value = JSON.parse(raw);
    if (hasNumber(value)) value = parseExactJson(raw);
  } catch (error) {
    return unreadable(line, raw, { field: '', code: 'json_malformed', reason: `is not JSON: ${reasonOf(error)}` });
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return unreadable(line, raw, { field: '', code: 'json_malformed', reason: 'is not a JSON object' });
  }
  return objectRecord(value as Record<string, unknown>, raw, line);
}

function hasNumber(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  for (const key in value) if (typeof (value as Record<string, unknown>)[key] === 'number') return true;
  return false;
}

const FIELDS: ReadonlySet<string> = new Set(ROW_FIELDS);

function objectRecord(object: Record<string, unknown>, raw: string, line: number): SourceRecord {
  const texts: RowTexts = { ...NO_TEXTS };
  let problem: RowProblem | undefined;
  for (const key in object) {
    const value = object[key];
    if (!FIELDS.has(key)) {
      problem ??= { field: key.slice(0, 100), code: 'field_unknown', reason: 'is not a field of a ledger row' };
    } else if (typeof value === 'string') {
      texts[key as RowField] = value;
    } else if (value !== null) {
      problem ??= { field: key, code: 'field_malformed', reason: 'is neither a string nor a number' };
    }
  }
  return problem ? { line, texts, problem, raw } : { line, texts, raw };
}

// --- CSV ------------------------------------------------------------------------------------------------------------

interface CsvRecord {
  readonly record: string[];
  readonly info: Info;
  readonly raw: string;
}

async function* readCsv(chunks: AsyncIterable<Buffer>): AsyncGenerator<SourceRecord[]> {
  const skipped: SourceRecord[] = [];
  let broken: SourceRecord | undefined;
  const parser = parse({
    bom: true,
    info: true,
    raw: true,
    relax_column_count: true,
    skip_empty_lines: true,
    skip_records_with_error: true,
    max_record_size: LONGEST_RECORD,
    on_skip: (error) => {
      if (error) skipped.push(csvProblem(error, false));
      return undefined;
    },
  });
  parser.on('error', (error) => {
    broken = csvProblem(error as CsvError, true);
  });

  let header: readonly RowField[] | undefined;
  const drain = (): SourceRecord[] => {
    const batch: SourceRecord[] = skipped.splice(0);
    for (let next = parser.read() as CsvRecord | null; next !== null; next = parser.read() as CsvRecord | null) {
      if (header === undefined) {
        const columns = headerOf(next);
        if (!Array.isArray(columns)) return [columns as SourceRecord];
        header = columns as readonly RowField[];
      } else {
        batch.push(csvRecord(header, next));
      }
    }
    if (broken) batch.push(broken);
    return batch;
  };

  for await (const chunk of chunks) {
    if (!parser.write(chunk)) await new Promise<void>((resolve) => setImmediate(resolve));
    const batch = drain();
    yield batch;
    if (batch.at(-1)?.fatal) return;
  }
  await new Promise<void>((resolve) => {
    parser.once('error', () => resolve());
    parser.end(() => resolve());
  });
  const batch = drain();
  if (header === undefined && batch.length === 0) {
    const reason = 'is missing: the first line of a CSV file names its columns';
    batch.push(unreadable(1, '', { field: '', code: 'header_missing', reason }, true));
  }
  yield batch;
}

function csvProblem(error: CsvError, fatal: boolean): SourceRecord {
  const { lines, raw } = error as unknown as { lines?: number; raw?: string };
  return unreadable(lines ?? 1, raw ?? '', { field: '', code: 'csv_malformed', reason: error.message }, fatal);
}

/** The columns that the header names, or the record that says what is wrong with it. */
function headerOf({ record, info, raw }: CsvRecord): readonly RowField[] | SourceRecord {
  const names = record.map((name) => name.trim());
  const problem = (field: string, code: string, reason: string) =>
    unreadable(info.lines, raw, { field: field.slice(0, 100), code, reason }, true);
  for (const name of names) {
    if (!FIELDS.has(name)) return problem(name, 'field_unknown', 'is not a column of ledger rows');
    if (names.indexOf(name) !== names.lastIndexOf(name)) return problem(name, 'field_repeated', 'is named twice');
  }
  for (const field of REQUIRED_FIELDS) {
    if (!names.includes(field)) return problem(field, 'field_missing', 'is not among the columns of the header');
  }
  return names as RowField[];
}

function csvRecord(header: readonly RowField[], { record, info, raw }: CsvRecord): SourceRecord {
  const texts: RowTexts = { ...NO_TEXTS };
  header.forEach((field, index) => {
    texts[field] = record[index] ?? '';
  });
  const line = info.lines;
  if (record.length === header.length) return { line, texts, raw };
  const reason = `has ${record.length} columns where the header has ${header.length}`;
  return { line, texts, problem: { field: '', code: 'column_count', reason }, raw };
}
