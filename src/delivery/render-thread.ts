/** One rendering thread: a snapshot in, the bytes of its PDF out. */
import { move } from 'piscina';
import { renderDocument } from '../documents/pdf/render.ts';
import type { RenderTask } from './pdf-renderer-pool.ts';

/** Returns the PDF. Its bytes are handed over instead of copied. */
export default async function work({ snapshot, options }: RenderTask): Promise<unknown> {
  const pdf = await renderDocument(snapshot, options);
  // A Buffer may share its memory with others.
  return move(pdf.byteLength === pdf.buffer.byteLength ? pdf : new Uint8Array(pdf));
}
