/**
 * The definition of a list: filters, sort orders, columns, and a function that reads the rows. The terminal table,
 * `--json`, CSV, XLSX (cli/list-command.ts) and pages (console/list.tsx) are generated from the definition.
 *
 * To add a list, create a file here with the row, the filters, the statement and `defineList`, in this order. To add a
 * column, add its field to the row and the statement, an entry to `columns`, and its name to each view that shows it.
 */
import { z } from 'zod';
import { CommandWords } from '#actions/command';
import { Transaction } from '#database/transaction';
import { Amount, moneyText, sumsOf } from '#money';
import { Installation } from '#people/audit-events';
import { Period, Scope } from '#people/scope';
import { ToDo } from '#remedy';
import { ColumnType, Formulas, Sheet } from '#sheet';
import { capitalized } from '#text';

export * from '#actions/fields';

/** A status in one word, and its urgency. */
export interface Mark {
  readonly text: string;
  readonly tone: 'good' | 'warn' | 'bad' | 'plain';
}

/** An array of amounts has one amount for each currency. */
export type Value = string | number | Amount | readonly Amount[] | readonly Mark[] | readonly Download[] | null;

/** A file to download from a page of the console. */
export type Download = Readonly<{ text: string; page: string }>;

export type Column<Row> = Readonly<{
  /**
   * The heading on pages. By default, the column's name: `Booked to` for `booked_to`, `Partner` for `partner_id`.
   * Terminals show the heading in lower case. Sheets show the column's name instead.
   */
  heading?: string;
  /** By default, `text`. */
  type?: ColumnType | 'marks' | 'instant' | 'month';
  /**
   * By default, the row's property with the column's name. An amount is in the row's currency, and a boolean becomes
   * `yes` or `no`.
   */
  value?(row: Row, today: string): Value;
  /** The target of a link in the console: a section, and an id or a filter. */
  to?(row: Row): Link | null;
  /**
   * `soft`: a paler color. `quiet`: zero is shown as a dash on pages, and as nothing in a terminal. `wrap`: a text in a
   * wide column. `fold`: pages show the beginning of a long text, which opens. `line`: a text that does not break. `id`:
   * an identifier, which may break at any character. `hash`: a hash, in two short lines.
   */
  look?: 'soft' | 'quiet' | 'wrap' | 'fold' | 'line' | 'id' | 'hash';
  /**
   * For terminals. `cut` shortens the column if the table is too wide. `width` is the narrowest terminal that shows the
   * column. `unlessSame` hides the column if all rows have the same value.
   */
  cut?: true;
  width?: number;
  unlessSame?: true;
  /** Hides the column in tables where all rows are empty or zero. */
  unlessZero?: true;
  /** Amounts without their currency, which has a column of its own. */
  bare?: true;
}>;

export type Link = readonly [place: string, at: string | Readonly<Record<string, string>>];

export type ListQuery<Filter, Sort extends string = string> = Readonly<{
  filter: Filter;
  /** The partners whose rows the user may see. Null means all partners. */
  scope: Scope;
  /** The months that the user may see. A list applies it, if it is `ofPeriod`. */
  period: Period;
  today: string;
  sort: Sort;
  /** The key of the last row of the previous page. */
  after: string | null;
  /** Null means that the page begins with the first row. */
  limit: number | null;
  context: Installation;
}>;

export type Total = Readonly<Record<string, Amount>>;

export type Sums = Readonly<{
  /** Null if there are more than MOST_COUNTED rows. */
  count: number | null;
  totals: readonly Total[];
}>;

// Methods instead of properties make a list with a specific row type assignable to List.
export type List<
  Row = unknown,
  Filter = unknown,
  Sort extends string = string,
  Name extends string = string,
