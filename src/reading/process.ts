/**
 * The process that reads files for aside.ts. The arguments of the process name the reader. aside.ts ends the process
 * after its answer.
 */
import { Refusal } from '#errors/refusals';
import { FileReader, GivenFile } from './aside.ts';

const [module = '', name = ''] = process.argv.slice(2);

process.once('message', (tasks: readonly GivenFile[]) => {
  void outcomeOf(tasks).then((outcome) => process.send?.(outcome));
});
process.once('disconnect', () => process.exit());

async function outcomeOf(tasks: readonly GivenFile[]) {
  try {
    const { [name]: reader } = (await import(module)) as Record<string, FileReader<GivenFile, unknown>>;
    const contents = [];
    for (const task of tasks) {
      const { buffer, byteOffset, byteLength } = task.bytes;
      const bytes = Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);
      contents.push(await (reader as FileReader<GivenFile, unknown>).read({ ...task, bytes }));
    }
    return { contents };
  } catch (error) {
    if (!(error instanceof Refusal)) return { failed: error instanceof Error ? error : new Error(String(error)) };
    const { code, facts, message } = error;
    return { refused: { code, facts, message } };
  }
}
