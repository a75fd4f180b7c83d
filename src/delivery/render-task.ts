/** What a rendering thread does: a snapshot in, the bytes of its PDF out. */
import { type RenderOptions, renderDocument } from '../documents/pdf/render.ts';
import type { DocumentSnapshot } from '../documents/snapshot.ts';

export interface RenderTask {
  readonly snapshot: DocumentSnapshot;
  readonly options?: RenderOptions | undefined;
}

export const runTask = ({ snapshot, options }: RenderTask): Promise<Uint8Array> => renderDocument(snapshot, options);
