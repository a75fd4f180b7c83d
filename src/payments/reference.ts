/**
 * Finds document numbers in remittance texts. A complete number is certain in any form: with spaces, without dashes, in
 * small letters, inside other text. A number with a letter O for a zero, missing zeros or a missing series is a guess,
 * which finance must confirm. A sequence without a year, such as 000012, may belong to a document of any year. A
 * creditor reference (ISO 11649) is certain if its check digits are right; otherwise it names nothing. Pure.
 */
import { creditorReferenceOf } from '#documents/creditor-reference';
import { ReferenceField } from './bank/statement.ts';

export type FoundReference = Readonly<{
  number: string;
  field: string;
  found: string;
  /** A clause about the guessed part. Undefined if the number is certain. */
  guess: string | undefined;
  /** Whether the number was written with check digits (ISO 11649), so that it cannot be mistyped. */
  checked?: true;
}>;

/** The beginning of a number that the end of a field cuts off. */
export type PartialReference = Readonly<{
  /** The beginning of the number without dashes, such as `INV2026000`. */
  beginning: string;
  field: string;
  found: string;
}>;

export type FoundCreditNote = Readonly<{
  number: string;
  field: string;
  found: string;
}>;

/** A sequence without its year, padded with zeros. */
export type ShortReference = Readonly<{
  sequence: string;
  field: string;
}>;

/** What the payer says that it pays of a document. */
type Allocation = Readonly<{
  field: ReferenceField;
  amount: string;
}>;

export type FoundReferences = Readonly<{
  references: readonly FoundReference[];
  partial: readonly PartialReference[];
  short: readonly ShortReference[];
}>;

/** `INV`, then digits. At most three characters that are neither digit nor letter may precede each digit. */
const WRITTEN = /INV(?:OICE)?(?:[^A-Z0-9]{0,3}N[RO][^A-Z0-9]?)?((?:[^A-Z0-9]{0,3}\d)+)/g;
const MISREAD = /[I1L]NV((?:[^A-Z0-9]{0,3}(?![I1L]NV)[0-9OQDILSB])+)/g;
const AS_DIGIT: Readonly<Record<string, string>> = { O: '0', Q: '0', D: '0', I: '1', L: '1', S: '5', B: '8' };
const BARE = /(?<!\d)(20\d\d)[^A-Z0-9]{1,2}(\d{6}|[1-9]\d{6,})(?!\d)/g;

const CREDIT_NOTE = /(?<![A-Z0-9])C[NM][^A-Z0-9]{0,3}(20\d\d)[^A-Z0-9]{0,3}(\d{6,})(?!\d)/g;

/** A sequence alone, padded with zeros: `000012, 000020`. */
const SHORT = /(?<![A-Z0-9])0\d{5}(?![A-Z0-9])/g;
/** A sequence that continues a list of numbers: `INV-2026-000012 AND 20`. An amount or a date has more digits. */
const LISTED = /^\s*(?:[,;/+&]|(?:AND|UND|ET|EN|E|Y)\b)\s*(\d{1,6})(?![.,:/-]?\d|[A-Z%])/;
/** The remittance of an EDI payment: `RMR*IV*number**amount`. */
const REMITTANCE = /\bRMR\*IV\*([^*]+)\*[^*]*\*(\d+(?:\.\d+)?)/gi;

export const WITHOUT_YEAR = 'series and year are missing';
export const MISSPELLED = 'letters were read as digits';
const SEQUENCE_DIGITS = 6;
const YEAR_DIGITS = 4;
const YEAR = /^20\d\d$/;
/** A year, perhaps with a part of a sequence, or the beginning of a year. */
const CUT = /^2(?:0\d*)?$/;
const LONGEST_SEQUENCE = 12;

