/** Spreadsheet files of lists and reports: CSV that Excel opens directly, and XLSX. */
import { stringify } from 'csv-stringify/sync';
import writeXlsx, { Cell as XlsxCell } from 'write-excel-file/node';
import { couldRun } from './text.ts';

/** The type of a column. An amount and its currency have separate columns. */
export type ColumnType = 'text' | 'amount' | 'count' | 'date';

type Value = string | number | null;

export type Sheet = Readonly<{
  /** The worksheet's name: at most 31 characters, none of `\ / ? * [ ] :`. */
  name: string;
  /** The headings in order, each with its column's type. */
  columns: Readonly<Record<string, ColumnType>>;
  /** Each row has values by heading: texts, numbers or null. Values without a heading are omitted. */
  rows: readonly object[];
  formulas?: Formulas | undefined;
  /** Below the rows, a sum for each currency. A column in `months` sums only the rows of that month. */
  totals?: readonly Readonly<{ row: object; months: Readonly<Record<string, string | undefined>> }>[] | undefined;
}>;

/**
 * The formulas of a row by column, for workbooks. `cell` gives the address of a column's cell in this row, or in a row
 * above it: `cell('closing', -1)`. A formula replaces a number that it computes, never a text.
 */
export type Formulas = (
  row: Readonly<Record<string, Value>>,
  cell: (column: string, rows?: number) => string,
  before: Readonly<Record<string, Value>> | undefined,
) => Readonly<Record<string, string>>;

type TypedColumn = `${string}:${Exclude<ColumnType, 'text'>}`;

/** The columns that are named in order, such as `due_on:date`. A column without a type is a text. */
type Columns<Text extends string> = Text extends `${infer First} ${infer Rest}`
  ? `${Columns<First>} ${Columns<Rest>}`
  : Text extends `${string}:${string}`
    ? TypedColumn
    : Text;

/** Returns columns in order: `number due_on:date balance:amount`. A column without a type is a text. */
export const columnsOf = <Text extends string>(columns: Text & Columns<Text>): Sheet['columns'] =>
  Object.fromEntries(
    columns.split(' ').map((column) => {
      const [name = '', type = 'text'] = column.split(':');
      return [name, type as ColumnType];
    }),
  );

/** Without this mark, Excel reads a CSV file as Windows-1252 and garbles names. */
const BYTE_ORDER_MARK = '\uFEFF';

/**
 * Returns UTF-8 CSV with a byte order mark and the line ends of RFC 4180. Text that a spreadsheet would read as a
 * formula gets a leading apostrophe. Negative numbers do not.
 */
export function csvOf({ columns, rows, totals = [] }: Sheet) {
  const names = Object.keys(columns);
  const written = [...rows, ...totals.map(({ row }) => row)].map((row) =>
    names.map((name) => unformulated(valueAt(row, name) ?? '')),
  );
  return BYTE_ORDER_MARK + stringify([names, ...written], { record_delimiter: 'windows' });
}

const valueAt = (row: object, column: string): Value => (row as Record<string, Value>)[column] ?? null;

const NUMBER = /^-?\d+(\.\d+)?$/;

function unformulated(value: string | number) {
  const text = String(value);
  return couldRun(text) ? `'${text}` : text;
}

/**
 * Returns a workbook with one worksheet and a fixed heading. Amounts and dates are numbers that Excel can sum and sort.
 */
export function xlsxOf({ name, columns, rows, formulas = () => ({}), totals = [] }: Sheet): Promise<Buffer> {
  const types = Object.entries(columns);
  const heading = types.map(([column]): XlsxCell => ({ value: column, fontWeight: 'bold' }));
  const values = rows as readonly Readonly<Record<string, Value>>[];
  const cells = values.map((row, at) => {
    const computed = formulas(row, (column, by = 0) => addressOf(columns, column, at + 2 + by), values[at - 1]);
    return types.map(([column, type]) => withFormula(xlsxCell(valueAt(row, column), type), computed[column]));
  });
  const sums = totals.map(({ row, months }) =>
    types.map(([column, type]) => {
      const cell = xlsxCell(valueAt(row, column), type);
      const sum = sumOf(columns, column, rows.length, { currency: valueAt(row, 'currency'), month: months[column] });
      return cell && { ...(withFormula(cell, sum) as object), fontWeight: 'bold' as const };
    }),
  );
  const widths = types.map(([column]) => ({ width: widthOf([column, ...rows.map((row) => valueAt(row, column))]) }));
  return writeXlsx([heading, ...cells, ...sums] as XlsxCell[][], {
    sheet: name,
    columns: widths,
    stickyRowsCount: 1,
  }).toBuffer();
}

function xlsxCell(value: Value, type: ColumnType): XlsxCell {
  if (value === null || value === '') return null;
  const text = String(value);
  if (type === 'date') return { type: Date, value: new Date(`${text.slice(0, 10)}T00:00:00Z`), format: 'yyyy-mm-dd' };
  if (type === 'text' || !isExactAsNumber(text)) return { type: String, value: text };
  return { type: Number, value: Number(text), format: type === 'count' ? '#,##0' : amountFormat(text) };
}

function sumOf(columns: Sheet['columns'], column: string, count: number, criteria: Readonly<Record<string, unknown>>) {
  const range = (of: string) => `${addressOf(columns, of, 2)}:${addressOf(columns, of, count + 1)}`;
  const given = Object.entries(criteria).filter(([, value]) => value !== undefined);
  return `SUMIFS(${[range(column), ...given.flatMap(([of, value]) => [range(of), `"${value}"`])].join(',')})`;
}

const withFormula = (cell: XlsxCell, formula: string | undefined): XlsxCell =>
  formula !== undefined && cell !== null && typeof cell === 'object' && 'type' in cell && cell.type === Number
    ? { type: 'Formula', value: formula, ...('format' in cell && { format: cell.format }) }
    : cell;

/** `C7` for the third column of the seventh row. A sheet has at most 26 columns with addresses. */
const addressOf = (columns: Sheet['columns'], column: string, row: number) =>
  `${String.fromCharCode(65 + Object.keys(columns).indexOf(column))}${row}`;

/** Excel keeps 15 significant digits. Longer amounts are written as text, so that no digit is lost. */
const isExactAsNumber = (text: string) => NUMBER.test(text) && text.replace(/\D/g, '').replace(/^0+/, '').length <= 15;

function amountFormat(text: string) {
  const decimals = text.split('.')[1]?.length ?? 0;
  return decimals === 0 ? '#,##0' : `#,##0.${'0'.repeat(decimals)}`;
}

const widthOf = (values: readonly Value[]) =>
  Math.min(60, 2 + Math.max(...values.map((value) => String(value ?? '').length)));
