/** The file of rejected rows: the row as in its file, its place and the reason, one JSON object per line. */
import { createWriteStream, statSync } from 'node:fs';
import { finished } from 'node:stream/promises';
import type { Transaction } from '../database/transaction.ts';
import { type Refusal, reasonOf, refuse } from '../errors/refusals.ts';
import { readBadRows } from './queries.ts';

/** Writes every bad row of this import, in file order; refuses file_unwritable before anything is recorded. */
export async function writeRejects(tx: Transaction, path: string, fileNames: readonly string[]): Promise<void> {
  const unwritable = (reason: string, cause?: unknown): Refusal =>
    refuse('file_unwritable', { file: path, reason }, cause);
  if (fileNames.some((name) => isSameFile(name, path))) throw unwritable('it is one of the files to import');
  const output = createWriteStream(path);
  const ended = finished(output).catch((error) => {
    throw unwritable(reasonOf(error), error);
  });
  ended.catch(() => {}); // awaited below
  try {
    for await (const rows of readBadRows(tx)) {
      const lines = rows.map((row) => `${JSON.stringify({ ...row, file: fileNames[row.file] })}\n`);
      const drained = new Promise<void>((resolve) => output.once('drain', () => resolve()));
      if (!output.write(lines.join(''))) await Promise.race([drained, ended]);
    }
    output.end();
    await ended;
  } finally {
    output.destroy();
  }
}

/** Whether two paths name the same file, through links as well. */
function isSameFile(one: string, other: string): boolean {
  try {
    const [a, b] = [statSync(one), statSync(other)];
    return a.dev === b.dev && a.ino === b.ino;
  } catch {
    return false; // One does not exist or is not a file; opening it reports that.
  }
}
