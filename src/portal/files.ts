/** The files of a document: its PDF, its e-invoice and the rows behind it. A void one has none: its reader might pay it. */
import type { ConsoleFile } from '../console/route.ts';
import type { Transaction } from '../database/transaction.ts';
import { type DocumentRow, readEInvoice, readPdf } from '../documents/documents.sql.ts';
import type { Shared } from '../http/shared.ts';

/** By the end of their address. */
export const FILES = { pdf: 'files', 'e-invoice.xml': 'files', 'rows.csv': 'rows' } as const;
export type FileKind = keyof typeof FILES;

/** Undefined where the document has no such file. */
export async function openFile(
  tx: Transaction,
  { rowStreams }: Pick<Shared, 'rowStreams'>,
  { document_id: id, number, status, lines }: DocumentRow,
  kind: FileKind,
): Promise<ConsoleFile | undefined> {
  if (status === 'void') return undefined;
  switch (kind) {
    case 'pdf': {
      const content = await readPdf(tx, id);
      return content && { type: 'application/pdf', name: `${number}.pdf`, content };
    }
    case 'e-invoice.xml': {
      const content = await readEInvoice(tx, id);
      return content && { type: 'application/xml', name: `${number}.xml`, content, download: true };
    }
    case 'rows.csv':
      if (lines.length === 0) return undefined;
      return {
        ...{ type: 'text/csv; charset=utf-8', name: `${number}-rows.csv`, download: true },
        content: rowStreams.open(id, 'link'),
      };
  }
}
