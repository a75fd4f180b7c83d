/**
 * A list, described once: what it can be filtered and sorted by, its columns, and the statement that reads it. The terminal
 * table, `--json`, CSV and XLSX (cli/list-command.ts), the console's page and the partner's (console/list.tsx) are made of it.
 *
 * To add a list: a file here, in this order: the row, the filters, the statement, `defineList`. To add a column: its field
 * in the row and the statement, its entry in `columns`, and its name in each face that shows it.
 */
import type { z } from 'zod';
import type { CommandWords } from '../actions/command.ts';
import type { Transaction } from '../database/transaction.ts';
import { Amount, moneyText } from '../money.ts';
import type { Installation } from '../people/audit-events.ts';
import type { Scope } from '../people/scope.ts';
import type { ToDo } from '../remedy.ts';
import type { ColumnType, Sheet } from '../sheet.ts';

/** One word about a row, and how urgent it is. */
export interface Mark {
  readonly text: string;
  readonly tone: 'good' | 'warn' | 'bad' | 'plain';
}

/** Several amounts are of several currencies. */
export type Value = string | number | Amount | readonly Amount[] | readonly Mark[] | null;

export interface Column<Row> {
  /** Of a page. A terminal writes it in lower case; a sheet has the column's name. */
  readonly heading: string;
  readonly type: ColumnType | 'marks' | 'instant' | 'month';
  /** Without it, the row's property of the column's name. */
  value?(row: Row, today: string): Value;
  /** What it is a link to: the place of the console, and the id there or a filter of the list there. */
  to?(row: Row): Link | null;
  /** `soft`: in a paler colour. `quiet`: zero is a dash, in a terminal nothing. `wrap`: broken at any character. */
  readonly look?: 'soft' | 'quiet' | 'wrap';
  /** In a terminal: shortened where the table is too wide; left out of one with fewer columns than this; left out where all rows agree. */
  readonly cut?: true;
  readonly width?: number;
  readonly unlessSame?: true;
}

export type Link = readonly [place: string, at: string | Readonly<Record<string, string>>];

/** What is asked of a list. */
export interface Asked<Filter, Sort extends string = string> {
  readonly filter: Filter;
  /** The partners whose rows may be seen; null: all. */
  readonly scope: Scope;
  /** `YYYY-MM-DD` */
  readonly today: string;
  readonly sort: Sort;
  /** The key of the last row of the page before. */
  readonly after: string | null;
  /** null: all rows. */
  readonly limit: number | null;
  readonly context: Installation;
}

/** What is below a list: a line for each currency. */
export type Total = Readonly<Record<string, Amount>>;

