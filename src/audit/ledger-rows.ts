/**
 * A ledger row as people read it, made from its sealed line: one reading of the ledger gives both, and they cannot
 * disagree. (Read twice, and formatted by the database each time, a million rows cost it 10 s of CPU instead of 3.)
 */
import { minorDigits } from '../money.ts';
import type { Month } from '../month.ts';
import { ENTRY_COLUMNS } from '../seals/canonical.ts';
import { cellOf, csvLine } from './csv.ts';

/** The contract's header, and four columns more. */
const COLUMNS = [
  ...['kind', 'partner_id', 'quote_id', 'requote_id', 'reversal_id', 'enrollment_id', 'policy_id', 'currency'],
  ...['accepted_at', 'spotPrice', 'partnerCut', 'invoiceAmount', 'entry_id', 'posted_month', 'recorded_at', 'document'],
] as const;

export const LEDGER_HEADER = `${COLUMNS.join(',')}\n`;

/** The numbers of the documents that stand for a month's rows, by `documentKey`. */
export type DocumentNumbers = ReadonlyMap<string, string>;
export const documentKey = (partnerId: string, currency: string, arrangement: string): string =>
  `${partnerId}\t${currency}\t${arrangement}`;

/** Turns sealed lines, whole ones, into as many of CSV or JSON. `month` is the one that bills them. */
export function ledgerRows(
  format: 'csv' | 'jsonl',
  month: Month,
  numbers: DocumentNumbers,
): (lines: Buffer) => Buffer | string {
  if (format === 'csv') return csvRows(month, numbers);
  return (lines) =>
    lines
      .toString()
      .split('\n')
      .slice(0, -1)
      .map((line) => jsonRow(valuesOf(line, month, numbers)))
      .join('');
}

// --- By texts -----------------------------------------------------------------------------------------------------------

const place = (name: (typeof ENTRY_COLUMNS)[number]): number => ENTRY_COLUMNS.indexOf(name);
const ENTRY_ID = place('entry_id');
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
const ARRANGEMENT = place('arrangement');
const RECORDED = place('recorded_at');

/** In the order of COLUMNS; no value is an empty text. */
function valuesOf(line: string, month: Month, numbers: DocumentNumbers): string[] {
  const fields = line.split('\t').map(unescaped);
  const field = (index: number) => fields[index] as string;
  const digits = minorDigits(field(CURRENCY)) ?? 0;
  return [
    ...[KIND, PARTNER, QUOTE, REQUOTE, REVERSAL, ENROLLMENT, POLICY, CURRENCY].map(field),
    isoTime(field(ACCEPTED)),
    ...[SPOT_PRICE, PARTNER_CUT, INVOICE_AMOUNT].map((index) => withDigits(field(index), digits)),
    field(ENTRY_ID),
    month,
    isoTime(field(RECORDED)),
    numbers.get(documentKey(field(PARTNER), field(CURRENCY), field(ARRANGEMENT))) ?? '',
  ];
}

const ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' };

/** A field of COPY's text format; no value (\N) gives an empty text. */
const unescaped = (field: string): string =>
  field === '\\N' ? '' : field.replace(/\\(.)/gs, (_, letter: string) => ESCAPES[letter] ?? letter);

/** `2026-07-15 12:00:00.25+00` → `2026-07-15T12:00:00.25Z`. In the first form of seals it is that already. */
const isoTime = (time: string): string => (time.endsWith('+00') ? `${time.slice(0, 10)}T${time.slice(11, -3)}Z` : time);

/** A decimal without trailing zeros, with exactly so many digits. One with more, which no row has, stays as it is. */
function withDigits(decimal: string, digits: number): string {
  const point = decimal.indexOf('.');
  if (point >= 0) return decimal.padEnd(point + 1 + digits, '0');
  return digits === 0 ? decimal : `${decimal}.${'0'.repeat(digits)}`;
}

function jsonRow(values: readonly string[]): string {
  const row = COLUMNS.map((name, index) => [name, values[index] as string] as const).filter(
    ([, value]) => value !== '',
  );
  return `${JSON.stringify({ ...Object.fromEntries(row), entry_id: Number(values[COLUMNS.indexOf('entry_id')]) })}\n`;
}

// --- By bytes -----------------------------------------------------------------------------------------------------------

const TAB = 0x09;
const LINE_FEED = 0x0a;
const COMMA = 0x2c;
const PLUS = 0x2b;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const NO_VALUE = 0x4e; // after a backslash
const BACKSLASH = 0x5c;

/** What to look at in a byte: nothing for nearly all that identifiers, amounts, times and zones are made of. */
const LOOK = Uint8Array.from({ length: 256 }, (_, byte) => (/[\w.: /]/.test(String.fromCharCode(byte)) ? 0 : 1));
/** More than the number of a document, the digits of three amounts and what is between add to a line. */
const ROOM = 512;

