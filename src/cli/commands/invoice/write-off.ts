/** `reckoner invoice write-off`. */
import { documentJson } from '../../../documents/document.ts';
import { writeOffInvoice } from '../../../documents/write-off.ts';
import { acting, type CommandContext, type Definition, REASON } from '../../define.ts';
import { money } from '../../output.ts';
import { followBalance, read } from './after.ts';

export const define: Definition = (invoice, act) => {
  invoice
    .command('write-off <number>')
    .description('Write off the open balance of an invoice')
    .requiredOption(...REASON)
    .action(act(acting(invoiceWriteOff)));
};

async function invoiceWriteOff(context: CommandContext, number: string, { reason }: { reason: string }): Promise<void> {
  const { database, output } = context;
  await database.transaction((tx) => writeOffInvoice(tx, context, { number, reason }));
  await followBalance(context, number);
  const document = await read(context, number);
  output.print(
    documentJson(document),
    () => `Wrote off ${money(document.written_off, document.currency)} of ${number}. Its balance is now zero.`,
  );
}