// Methods, not properties: a list of certain rows is a list.
export interface List<Row = unknown, Filter = unknown, Sort extends string = string, Name extends string = string> {
  /** `invoice list`. */
  readonly command: string;
  readonly summary: string;
  /** The filters that are arguments of the command. */
  readonly words?: CommandWords;
  /** Below the options of the command. */
  readonly help?: string;
  /** How many rows the command prints unless --limit says otherwise. Default: all. */
  readonly most?: number;
  /** The command reads from the primary server: it must be current. */
  readonly current?: true;
  /** What the command prints where there are none without a filter, and how to make the first. */
  readonly none?: string;
  readonly first?: ToDo;
  /** The command exits 4 because of these rows. */
  attention?(rows: readonly NoInfer<Row>[]): boolean;
  /** Of the page and the sheet. */
  readonly title: string;
  /** One of its rows: `document`. */
  readonly one: string;
  /** Its rows are those of all partners, so its page is for those alone who read the whole ledger. Any other list obeys `scope`. */
  readonly ofLedger?: true;
  /** Fields as those of an action: options of the command, inputs of the page, arguments of a tool. All are optional. */
  readonly filters: z.ZodObject & z.ZodType<Filter>;
  /** Filters with a name: tabs of the page, which begins with the first. */
  readonly views?: readonly (readonly [name: string, filter: Readonly<Record<string, string>>])[];
  /** Names of columns; `-name` is the other way round. Pages begin with the first, commands and sheets with the second. */
  readonly sorts: readonly [page: Sort, all: Sort, ...more: Sort[]];
  readonly columns: Readonly<Record<Name, Column<NoInfer<Row>>>>;
  /** The columns of each face, in order. */
  readonly sheet: readonly NoInfer<Name>[];
  readonly terminal: readonly NoInfer<Name>[];
  /** Without it there is no page, and rows need no key. */
  readonly page?: readonly NoInfer<Name>[];
  /** Of the partner's place. */
  readonly place?: readonly NoInfer<Name>[];
  /** What a tick says of a row, and the actions of which it is that field; `ofLedger`: for those who act for all partners. */
  readonly ticks?: {
    readonly field: string;
    readonly actions: readonly string[];
    /** null: a row that none of the actions takes. */
    of(row: NoInfer<Row>): string | null;
    readonly ofLedger?: true;
  };
  /** What may be done about a row: links of the page. */
  remedies?(row: NoInfer<Row>): readonly (ToDo & { readonly partner: string | null })[];
  /** Names a row for the next page: by a number, unless `keyed` says otherwise. */
  key?(row: NoInfer<Row>): string;
  readonly keyed?: 'text';
  read(tx: Transaction, asked: Asked<Filter, Sort>): Promise<Row[]>;
  /** Default: the rows. */
  json?(tx: Transaction, rows: readonly NoInfer<Row>[], today: string): Promise<readonly unknown[]>;
  totals?(tx: Transaction, asked: Asked<Filter, Sort>): Promise<Total[]>;
}

/** Only for its types: the names of the faces are those of the columns, the rows those that `read` gives. */
export const defineList = <Row, Filter, Sort extends string, Name extends string>(
  list: List<Row, Filter, Sort, Name>,
): List<Row, Filter, Sort, Name> => list;

/** The filters as parameters of the statement: null for what is not asked. */
export const given = <Filter extends object>(filters: z.ZodObject & z.ZodType<Filter>, filter: Filter) =>
  ({ ...Object.fromEntries(Object.keys(filters.shape).map((name) => [name, null])), ...filter }) as {
    readonly [Name in keyof Filter]-?: Exclude<Filter[Name], undefined> | null;
  };

/** The page of a short list, of which all rows were read. */
export function pageOf<Row>(
  rows: readonly Row[],
  { after, limit }: Pick<Asked<unknown>, 'after' | 'limit'>,
  key: (row: Row) => string,
): Row[] {
  const last = after === null ? -1 : rows.findIndex((row) => key(row) === after);
  // After a row that is not there, nothing.
  if (after !== null && last < 0) return [];
  return rows.slice(last + 1, limit === null ? undefined : last + 1 + limit);
}

export const columnOf = <Row>({ columns }: List<Row>, name: string): Column<Row> => columns[name] as Column<Row>;

export const cellOf = <Row>(list: List<Row>, name: string, row: Row, today: string): Value => {
  const column = columnOf(list, name);
  return column.value === undefined ? ((row as Record<string, Value>)[name] ?? null) : column.value(row, today);
};

/** A row's value in words: in a terminal, and as the label of a tick. */
export const textOf = (value: Value): string => {
  if (value === null) return '';
  if (value instanceof Amount) return value.toString();
  if (typeof value !== 'object') return String(value);
  return value
    .map((each) => (each instanceof Amount ? moneyText(each.toString(), each.currency) : each.text))
    .join(', ');
};

export const sheetOf = <Row>(list: List<Row>, rows: readonly Row[], today: string): Sheet => ({
  name: list.title,
  columns: Object.fromEntries(
    list.sheet.map((name) => {
      const { type } = columnOf(list, name);
      return [name, type === 'marks' || type === 'instant' || type === 'month' ? 'text' : type];
    }),
  ),
  rows: rows.map((row) =>
    Object.fromEntries(
      list.sheet.map((name) => {
        const value = cellOf(list, name, row, today);
        return [name, typeof value === 'object' && value !== null ? textOf(value) : value];
      }),
    ),
  ),
});
