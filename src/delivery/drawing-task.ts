/** What a drawing thread does: a face in, the bytes of its PDF out, and those of the message that it is to be sent in. */
import { createHash } from 'node:crypto';
import { type DrawingOptions, drawDocument } from '../documents/draw.ts';
import type { DocumentFace } from '../documents/face.ts';
import { enclose, type Wrapper } from '../mail/enclosing.ts';

export interface DrawingTask {
  readonly face: DocumentFace;
  readonly options?: DrawingOptions | undefined;
  readonly wrapper?: Wrapper | undefined;
}

export interface Product {
  readonly bytes: Uint8Array;
  /** Hexadecimal. */
  readonly sha256: string;
}

/** The PDF, and where there is a wrapper the message. */
export async function doTask({ face, options, wrapper }: DrawingTask): Promise<Product[]> {
  const pdf = await drawDocument(face, options);
  return [pdf, ...(wrapper === undefined ? [] : [enclose(wrapper, pdf)])].map((bytes) => ({
    bytes,
    sha256: createHash('sha256').update(bytes).digest('hex'),
  }));
}