> = Readonly<{
  command: string;
  summary: string;
  /** The filters that are positional arguments of the command. */
  words?: CommandWords;
  help?: string;
  /** The number of rows that the command prints without --limit. By default, the command prints all rows. */
  most?: number;
  /** Makes the command read from the primary server, because the result must be current. */
  current?: true;
  /** The text that the command prints for an empty list without filters, and the action that creates the first item. */
  none?: string;
  first?: ToDo;
  attention?(rows: readonly NoInfer<Row>[]): boolean;
  title: string;
  /** The singular noun for the list's rows, such as `document`. */
  one: string;
  /**
   * True if the rows concern all partners. The page then requires access to the whole ledger. Other lists apply
   * `scope`.
   */
  ofLedger?: true;
  /** True if the list applies `period`. Users who may see some months only cannot open other lists. */
  ofPeriod?: true;
  /** Optional fields, as in an action, for the command's options, the page's inputs and the tool's arguments. */
  filters: z.ZodObject & z.ZodType<Filter>;
  /** Named filters, which the page shows as tabs. The page opens with the first filter. */
  views?: readonly (readonly [name: string, filter: Readonly<Record<string, string>>])[];
  /**
   * Column names; `-name` sorts in descending order. Pages use the first order by default, commands and sheets the
   * second. With more than these, people choose the column.
   */
  sorts: readonly [page: Sort, all: Sort, ...more: Sort[]];
  columns: Readonly<Record<Name, Column<NoInfer<Row>>>>;
  sheet: readonly NoInfer<Name>[];
  formulas?: Formulas;
  terminal: readonly NoInfer<Name>[];
  /** Without this view, the list has no page, and its rows need no key. */
  page?: readonly NoInfer<Name>[];
  place?: readonly NoInfer<Name>[];
  /**
   * Makes rows selectable, for the buttons `actions`. `field` is the form field of an action that takes the selected
   * values; `fields` has it for actions that name it otherwise. `ofLedger` requires a role for all partners.
   */
  ticks?: Readonly<{
    field: string;
    fields?: Readonly<Record<string, string>>;
    actions: readonly ToDo[];
    /** Also offers the PDFs of the selected rows. */
    pdfs?: true;
    /** Null if none of the actions accepts the row. */
    of(row: NoInfer<Row>): string | null;
    ofLedger?: true;
    /** Actions that the page has only with a filter, whose value is their field `field`. */
    within?: Readonly<{ filter: string; field: string; actions: readonly ToDo[] }>;
  }>;
  /** Filters that the page shows and applies if `filter` lacks them; `read` applies them too. */
  defaults?(tx: Transaction, asked: ListQuery<Filter, Sort>): Promise<Readonly<Record<string, string>>>;
  /** The actions available for a row, as links on the page. */
  remedies?(row: NoInfer<Row>): readonly (ToDo & { readonly partner: string | null })[];
  /** The key of a row, from which the next page continues. The key is a number, or a text if `keyed` is set. */
  key?(row: NoInfer<Row>): string;
  keyed?: 'text';
  read(tx: Transaction, asked: ListQuery<Filter, Sort>): Promise<Row[]>;
  /** By default, `--json` prints the rows. */
  json?(tx: Transaction, rows: readonly NoInfer<Row>[], today: string): Promise<readonly unknown[]>;
  /** The columns with sums below the rows, if `sums` does not compute them in the database. */
  summed?: readonly NoInfer<Name>[];
  /** Of `summed`, the balances. Their sums have only the rows of the first or of the last `month`. */
  balances?: Readonly<Partial<Record<NoInfer<Name>, 'first' | 'last'>>>;
  /** The column of the sheet that names the rows with sums `Total`. Without it, the sheet has none. */
  totalled?: NoInfer<Name>;
  /** `read` computes all rows in any case, so that they are summed, however many there are. */
  whole?: true;
  /** Counts and sums all rows that match. */
  sums?(tx: Transaction, asked: ListQuery<Filter, Sort>): Promise<Sums>;
}>;

/**
 * Returns the list unchanged. The parameter's type checks that views name existing columns and that `read` returns the
 * row type.
 */
export const defineList = <Row, Filter, Sort extends string, Name extends string>(
  list: List<Row, Filter, Sort, Name>,
): List<Row, Filter, Sort, Name> => list;

/** The period as parameters of a statement. */
export const periodGiven = ({ period }: Pick<ListQuery<unknown>, 'period'>) => ({
  firstMonth: period?.from ?? null,
  lastMonth: period?.to ?? null,
});

/** Returns the filters as parameters of a statement, with null for a missing filter. */
export const given = <Filter extends object>(filters: z.ZodObject & z.ZodType<Filter>, filter: Filter) =>
  ({ ...Object.fromEntries(Object.keys(filters.shape).map((name) => [name, null])), ...filter }) as {
    readonly [Name in keyof Filter]-?: Exclude<Filter[Name], undefined> | null;
  };

/** The columns by which people sort a list. */
export const sortableOf = ({ sorts }: List) =>
  sorts.length > 2 ? [...new Set(sorts.map((each) => each.replace('-', '')))] : [];

export const MOST_COUNTED = 1000;

/**
 * Counts all rows that match, and sums their amounts by currency. `read` are all rows, if the caller has them. Without
 * them and without SQL, more than MOST_COUNTED rows are neither counted nor summed.
 */
export async function readSums<Row>(
  tx: Transaction,
  list: List<Row>,
  asked: ListQuery<unknown>,
  read: readonly Row[] | null = null,
): Promise<Sums> {
  const all = { ...asked, after: null, limit: null };
  if (list.sums !== undefined) return list.sums(tx, all);
  const rows = read ?? (await list.read(tx, { ...all, limit: list.whole ? null : MOST_COUNTED + 1 }));
  if (read === null && !list.whole && rows.length > MOST_COUNTED) return { count: null, totals: [] };
  return { count: rows.length, totals: totalsOf(list, rows, asked.today) };
}

