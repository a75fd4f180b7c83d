/** The kept drawings: their bytes are their hash, and drawn again by what drew them they are the same bytes. */
import { createHash } from 'node:crypto';
import type { Instructions } from '../../config/instructions.ts';
import { query, queryOne, type Transaction } from '../../database/transaction.ts';
import { librariesByVersion, PdfRendererPool } from '../../delivery/pdf-renderer-pool.ts';
import { documentSnapshot } from '../../documents/document.ts';
import { type DocumentRow, readDocuments } from '../../documents/queries.ts';
import type { Difference, Finding, Scope } from '../checks.ts';
import { inMonth } from './query.ts';

interface KeptDrawing {
  readonly document_id: number;
  readonly sha256: string;
  readonly pdf: Buffer;
  readonly instructions: Instructions | null;
  readonly instructions_changed: boolean;
  readonly renderer_version: number;
  readonly drawn_by_these: boolean;
}

/** So many drawings are in memory at once. */
const BATCH = 50;

export async function findChangedDrawings(tx: Transaction, { month }: Pick<Scope, 'month'>): Promise<Finding> {
  const differences: Difference[] = [];
  const renderer = new PdfRendererPool(await countDrawings(tx, month));
  let inspected = 0;
  let after = 0;
  try {
    for (;;) {
      const drawings = await readDrawingsAfter(tx, after, month);
      if (drawings.length === 0) break;
      after = drawings.at(-1)?.document_id ?? after;
      inspected += drawings.length;
      const documents = await readDocuments(tx, {
        ids: drawings.map((drawing) => drawing.document_id),
        withLogos: true,
      });
      const byId = new Map(documents.map((document) => [document.document_id, document]));
      const found = await Promise.all(
        drawings.map((drawing) => judge(drawing, byId.get(drawing.document_id) as DocumentRow, renderer)),
      );
      differences.push(...found.filter((difference) => difference !== undefined));
    }
  } finally {
    await renderer.close();
  }
  return { inspected, differences };
}

async function countDrawings(tx: Transaction, month: string | null): Promise<number> {
  const { drawings } = await queryOne<{ drawings: number }>(
    tx,
    `SELECT count(*)::int AS drawings
     FROM document_pdfs JOIN documents d USING (document_id)
     WHERE ${inMonth('d.month')}`,
    { month },
  );
  return drawings;
}

function readDrawingsAfter(tx: Transaction, after: number, month: string | null): Promise<KeptDrawing[]> {
  return query(
    tx,
    `SELECT w.document_id, w.sha256, w.pdf, v.content AS instructions, w.instructions_changed,
            w.renderer_version,
            -- No such version here: not drawn by these.
            coalesce(w.libraries = :libraries::jsonb -> w.renderer_version::text, false) AS drawn_by_these
     FROM document_pdfs w
     JOIN documents d USING (document_id)
     LEFT JOIN instruction_versions v USING (instruction_version_id)
     WHERE w.document_id > :after AND ${inMonth('d.month')}
     ORDER BY w.document_id LIMIT :batch`,
    { after, month, batch: BATCH, libraries: JSON.stringify(librariesByVersion) },
  );
}

async function judge(
  drawing: KeptDrawing,
  document: DocumentRow,
  renderer: PdfRendererPool,
): Promise<Difference | undefined> {
  const sha256 = createHash('sha256').update(drawing.pdf).digest('hex');
  if (sha256 !== drawing.sha256) {
    return { subject: document.number, detail: `its PDF hashes to ${sha256} and was kept as ${drawing.sha256}` };
  }
  // What other libraries, or a later program, drew can't be drawn again here; its hash still shows that it is what was sent.
  if (!drawing.drawn_by_these) return undefined;
  const again = await renderer.render(
    documentSnapshot(document, {
      paymentLink: document.payment_link,
      instructions: drawing.instructions,
      instructionsChanged: drawing.instructions_changed,
    }),
    { version: drawing.renderer_version },
  );
  return again.equals(drawing.pdf)
    ? undefined
    : { subject: document.number, detail: 'drawn again from its frozen data, it is another PDF' };
}
