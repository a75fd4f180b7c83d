/** `reckoner invoice write-off`. */
import { followBalance } from '../../../acts/documents.ts';
import { documentJson } from '../../../documents/document.ts';
import { undoWriteOff, writeOffInvoice } from '../../../documents/write-off.ts';
import { failpoint } from '../../../failpoint.ts';
import { acting, type CommandContext, type Definition, ON_LATEST_DATE, REASON } from '../../define.ts';
import { money } from '../../output.ts';
import { read } from './after.ts';

export const define: Definition = (invoice, act) => {
  invoice
    .command('write-off <number>')
    .description('Write off the open balance of an invoice, or undo that')
    .requiredOption(...REASON)
    .option(...ON_LATEST_DATE)
    .option('--undo', 'reopen what is written off, as when the partner pays after all')
    .action(act(acting(invoiceWriteOff)));
};

async function invoiceWriteOff(
  context: CommandContext,
  number: string,
  { reason, undo = false }: { reason: string; undo?: boolean },
): Promise<void> {
  const { database, output } = context;
  if (undo) {
    const amount = await database.transaction((tx) => undoWriteOff(tx, context, { number, reason }));
    failpoint('write_off_undo.committed');
    await followBalance(context, number);
    const document = await read(context, number);
    output.print(
      documentJson(document),
      () =>
        `The write-off of ${amount.forPeople()} of ${number} is undone. ` +
        `Its balance is ${money(document.balance, document.currency)} again.`,
    );
    return;
  }
  await database.transaction((tx) => writeOffInvoice(tx, context, { number, reason }));
  await followBalance(context, number);
  const document = await read(context, number);
  output.print(
    documentJson(document),
    () => `Wrote off ${money(document.written_off, document.currency)} of ${number}. Its balance is now zero.`,
  );
}
