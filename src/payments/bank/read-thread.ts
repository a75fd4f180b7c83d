/** The thread that reads one bank file. See read-aside.ts. */
import { parentPort, workerData } from 'node:worker_threads';
import { Refusal } from '../../errors/refusals.ts';
import { readBankFile } from './read.ts';
import type { ReadResult, ReadTask } from './read-aside.ts';

function read({ file, maps }: ReadTask): ReadResult {
  const { buffer, byteOffset, byteLength } = file.bytes;
  try {
    const { format, statements } = readBankFile({ ...file, bytes: Buffer.from(buffer, byteOffset, byteLength) }, maps);
    const sent = statements.map(({ opening, closing, lines, ...statement }) => ({
      ...{ ...statement, opening: opening?.toString(), closing: closing?.toString() },
      lines: lines.map((line) => ({ ...line, amount: line.amount.toString() })),
    }));
    return { format, statements: sent };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { code, facts, message } = error;
    return { refused: { code, facts, message } };
  }
}

parentPort?.postMessage(read(workerData as ReadTask));
