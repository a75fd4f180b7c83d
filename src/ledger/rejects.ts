/** The file of rejected rows: each as it stood, with its place and reason, one JSON object a line. */
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import type { Transaction } from '../database/transaction.ts';
import { reasonOf, refuse } from '../errors.ts';
import { readBadRows } from './queries.ts';

/** Writes every bad row of this import, in file order; refuses file_unwritable before anything is recorded. */
export async function writeRejects(tx: Transaction, path: string, fileNames: readonly string[]): Promise<void> {
  const output = createWriteStream(path);
  const ended = finished(output);
  ended.catch(() => {}); // awaited below
  try {
    for await (const rows of readBadRows(tx)) {
      const lines = rows.map((row) => `${JSON.stringify({ ...row, file: fileNames[row.file] })}\n`);
      if (!output.write(lines.join(''))) await Promise.race([once(output, 'drain'), ended]);
    }
    output.end();
    await ended;
  } catch (error) {
    output.destroy();
    throw refuse('file_unwritable', { file: path, reason: reasonOf(error) }, error);
  }
}
