/** The copy of a void document: as it was drawn, marked on each page. Refusals: document_not_void. */
import { refuse } from '../errors/refusals.ts';
import { documentFace } from './document.ts';
import { DRAWING_VERSION, drawDocument } from './draw.ts';
import type { DocumentRow } from './queries.ts';

/** Drawn from the frozen face whenever it is asked for: what was issued stays kept as it was, and nothing is kept of this. */
export async function drawVoidCopy(row: DocumentRow): Promise<Buffer> {
  if (row.voided_on === null) throw refuse('document_not_void', { number: row.number });
  // A void copy offers no way to pay, so its face needs none.
  const face = documentFace(row, { paymentLink: null, instructions: null, instructionsChanged: false });
  return drawDocument(face, {
    version: row.renderer_version ?? DRAWING_VERSION,
    void: { on: row.voided_on, reason: row.void_reason ?? '', replacedBy: row.replaced_by },
  });
}
