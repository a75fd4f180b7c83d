/**
 * The interface of a bank format. A format is one file that exports this interface, and an entry in the list of
 * read.ts.
 */
import { isUtf8 } from 'node:buffer';
import { BankCsvMap } from '#config/bank-csv';
import { BankPart, invalidFile } from './statement.ts';

/** The part of a file that shows its format, even if a message is inside an envelope. */
export const HEAD_BYTES = 16 * 1024;

export type BankFile = Readonly<{
  name: string;
  bytes: Buffer;
  /** The format is detected if its name is omitted. */
  format?: string | undefined;
  map?: string | undefined;
}>;

export type BankFormat = Readonly<{
  name: string;
  /** The name for people: `MT940`. */
  title: string;
  /**
   * Whether a file has this format. `head` is the beginning of the file, without a byte order mark and leading white
   * space.
   */
  matches: (file: Readonly<{ name: string; head: string }>) => boolean;
  /** Refuses the whole file if its contents, totals or balances are wrong. */
  read: (file: BankFile, maps: Readonly<Record<string, BankCsvMap>>) => Iterable<BankPart>;
}>;

/**
 * Decodes a file in the first encoding in which its bytes are valid; invalid bytes would garble a payer's name. A byte
 * order mark, or the NUL bytes of UTF-16, are stronger than the given encodings.
 */
export function decode({ name, bytes }: BankFile, ...encodings: readonly string[]) {
  const marked = markedEncoding(bytes);
  for (const encoding of marked === undefined ? encodings : [marked]) {
    try {
      const text = decoderOf(encoding).decode(bytes);
      // PostgreSQL cannot store NUL in text.
      if (!text.includes('\0')) return text;
    } catch {
      // The next encoding is tried.
    }
  }
  throw invalidFile(name, [{ path: '', reason: `is not text in ${marked ?? encodings.join(' or ')}` }]);
}

const decoders = new Map<string, TextDecoder>();

function decoderOf(encoding: string) {
  const decoder = decoders.get(encoding) ?? new TextDecoder(encoding, { fatal: true });
  decoders.set(encoding, decoder);
  return decoder;
}

/** The encoding that the first bytes show, or undefined. */
export function markedEncoding([first, second, third]: Uint8Array) {
  if (first === 0xef && second === 0xbb && third === 0xbf) return 'utf-8';
  if ((first === 0xff && second === 0xfe) || (first !== 0 && second === 0)) return 'utf-16le';
  return (first === 0xfe && second === 0xff) || (first === 0 && second !== 0) ? 'utf-16be' : undefined;
}

/** The file in an encoding in which an ASCII character is one byte: a text in UTF-16 is decoded as a whole. */
export const withSingleBytes = (file: BankFile): Pick<BankFile, 'name' | 'bytes'> =>
  markedEncoding(file.bytes)?.startsWith('utf-16')
    ? { name: file.name, bytes: Buffer.from(decode(file, 'utf-16')) }
    : file;

const NEWLINE = 0x0a;

export const newlines = (text: string) => text.split('\n').length - 1;

/**
 * Yields the lines of a text in one of these encodings, in which a line feed is one byte, with the position after each
 * line.
 */
export function* linesOf(
  file: BankFile,
  ...encodings: readonly string[]
): Generator<readonly [text: string, at: number]> {
  const { name, bytes } = withSingleBytes(file);
  const [first, ...others] = encodings;
  const fitting = first === 'utf-8' && !isUtf8(bytes) ? others : encodings;
  for (let from = 0; from < bytes.length; ) {
    const found = bytes.indexOf(NEWLINE, from);
    const to = found < 0 ? bytes.length : found + 1;
    const text = decode({ name, bytes: bytes.subarray(from, to) }, ...fitting);
    // Old files end their lines with a carriage return alone.
    for (const line of text.replace(/\r?\n$|\r$/, '').split('\r')) yield [line, to];
    from = to;
  }
}
