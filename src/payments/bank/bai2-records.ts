/** The records of a BAI2 file: physical records joined with their continuations (88) and split into fields. */
import { BankFile, HEAD_BYTES, linesOf } from './format.ts';

const SEVERAL_RECORDS = /(?<=\/)[ \t]*(?=(?:0[123]|16|49|88|98|99),)/;
/** Only the text of a transaction (16, 88) may contain a slash and a record code too. */
const IS_BLOCKED = /^(?:0[123]|49|98),[^\n]*\/[ \t]*(?:0[123]|16|49|88|98|99),/m;

/**
 * Some banks write several records on a line. The totals and counts of the trailers prove that the lines were split at
 * the right places.
 */
export function* physicalRecords(file: BankFile): Generator<readonly [text: string, at: number]> {
  const isBlocked = IS_BLOCKED.test(file.bytes.subarray(0, HEAD_BYTES).toString('latin1'));
  for (const [line, at] of linesOf(file, 'utf-8', 'latin1')) {
    for (const record of isBlocked ? line.split(SEVERAL_RECORDS) : [line]) yield [record, at];
  }
}

export interface LogicalRecord {
  readonly code: string;
  readonly line: number;
  readonly fields: string[];
  /** The text at the end of a 16 record, with one piece for each physical record. */
  readonly pieces: string[];
  raw: string;
  count: number;
}

const CODES = new Set(['01', '02', '03', '16', '88', '49', '98', '99']);

/**
 * Joins physical records with their continuations. Fields end at `/`, but the text of a 16 record may contain `/` and
 * commas.
 */
export function* logicalRecords(
  physical: Iterable<readonly [text: string, at: number]>,
  complain: (line: number, reason: string) => void,
): Generator<readonly [record: LogicalRecord, at: number]> {
  let last: LogicalRecord | undefined;
  let line = 0;
  let end = 0;
  for (const [written, at] of physical) {
    line += 1;
    const content = written.trimEnd();
    if (content === '') continue;
    const code = content.slice(0, 2);
    if (!CODES.has(code) || (content.length > 2 && content[2] !== ',')) {
      complain(line, 'is not a BAI2 record: it must begin with 01, 02, 03, 16, 49, 88, 98 or 99 and a comma');
      continue;
    }
    const body = content.slice(3);
    if (code !== '88') {
      if (last !== undefined) yield [last, end];
      last = { code, line, fields: [], pieces: [], raw: content, count: 1 };
      append(last, body);
    } else if (last === undefined) complain(line, 'is a continuation (88) without a record');
    else {
      last.raw += `\n${content}`;
      last.count += 1;
      append(last, body);
    }
    end = at;
  }
  if (last !== undefined) yield [last, end];
}

function append(record: LogicalRecord, body: string) {
  const ended = body.endsWith('/');
  const content = ended ? body.slice(0, -1) : body;
  if (record.code !== '16') {
    if (content !== '' || record.fields.length === 0) for (const field of content.split(',')) record.fields.push(field);
    return;
  }
  let rest: string | undefined = content;
  while (rest !== undefined && (record.fields.length === 0 || record.fields.length < headLength(record.fields))) {
    const comma: number = rest.indexOf(',');
    record.fields.push(comma < 0 ? rest : rest.slice(0, comma));
    rest = comma < 0 ? undefined : rest.slice(comma + 1);
  }
  if (rest !== undefined && rest !== '') record.pieces.push(rest);
}

/** The number of fields before a transaction's text: type, amount, funds type with its own fields, two references. */
export const headLength = (fields: readonly string[]) => 5 + fundsFields(fields[2] ?? '', fields[3]);

/**
 * Returns how many fields a funds type adds. V has a value date, S three amounts, and D as many pairs as its first
 * field states. If the first field after D is not a number of pairs, no fields are added, and the record is refused
 * (`isDistribution`).
 */
export const fundsFields = (type: string, first: string | undefined) =>
  ({ V: 2, S: 3, D: 1 + 2 * (PAIRS.test(first ?? '') ? Number(first || '0') : 0) })[type.toUpperCase()] ?? 0;

export const isDistribution = (type: string, first: string | undefined) =>
  type.toUpperCase() !== 'D' || PAIRS.test(first ?? '');

const PAIRS = /^\d{0,3}$/;
/** A longer text of digits is refused before it is parsed. */
export const UNITS = /^[+-]?\d{1,30}$/;
