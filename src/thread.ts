/** Work in a thread of its own, so that nobody else in this process waits for it. Refusals: those of the work. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/** Node 20 cannot start a thread from TypeScript. */
export const CAN_START_THREADS = import.meta.url.endsWith('.js');

/** What the module's thread sends for the task. Rejects with the error of a thread that fails, or that needs more memory. */
export async function inThread<Result>(module: URL, task: object, mebibytes?: number): Promise<Result> {
  const resourceLimits = mebibytes === undefined ? {} : { maxOldGenerationSizeMb: mebibytes };
  const thread = new Worker(module, { workerData: task, resourceLimits });
  const [result] = (await once(thread, 'message')) as [Result];
  return result;
}
