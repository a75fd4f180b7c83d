/**
 * Data files of a pack as Parquet, for analysis. Each is generated from the CSV or JSON Lines file beside it, so both
 * have the same content. Amounts and rates are exact decimals; dates are dates; instants are microseconds in UTC; ids
 * are 64-bit integers. It is written in row groups, in constant memory.
 */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { parse } from 'csv-parse';
import { ByteWriter, ParquetWriter, type SchemaElement } from 'hyparquet-writer';
import { type Column, type ColumnType, columnsOf, type DataFile, type TableFormat } from './dictionary.ts';
import type { FileInPack } from './pack.ts';

type Value = string | number | bigint | boolean | null;
type Row = Readonly<Record<string, unknown>>;

/** Rows per row group. Each column of a group is in memory. */
const GROUP = 20_000;
const AMOUNT_DIGITS = 4;
const RATE_DIGITS = 12;

/** A decimal as an integer of its last digit: `-1.5` with 4 digits is -15000. */
function unscaled(text: string, digits: number): bigint {
  const [whole = '', fraction = ''] = text.split('.');
  if (!/^-?\d+$/.test(whole) || !/^\d*$/.test(fraction) || fraction.length > digits)
    throw new Error(`${text} is not a decimal of at most ${digits} digits`);
  return BigInt(whole + fraction.padEnd(digits, '0'));
}

/** Microseconds since 1970 of `2026-07-15T12:00:00.25Z`. */
function micros(text: string): bigint {
  const [seconds = '', fraction = ''] = text.replace(/Z$/, '').split('.');
  return BigInt(Date.parse(`${seconds}Z`)) * 1000n + BigInt(fraction.padEnd(6, '0'));
}

const DAY_MS = 86_400_000;

interface ParquetType {
  readonly element: Omit<SchemaElement, 'name'>;
  readonly read: (text: string) => Value;
}

const decimal = (digits: number): ParquetType => ({
  element: { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16, converted_type: 'DECIMAL', precision: 38, scale: digits },
  read: (text) => unscaled(text, digits),
});
const TEXT: ParquetType = {
  element: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  read: (text) => text,
};

const TYPES: Readonly<Record<ColumnType, ParquetType>> = {
  integer: { element: { type: 'INT64' }, read: (text) => BigInt(text) },
  amount: decimal(AMOUNT_DIGITS),
  decimal: decimal(RATE_DIGITS),
  date: {
    element: { type: 'INT32', converted_type: 'DATE' },
    read: (text) => Date.parse(`${text}T00:00:00Z`) / DAY_MS,
  },
  instant: {
    element: {
      type: 'INT64',
      converted_type: 'TIMESTAMP_MICROS',
      logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
    },
    read: micros,
  },
  boolean: { element: { type: 'BOOLEAN' }, read: (text) => text === 'true' },
  text: TEXT,
  month: TEXT,
  list: TEXT,
  object: TEXT,
  json: TEXT,
};

/** The value of a cell. An empty cell is null. A value that is neither a text nor a number is written as JSON. */
function valueOfCell(given: unknown, type: ColumnType, format: TableFormat): Value {
  if (given === null || given === undefined || given === '') return null;
  const text = typeof given === 'object' ? JSON.stringify(given) : String(given);
  // The apostrophe is for spreadsheets.
  return TYPES[type].read(format === 'csv' && /^'['=+@\t\r-]/.test(text) ? text.slice(1) : text);
}

async function* rowsOf(path: string, format: TableFormat): AsyncGenerator<Row> {
  if (format === 'csv') {
    yield* createReadStream(path).pipe(parse({ columns: true })) as AsyncIterable<Row>;
    return;
  }
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY }))
    yield JSON.parse(line) as Row;
}

/** Writes `out` from the data file at `path`. Lists and objects stay JSON. */
export async function writeParquet(
  { file, path, format }: { file: DataFile; path: string; format: TableFormat },
  out: FileInPack,
): Promise<void> {
  const columns = columnsOf(file, format).filter(isTop);
  const bytes = new ByteWriter();
  const writer = new ParquetWriter({
    writer: bytes,
    createdBy: 'Reckoner',
    schema: [
      { name: file, num_children: columns.length },
      ...columns.map(
        ({ name, type }): SchemaElement => ({ name, repetition_type: 'OPTIONAL', ...TYPES[type].element }),
      ),
    ],
  });
  const flush = async () => {
    await out.write(Buffer.from(bytes.getBytes()));
    bytes.index = 0;
  };
  let group: Value[][] = columns.map(() => []);
  const writeGroup = async () => {
    await writer.write({
      columnData: columns.map(({ name }, at) => ({ name, data: group[at] as Value[] })),
      rowGroupSize: GROUP,
    });
    group = columns.map(() => []);
    await flush();
  };
  for await (const row of rowsOf(path, format)) {
    for (const [at, { name, type }] of columns.entries()) group[at]?.push(valueOfCell(row[name], type, format));
    if (group[0]?.length === GROUP) await writeGroup();
  }
  if (group[0]?.length !== 0) await writeGroup();
  await writer.finish();
  await flush();
}

const isTop = ({ name }: Column, _: number, all: readonly Column[]) =>
  !all.some((other) => (other.type === 'list' || other.type === 'object') && name.startsWith(`${other.name}.`));
