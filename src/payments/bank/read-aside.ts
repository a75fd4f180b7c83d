/**
 * Reads a large bank file in a thread of its own, so that a command hears SIGTERM meanwhile: Node tells a handler of a signal
 * only between two tasks. Refusals: those of read.ts.
 */
import type { BankCsvMap } from '../../config/bank-csv.ts';
import { Refusal, type RefusalCode } from '../../errors/refusals.ts';
import { Amount } from '../../money.ts';
import { CAN_START_THREADS, inThread } from '../../thread.ts';
import type { BankFile } from './format.ts';
import { type ReadBankFile, readBankFile } from './read.ts';
import type { BankLine, BankStatement } from './statement.ts';

/** A thread takes a tenth of a second to start; a file of this size is read in less. */
const LARGE_BYTES = 256 * 1024;

export interface ReadTask {
  readonly file: Omit<BankFile, 'bytes'> & { readonly bytes: Uint8Array };
  readonly maps: Readonly<Record<string, BankCsvMap>>;
}

/** Amounts as texts: threads exchange no classes. */
export interface SentStatement extends Omit<BankStatement, 'opening' | 'closing' | 'lines'> {
  readonly opening: string | undefined;
  readonly closing: string | undefined;
  readonly lines: readonly (Omit<BankLine, 'amount'> & { readonly amount: string })[];
}

export type ReadResult =
  | { readonly format: string; readonly statements: readonly SentStatement[] }
  | { readonly refused: { code: RefusalCode; facts: Record<string, unknown>; message: string } };

export async function readBankFileAside(
  file: BankFile,
  maps: Readonly<Record<string, BankCsvMap>>,
): Promise<ReadBankFile> {
  if (!CAN_START_THREADS || file.bytes.length < LARGE_BYTES) return readBankFile(file, maps);
  const task: ReadTask = { file, maps };
  const result = await inThread<ReadResult>(new URL('./read-thread.js', import.meta.url), task);
  if ('refused' in result) {
    const { code, facts, message } = result.refused;
    throw new Refusal(code, facts, message);
  }
  return { format: result.format, statements: result.statements.map(received) };
}

function received({ opening, closing, lines, ...statement }: SentStatement): BankStatement {
  const { currency } = statement;
  const amount = (text: string | undefined) => (text === undefined ? undefined : Amount.of(text, currency));
  return {
    ...{ ...statement, opening: amount(opening), closing: amount(closing) },
    lines: lines.map((line) => ({ ...line, amount: Amount.of(line.amount, currency) })),
  };
}
