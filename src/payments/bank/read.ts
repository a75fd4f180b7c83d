/**
 * Reads a bank file with the format that it is of. Refusals: bank_format_unknown, bank_map_unknown, bank_file_invalid,
 * bank_file_totals.
 */
import type { BankCsvMap } from '../../config/bank-csv.ts';
import { refuse } from '../../errors/refusals.ts';
import { bai2 } from './bai2.ts';
import { camt053 } from './camt053.ts';
import { csv } from './csv.ts';
import type { BankFile, BankFormat } from './format.ts';
import type { BankStatement } from './statement.ts';

/** All bank formats, in the order in which a file is tried. */
export const BANK_FORMATS: readonly BankFormat[] = [bai2, camt053, csv];

/** Enough of a file to recognize its format. */
const HEAD_BYTES = 2000;

export interface ReadBankFile {
  readonly format: string;
  readonly statements: readonly BankStatement[];
}

export function readBankFile(file: BankFile, maps: Readonly<Record<string, BankCsvMap>>): ReadBankFile {
  const head = file.bytes
    .subarray(0, HEAD_BYTES)
    .toString('latin1')
    .replace(/^(?:\xEF\xBB\xBF|\xFF\xFE)/, '')
    .trimStart();
  const format = BANK_FORMATS.find((each) =>
    file.format === undefined ? each.matches({ name: file.name, head }) : each.name === file.format,
  );
  if (format === undefined) {
    throw refuse('bank_format_unknown', { file: file.name, formats: BANK_FORMATS.map(({ name }) => name) });
  }
  return { format: format.name, statements: format.read(file, maps) };
}
