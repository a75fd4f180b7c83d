/** `reckoner invoice write-off`. */

import { documentJson } from '../../../documents/document.ts';
import { writeOffInvoice } from '../../../documents/write-off.ts';
import { EXIT } from '../../../errors/refusals.ts';
import { acting } from '../../context.ts';
import { type Definition, REASON } from '../../define.ts';
import type { Output } from '../../output.ts';
import { followBalance, read } from './after.ts';
import { money } from './show.ts';

export const defineWriteOff: Definition = (invoice, act) => {
  invoice
    .command('write-off <number>')
    .description('Write off the open balance of an invoice')
    .requiredOption(...REASON)
    .action(act(invoiceWriteOff));
};

async function invoiceWriteOff(output: Output, number: string, { reason }: { reason: string }): Promise<number> {
  return acting(output, async (context) => {
    await context.database.transaction((tx) => writeOffInvoice(tx, context, { number, reason }));
    await followBalance(context, number);
    const document = await read(context, number);
    output.print(
      documentJson(document),
      () => `Wrote off ${money(document.written_off, document.currency)} of ${number}. Its balance is now zero.`,
    );
    return EXIT.done;
  });
}
