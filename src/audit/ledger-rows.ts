/**
 * Ledger rows as CSV or JSON, generated from their lines in the log. (Formatting in the database took three times as
 * much CPU for a million rows.)
 */
import { RECORDED_FIELDS, ROW_FIELDS } from '#ledger/row';
import { LOG_FORMS } from '#log/forms';
import { minorDigits } from '#money';
import { Month } from '#month';
import { cellOf } from '#text';
import { TableFormat } from './columns.sql.ts';
import { csvLine } from './csv.ts';

const COLUMNS = [...ROW_FIELDS, ...RECORDED_FIELDS] as const;

export const LEDGER_HEADER = csvLine([...COLUMNS]);

/** What the columns of a month's rows have beside the lines. */
export type RowFacts = Readonly<{
  month: Month;
  numbers: DocumentNumbers;
  grounds: Grounds;
}>;

/** The numbers of the documents that bill a month's rows, by `documentKey`. */
export type DocumentNumbers = ReadonlyMap<string, string>;
export const documentKey = (partnerId: string, currency: string, arrangement: string) =>
  `${partnerId}\t${currency}\t${arrangement}`;

/** The grounds of the reversals whose rows follow in the log, by `groundKey` of the fields as they are written. */
type Grounds = Map<string, string>;
const groundKey = (partnerId: string, reversalId: string) => `${partnerId}\t${reversalId}`;

/** Turns complete lines of the log into lines of CSV or JSON. `month` is the month in which the lines are billed. */
export function ledgerRows(format: TableFormat, facts: RowFacts): (lines: Buffer) => Buffer {
  if (format === 'csv') return csvRows(facts);
  return (lines) =>
    Buffer.from(
      linesIn(lines.toString())
        .map((line) => jsonRow(line, facts))
        .join(''),
    );
}

const linesIn = (text: string) => text.split('\n').slice(0, -1);

/** The runs of neighbouring lines whose rows the same month bills. Other lines have no month. */
export function* runsByMonth(
  lines: Buffer,
  months: readonly Readonly<{ month: Month; previous: Month | null }>[],
): Generator<Readonly<{ month: Month | undefined; run: Buffer }>> {
  const billing = new Map<string, Month | undefined>();
  const monthOf = (posted: string) => {
    if (!billing.has(posted)) {
      const billed = months.find(({ month, previous }) => posted <= month && posted > (previous ?? ''));
      billing.set(posted, billed?.month);
    }
    return billing.get(posted);
  };
  let [begin, current]: [number, Month | undefined] = [0, undefined];
  for (let from = 0; from < lines.length; ) {
    const end = lines.indexOf(LINE_END, from);
    const month =
      lines.toString('latin1', from, from + ROW.length) === ROW ? monthOf(postedMonth(lines, end)) : undefined;
    if (month !== current) {
      if (from > begin) yield { month: current, run: lines.subarray(begin, from) };
      [begin, current] = [from, month];
    }
    from = end + 1;
  }
  if (begin < lines.length) yield { month: current, run: lines.subarray(begin) };
}

const ROW = 'ledger_rows\t';

/** The posting month of the row whose line ends at `end`. */
function postedMonth(lines: Buffer, end: number) {
  let at = end;
  for (let tabs = FIELDS - POSTED_MONTH; tabs > 0 && at > 0; at -= 1) if (lines[at - 1] === TAB) tabs -= 1;
  return lines.toString('latin1', at + 1, at + 8);
}

const CLOSE_OR_GROUND =
  /^(?:closed_months\t\d+\t([^\t]+)|reversal_grounds\t\d+\t([^\t]+)\t([^\t]+)\t[^\t]+\t([^\t]+))/gm;

/** Returns the months that these lines close, and keeps the grounds of reversals. A ground precedes its reversal. */
export function readOtherLines(lines: Buffer, grounds: Grounds) {
  const closed: string[] = [];
  for (const [, month, partner = '', reversal = '', ground = ''] of lines.toString().matchAll(CLOSE_OR_GROUND)) {
    if (month === undefined) grounds.set(groundKey(partner, reversal), ground);
    else closed.push(month);
  }
  return closed;
}

/** The ground of a reversal. Each is asked for once. */
function takeGround(grounds: Grounds, partnerId: string, reversalId: string) {
  const key = groundKey(partnerId, reversalId);
  const ground = grounds.get(key) ?? '';
  grounds.delete(key);
  return ground;
}

/** A line has the kind and the number before the columns of its form. */
const place = (name: string) => 2 + (LOG_FORMS[0]?.columns.findIndex((column) => column.name === name) ?? 0);
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
const POSTED_MONTH = place('posted_month');
const ARRANGEMENT = place('arrangement');
const RECORDED = place('recorded_at');

/** The fields are in the order of COLUMNS. NULL becomes an empty text. */
function valuesOf(line: string, { month, numbers, grounds }: RowFacts) {
  const written = line.split('\t');
  const fields = written.map(unescaped);
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
    field(KIND) === 'reversal' ? takeGround(grounds, written[PARTNER] as string, written[REVERSAL] as string) : '',
  ];
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };

/** A field of a line. NULL (\N) becomes an empty text. */
const unescaped = (field: string) =>
  field === '\\N' ? '' : field.replace(/\\(.)/gs, (_, letter: string) => ESCAPES[letter] ?? letter);

function withDigits(decimal: string, digits: number) {
  const point = decimal.indexOf('.');
  if (point >= 0) return decimal.padEnd(point + 1 + digits, '0');
  return digits === 0 ? decimal : `${decimal}.${'0'.repeat(digits)}`;
}