export function findReferences(fields: readonly ReferenceField[]): FoundReferences {
  const references = new Map<string, FoundReference>();
  const partial: PartialReference[] = [];
  const short = new Map<string, ShortReference>();
  const keep = (found: FoundReference) => {
    const known = references.get(found.number);
    if (known === undefined || (known.guess !== undefined && found.guess === undefined))
      references.set(found.number, found);
  };
  const { checked, others: unchecked } = readCreditorReferences(fields);
  for (const { body, ...where } of checked) {
    const [, year, sequence] = OWN_BODY.exec(body) ?? [];
    if (year !== undefined && sequence !== undefined)
      keep({ number: numbered(year, sequence), ...where, guess: undefined, checked: true });
  }
  for (const { field, text } of unchecked) {
    const upper = text.toUpperCase();
    // In a text that names an invoice, the digits of a credit note do not name an invoice.
    const written = upper.includes('INV') ? upper.replace(CREDIT_NOTE, (each) => '|'.repeat(each.length)) : upper;
    const others = written.replace(WRITTEN, (_, digits: string) => ` | ${afterNumber(digits)} | `);
    for (const [sequence] of others.replace(MISREAD, ' | ').replace(BARE, ' | ').matchAll(SHORT)) {
      short.set(sequence, { sequence, field });
    }
    for (const match of written.matchAll(WRITTEN)) {
      const digits = match[1] as string;
      for (const { number, guess } of readings(digits)) keep({ number, field, found: match[0].trim(), guess });
      const plain = digits.replace(/\D/g, '');
      const end = match.index + match[0].length;
      const isWhole = plain.length >= YEAR_DIGITS + SEQUENCE_DIGITS;
      // `INV 20` may be a sequence, or the beginning of a year.
      const alone = plain.length > SEQUENCE_DIGITS || /^20\d\d/.test(plain) ? [] : [plain];
      for (const each of isWhole ? listed(written.slice(end - afterNumber(digits).length)) : alone) {
        const sequence = each.padStart(SEQUENCE_DIGITS, '0');
        short.set(sequence, { sequence, field });
      }
      if (!isWhole && CUT.test(plain) && end === written.trimEnd().length) {
        partial.push({ beginning: `INV${plain}`, field, found: match[0].trim() });
      }
    }
    for (const match of written.matchAll(MISREAD)) {
      const tail = match[1] as string;
      if (!/[A-Z]/.test(tail) && match[0].startsWith('INV')) continue;
      const digits = tail.replace(/[A-Z]/g, (letter) => AS_DIGIT[letter] as string);
      for (const { number } of readings(digits)) {
        keep({ number, field, found: match[0].trim(), guess: MISSPELLED });
      }
    }
    for (const match of written.matchAll(BARE)) {
      const number = numbered(match[1] as string, match[2] as string);
      keep({ number, field, found: match[0].trim(), guess: 'the letters before the number are missing' });
    }
  }
  return { references: [...references.values()], partial, short: [...short.values()] };
}

function* listed(text: string): Generator<string> {
  let rest = text;
  for (let next = LISTED.exec(rest); next !== null; next = LISTED.exec(rest)) {
    if (!YEAR.test(next[1] as string)) yield next[1] as string;
    rest = rest.slice(next[0].length);
  }
}

/** The payer's own allocation: the amounts that structured remittances and EDI texts state beside numbers. */
export const findAllocations = (fields: readonly ReferenceField[]): Allocation[] =>
  fields.flatMap(({ field, text, amount }) => [
    ...(amount === undefined ? [] : [{ field: { field, text }, amount }]),
    ...[...text.matchAll(REMITTANCE)].map(([, number = '', paid = '']) => ({
      field: { field, text: number },
      amount: paid,
    })),
  ]);

/**
 * The numbers of documents carried over from the previous system, in any form and with any separators. A short number
 * is a guess, because it may occur in a text by chance.
 */
export class CarriedNumbers {
  private readonly numbers = new Map<string, string>();
  private mostParts = 0;

  /** `written` is the number in the previous system. */
  constructor(carried: readonly Readonly<{ written: string; number: string }>[]) {
    for (const { written, number } of carried) {
      const parts = partsOf(written.toUpperCase());
      this.numbers.set(parts.map((each) => each.text).join(''), number);
      this.mostParts = Math.max(this.mostParts, parts.length);
    }
  }

  find(fields: readonly ReferenceField[]): FoundReference[] {
    if (this.numbers.size === 0) return [];
    const found = new Map<string, FoundReference>();
    const { checked, others } = readCreditorReferences(fields);
    for (const { body, ...where } of checked) {
      const number = this.numbers.get(body);
      if (number !== undefined) found.set(number, { number, ...where, guess: undefined, checked: true });
    }
    for (const { field, text } of others) {
      const parts = partsOf(text.toUpperCase());
      for (const first of parts.keys()) {
        for (const [joined, start, end] of this.runsFrom(parts, first)) {
          const number = this.numbers.get(joined);
          if (number === undefined) continue;
          const guess = isTelling(joined) ? undefined : 'so short a number may occur by chance';
          const known = found.get(number);
          if (known === undefined || known.guess !== undefined) {
            found.set(number, { number, field, found: text.slice(start, end), guess });
          }
        }
      }
    }
    return [...found.values()];
  }

  /**
   * Joins the runs of parts that begin at a given part. A run may have one part more than the longest number, because a
   * payer may split a part in two.
   */
  private *runsFrom(parts: readonly Part[], first: number): Generator<[joined: string, start: number, end: number]> {
    let [joined, before] = ['', parts[first]?.start ?? 0];
    for (const { text, start, end } of parts.slice(first, first + this.mostParts + 1)) {
      if (start - before > MOST_BETWEEN_PARTS) return;
      joined += text;
      before = end;
      yield [joined, parts[first]?.start ?? 0, end];
    }
  }
}

type Part = Readonly<{
  text: string;
  start: number;
  end: number;
}>;
const MOST_BETWEEN_PARTS = 3;

const partsOf = (text: string): Part[] =>
  [...text.matchAll(/[A-Z0-9]+/g)].map(({ 0: part, index }) => ({
    text: part,
    start: index,
    end: index + part.length,
  }));

