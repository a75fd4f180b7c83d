/**
 * The interface of a bank format. A format is one file that exports this interface, and an entry in the list of
 * read.ts.
 */
import { BankCsvMap } from '#config/bank-csv';
import { BankStatement, invalidFile } from './statement.ts';

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
  read: (file: BankFile, maps: Readonly<Record<string, BankCsvMap>>) => BankStatement[];
}>;

/**
 * Decodes a file in the first encoding in which its bytes are valid; invalid bytes would garble a payer's name. A byte
 * order mark, or the NUL bytes of UTF-16, are stronger than the given encodings.
 */
export function decode({ name, bytes }: BankFile, ...encodings: readonly string[]) {
  const marked = markedEncoding(bytes);
  for (const encoding of marked === undefined ? encodings : [marked]) {
    try {
      const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
      // PostgreSQL cannot store NUL in text.
      if (!text.includes('\0')) return text;
    } catch {
      // The next encoding is tried.
    }
  }
  throw invalidFile(name, [{ path: '', reason: `is not text in ${marked ?? encodings.join(' or ')}` }]);
}

/** The encoding that the first bytes show, or undefined. */
export function markedEncoding([first, second, third]: Uint8Array) {
  if (first === 0xef && second === 0xbb && third === 0xbf) return 'utf-8';
  if ((first === 0xff && second === 0xfe) || (first !== 0 && second === 0)) return 'utf-16le';
  return (first === 0xfe && second === 0xff) || (first === 0 && second !== 0) ? 'utf-16be' : undefined;
}
