/** `reckoner invoice hold` and `reckoner invoice release`. */
import { documentJson } from '../../../documents/document.ts';
import { holdDocument, releaseDocument } from '../../../documents/hold.ts';
import { EXIT } from '../../../errors/refusals.ts';
import { acting, type CommandContext, type Definition, type DeliverOption, NO_DELIVER } from '../../define.ts';
import { deliverWithProgress } from '../../deliveries.ts';
import { exitOf, read } from './after.ts';
import { emailText } from './show.ts';

export const define: Definition = (invoice, act) => {
  invoice
    .command('hold <number>')
    .description('Stop e-mails and reminders for a document until it is released')
    .option('--reason <reason>', 'why; it is recorded')
    .action(act(acting(invoiceHold)));
  invoice
    .command('release <number>')
    .description('Release a document from hold')
    .option(...NO_DELIVER)
    .action(act(acting(invoiceRelease)));
};

async function invoiceHold(
  context: CommandContext,
  number: string,
  { reason = '' }: { reason?: string },
): Promise<void> {
  const { database, output } = context;
  await database.transaction((tx) => holdDocument(tx, context, { number, reason }));
  const document = await read(context, number);
  output.print(
    documentJson(document),
    () =>
      `${number} is on hold. Release it with 'reckoner invoice release ${number}'.\n` +
      `E-mail: ${emailText(document)}`,
  );
}

async function invoiceRelease(context: CommandContext, number: string, { deliver }: DeliverOption): Promise<number> {
  const { database, output } = context;
  await database.transaction((tx) => releaseDocument(tx, context, number));
  if (deliver) await deliverWithProgress(context, output, [number]);
  const document = await read(context, number);
  output.print(documentJson(document), () => `${number} is no longer on hold.\nE-mail: ${emailText(document)}`);
  return deliver ? exitOf(document) : EXIT.done;
}
