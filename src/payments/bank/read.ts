/**
 * Which format a bank file is of, and its statements. The content tells BAI2 and camt.053; CSV is told by the file's
 * name, or what is left. Refusals: bank_format_unknown, bank_map_unknown, bank_file_invalid, bank_file_totals.
 */
import type { BankCsvMap } from '../../config/bank-csv.ts';
import { refuse } from '../../errors/refusals.ts';
import type { BankFormat } from '../enums.ts';
import { readBai2 } from './bai2.ts';
import { readCamt053 } from './camt053.ts';
import { readBankCsv } from './csv.ts';
import { type BankStatement, invalidFile } from './statement.ts';

export interface BankFile {
  /** For messages. */
  readonly name: string;
  readonly bytes: Buffer;
  readonly format?: BankFormat | undefined;
  /** The name of the column map, for CSV. */
  readonly map?: string | undefined;
}

export interface ReadBankFile {
  readonly format: BankFormat;
  readonly statements: readonly BankStatement[];
}

export function readBankFile(file: BankFile, maps: Readonly<Record<string, BankCsvMap>>): ReadBankFile {
  const format = file.format ?? formatOf(file);
  switch (format) {
    case 'bai2':
      return { format, statements: readBai2(decoded(file, 'latin1'), file.name) };
    case 'camt053':
      return { format, statements: readCamt053(decoded(file, declaredEncoding(file.bytes)), file.name) };
    case 'csv': {
      const map = mapNamed(maps, file);
      return { format, statements: readBankCsv(decoded(file, map.encoding), file.name, map) };
    }
  }
}

function formatOf({ name, bytes }: BankFile): BankFormat {
  const head = bytes
    .subarray(0, 400)
    .toString('latin1')
    .replace(/^(?:\xEF\xBB\xBF|\xFF\xFE)/, '')
    .trimStart();
  if (/^01,/.test(head) && /^02,/m.test(bytes.subarray(0, 2000).toString('latin1'))) return 'bai2';
  if (head.startsWith('<')) return 'camt053';
  if (/\.(csv|txt)$/i.test(name)) return 'csv';
  throw refuse('bank_format_unknown', { file: name });
}

/** The only map there is needs no name. */
function mapNamed(maps: Readonly<Record<string, BankCsvMap>>, file: BankFile): BankCsvMap {
  const names = Object.keys(maps);
  const name = file.map ?? (names.length === 1 ? (names[0] as string) : '');
  const map = Object.hasOwn(maps, name) ? maps[name] : undefined;
  if (map === undefined) throw refuse('bank_map_unknown', { file: file.name, map: name, maps: names });
  return map;
}

const declaredEncoding = (bytes: Buffer): string =>
  /^<\?xml[^>]*encoding=["']([A-Za-z0-9._-]+)["']/.exec(bytes.subarray(0, 200).toString('latin1').trimStart())?.[1] ??
  'utf-8';

/** Bytes that are not of the encoding are refused: a payer's name would be kept wrong for good. */
function decoded({ name, bytes }: BankFile, encoding: string): string {
  const invalid = () => invalidFile(name, [{ path: '', reason: `is not text in ${encoding}` }]);
  let text: string;
  try {
    text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    throw invalid();
  }
  // No text has it, and PostgreSQL keeps none that does.
  if (text.includes('\0')) throw invalid();
  return text;
}
