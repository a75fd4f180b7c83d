import { ConsoleFile } from '#console/route';
import { Transaction } from '#database/transaction';
import { readEInvoice, readPdf } from '#documents/documents.sql';
import { BoundName } from '#http/gates';
import { Shared } from '#http/shared';
import { FileKind, InvoiceView } from './invoice.ts';

type FileType = Readonly<{
  type: string;
  bound: BoundName;
  download: boolean;
  open: (tx: Transaction, shared: Shared, documentId: number) => Promise<ConsoleFile['content'] | undefined>;
}>;

const FILES: Readonly<Record<FileKind, FileType>> = {
  pdf: { type: 'application/pdf', bound: 'files', download: false, open: (tx, _, id) => readPdf(tx, id) },
  'e-invoice.xml': {
    type: 'application/xml',
    bound: 'files',
    download: true,
    open: (tx, _, id) => readEInvoice(tx, id),
  },
  'rows.csv': {
    ...{ type: 'text/csv; charset=utf-8', bound: 'rows', download: true },
    open: async (_, { rowStreams }, id) => rowStreams.open(id, 'link'),
  },
};

export const FILE_ROUTES = Object.entries(FILES).map(([kind, { bound }]) => ({ kind: kind as FileKind, bound }));

/** Returns undefined if the document has no such file. */
export async function openFile(
  tx: Transaction,
  shared: Shared,
  { documentId, files }: Pick<InvoiceView, 'documentId' | 'files'>,
  kind: FileKind,
): Promise<ConsoleFile | undefined> {
  const name = files.find((each) => each.kind === kind)?.name;
  const { type, download, open } = FILES[kind];
  const content = name === undefined ? undefined : await open(tx, shared, documentId);
  return content === undefined || name === undefined ? undefined : { type, name, content, download };
}
