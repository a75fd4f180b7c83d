/**
 * Reads a bank file in its format. Refusals: bank_format_not_read, bank_format_unknown, bank_map_unknown,
 * bank_columns_missing, bank_file_invalid, bank_file_totals.
 */
import { createHash, Hash } from 'node:crypto';
import { BankCsvMap } from '#config/bank-csv';
import { someOf } from '#errors/definition';
import { Refusal, refuse } from '#errors/refusals';
import { refuseTooMany } from '#reading/limits';
import { bai2 } from './bai2.ts';
import { camt052, camt053, camt054 } from './camt.ts';
import { csv } from './csv.ts';
import { BankFile, BankFormat, HEAD_BYTES, markedEncoding } from './format.ts';
import { mt940, mt942 } from './mt940.ts';
import { ofx } from './ofx.ts';
import { BankLine, BankPart, BankStatement, invalidFile, statementsOf } from './statement.ts';
import { unreadFormatOf } from './unread-formats.ts';
import { isZip, unzipped } from './zip.ts';

/** The formats, in the order in which they are tried. */
export const BANK_FORMATS: readonly BankFormat[] = [bai2, camt052, camt054, mt940, mt942, ofx, camt053, csv];

export type ReadBankFile<Lines = readonly BankLine[]> = Readonly<{
  format: string;
  statements: readonly BankStatement<Lines>[];
}>;

type Maps = Readonly<Record<string, BankCsvMap>>;

/** What a file yields: its format, which a zip archive has once for each of its files, and its parts. */
export type BankFilePart = BankPart | Readonly<{ format: string }>;

/** Reads a whole file in this process. */
export function readBankFile(file: BankFile, maps: Maps): ReadBankFile {
  const formats = new Set<string>();
  function* ofStatements() {
    for (const part of readBankParts(file, maps)) {
      if ('format' in part) formats.add(part.format);
      else yield part;
    }
  }
  const statements = statementsOf(ofStatements());
  return { format: [...formats].join(' '), statements };
}

export function* readBankParts(file: BankFile, maps: Maps): Generator<BankFilePart> {
  if (!isZip(file.bytes)) {
    yield* readParts(file, maps, 0, new RepeatedStatements());
    return;
  }
  const { files, ignored } = unzipped(file, (bytes) => {
    const head = headOf(bytes);
    return unreadFormatOf(head) === undefined && matching({ name: '', head }) !== undefined;
  });
  let before = 0;
  // An archive may have a file twice, under two names.
  const repeated = new RepeatedStatements();
  if (ignored.length > 0) repeated.remarks.push(`The archive also has ${someOf(ignored)}: ignored.`);
  for (const each of files) before += yield* readParts({ ...file, ...each }, maps, before, repeated);
}

const matching = (file: Parameters<BankFormat['matches']>[0]) => BANK_FORMATS.find((each) => each.matches(file));

const headOf = (bytes: Buffer) =>
  bytes
    .subarray(0, HEAD_BYTES)
    .toString('latin1')
    .replace(/^(?:\xEF\xBB\xBF|\xFF\xFE|\xFE\xFF)/, '')
    // UTF-16 has a NUL byte beside each letter.
    .replaceAll('\0', '')
    .trimStart();

/** Some systems fill a file with NUL or with the end-of-file character of DOS (Ctrl-Z). */
function withoutPadding(bytes: Buffer) {
  if (markedEncoding(bytes)?.startsWith('utf-16') === true) return bytes;
  let end = bytes.length;
  while (end > 0 && [0x00, 0x1a].includes(bytes[end - 1] as number)) end -= 1;
  return bytes.subarray(0, end);
}

/** Returns the number of statements. `before` is the number of statements in other files of an archive. */
function* readParts(
  given: BankFile,
  maps: Maps,
  before: number,
  repeated: RepeatedStatements,
): Generator<BankFilePart, number> {
  const file = { ...given, bytes: withoutPadding(given.bytes) };
  const head = headOf(file.bytes);
  const unread = unreadFormatOf(head);
  if (unread !== undefined) throw refuse('bank_format_not_read', { file: file.name, ...unread });
  const format =
    file.format === undefined
      ? matching({ name: file.name, head })
      : BANK_FORMATS.find(({ name }) => name === file.format);
  if (format === undefined) {
    throw refuse('bank_format_unknown', { file: file.name, formats: BANK_FORMATS.map(({ name }) => name) });
  }
  yield { format: format.name };
  let lines = 0;
  let statements = 0;
  try {
    for (const part of format.read(file, maps)) {
      if ('line' in part) lines += 1;
      else statements += 1;
      if (lines % 1000 === 0) refuseTooMany(file.name, lines);
      yield repeated.add({ ...part, of: before + part.of }, file.name);
    }
  } catch (error) {
    throw withFormat(error, format);
  }
  refuseTooMany(file.name, lines);
  return statements;
}

/** A statement that occurs twice in a file would count its lines twice. */
class RepeatedStatements {
  private readonly digests = new Map<number, Hash>();
  private readonly seen = new Map<string, number>();
  /** What the next statement says of the archive. */
  readonly remarks: string[] = [];

  /** Returns the part. */
  add(part: BankPart, file: string): BankPart {
    if ('line' in part) {
      const { booked_on, direction, amount, bank_reference, raw } = part.line;
      const digest = this.digests.get(part.of) ?? createHash('sha256');
      this.digests.set(part.of, digest);
      digest.update(JSON.stringify([booked_on, direction, amount.toString(), bank_reference, raw]));
      return part;
    }
    const remarks = [...this.remarks.splice(0), ...(part.statement.remarks ?? [])];
    const digest = this.digests.get(part.of);
    if (digest === undefined) return { ...part, statement: { ...part.statement, remarks } };
    const { account, currency, reference, closed_on, opening, closing } = part.statement;
    const balances = [opening?.toString(), closing?.toString()];
    const key = JSON.stringify([account, currency, reference, closed_on, ...balances, digest.digest('hex')]);
    const first = this.seen.get(key);
    if (first !== undefined) {
      throw invalidFile(file, [
        { path: `statement ${part.of + 1}`, reason: `is statement ${first + 1} of ${account} again` },
      ]);
    }
    this.seen.set(key, part.of);
    return { ...part, statement: { ...part.statement, remarks } };
  }
}

/** Names the format in a refusal, because a user may have chosen another file than intended. */
function withFormat(error: unknown, format: BankFormat) {
  if (!(error instanceof Refusal) || (error.code !== 'bank_file_invalid' && error.code !== 'bank_file_totals')) {
    return error;
  }
  const { file, problems, ...facts } = error.facts as Parameters<typeof refuse<'bank_file_invalid'>>[1];
  return refuse(error.code, { file, problems, ...facts, format: format.title });
}
