/**
 * Reads a bank file in its format. Refusals: bank_format_not_read, bank_format_unknown, bank_map_unknown,
 * bank_file_invalid, bank_file_totals.
 */
import { BankCsvMap } from '#config/bank-csv';
import { refuse } from '#errors/refusals';
import { refuseTooMany } from '#reading/limits';
import { bai2 } from './bai2.ts';
import { camt053 } from './camt053.ts';
import { csv } from './csv.ts';
import { BankFile, BankFormat } from './format.ts';
import { BankStatement } from './statement.ts';
import { unreadFormatOf } from './unread-formats.ts';

/** The formats, in the order in which they are tried. */
export const BANK_FORMATS: readonly BankFormat[] = [bai2, camt053, csv];

/** The part of a file that shows its format, even if a message is inside an envelope. */
const HEAD_BYTES = 16 * 1024;

export type ReadBankFile = Readonly<{
  format: string;
  statements: readonly BankStatement[];
}>;

export function readBankFile(file: BankFile, maps: Readonly<Record<string, BankCsvMap>>): ReadBankFile {
  const head = file.bytes
    .subarray(0, HEAD_BYTES)
    .toString('latin1')
    .replace(/^(?:\xEF\xBB\xBF|\xFF\xFE|\xFE\xFF)/, '')
    // UTF-16 has a NUL byte beside each letter.
    .replaceAll('\0', '')
    .trimStart();
  const unread = unreadFormatOf(head);
  if (unread !== undefined) throw refuse('bank_format_not_read', { file: file.name, ...unread });
  const format = BANK_FORMATS.find((each) =>
    file.format === undefined ? each.matches({ name: file.name, head }) : each.name === file.format,
  );
  if (format === undefined) {
    throw refuse('bank_format_unknown', { file: file.name, formats: BANK_FORMATS.map(({ name }) => name) });
  }
  const statements = format.read(file, maps);
  refuseTooMany(
    file.name,
    statements.reduce((sum, { lines }) => sum + lines.length, 0),
  );
  return { format: format.name, statements };
}
