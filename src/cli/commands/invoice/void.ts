/** `reckoner invoice void`. */
import { documentJson } from '../../../documents/document.ts';
import { voidDocument } from '../../../documents/void.ts';
import { failpoint } from '../../../failpoint.ts';
import { acting, type CommandContext, type Definition, ON_LATEST_DATE, REASON } from '../../define.ts';
import { deliverWithProgress } from '../../deliveries.ts';
import { read } from './after.ts';

export const define: Definition = (invoice, act) => {
  invoice
    .command('void <number>')
    .description('Void a document as of today; its number is kept')
    .requiredOption(...REASON)
    .option(...ON_LATEST_DATE)
    .action(act(acting(invoiceVoid)));
};

async function invoiceVoid(context: CommandContext, number: string, { reason }: { reason: string }): Promise<void> {
  const { database, output } = context;
  await database.transaction((tx) => voidDocument(tx, context, { number, reason }));
  failpoint('void.committed');
  await deliverWithProgress(context, output, [number]);
  const document = await read(context, number);
  output.print(documentJson(document), () =>
    document.purpose === 'month'
      ? `${number} is void. Its rows are unbilled until 'reckoner invoice rerun ${number}' issues its replacement.`
      : `${number} is void.`,
  );
}
