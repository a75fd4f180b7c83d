/** The PDFs of several documents as one ZIP file. */
import { ZipFile } from 'yazl';
import { Transaction } from '#database/transaction';
import { isInPeriod, Period, Scope } from '#people/scope';
import { readPdfs } from './documents.sql.ts';

/** A list names the documents that have no PDF yet. Returns undefined if no document is found. */
export async function zipPdfs(
  tx: Transaction,
  { numbers, scope, period }: { numbers: readonly string[]; scope: Scope; period: Period },
): Promise<NodeJS.ReadableStream | undefined> {
  const found = (await readPdfs(tx, { numbers, scope })).filter(({ month }) => isInPeriod(period, month));
  if (found.length === 0) return undefined;
  const zip = new ZipFile();
  for (const { number, pdf, issued_at } of found) {
    // A PDF is compressed already.
    if (pdf !== null) zip.addBuffer(pdf, `${number}.pdf`, { mtime: new Date(issued_at), compress: false });
  }
  const missing = found.filter(({ pdf }) => pdf === null).map(({ number }) => number);
  if (missing.length > 0) {
    const text = `These documents have no PDF yet, because they were not delivered:\n${missing.join('\n')}\n`;
    zip.addBuffer(Buffer.from(text), 'missing.txt');
  }
  zip.end();
  return zip.outputStream;
}