/** A match with fewer characters may be a coincidence. */
const isTelling = (joined: string) =>
  (/^\d+$/.test(joined) ? joined.length >= 6 : joined.length >= 5) && /\d/.test(joined);

function afterNumber(run: string) {
  const complete = /^\D*(?:\d\D*?){10}(?=\D)/.exec(run);
  return complete === null ? '' : run.slice(complete[0].length);
}

export function findCreditNotes(fields: readonly ReferenceField[]): FoundCreditNote[] {
  const found = fields.flatMap(({ field, text }) =>
    [...text.toUpperCase().matchAll(CREDIT_NOTE)].map(([written, year = '', sequence = '']) => ({
      number: numbered(year, sequence).replace('INV-', 'CN-'),
      field,
      found: written,
    })),
  );
  return [...new Map(found.map((each) => [each.number, each])).values()];
}

// --- Creditor references ---

const CREDITOR_REFERENCE = /(?<![A-Z0-9])RF[^A-Z0-9]{0,3}\d[^A-Z0-9]?\d|RF\d\d(?=INV)/g;
const OWN_BODY = /^INV(20\d\d)(0\d{5}|[1-9]\d{5,11})$/;

/** The body has the letters and digits of the document's number. */
type CheckedReference = Readonly<Record<'body' | 'field' | 'found', string>>;

/**
 * The creditor references with right check digits, and the texts without any creditor reference. The digits of a
 * mistyped reference must not be read as another number.
 */
function readCreditorReferences(fields: readonly ReferenceField[]): {
  checked: CheckedReference[];
  others: ReferenceField[];
} {
  const checked: CheckedReference[] = [];
  const others = fields.map(({ field, text }) => {
    const upper = text.toUpperCase();
    let left = upper.length === text.length ? text : upper;
    for (const { 0: head, index } of upper.matchAll(CREDITOR_REFERENCE)) {
      const parts: string[] = [];
      let end = index + head.length;
      for (const { 0: part, 1: next = '' } of upper.slice(end).matchAll(/[^A-Z0-9]{0,3}([A-Z0-9]+)/gy)) {
        if (!continues(parts, next)) break;
        parts.push(next);
        end += part.length;
      }
      const body = parts.join('');
      if (creditorReferenceOf(body) === head.replace(/[^A-Z0-9]/g, '') + body)
        checked.push({ body, field, found: left.slice(index, end) });
      left = left.slice(0, index) + '|'.repeat(end - index) + left.slice(end);
    }
    return { field, text: left };
  });
  return { checked, others };
}

/**
 * Whether a text belongs to the reference whose first parts are known: the rest of a number of ours, or the next of
 * the groups of four in which references are printed.
 */
function continues(parts: readonly string[], next: string) {
  const body = parts.join('');
  if (body === '' || (/^INV\d{0,9}$/.test(body) && /^\d+$/.test(next))) return true;
  return parts.every(({ length }) => length === 4) && next.length <= 4 && !/^[I1L]NV/.test(next);
}

type Reading = Pick<FoundReference, 'number' | 'guess'>;

/**
 * The numbers that a run of digits and separators may mean. The first four digits are the year. The sequence has at
 * least six digits and ends at a separator or at the end of the run. If six digits of a sequence are followed by
 * further digits, the sequence is a guess.
 */
function readings(run: string) {
  const digits: { digit: string; ends: boolean }[] = [];
  for (const character of run) {
    if (/\d/.test(character)) digits.push({ digit: character, ends: false });
    else {
      const last = digits.at(-1);
      if (last !== undefined) last.ends = true;
    }
  }
  const last = digits.at(-1);
  if (last !== undefined) last.ends = true;
  const text = digits.map((each) => each.digit).join('');
  const year = text.slice(0, YEAR_DIGITS);
  if (!YEAR.test(year)) return [];
  const whole = YEAR_DIGITS + SEQUENCE_DIGITS;
  if (text.length < whole) {
    const sequence = text.slice(YEAR_DIGITS);
    return sequence === '' || /^0*$/.test(sequence)
      ? []
      : [{ number: numbered(year, sequence), guess: 'zeros before the number are missing' }];
  }
  const found: Reading[] = [];
  for (let length = whole; length <= Math.min(text.length, YEAR_DIGITS + LONGEST_SEQUENCE); length += 1) {
    const sequence = text.slice(YEAR_DIGITS, length);
    // A sequence is padded with zeros only up to six digits.
    const ours = length === whole || !sequence.startsWith('0');
    if (ours && digits[length - 1]?.ends) found.push({ number: numbered(year, sequence), guess: undefined });
  }
  if (!digits[whole - 1]?.ends) {
    found.push({ number: numbered(year, text.slice(YEAR_DIGITS, whole)), guess: 'more digits follow the number' });
  }
  return found;
}

function numbered(year: string, sequence: string) {
  const digits = sequence.replace(/^0+/, '');
  return `INV-${year}-${digits.padStart(SEQUENCE_DIGITS, '0')}`;
}
