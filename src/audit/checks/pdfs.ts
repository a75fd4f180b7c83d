/**
 * The check of stored PDFs: each matches its hash, and rendering it again with the same renderer gives the same bytes.
 */
import { hash } from 'node:crypto';
import { Instructions } from '#config/instructions';
import { query, queryingValue, Transaction } from '#database/transaction';
import { currentRenderer, PdfRendererPool } from '#delivery/pdf-renderer-pool';
import { documentSnapshot } from '#documents/document';
import { DocumentRow, readDocuments } from '#documents/documents.sql';
import { AddedFont } from '#documents/pdf/added-fonts';
import { CheckContext } from './check.ts';
import { Difference, Finding, inMonth } from './query.ts';

type StoredPdf = Readonly<{
  document_id: number;
  sha256: string;
  pdf: Buffer;
  instructions: Instructions | null;
  instructions_changed: boolean;
  /** Whether this program's renderer and libraries rendered it. */
  same_renderer: boolean;
  /** Whether the contact was erased, whom the PDF names. */
  contact_erased: boolean;
  /** The SHA-256 of each added font that was used to render the PDF. */
  font_hashes: readonly string[];
  /** For a Factur-X document: the embedded file. */
  embedded: Buffer | null;
}>;

/** How many PDFs are in memory at once. */
const BATCH = 50;

export async function findChangedPdfs(
  tx: Transaction,
  { month, fonts }: Pick<CheckContext, 'month' | 'fonts'>,
): Promise<Finding> {
  const byHash = new Map(fonts.map((font) => [font.sha256, font]));
  const differences: Difference[] = [];
  const renderer = new PdfRendererPool(await countPdfs(tx, { month }));
  let inspected = 0;
  let after = 0;
  try {
    for (;;) {
      const pdfs = await readPdfsAfter(tx, after, month);
      if (pdfs.length === 0) break;
      after = pdfs.at(-1)?.document_id ?? after;
      inspected += pdfs.length;
      const documents = await readDocuments(tx, {
        ids: pdfs.map(({ document_id }) => document_id),
        withLogos: true,
      });
      const byId = new Map(documents.map((document) => [document.document_id, document]));
      const found = await Promise.all(pdfs.map((pdf) => compare(pdf, byId.get(pdf.document_id), renderer, byHash)));
      differences.push(...found.filter((difference) => difference !== undefined));
    }
  } finally {
    await renderer.close();
  }
  return { inspected, differences };
}

const countPdfs = queryingValue<number, { month: string | null }>(`
  SELECT count(*)::int AS pdfs
  FROM document_pdfs JOIN documents d USING (document_id)
  WHERE ${inMonth('d.month')}`);

function readPdfsAfter(tx: Transaction, after: number, month: string | null): Promise<StoredPdf[]> {
  return query(
    tx,
    `SELECT w.document_id, w.sha256, w.pdf, v.content AS instructions, w.instructions_changed,
            w.renderer_version = :version AND w.libraries - 'fonts' = :libraries::jsonb AS same_renderer,
            is_erased(d.contact_name) AS contact_erased,
            coalesce(string_to_array(w.libraries->>'fonts', ' '), '{}') AS font_hashes,
            CASE d.e_invoice WHEN 'facturx' THEN x.xml END AS embedded
     FROM document_pdfs w
     JOIN documents d USING (document_id)
     LEFT JOIN instruction_versions v USING (instruction_version_id)
     LEFT JOIN document_e_invoices x ON x.document_id = w.document_id
     WHERE w.document_id > :after AND ${inMonth('d.month')}
     ORDER BY w.document_id LIMIT :batch`,
    { after, month, batch: BATCH, ...currentRenderer },
  );
}

async function compare(
  stored: StoredPdf,
  document: DocumentRow | undefined,
  renderer: PdfRendererPool,
  fontsByHash: ReadonlyMap<string, AddedFont>,
): Promise<Difference | undefined> {
  if (document === undefined) {
    const detail = 'has a PDF, but cannot be read: it or something that it refers to is missing or hidden';
    return { subject: `document ${stored.document_id}`, detail };
  }
  const sha256 = hash('sha256', stored.pdf);
  if (sha256 !== stored.sha256) {
    return { subject: document.number, detail: `its PDF hashes to ${sha256}, recorded as ${stored.sha256}` };
  }
  const fonts = stored.font_hashes.flatMap((hash) => fontsByHash.get(hash) ?? []);
  // A PDF rendered with other libraries or fonts, or by another version, can't be reproduced. The hash of such a PDF is
  // still checked.
  if (stored.contact_erased || !stored.same_renderer || fonts.length < stored.font_hashes.length) return undefined;
  const again = await renderer.render(
    documentSnapshot(document, {
      paymentLink: document.printed_link,
      instructions: stored.instructions,
      instructionsChanged: stored.instructions_changed,
    }),
    { fonts, eInvoice: stored.embedded ?? undefined },
  );
  return again.equals(stored.pdf)
    ? undefined
    : { subject: document.number, detail: 'rendering its snapshot again gives another PDF' };
}
