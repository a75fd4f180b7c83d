/** A rendering thread: converts a snapshot to the bytes of its PDF. */
import { move } from 'piscina';
import { renderDocument } from '#documents/pdf/render';
import { RenderTask } from './pdf-renderer-pool.ts';

/** The PDF's bytes are moved and not copied. */
export default async function work({ snapshot, options }: RenderTask): Promise<unknown> {
  const pdf = await renderDocument(snapshot, options);
  // A Buffer may share its memory with other Buffers.
  return move(pdf.byteLength === pdf.buffer.byteLength ? pdf : new Uint8Array(pdf));
}
