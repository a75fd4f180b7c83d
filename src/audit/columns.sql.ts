/** What the lines `-- columns` of checks.sql say, in SQL: how the rows of a view or of a rule are written for people. */

export interface ViewColumn {
  readonly name: string;
  readonly type: string;
}

/** The columns in a list such as `at currency stated:amount`. */
export const columnsIn = (list: string): ViewColumn[] =>
  list.split(' ').map((column) => {
    const [name = '', type = 'text'] = column.split(':');
    return { name, type };
  });

/** A data file of packs: the columns of a query over the log. */
export type View = Readonly<{
  name: string;
  columns: readonly ViewColumn[];
  query: string;
}>;

/** A query that returns what is wrong: its place, then the values that were found. */
export interface Rule extends View {
  /** What the rule requires, in a sentence for an auditor. */
  readonly sentence: string;
}

export type TableFormat = 'csv' | 'jsonl';

// The same as `cellOf` in text.ts. Most texts begin with a letter, so that is compared first.
export const cellOf = (column: string) =>
  `CASE WHEN ${column} COLLATE "C" >= 'A' AND ${column} COLLATE "C" < '＋' THEN ${column}
        WHEN ${column} ~ '^([''\\t\\r\\n]|[ \\t\\r\\n]*[=+@＝＋－＠-])' AND ${column} !~ '^-?\\d+(\\.\\d+)?$' THEN '''' || ${column}
        ELSE nullif(${column}, '') END`;

/** Whole units of a currency as a decimal with exactly the currency's digits. */
export const decimal = (units: string, currency: string) =>
  `round(${units} / log_units(${currency}), minor_digits(${currency}))::text`;

/** The value of a column in CSV or JSON. Amounts have exactly the digits of the row's currency, or of the column after `@`. */
export function expressionOf({ name, type }: ViewColumn, format: TableFormat) {
  const column = `"${name}"`;
  const [kind, currency = 'currency'] = type.split('@');
  switch (kind) {
    case 'amount':
      return decimal(column, currency);
    case 'rate':
      return `trim_scale(${column}::numeric / 10000)::text`;
    case 'day':
      return `to_char(date '1970-01-01' + ${column}::int, 'YYYY-MM-DD')`;
    case 'flag':
      return format === 'csv' ? `(${column} = 1)::text` : `(${column} = 1)`;
    case 'text':
      return format === 'csv' ? cellOf(column) : column;
    default:
      return column;
  }
}

/** The rows of a query in its order. In the query itself, several columns may have one name. */
export const rowsOf = ({ query: sql, columns }: View) =>
  `(${sql}) AS data (${columns.map(({ name }) => `"${name}"`).join(', ')})`;