/**
 * As by texts, for the lines of nearly all rows: identifiers need neither quotes nor escapes. Made of texts, a million
 * rows took 4.5 s, more than the database needed to send them.
 */
function csvRows(month: Month, numbers: DocumentNumbers): (lines: Buffer) => Buffer {
  const posted = Buffer.from(`,${month},`);
  const ends = new Int32Array(ENTRY_COLUMNS.length);
  const startOf = (field: number) => (ends[field - 1] as number) + 1;

  /** Where each field of the line ends; the line's end, or less than 0 where it has anything unusual. */
  const scan = (lines: Buffer, from: number): number => {
    let field = 0;
    let begin = from;
    for (let at = from; ; at += 1) {
      const byte = lines[at] as number;
      if (LOOK[byte] === 0) continue;
      if (byte === TAB) {
        ends[field++] = at;
        begin = at + 1;
      } else if (byte === LINE_FEED) {
        ends[field] = at;
        return at;
      } else if (byte === BACKSLASH) {
        if (lines[at + 1] !== NO_VALUE) return -1;
      } else if (byte === PLUS || byte === MINUS) {
        // What a spreadsheet could take for a formula; an amount may be negative.
        if (at === begin && (byte === PLUS || field < SPOT_PRICE || field > INVOICE_AMOUNT)) return -1;
      } else return -1;
    }
  };

  /** Fields that stand side by side, without those that have no value. */
  const putFields = (lines: Buffer, first: number, last: number, out: Buffer, start: number): number => {
    const end = ends[last] as number;
    let length = start;
    for (let at = startOf(first); at < end; at += 1) {
      const byte = lines[at] as number;
      if (byte === BACKSLASH) at += 1;
      else out[length++] = byte === TAB ? COMMA : byte;
    }
    out[length++] = COMMA;
    return length;
  };
  const putTime = (lines: Buffer, field: number, out: Buffer, start: number): number => {
    const from = startOf(field);
    const to = ends[field] as number;
    const length = putFields(lines, field, field, out, start);
    if (lines[to - 3] !== PLUS) return length;
    out[start + 10] = 0x54; // T
    const zone = start + to - from - 3;
    out[zone] = 0x5a; // Z
    out[zone + 1] = COMMA;
    return zone + 2;
  };
  const putAmount = (lines: Buffer, field: number, digits: number, out: Buffer, start: number): number => {
    const to = ends[field] as number;
    let length = putFields(lines, field, field, out, start) - 1;
    let point = startOf(field);
    while (point < to && lines[point] !== POINT) point += 1;
    if (point === to && digits > 0) out[length++] = POINT;
    for (let have = Math.max(0, to - point - 1); have < digits; have += 1) out[length++] = ZERO;
    out[length++] = COMMA;
    return length;
  };

  return (lines) => {
    const text = (field: number) => lines.toString('latin1', startOf(field), ends[field]);
    let out = Buffer.allocUnsafe(lines.length + ROOM);
    let length = 0;
    for (let at = 0; at < lines.length; ) {
      const end = scan(lines, at);
      if (end < 0) {
        const next = lines.indexOf(LINE_FEED, at) + 1 || lines.length;
        const line = lines.toString('utf8', at, next).replace(/\n$/, '');
        const row = Buffer.from(csvLine(valuesOf(line, month, numbers).map(cellOf)));
        out = Buffer.concat([out.subarray(0, length), row, Buffer.allocUnsafe(lines.length + ROOM)]);
        length += row.length;
        at = next;
        continue;
      }
      if (out.length - length < end - at + ROOM) out = Buffer.concat([out, Buffer.allocUnsafe(lines.length + ROOM)]);
      const currency = text(CURRENCY);
      const digits = minorDigits(currency) ?? 0;
      length = putFields(lines, KIND, KIND, out, length);
      length = putFields(lines, PARTNER, PARTNER, out, length);
      length = putFields(lines, QUOTE, CURRENCY, out, length);
      length = putTime(lines, ACCEPTED, out, length);
      length = putAmount(lines, SPOT_PRICE, digits, out, length);
      length = putAmount(lines, PARTNER_CUT, digits, out, length);
      length = putAmount(lines, INVOICE_AMOUNT, digits, out, length);
      for (let id = at; id < (ends[ENTRY_ID] as number); id += 1) out[length++] = lines[id] as number;
      length += posted.copy(out, length);
      length = putTime(lines, RECORDED, out, length);
      const number = numbers.get(documentKey(text(PARTNER), currency, text(ARRANGEMENT)));
      if (number !== undefined) length += out.write(number, length, 'latin1');
      out[length++] = LINE_FEED;
      at = end + 1;
    }
    return out.subarray(0, length);
  };
}