function jsonRow(line: string, facts: RowFacts) {
  const values = valuesOf(line, facts);
  const pairs = COLUMNS.map((name, index) => {
    const value = values[index] as string;
    return `"${name}" : ${name === 'entry_id' ? value : value === '' ? 'null' : JSON.stringify(value)}`;
  });
  return `{${pairs.join(', ')}}\n`;
}

const quotedRow = (line: string, facts: RowFacts) => csvLine(valuesOf(line, facts).map(cellOf));

const codeOf = (letter: string) => letter.charCodeAt(0);
const [TAB, LINE_END, COMMA] = [codeOf('\t'), codeOf('\n'), codeOf(',')];
const [MINUS, POINT, ZERO] = [codeOf('-'), codeOf('.'), codeOf('0')];
const [ESCAPE, NULL] = [codeOf('\\'), codeOf('N')];
const THIRD_OF_REVERSAL = codeOf('v');

const FIELDS = 2 + (LOG_FORMS[0]?.columns.length ?? 0);
const [UNUSUAL, UNUSUAL_AT_BEGIN] = [1, 2];
/**
 * Bytes that CSV must write with quotes or an apostrophe, or that must be unescaped first, anywhere or at the beginning
 * of a field. No identifier of an imported row has any of these; an order's reference may.
 */
const BYTES = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte > 127 || '\\",\r'.includes(String.fromCharCode(byte))
    ? UNUSUAL
    : "'=@+- ".includes(String.fromCharCode(byte))
      ? UNUSUAL_AT_BEGIN
      : 0,
);

/**
 * Finds where each field of the line at `from` begins, and where the next line begins. Returns whether the line is
 * usual. The loops over bytes use only local variables, which makes them three times as fast.
 */
function findFields(lines: Buffer, from: number, begins: Int32Array) {
  let isUsual = true;
  let [at, field, begin] = [from, 0, from];
  begins[0] = from;
  for (; at < lines.length; at += 1) {
    const byte = lines[at] as number;
    if (byte === LINE_END) break;
    if (byte === TAB) {
      begin = at + 1;
      field += 1;
      begins[field] = begin;
    } else if (BYTES[byte] !== 0 && isUsual) {
      if (at !== begin) isUsual = BYTES[byte] === UNUSUAL_AT_BEGIN;
      else if (byte === ESCAPE && lines[at + 1] === NULL && (lines[at + 2] ?? 0) <= LINE_END) at += 1;
      else isUsual = byte === MINUS && field >= SPOT_PRICE && field <= INVOICE_AMOUNT;
    }
  }
  begins[FIELDS] = at + 1;
  return isUsual && field === FIELDS - 1;
}

/**
 * Writes the fields from the kind to the end of the cover, which are those of the CSV in its order, each with a comma.
 * NULL is an empty cell. Returns the length of what is written.
 */
function writeFields(lines: Buffer, begins: Int32Array, digits: number, csv: Buffer, from: number) {
  let length = from;
  for (let field = KIND; field <= COVER_TO; field += 1) {
    const end = (begins[field + 1] as number) - 1;
    let at = begins[field] as number;
    let point = end;
    if (lines[at] === ESCAPE) at = end;
    for (; at < end; at += 1) {
      const byte = lines[at] as number;
      if (byte === POINT) point = at + 1;
      csv[length] = byte;
      length += 1;
    }
    if (field >= SPOT_PRICE && field <= INVOICE_AMOUNT && digits > 0) {
      if (point === end) csv[length++] = POINT;
      for (let decimals = end - point; decimals < digits; decimals += 1) csv[length++] = ZERO;
    }
    csv[length++] = COMMA;
  }
  return length;
}

/** Turns lines into CSV byte by byte, and unusual lines as texts. */
function csvRows(facts: RowFacts): (lines: Buffer) => Buffer {
  const { month, numbers, grounds } = facts;
  const begins = new Int32Array(FIELDS + 1);
  const begin = (field: number) => begins[field] as number;
  return (lines) => {
    const textOf = (field: number) => lines.toString('latin1', begin(field), begin(field + 1) - 1);
    let csv = Buffer.allocUnsafe(2 * lines.length);
    let length = 0;
    const makeRoom = (bytes: number) => {
      if (length + bytes > csv.length) csv = Buffer.concat([csv.subarray(0, length)], 2 * (csv.length + bytes));
    };
    for (let from = 0; from < lines.length; from = begin(FIELDS)) {
      if (findFields(lines, from, begins)) {
        const currency = textOf(CURRENCY);
        const number = numbers.get(documentKey(textOf(PARTNER), currency, textOf(ARRANGEMENT))) ?? '';
        // No other kind has this letter there.
        const isReversal = lines[begin(KIND) + 2] === THIRD_OF_REVERSAL;
        const ground = isReversal ? takeGround(grounds, textOf(PARTNER), textOf(REVERSAL)) : '';
        const rest = `${textOf(ENTRY_ID)},${month},${textOf(RECORDED)},${number},${ground}\n`;
        makeRoom(begin(FIELDS) - from + Buffer.byteLength(rest));
        length = writeFields(lines, begins, minorDigits(currency) ?? 0, csv, length);
        length += csv.write(rest, length);
      } else {
        const row = quotedRow(lines.toString('utf8', from, begin(FIELDS) - 1), facts);
        makeRoom(Buffer.byteLength(row));
        length += csv.write(row, length);
      }
    }
    return csv.subarray(0, length);
  };
}
