/**
 * Ledger rows as CSV or JSON, generated from their lines in the log. (Formatting in the database took three times as
 * much CPU for a million rows.)
 */
import { RECORDED_FIELDS, ROW_FIELDS } from '../ledger/row.ts';
import { LOG_FORMS } from '../log/forms.ts';
import { minorDigits } from '../money.ts';
import type { Month } from '../month.ts';
import { cellOf } from '../text.ts';
import type { TableFormat } from './columns.sql.ts';
import { csvLine } from './csv.ts';

/** The columns of the view `ledger`. */
const COLUMNS = [...ROW_FIELDS, ...RECORDED_FIELDS] as const;

export const LEDGER_HEADER = csvLine([...COLUMNS]);

/** The numbers of the documents that bill a month's rows, by `documentKey`. */
export type DocumentNumbers = ReadonlyMap<string, string>;
export const documentKey = (partnerId: string, currency: string, arrangement: string): string =>
  `${partnerId}\t${currency}\t${arrangement}`;

/** Turns complete lines of the log into lines of CSV or JSON. `month` is the month in which the lines are billed. */
export function ledgerRows(format: TableFormat, month: Month, numbers: DocumentNumbers): (lines: Buffer) => string {
  return (content) => {
    const text = content.toString();
    const plain = format === 'csv' && !UNUSUAL.test(text);
    const row = format === 'jsonl' ? jsonRow : plain ? plainRow : quotedRow;
    let rows = '';
    for (const line of (plain ? text.replaceAll('\\N', '') : text).split('\n')) {
      if (line !== '') rows += row(line, month, numbers);
    }
    return rows;
  };
}

/** A line has the kind and the number before the columns of its form. */
const place = (name: string): number => 2 + (LOG_FORMS[0]?.columns.findIndex((column) => column.name === name) ?? 0);
const ENTRY_ID = 1;
const PARTNER = place('partner_id');
const KIND = place('kind');
const QUOTE = place('quote_id');
const REQUOTE = place('requote_id');
const REVERSAL = place('reversal_id');
const ENROLLMENT = place('enrollment_id');
const POLICY = place('policy_id');
const CURRENCY = place('currency');
const ACCEPTED = place('accepted_at');
const SPOT_PRICE = place('spot_price');
const PARTNER_CUT = place('partner_cut');
const INVOICE_AMOUNT = place('invoice_amount');
const ORDER = place('order_reference');
const COVER_FROM = place('cover_from');
const COVER_TO = place('cover_to');
const ARRANGEMENT = place('arrangement');
const RECORDED = place('recorded_at');

/** The fields are in the order of COLUMNS. NULL becomes an empty text. */
function valuesOf(line: string, month: Month, numbers: DocumentNumbers): string[] {
  const fields = line.split('\t').map(unescaped);
  const field = (index: number) => fields[index] as string;
  const digits = minorDigits(field(CURRENCY)) ?? 0;
  return [
    ...[KIND, PARTNER, QUOTE, REQUOTE, REVERSAL, ENROLLMENT, POLICY, CURRENCY].map(field),
    field(ACCEPTED),
    ...[SPOT_PRICE, PARTNER_CUT, INVOICE_AMOUNT].map((index) => withDigits(field(index), digits)),
    ...[ORDER, COVER_FROM, COVER_TO, ENTRY_ID].map(field),
    month,
    field(RECORDED),
    numbers.get(documentKey(field(PARTNER), field(CURRENCY), field(ARRANGEMENT))) ?? '',
  ];
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };

/** A field of a line. NULL (\N) becomes an empty text. */
const unescaped = (field: string): string =>
  field === '\\N' ? '' : field.replace(/\\(.)/gs, (_, letter: string) => ESCAPES[letter] ?? letter);

/** A decimal padded with zeros to this many digits. */
function withDigits(decimal: string, digits: number): string {
  const point = decimal.indexOf('.');
  if (point >= 0) return decimal.padEnd(point + 1 + digits, '0');
  return digits === 0 ? decimal : `${decimal}.${'0'.repeat(digits)}`;
}

function jsonRow(line: string, month: Month, numbers: DocumentNumbers): string {
  const values = valuesOf(line, month, numbers);
  const pairs = COLUMNS.map((name, index) => {
    const value = values[index] as string;
    return `"${name}" : ${name === 'entry_id' ? value : value === '' ? 'null' : JSON.stringify(value)}`;
  });
  return `{${pairs.join(', ')}}\n`;
}

/**
 * Matches text that CSV must write with quotes or an apostrophe, or that must be unescaped first. No identifier of an
 * imported row needs any of these; an order's reference may.
 */
const UNUSUAL = /\\[^N]|[",\r]|\t['=@+ ＝＋－＠]|\t-(?!\d+(?:\.\d+)?(?:\t|$))/;

const quotedRow = (line: string, month: Month, numbers: DocumentNumbers): string =>
  csvLine(valuesOf(line, month, numbers).map(cellOf));

/** Converts a line without special characters. A million rows take 2 s this way instead of 6 s. */
function plainRow(line: string, month: Month, numbers: DocumentNumbers): string {
  const fields = line.split('\t');
  const f = (index: number): string => fields[index] as string;
  const currency = f(CURRENCY);
  const digits = minorDigits(currency) ?? 0;
  const number = numbers.get(documentKey(f(PARTNER), currency, f(ARRANGEMENT))) ?? '';
  const ids = `${f(KIND)},${f(PARTNER)},${f(QUOTE)},${f(REQUOTE)},${f(REVERSAL)},${f(ENROLLMENT)},${f(POLICY)},${currency}`;
  const amounts = `${withDigits(f(SPOT_PRICE), digits)},${withDigits(f(PARTNER_CUT), digits)},${withDigits(f(INVOICE_AMOUNT), digits)}`;
  const order = `${f(ORDER)},${f(COVER_FROM)},${f(COVER_TO)}`;
  return `${ids},${f(ACCEPTED)},${amounts},${order},${f(ENTRY_ID)},${month},${f(RECORDED)},${number}\n`;
}
