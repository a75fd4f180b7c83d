/** The CSV file of a document: the ledger rows that it bills, in the columns of the ledger's export. */
import { stringify } from 'csv-stringify/sync';
import { RECORDED_FIELDS, ROW_FIELDS } from '#ledger/row';
import { Amount, cellOf } from '#values';
import { RowLines } from './documents.sql.ts';

const COLUMNS = [...ROW_FIELDS, ...RECORDED_FIELDS] as const;
const AMOUNTS = ['spotPrice', 'partnerCut', 'invoiceAmount'] as const;

type Row = Readonly<Record<string, string | null>>;

/**
 * The rows of one document, after the byte order mark by which Excel recognizes UTF-8. Without an amount that the rows
 * lack, the file adds up to the document's totals. Only the reference of an order could be taken for a formula:
 * identifiers start with a letter or digit, and a negative amount is a number.
 */
export const rowsCsv = (rows: readonly Row[]): Buffer => Buffer.from(linesOf(rows, columnsOf(rows), { header: true }));

export async function* streamRowsCsv(batches: AsyncIterable<RowLines>): AsyncGenerator<string> {
  let begun = false;
  for await (const { amounts, text } of batches) {
    const without = amounts === 'share' ? ['spotPrice', 'partnerCut'] : [];
    if (!begun) {
      const columns = COLUMNS.filter((column) => !without.includes(column));
      yield linesOf([], columns, { header: true });
    }
    begun = true;
    yield text;
  }
  if (!begun) yield linesOf([], columnsOf([]), { header: true });
}

function columnsOf(rows: readonly Row[]) {
  const unused = AMOUNTS.filter((field) => rows.every((row) => row[field] == null));
  return COLUMNS.filter((column) => !unused.some((field) => field === column));
}

function linesOf(rows: readonly Row[], columns: readonly string[], { header }: { header: boolean }) {
  const written = rows.map((row) => {
    const currency = row['currency'] as string;
    const amounts = AMOUNTS.flatMap((field) => {
      const amount = row[field];
      return amount == null ? [] : [[field, Amount.of(amount, currency).toString()] as const];
    });
    return { ...row, ...Object.fromEntries(amounts), order_reference: cellOf(row['order_reference']) };
  });
  return stringify(written, { header, columns: [...columns], record_delimiter: 'windows', bom: header });
}
