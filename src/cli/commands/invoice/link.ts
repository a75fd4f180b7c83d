import { documentNumbered } from '#actions/documents';
import { invoiceLinkRevoke, invoiceLinkRotate } from '#actions/invoice/link';
import { CommandContext, Definition, Output, readingNow, refuse } from '#cli/command';
import { doing } from '#cli/run-action';
import { documentJson } from '#documents/document';

export const define: Definition = (invoice, action) => {
  invoice
    .command('link <number>')
    .description('Show, replace or revoke the link of an invoice’s payment page')
    .option('--rotate', 'make a new link; the old one stops working')
    .option('--revoke', 'revoke the link; --rotate makes a new one')
    .option('--reason <reason>', 'the reason; it is recorded')
    .action(action(invoiceLink));
};

type LinkOptions = Readonly<{
  rotate?: boolean;
  revoke?: boolean;
  reason?: string;
}>;

function invoiceLink(output: Output, number: string, { rotate, revoke, reason = '' }: LinkOptions) {
  if (rotate && revoke) {
    throw refuse('argument_invalid', {
      argument: '--revoke',
      value: reason,
      reason: 'cannot be combined with --rotate',
    });
  }
  if (!rotate && !revoke) return readingNow(showLink)(output, number);
  return doing(rotate ? invoiceLinkRotate : invoiceLinkRevoke, () => ({ number, reason }))(output);
}

async function showLink({ database, output }: CommandContext, number: string) {
  const document = await database.reading((tx) => documentNumbered(tx, number));
  output.print(documentJson(document), () => document.payment_link ?? `${number} has no payment link.`);
}
