/**
 * Reads a bank file in its format. Refusals: bank_format_not_read, bank_format_unknown, bank_map_unknown,
 * bank_columns_missing, bank_file_invalid, bank_file_totals.
 */
import { BankCsvMap } from '#config/bank-csv';
import { Refusal, refuse } from '#errors/refusals';
import { refuseTooMany } from '#reading/limits';
import { bai2 } from './bai2.ts';
import { camt052, camt053, camt054 } from './camt.ts';
import { csv } from './csv.ts';
import { BankFile, BankFormat } from './format.ts';
import { mt940, mt942 } from './mt940.ts';
import { ofx } from './ofx.ts';
import { BankStatement, lineIdentities } from './statement.ts';
import { unreadFormatOf } from './unread-formats.ts';
import { isZip, unzipped } from './zip.ts';

/** The formats, in the order in which they are tried. */
export const BANK_FORMATS: readonly BankFormat[] = [bai2, camt052, camt054, mt940, mt942, ofx, camt053, csv];

/** The part of a file that shows its format, even if a message is inside an envelope. */
const HEAD_BYTES = 16 * 1024;

export type ReadBankFile = Readonly<{
  format: string;
  statements: readonly BankStatement[];
}>;

export function readBankFile(file: BankFile, maps: Readonly<Record<string, BankCsvMap>>): ReadBankFile {
  if (isZip(file.bytes)) {
    const files = unzipped(file).map((each) => readBankFile({ ...file, ...each }, maps));
    const formats = [...new Set(files.map((each) => each.format))];
    return { format: formats.join(' '), statements: files.flatMap((each) => each.statements) };
  }
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
  const statements = readIn(format, file, maps);
  refuseRepeated(file, format, statements);
  refuseTooMany(
    file.name,
    statements.reduce((sum, { lines }) => sum + lines.length, 0),
  );
  return { format: format.name, statements };
}

/** A statement that occurs twice in a file would count its lines twice. */
function refuseRepeated({ name }: BankFile, { title }: BankFormat, statements: readonly BankStatement[]) {
  if (statements.length === 1) return;
  const seen = new Map<string, number>();
  for (const [index, { account, currency, reference, closed_on, opening, closing, lines }] of statements.entries()) {
    const balances = [opening?.toString(), closing?.toString()];
    const key = JSON.stringify([account, currency, reference, closed_on, ...balances, lineIdentities(lines)]);
    const first = seen.get(key);
    if (first !== undefined && lines.length > 0) {
      const reason = `is statement ${first} of ${account} again`;
      throw refuse('bank_file_invalid', {
        file: name,
        problems: [{ path: `statement ${index + 1}`, reason }],
        format: title,
      });
    }
    seen.set(key, index + 1);
  }
}

/** Names the format in a refusal, because a user may have chosen another file than intended. */
function readIn(format: BankFormat, file: BankFile, maps: Readonly<Record<string, BankCsvMap>>) {
  try {
    return format.read(file, maps);
  } catch (error) {
    if (!(error instanceof Refusal) || (error.code !== 'bank_file_invalid' && error.code !== 'bank_file_totals')) {
      throw error;
    }
    const { file: name, problems, ...facts } = error.facts as Parameters<typeof refuse<'bank_file_invalid'>>[1];
    throw refuse(error.code, { file: name, problems, ...facts, format: format.title });
  }
}
