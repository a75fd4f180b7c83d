/** One rendering thread. */
import { move } from 'piscina';
import { type RenderTask, runTask } from './render-task.ts';

/** The PDF, its bytes handed over instead of copied. */
export default async function work(task: RenderTask): Promise<unknown> {
  const pdf = await runTask(task);
  // A Buffer may share its memory with others.
  return move(pdf.byteLength === pdf.buffer.byteLength ? pdf : new Uint8Array(pdf));
}
