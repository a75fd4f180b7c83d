/** `reckoner invoice resend`. */

import { emailText } from '../../../acts/documents.ts';
import { resendDocument } from '../../../delivery/resend.ts';
import { documentJson } from '../../../documents/document.ts';
import { EXIT } from '../../../errors/refusals.ts';
import { acting, type CommandContext, type Definition, type DeliverOption, NO_DELIVER } from '../../define.ts';
import { deliverWithProgress } from '../../deliveries.ts';
import { exitOf, read } from './after.ts';

export const define: Definition = (invoice, act) => {
  invoice
    .command('resend <number>')
    .description('E-mail a document again')
    .option('--to <address>', "send to this address instead of the partner's contacts")
    .option(...NO_DELIVER)
    .action(act(acting(invoiceResend)));
};

async function invoiceResend(
  context: CommandContext,
  number: string,
  options: { to?: string } & DeliverOption,
): Promise<number> {
  const { database, output } = context;
  await database.transaction((tx) => resendDocument(tx, context, { number, to: options.to }));
  if (options.deliver) await deliverWithProgress(context, output, [number]);
  const document = await read(context, number);
  output.print(documentJson(document), () => `${number}: ${emailText(document)}`);
  return options.deliver ? exitOf(document) : EXIT.done;
}
