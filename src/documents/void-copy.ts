/**
 * Renders the copy of a void document: the document as issued, but marked as void on each page. Refusals:
 * document_not_void, characters_unprintable.
 */
import { Environment } from '#config/environment';
import { refuse } from '#errors/refusals';
import { documentSnapshot } from './document.ts';
import { DocumentRow } from './documents.sql.ts';
import { renderDocument } from './pdf/render.ts';
import { fontsFor, textsOf } from './printable.ts';

export async function renderVoidCopy(environment: Pick<Environment, 'home'>, row: DocumentRow): Promise<Buffer> {
  if (row.voided_on === null) throw refuse('document_not_void', { number: row.number });
  const snapshot = documentSnapshot(row, { paymentLink: null, instructions: null, instructionsChanged: false });
  const reason = row.void_reason ?? '';
  const fonts = fontsFor(environment, `The void copy of ${row.number}`, [
    ...textsOf(snapshot),
    ['the reason of the void', reason],
  ]);
  return renderDocument(snapshot, {
    fonts,
    void: { on: row.voided_on, reason, replacedBy: row.replaced_by },
  });
}
