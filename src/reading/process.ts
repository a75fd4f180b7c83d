/**
 * The process that reads files for aside.ts. The arguments of the process name the reader. aside.ts ends the process
 * after its answer.
 */
import { readSync } from 'node:fs';
import { Refusal } from '#errors/refusals';
import { collectContent, FileReader, GivenFile, Piece } from './aside.ts';

const [module = '', name = ''] = process.argv.slice(2);

const STDIN = 0;

/** Reads a file from stdin. If the other process has ended, nothing more can be read. */
function received(length: number) {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; ) {
    const read = readSync(STDIN, bytes, at, length - at, null);
    if (read === 0) process.exit();
    at += read;
  }
  return bytes;
}

let tasks: (GivenFile & { readonly bytes: Buffer })[] = [];

process.once('message', (given: readonly (Omit<GivenFile, 'bytes'> & { readonly length: number })[]) => {
  tasks = given.map(({ length, ...task }) => ({ ...task, bytes: received(length) }));
  void outcomeOf().then((outcome) => process.send?.(outcome));
});
process.once('disconnect', () => process.exit());

/** Waits until the other process has taken the piece, so that pieces do not pile up. */
const send = (piece: Piece<unknown>) =>
  new Promise<void>((resolve) => {
    process.send?.(piece, () => resolve());
  });

async function outcomeOf() {
  try {
    const { [name]: reader } = (await import(module)) as Record<string, FileReader<GivenFile, unknown>>;
    const contents = [];
    for (const task of tasks) {
      contents.push(await collectContent((reader as FileReader<GivenFile, unknown>).read(task), send));
    }
    return { contents };
  } catch (error) {
    if (!(error instanceof Refusal)) return { failed: error instanceof Error ? error : new Error(String(error)) };
    const { code, facts, message } = error;
    return { refused: { code, facts, message } };
  }
}
