/** One drawing thread: a face in, the PDF's bytes out. */
import { move } from 'piscina';
import { type DrawingOptions, drawDocument } from '../documents/draw.ts';
import type { DocumentFace } from '../documents/face.ts';

export interface DrawingTask {
  readonly face: DocumentFace;
  readonly options: DrawingOptions | undefined;
}

export default async function draw({ face, options }: DrawingTask): Promise<unknown> {
  // A copy of its own, so that the bytes can be handed over instead of copied again.
  return move(new Uint8Array(await drawDocument(face, options)));
}
