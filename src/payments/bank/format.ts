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
  /**
   * Whether a file has this format. `head` is the beginning of the file, without a byte order mark and leading white
   * space.
   */
  matches: (file: Readonly<{ name: string; head: string }>) => boolean;
  /** Refuses the whole file if its contents, totals or balances are wrong. */
  read: (file: BankFile, maps: Readonly<Record<string, BankCsvMap>>) => BankStatement[];
}>;

/** Decodes a file. Refuses bytes that are invalid in the encoding, because such bytes would garble a payer's name. */
export function decode({ name, bytes }: BankFile, encoding: string) {
  const invalid = () => invalidFile(name, [{ path: '', reason: `is not text in ${encoding}` }]);
  let text: string;
  try {
    text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    throw invalid();
  }
  // PostgreSQL cannot store NUL in text.
  if (text.includes('\0')) throw invalid();
  return text;
}
