/**
 * The process that reads files for aside.ts. The arguments of the process name the reader. aside.ts ends the process
 * after its answer.
 */
import { Refusal } from '#errors/refusals';
import { collectContent, FileReader, GivenFile, Piece } from './aside.ts';

const [module = '', name = ''] = process.argv.slice(2);

type Message =
  | Readonly<{ tasks: readonly (Omit<GivenFile, 'bytes'> & { readonly length: number })[] }>
  | Readonly<{ of: number; at: number; chunk: Uint8Array }>
  | Readonly<Record<string, never>>;

let tasks: (GivenFile & { readonly bytes: Buffer })[] = [];

process.on('message', (message: Message) => {
  if ('tasks' in message) {
    tasks = message.tasks.map(({ length, ...task }) => ({ ...task, bytes: Buffer.alloc(length) }));
  } else if ('chunk' in message) tasks[message.of]?.bytes.set(message.chunk, message.at);
  else void outcomeOf().then((outcome) => process.send?.(outcome));
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
