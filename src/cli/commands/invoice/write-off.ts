import { invoiceWriteOff, invoiceWriteOffUndo } from '#actions/invoice/write-off';
import { Definition, ON_LATEST_DATE, Output, REASON } from '#cli/command';
import { doing } from '#cli/run-action';

type WriteOffOptions = Readonly<{
  reason: string;
  onLatestDate?: boolean;
  undo?: boolean;
}>;

export const define: Definition = (invoice, action) => {
  invoice
    .command('write-off <number>')
    .description('Write off the open balance of an invoice, or undo that')
    .requiredOption(...REASON)
    .option(...ON_LATEST_DATE)
    .option('--undo', 'reopen the amount that was written off, if the partner pays after all')
    .action(action(writeOff));
};

const writeOff = (output: Output, number: string, { undo, ...options }: WriteOffOptions) =>
  doing(undo ? invoiceWriteOffUndo : invoiceWriteOff, () => ({ number, ...options }))(output);
