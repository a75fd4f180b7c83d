/** What a drawing thread does: a snapshot in, the bytes of its PDF out, and those of the message that it is to be sent in. */
import { createHash } from 'node:crypto';
import { type RenderOptions, renderDocument } from '../documents/pdf/render.ts';
import type { DocumentSnapshot } from '../documents/snapshot.ts';
import { enclose, type Wrapper } from '../mail/enclosing.ts';

export interface DrawingTask {
  readonly snapshot: DocumentSnapshot;
  readonly options?: RenderOptions | undefined;
  readonly wrapper?: Wrapper | undefined;
}

export interface Product {
  readonly bytes: Uint8Array;
  /** Hexadecimal. */
  readonly sha256: string;
}

/** The PDF, and where there is a wrapper the message. */
export async function doTask({ snapshot, options, wrapper }: DrawingTask): Promise<Product[]> {
  const pdf = await renderDocument(snapshot, options);
  return [pdf, ...(wrapper === undefined ? [] : [enclose(wrapper, pdf)])].map((bytes) => ({
    bytes,
    sha256: createHash('sha256').update(bytes).digest('hex'),
  }));
}
