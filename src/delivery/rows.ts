/** The CSV that goes with a document: the ledger rows that it bills, in the columns of the ledger's export. */
import { stringify } from 'csv-stringify/sync';
import { ROW_FIELDS } from '../ledger/row.ts';
import { Amount } from '../money.ts';

const COLUMNS = [...ROW_FIELDS, 'entry_id', 'posted_month', 'recorded_at', 'document'] as const;
const AMOUNTS = ['spotPrice', 'partnerCut', 'invoiceAmount'] as const;

/**
 * No cell can be taken for a spreadsheet formula: identifiers start with a letter or digit, and an amount that starts
 * with a minus is a number.
 */
export function rowsCsv(rows: readonly Record<string, string | null>[]): Buffer {
  const written = rows.map((row) => {
    const currency = row['currency'] as string;
    const amounts = AMOUNTS.map((field) => [field, Amount.of(row[field] as string, currency).toString()]);
    return { ...row, ...Object.fromEntries(amounts) };
  });
  return Buffer.from(stringify(written, { header: true, columns: [...COLUMNS], record_delimiter: 'windows' }));
}
