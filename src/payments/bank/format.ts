/** The interface of a bank format: one file that exports it, and one line in the list of read.ts. */
import type { BankCsvMap } from '../../config/bank-csv.ts';
import { type BankStatement, invalidFile } from './statement.ts';

export interface BankFile {
  /** Used in messages, and to recognize CSV. */
  readonly name: string;
  readonly bytes: Buffer;
  /** The name of the format; if omitted, it is detected. */
  readonly format?: string | undefined;
  /** The name of the column map, for CSV. */
  readonly map?: string | undefined;
}

export interface BankFormat {
  /** As in `--format` and the import's report. */
  readonly name: string;
  /** Whether a file has this format. `head` is its beginning, without byte order mark and white space. */
  readonly matches: (file: { readonly name: string; readonly head: string }) => boolean;
  /** Refuses the whole file if its contents, totals or balances are wrong. */
  readonly read: (file: BankFile, maps: Readonly<Record<string, BankCsvMap>>) => BankStatement[];
}

/** Refuses bytes that are invalid in the encoding. Otherwise a garbled payer's name would be stored. */
export function decode({ name, bytes }: BankFile, encoding: string): string {
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
