/** One drawing thread. */
import { move, transferableSymbol, valueSymbol } from 'piscina';
import { type DrawingTask, doTask } from './drawing-task.ts';

/** The products, their bytes handed over instead of copied. */
export default async function work(task: DrawingTask): Promise<unknown> {
  const products = (await doTask(task)).map((each) => ({ ...each, bytes: ownBytes(each.bytes) }));
  return move({ [transferableSymbol]: products.map(({ bytes }) => bytes.buffer), [valueSymbol]: products });
}

/** A Buffer may share its memory with others. */
const ownBytes = (bytes: Uint8Array): Uint8Array =>
  bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);
