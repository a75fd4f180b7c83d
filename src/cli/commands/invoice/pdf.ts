/** `reckoner invoice pdf`. */
import { documentNumbered } from '../../../acts/documents.ts';
import { readPdf } from '../../../documents/queries.ts';
import { EXIT, refuse } from '../../../errors/refusals.ts';
import { type Definition, type Done, reading } from '../../define.ts';
import { type Output, writeFileAsked } from '../../output.ts';

export const define: Definition = (invoice, act) => {
  invoice
    .command('pdf <number>')
    .description('Write the PDF that was issued')
    .option('-o, --output <file>', "write to this file; '-' is stdout (default: NUMBER.pdf)")
    .option('--void-copy', 'of a void document: a copy marked VOID, with the reason and the replacement')
    .action(act(invoicePdf));
};

function invoicePdf(output: Output, number: string, options: { output?: string; voidCopy?: boolean }): Done {
  if (options.output === '-' && output.json) {
    throw refuse('argument_invalid', {
      argument: '--output',
      value: '-',
      reason: 'cannot be used with --json, which prints to stdout too',
    });
  }
  return reading(async ({ database, environment }) => {
    const [row, kept] = await database.reading(async (tx) => {
      const found = await documentNumbered(tx, number, { withLogos: options.voidCopy });
      return [found, options.voidCopy ? undefined : await readPdf(tx, found.document_id)] as const;
    });
    // Only a void copy needs the renderer, which is slow to load.
    const pdf = options.voidCopy
      ? await (await import('../../../documents/void-copy.ts')).renderVoidCopy(environment, row)
      : kept;
    if (pdf === undefined) {
      const reason = row.email_reason ?? 'it has not been delivered';
      throw refuse('pdf_not_rendered', { number, reason, void: row.status === 'void' });
    }
    const file = options.output ?? `${number}${options.voidCopy ? '-void' : ''}.pdf`;
    if (file === '-') {
      process.stdout.write(pdf);
      return EXIT.done;
    }
    writeFileAsked(file, pdf);
    output.print({ number, file, bytes: pdf.length }, () => `Wrote ${file} (${pdf.length} bytes).`);
    return EXIT.done;
  })(output);
}
