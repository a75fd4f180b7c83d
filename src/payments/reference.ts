/**
 * Finding document numbers in what a payer wrote. Only a number that stands there whole, in whatever dress (spaces,
 * dashes left out, small letters, inside other text), is found for certain; what would have to be guessed (a letter O for
 * a zero, a number cut off, another year) is found as a hint for a person.
 */
import type { ReferenceField } from './bank/statement.ts';

export interface FoundReference {
  /** The document's number as we write it: INV-2026-000123. */
  readonly number: string;
  readonly field: string;
  /** What stood there. */
  readonly found: string;
  /** Undefined where it is certain; else what had to be guessed. */
  readonly guess: string | undefined;
}

/** A number of which only the beginning stood there, at the end of a field. */
export interface CutReference {
  /** `INV2026000`: series and sequence, without dashes, as far as they go. */
  readonly beginning: string;
  readonly field: string;
  readonly found: string;
}

export interface FoundReferences {
  readonly references: readonly FoundReference[];
  readonly cut: readonly CutReference[];
}

/** `INV` and what follows it: digits, each after at most three characters that are neither digit nor letter. */
const WRITTEN = /INV(?:OICE)?(?:[^A-Z0-9]{0,3}N[RO][^A-Z0-9]?)?((?:[^A-Z0-9]{0,3}\d)+)/g;
/** The same with the letters that are taken for digits. */
const MISREAD = /[I1L]NV((?:[^A-Z0-9]{0,3}(?![I1L]NV)[0-9OQDILSB])+)/g;
const AS_DIGIT: Readonly<Record<string, string>> = { O: '0', Q: '0', D: '0', I: '1', L: '1', S: '5', B: '8' };
/** Year and sequence without the series: any of our documents, or none of them. */
const BARE = /(?<!\d)(20\d\d)[^A-Z0-9]{1,2}(\d{6}|[1-9]\d{6,})(?!\d)/g;

/** Sequences have at least so many digits. */
const SEQUENCE_DIGITS = 6;
const YEAR_DIGITS = 4;

export function findReferences(fields: readonly ReferenceField[]): FoundReferences {
  const references = new Map<string, FoundReference>();
  const cut: CutReference[] = [];
  const keep = (found: FoundReference): void => {
    const known = references.get(found.number);
    // What one field says for certain another needn't guess.
    if (known === undefined || (known.guess !== undefined && found.guess === undefined))
      references.set(found.number, found);
  };
  for (const { field, text } of fields) {
    const written = text.toUpperCase();
    for (const match of written.matchAll(WRITTEN)) {
      const digits = match[1] as string;
      for (const { number, guess } of readings(digits)) keep({ number, field, found: match[0].trim(), guess });
      const plain = digits.replace(/\D/g, '');
      const atEnd = match.index + match[0].length === written.trimEnd().length;
      if (atEnd && plain.length < YEAR_DIGITS + SEQUENCE_DIGITS)
        cut.push({ beginning: `INV${plain}`, field, found: match[0].trim() });
    }
    for (const match of written.matchAll(MISREAD)) {
      const tail = match[1] as string;
      if (!/[A-Z]/.test(tail) && match[0].startsWith('INV')) continue;
      const digits = tail.replace(/[A-Z]/g, (letter) => AS_DIGIT[letter] as string);
      for (const { number } of readings(digits)) {
        keep({ number, field, found: match[0].trim(), guess: 'letters were read as digits' });
      }
    }
    for (const match of written.matchAll(BARE)) {
      const number = numbered(match[1] as string, match[2] as string);
      keep({ number, field, found: match[0].trim(), guess: 'the letters before the number are missing' });
    }
  }
  return { references: [...references.values()], cut };
}

interface Reading {
  readonly number: string;
  readonly guess: string | undefined;
}

/**
 * What a run of digits and separators can mean. Four digits are the year; the sequence ends where a separator or the end
 * stands after at least six more. Without one it may end after the sixth, but whether it does has to be guessed.
 */
function readings(run: string): Reading[] {
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
  if (!/^20\d\d$/.test(year)) return [];
  const whole = YEAR_DIGITS + SEQUENCE_DIGITS;
  if (text.length < whole) {
    const sequence = text.slice(YEAR_DIGITS);
    return sequence === '' || /^0*$/.test(sequence)
      ? []
      : [{ number: numbered(year, sequence), guess: 'zeros before the number are missing' }];
  }
  const found: Reading[] = [];
  for (let length = whole; length <= text.length; length += 1) {
    const sequence = text.slice(YEAR_DIGITS, length);
    // Zeros are only put before a sequence to make it six digits long.
    const ours = length === whole || !sequence.startsWith('0');
    if (ours && digits[length - 1]?.ends) found.push({ number: numbered(year, sequence), guess: undefined });
  }
  if (!digits[whole - 1]?.ends) {
    found.push({ number: numbered(year, text.slice(YEAR_DIGITS, whole)), guess: 'more digits follow the number' });
  }
  return found;
}

/** As documents are numbered: six digits, more where there are more. */
function numbered(year: string, sequence: string): string {
  const digits = sequence.replace(/^0+/, '');
  return `INV-${year}-${digits.padStart(SEQUENCE_DIGITS, '0')}`;
}
