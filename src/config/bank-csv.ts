import { z } from 'zod';
import { isCurrency } from '#money';
import { line } from './validation.ts';

const column = z.string().min(1).max(200);

/** Amounts are in one signed column (`amount`) or in two (`credit`, `debit`). */
export const bankCsvSchema = z
  .strictObject({
    columns: z.strictObject({
      date: column,
      value_date: column.optional(),
      amount: column.optional(),
      credit: column.optional(),
      debit: column.optional(),
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
    encoding: z.enum(['utf-8', 'windows-1252', 'utf-16le']).default('utf-8'),
    /** The number of lines before the header. */
    skip_lines: z.int().min(0).max(100).default(0),
    /** Whether the bank writes credits with a minus sign. */
    negate: z.boolean().default(false),
    /** If the file has no column for it. */
    account: line(40).default(''),
    currency: z.string().refine(isCurrency, 'must be an ISO 4217 currency').default('USD'),
  })
  .refine(
    ({ columns }) => (columns.amount === undefined) !== (columns.credit === undefined && columns.debit === undefined),
    "needs either the column 'amount' or the columns 'credit' and 'debit'",
  )
  .refine(
    ({ columns, account }) => columns.account !== undefined || account !== '',
    "needs an 'account' or the column that holds it",
  );
export type BankCsvMap = z.output<typeof bankCsvSchema>;

/** The map that applies if the settings have no `bank_csv`. */
export const PLAIN_BANK_CSV: z.input<typeof bankCsvSchema> = {
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
