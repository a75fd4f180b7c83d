/** `reckoner invoice void`. */
import { documentJson } from '../../../documents/document.ts';
import { voidDocument } from '../../../documents/void.ts';
import { EXIT } from '../../../errors/refusals.ts';
import { failpoint } from '../../../failpoint.ts';
import { acting } from '../../context.ts';
import { type Definition, REASON } from '../../define.ts';
import { deliverWithProgress } from '../../deliveries.ts';
import type { Output } from '../../output.ts';
import { read } from './after.ts';

export const defineVoid: Definition = (invoice, act) => {
  invoice
    .command('void <number>')
    .description('Void a document as of today; its number is kept')
    .requiredOption(...REASON)
    .action(act(invoiceVoid));
};

async function invoiceVoid(output: Output, number: string, { reason }: { reason: string }): Promise<number> {
  return acting(output, async (context) => {
    await context.database.transaction((tx) => voidDocument(tx, context, { number, reason }));
    failpoint('void.committed');
    await deliverWithProgress(context, output, [number]);
    const document = await read(context, number);
    output.print(documentJson(document), () =>
      document.purpose === 'month'
        ? `${number} is void. Its rows are unbilled until 'reckoner invoice rerun --month ${document.month}' issues ` +
          'a new document.'
        : `${number} is void.`,
    );
    return EXIT.done;
  });
}
