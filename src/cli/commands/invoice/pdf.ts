import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { documentNumbered } from '#actions/documents';
import { CommandContext, Definition, EXIT, Output, reading, refuse, writeFileAsked } from '#cli/command';
import { readEInvoice, readPdf } from '#documents/documents.sql';

export const define: Definition = (invoice, action) => {
  invoice
    .command('pdf <number...>')
    .description('Write the PDF as issued')
    .option(
      '-o, --output <file>',
      "write to this file; '-' is stdout (default: NUMBER.pdf); for several documents, a folder",
    )
    .option('--void-copy', 'for a void document: a copy marked VOID, with the reason and the replacement')
    .action(action(invoicePdf));
  invoice
    .command('e-invoice <number>')
    .description('Write the e-invoice (XML) that was issued with the PDF or inside it')
    .option('-o, --output <file>', "write to this file; '-' is stdout (default: NUMBER.xml)")
    .action(action(invoiceEInvoice));
};

type PdfOptions = Readonly<{ output?: string; voidCopy?: boolean }>;

function invoicePdf(output: Output, numbers: readonly string[], { output: given, voidCopy }: PdfOptions) {
  refuseMixedOutput(output, given);
  const [only] = numbers;
  const one = numbers.length === 1 ? only : undefined;
  if (one === undefined && given === '-') {
    throw refuse('argument_invalid', { argument: '--output', value: '-', reason: 'takes one document' });
  }
  return reading(async (context) => {
    const named = (number: string) => `${number}${voidCopy ? '-void' : ''}.pdf`;
    if (one !== undefined) {
      return write(output, { number: one, file: given ?? named(one) }, await pdfOf(context, one, voidCopy));
    }
    if (given !== undefined) mkdirSync(given, { recursive: true });
    const written = [];
    for (const number of numbers) {
      const content = await pdfOf(context, number, voidCopy);
      const file = join(given ?? '', named(number));
      writeFileAsked(file, content);
      written.push({ number, file, bytes: content.length });
    }
    output.print(written, () => `Wrote ${written.length} files to ${given ?? 'this folder'}.`);
    return EXIT.done;
  })(output);
}

async function pdfOf({ database, environment }: CommandContext, number: string, voidCopy = false): Promise<Buffer> {
  const [row, kept] = await database.reading(async (tx) => {
    const found = await documentNumbered(tx, number, { withLogos: voidCopy });
    return [found, voidCopy ? undefined : await readPdf(tx, found.document_id)] as const;
  });
  // The renderer is loaded only for a void copy, because loading is slow.
  const pdf = voidCopy ? await (await import('#documents/void-copy')).renderVoidCopy(environment, row) : kept;
  if (pdf === undefined) {
    const reason = row.email_reason ?? NOT_DELIVERED;
    throw refuse('pdf_not_rendered', { number, reason, void: row.status === 'void' });
  }
  return pdf;
}

function invoiceEInvoice(output: Output, number: string, options: { output?: string }) {
  refuseMixedOutput(output, options.output);
  return reading(async ({ database }) => {
    const [row, xml] = await database.reading(async (tx) => {
      const found = await documentNumbered(tx, number);
      return [found, await readEInvoice(tx, found.document_id)] as const;
    });
    if (xml === undefined) {
      const { document, partner_id, e_invoice, email_reason, status } = row;
      if (e_invoice === 'none') throw refuse('e_invoice_not_asked_for', { number, document, partner_id });
      throw refuse('e_invoice_not_written', { number, reason: email_reason ?? NOT_DELIVERED, void: status === 'void' });
    }
    return write(output, { number, file: options.output ?? `${number}.xml` }, xml);
  })(output);
}

const NOT_DELIVERED = 'it has not been delivered';

/** Refuses to write both a file and the JSON report to stdout. */
function refuseMixedOutput({ json }: Output, file: string | undefined) {
  if (file !== '-' || !json) return;
  const reason = 'cannot be used with --json, which also prints to stdout';
  throw refuse('argument_invalid', { argument: '--output', value: '-', reason });
}

function write(output: Output, { number, file }: { number: string; file: string }, content: Buffer) {
  if (file === '-') {
    process.stdout.write(content);
    return EXIT.done;
  }
  writeFileAsked(file, content);
  output.print({ number, file, bytes: content.length }, () => `Wrote ${file} (${content.length} bytes).`);
  return EXIT.done;
}
