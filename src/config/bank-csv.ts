import { z } from 'zod';
import { isCurrency } from '#money';
import { BANK_CSV_MAPS } from './bank-csv-maps.ts';
import { line } from './validation.ts';

const column = z.string().min(1).max(200);
const values = z.array(z.string().max(200)).min(1);

/** A `TextDecoder` knows the encodings of browsers. */
function isEncoding(label: string) {
  try {
    return new TextDecoder(label).encoding !== '';
  } catch {
    return false;
  }
}

/**
 * Amounts are in one signed column (`amount`), in two (`credit`, `debit`), or in one with a second column that says
 * which they are (`amount`, `indicator`).
 */
const mapSchema = z.strictObject({
  columns: z.strictObject({
    date: column,
    value_date: column.optional(),
    amount: column.optional(),
    credit: column.optional(),
    debit: column.optional(),
    indicator: column.optional(),
    balance: column.optional(),
    currency: column.optional(),
    account: column.optional(),
    bank_reference: column.optional(),
    customer_reference: column.optional(),
    /** Columns that may contain a document number. */
    text: z.array(column).default([]),
    payer: column.optional(),
    payer_account: column.optional(),
    type: column.optional(),
    return_code: column.optional(),
  }),
  /** A luxon format: `yyyy-MM-dd`, `MM/dd/yyyy`, `d LLL yyyy`. */
  date_format: z.string().min(2).max(40).default('yyyy-MM-dd'),
  decimal: z.enum(['.', ',']).default('.'),
  delimiter: z.string().length(1).default(','),
  encoding: z
    .string()
    .refine(isEncoding, 'must be an encoding such as utf-8, windows-1250 or shift_jis')
    .default('utf-8'),
  /** The number of lines before the header. */
  skip_lines: z.int().min(0).max(100).default(0),
  /** Whether the first line has the headings. Otherwise, columns are named by their numbers, from 1. */
  header: z.boolean().optional(),
  /** The values of the column `indicator`. */
  credit_values: values.optional(),
  debit_values: values.optional(),
  /** Rows to skip, such as pending transactions and footers: those with one of the values in the column. */
  skip_rows: z.array(z.strictObject({ column, values })).optional(),
  /** Whether the bank writes credits with a minus sign. */
  negate: z.boolean().default(false),
  /** If the file has no column for it. */
  account: line(40).default(''),
  currency: z.string().refine(isCurrency, 'must be an ISO 4217 currency').default('USD'),
});
export type BankCsvMap = z.output<typeof mapSchema>;

/** A map may name a map of `BANK_CSV_MAPS` that it is like, and state only what differs. */
export const bankCsvSchema = z
  .preprocess((value) => {
    const { like, ...own } = Object(value) as { like?: unknown; columns?: object };
    const known = typeof like === 'string' && Object.hasOwn(BANK_CSV_MAPS, like) ? BANK_CSV_MAPS[like] : undefined;
    if (known === undefined) return value;
    return { ...known, ...own, columns: { ...known.columns, ...own.columns } };
  }, mapSchema)
  .refine(
    ({ columns }) => (columns.amount === undefined) !== (columns.credit === undefined && columns.debit === undefined),
    "needs either the column 'amount' or the columns 'credit' and 'debit'",
  )
  .refine(
    ({ columns }) => columns.indicator === undefined || columns.amount !== undefined,
    "the column 'indicator' needs the column 'amount', whose direction it says",
  )
  .refine(
    ({ columns, negate }) => !negate || (columns.amount !== undefined && columns.indicator === undefined),
    "'negate' needs the column 'amount', without a column 'indicator'",
  )
  .refine(
    ({ columns, header }) =>
      header !== false ||
      Object.values(columns)
        .flat()
        .every((name) => name === undefined || /^\d{1,3}$/.test(name)),
    'without a header, a column is named by its number',
  )
  .refine(
    ({ columns, account }) => columns.account !== undefined || account !== '',
    "needs an 'account' or the column that holds it",
  );

/** The maps that are delivered, by name. Those of files without a column for the account lack the account. */
export const knownBankMaps = (): Readonly<Record<string, BankCsvMap>> =>
  Object.fromEntries(Object.entries(BANK_CSV_MAPS).map(([name, map]) => [name, mapSchema.parse(map)]));

/** The map that applies if the settings have no `bank_csv`. */
export const PLAIN_BANK_CSV: z.input<typeof mapSchema> = {
  columns: {
    date: 'date',
    amount: 'amount',
    currency: 'currency',
    account: 'account',
    bank_reference: 'bank_reference',
    text: ['text'],
    payer: 'payer',
    payer_account: 'payer_account',
  },
};

/**
 * Reads a map that a person tries on a file: `date=Posted; amount=Amount; text=Description|Memo; account=0012345`. What
 * it leaves out comes from `base`. The keys are those of the map and of its columns; `account` and `currency` are the
 * account and the currency themselves.
 */
export function triedBankMap(written: string, base: BankCsvMap | undefined) {
  const map: Record<string, unknown> = { ...base };
  const columns: Record<string, unknown> = { ...base?.columns };
  for (const part of written.split(';')) {
    const [, key = '', value = ''] = /^\s*(\w+)\s*=\s*(.*?)\s*$/s.exec(part) ?? [];
    const list = value.split('|').map((each) => each.trim());
    if (key === '') continue;
    if (key === 'text') columns[key] = list;
    else if (/_values$/.test(key)) map[key] = list;
    else if (key === 'skip_rows') map[key] = [{ column: list[0], values: list.slice(1) }];
    else if (key === 'skip_lines') map[key] = Number(value);
    else if (key === 'header' || key === 'negate') map[key] = value === 'true';
    else if (key in mapSchema.shape) map[key] = { tab: '\t', semicolon: ';' }[value] ?? value;
    else columns[key] = value;
  }
  return bankCsvSchema.safeParse({ ...map, columns });
}
