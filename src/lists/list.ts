/**
 * A list, described once: its filters, sort orders, columns, and the statement that reads it. The terminal table,
 * `--json`, CSV and XLSX (cli/list-command.ts), the console's page and the partner's page (console/list.tsx) are made
 * from it.
 *
 * To add a list: a file here, in this order: the row, the filters, the statement, `defineList`. To add a column: its
 * field in the row and the statement, its entry in `columns`, and its name in each view that shows it.
 */
import type { z } from 'zod';
import type { CommandWords } from '../actions/command.ts';
import type { Transaction } from '../database/transaction.ts';
import { Amount, moneyText } from '../money.ts';
import type { Installation } from '../people/audit-events.ts';
import type { Scope } from '../people/scope.ts';
import type { ToDo } from '../remedy.ts';
import type { ColumnType, Sheet } from '../sheet.ts';

/** A one-word status of a row, and its urgency. */
export interface Mark {
  readonly text: string;
  readonly tone: 'good' | 'warn' | 'bad' | 'plain';
}

/** Several amounts are in different currencies. */
export type Value = string | number | Amount | readonly Amount[] | readonly Mark[] | null;

export interface Column<Row> {
  /** The heading on a page. A terminal writes it in lower case; a sheet has the column's name. */
  readonly heading: string;
  readonly type: ColumnType | 'marks' | 'instant' | 'month';
  /** Default: the row's property with the column's name. */
  value?(row: Row, today: string): Value;
  /** The link's target: a section of the console, and an id or a list filter there. */
  to?(row: Row): Link | null;
  /** `soft`: in a paler color. `quiet`: zero is a dash, or nothing in a terminal. `wrap`: may break at any character. */
  readonly look?: 'soft' | 'quiet' | 'wrap';
  /**
   * In a terminal: shortened if the table is too wide; left out below this many columns; left out if all rows agree.
   */
  readonly cut?: true;
  readonly width?: number;
  readonly unlessSame?: true;
}

export type Link = readonly [place: string, at: string | Readonly<Record<string, string>>];

/** A query of a list. */
export interface ListQuery<Filter, Sort extends string = string> {
  readonly filter: Filter;
  /** The partners whose rows may be seen; null: all. */
  readonly scope: Scope;
  /** `YYYY-MM-DD` */
  readonly today: string;
  readonly sort: Sort;
  /** The key of the previous page's last row. */
  readonly after: string | null;
  /** null: all rows. */
  readonly limit: number | null;
  readonly context: Installation;
}

/** The totals below a list: a line for each currency. */
export type Total = Readonly<Record<string, Amount>>;

// Methods, not properties, so a list with a specific row type is assignable to List.
export interface List<Row = unknown, Filter = unknown, Sort extends string = string, Name extends string = string> {
  /** `invoice list`. */
  readonly command: string;
  readonly summary: string;
  /** The filters that are arguments of the command. */
  readonly words?: CommandWords;
  /** Shown below the command's options. */
  readonly help?: string;
  /** How many rows the command prints without --limit. Default: all. */
  readonly most?: number;
  /** The command reads from the primary server, because it must be current. */
  readonly current?: true;
  /** What the command prints if the unfiltered list is empty, and how to create the first item. */
  readonly none?: string;
  readonly first?: ToDo;
  /** The command exits 4 because of these rows. */
  attention?(rows: readonly NoInfer<Row>[]): boolean;
  /** The title of the page and the sheet. */
  readonly title: string;
  /** The singular of its rows: `document`. */
  readonly one: string;
  /**
   * Set if the rows concern all partners, so that the page is only for users who read the whole ledger. Every other
   * list obeys `scope`.
   */
  readonly ofLedger?: true;
  /** Fields like an action's: options of the command, inputs of the page, arguments of a tool. All are optional. */
  readonly filters: z.ZodObject & z.ZodType<Filter>;
  /** Named filters: tabs of the page, which opens with the first. */
  readonly views?: readonly (readonly [name: string, filter: Readonly<Record<string, string>>])[];
  /**
   * Names of columns; `-name` sorts in descending order. Pages start with the first, commands and sheets with the
   * second.
   */
  readonly sorts: readonly [page: Sort, all: Sort, ...more: Sort[]];
  readonly columns: Readonly<Record<Name, Column<NoInfer<Row>>>>;
  /** The columns of each view, in order. */
  readonly sheet: readonly NoInfer<Name>[];
  readonly terminal: readonly NoInfer<Name>[];
  /** If absent there is no page, and rows need no key. */
  readonly page?: readonly NoInfer<Name>[];
  /** For the partner's place. */
  readonly place?: readonly NoInfer<Name>[];
  /**
   * The value of a ticked row, and the actions that take it as that field; `ofLedger`: for users who act for all
   * partners.
   */
  readonly ticks?: {
    readonly field: string;
    readonly actions: readonly string[];
    /** null: a row that none of the actions accepts. */
    of(row: NoInfer<Row>): string | null;
    readonly ofLedger?: true;
  };
  /** A row's available actions: links on the page. */
  remedies?(row: NoInfer<Row>): readonly (ToDo & { readonly partner: string | null })[];
  /** A row's key for the next page: a number, unless `keyed` says otherwise. */
  key?(row: NoInfer<Row>): string;
  readonly keyed?: 'text';
  read(tx: Transaction, asked: ListQuery<Filter, Sort>): Promise<Row[]>;
  /** Default: the rows. */
  json?(tx: Transaction, rows: readonly NoInfer<Row>[], today: string): Promise<readonly unknown[]>;
  totals?(tx: Transaction, asked: ListQuery<Filter, Sort>): Promise<Total[]>;
}

/** Only checks types: the names in a view must be column names, and its rows those that `read` returns. */
export const defineList = <Row, Filter, Sort extends string, Name extends string>(
  list: List<Row, Filter, Sort, Name>,
): List<Row, Filter, Sort, Name> => list;

/** The filters as parameters of the statement: null if not given. */
export const given = <Filter extends object>(filters: z.ZodObject & z.ZodType<Filter>, filter: Filter) =>
  ({ ...Object.fromEntries(Object.keys(filters.shape).map((name) => [name, null])), ...filter }) as {
    readonly [Name in keyof Filter]-?: Exclude<Filter[Name], undefined> | null;
  };

/** The page of a short list whose rows were all read. */
export function pageOf<Row>(
  rows: readonly Row[],
  { after, limit }: Pick<ListQuery<unknown>, 'after' | 'limit'>,
  key: (row: Row) => string,
): Row[] {
  const last = after === null ? -1 : rows.findIndex((row) => key(row) === after);
  // After a missing row, the page is empty.
  if (after !== null && last < 0) return [];
  return rows.slice(last + 1, limit === null ? undefined : last + 1 + limit);
}

export const columnOf = <Row>({ columns }: List<Row>, name: string): Column<Row> => columns[name] as Column<Row>;

export const cellOf = <Row>(list: List<Row>, name: string, row: Row, today: string): Value => {
  const column = columnOf(list, name);
  return column.value === undefined ? ((row as Record<string, Value>)[name] ?? null) : column.value(row, today);
};

/** A row's value in words: in a terminal, and as a checkbox label. */
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