function totalsOf<Row>(list: List<Row>, rows: readonly Row[], today: string): Total[] {
  const totals = new Map<string, Total>();
  for (const name of list.summed ?? []) {
    const month = monthSummed(list, name, rows);
    // A currency without a row in this month has a balance of zero.
    const amounts = rows.flatMap((row) =>
      ([cellOf(list, name, row, today)].flat() as Value[])
        .filter(isAmount)
        .map((each) => (month === undefined || monthIn(row) === month ? each : Amount.zero(each.currency))),
    );
    for (const sum of sumsOf(amounts)) totals.set(sum.currency, { ...totals.get(sum.currency), [name]: sum });
  }
  return [...totals.keys()].sort().map((currency) => totals.get(currency) as Total);
}

const monthIn = (row: unknown) => (row as { month?: string }).month ?? '';

/** The month whose rows make up the sum of a balance. */
const monthSummed = ({ balances }: List, name: string, rows: readonly unknown[]) =>
  balances?.[name] &&
  rows
    .map(monthIn)
    .sort()
    .at(balances[name] === 'first' ? 0 : -1);

const isAmount = (value: Value): value is Amount => value instanceof Amount;

/** Returns the row with these amounts in the digits of its currency: `0` becomes `0.00`. */
export const withDigits = <Row extends { readonly currency: string }>(row: Row, ...amounts: (keyof Row)[]): Row => ({
  ...row,
  ...Object.fromEntries(amounts.map((name) => [name, Amount.of(String(row[name]), row.currency).toString()])),
});

export function pageOf<Row>(
  rows: readonly Row[],
  { after, limit }: Pick<ListQuery<unknown>, 'after' | 'limit'>,
  key: (row: Row) => string,
) {
  const last = after === null ? -1 : rows.findIndex((row) => key(row) === after);
  // If the row `after` no longer exists, the page is empty.
  if (after !== null && last < 0) return [];
  return rows.slice(last + 1, limit === null ? undefined : last + 1 + limit);
}

type CompleteColumn<Row> = Column<Row> & Required<Pick<Column<Row>, 'heading' | 'type'>>;

export const columnOf = <Row>({ columns }: List<Row>, name: string): CompleteColumn<Row> => ({
  heading: capitalized(name)
    .replace(/_(id|name)$/, '')
    .replaceAll('_', ' '),
  type: 'text',
  ...columns[name],
});

export function cellOf<Row>(list: List<Row>, name: string, row: Row, today: string) {
  const column = columnOf(list, name);
  if (column.value !== undefined) return column.value(row, today);
  const { [name]: value = null, currency } = row as Readonly<Record<string, Value | boolean>>;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  const isAmount = column.type === 'amount' && typeof value === 'string' && typeof currency === 'string';
  return isAmount ? Amount.of(value, currency) : value;
}

/** Returns a value as text, for terminals and labels of checkboxes. */
export const textOf = (value: Value) => {
  if (value === null) return '';
  if (value instanceof Amount) return value.toString();
  if (typeof value !== 'object') return String(value);
  return value
    .map((each) => (each instanceof Amount ? moneyText(each.toString(), each.currency) : each.text))
    .join(', ');
};

/** Whether a table has a column: at least one of its rows has a value, if the column is hidden without one. */
export const isShown = <Row>(list: List<Row>, name: string, rows: readonly Row[], today: string) =>
  columnOf(list, name).unlessZero !== true ||
  rows.some((row) => {
    const value = cellOf(list, name, row, today);
    return value instanceof Amount ? !isQuiet(columnOf(list, name), value, row) : textOf(value) !== '';
  });

/** Zero says nothing, unless there is something behind it. */
export const isQuiet = <Row>({ to }: Column<Row>, value: Amount, row: Row) => value.isZero() && to?.(row) == null;

export const sheetOf = <Row>(list: List<Row>, rows: readonly Row[], today: string): Sheet => ({
  ...{ name: list.title, formulas: list.formulas },
  totals:
    list.totalled === undefined
      ? []
      : totalsOf(list, rows, today).map((total) => ({
          row: {
            ...{ [list.totalled as string]: 'Total', currency: Object.values(total)[0]?.currency },
            ...Object.fromEntries(Object.entries(total).map(([name, sum]) => [name, sum.toString()])),
          },
          months: Object.fromEntries(
            Object.keys(list.balances ?? {}).map((name) => [name, monthSummed(list, name, rows)]),
          ),
        })),
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
