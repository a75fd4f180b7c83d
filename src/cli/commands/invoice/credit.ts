/** `reckoner invoice credit`. */
import { emailText, followBalance } from '../../../acts/documents.ts';
import { creditInvoice } from '../../../documents/credit.ts';
import { documentJson } from '../../../documents/document.ts';
import type { DocumentRow } from '../../../documents/queries.ts';
import { EXIT } from '../../../errors/refusals.ts';
import { failpoint } from '../../../failpoint.ts';
import { isZero } from '../../../money.ts';
import {
  acting,
  type CommandContext,
  type Definition,
  type DeliverOption,
  NO_DELIVER,
  ON_LATEST_DATE,
  REASON,
} from '../../define.ts';
import { deliverWithProgress } from '../../deliveries.ts';
import { money, wrapped } from '../../output.ts';
import { exitOf, read } from './after.ts';

export const define: Definition = (invoice, act) => {
  invoice
    .command('credit <number>')
    .description('Issue a credit note against an invoice')
    .requiredOption('--amount <amount>', "the amount, in the invoice's currency")
    .requiredOption(...REASON)
    .option('--again', 'issue it even if a credit with the same amount and reason exists')
    .option(...ON_LATEST_DATE)
    .option(...NO_DELIVER)
    .action(act(acting(invoiceCredit)));
};

async function invoiceCredit(
  context: CommandContext,
  number: string,
  { amount, reason, again, deliver }: { amount: string; reason: string; again?: boolean } & DeliverOption,
): Promise<number> {
  const { database, output } = context;
  const request = { number, amount, reason, again };
  const note = await database.transaction((tx) => creditInvoice(tx, context, request));
  failpoint('credit.committed');
  await followBalance(context, number);
  if (deliver) await deliverWithProgress(context, output, [note]);
  const issued = await read(context, note);
  const invoice = await read(context, number);
  output.print(documentJson(issued), () =>
    [
      `${note} credits ${money(issued.invoice_amount, issued.currency)} on ${number}.`,
      ...wrapped(whereItWent(issued, invoice), 80, '  '),
      ...wrapped(`E-mail: ${emailText(issued)}`, 80, '  '),
    ].join('\n'),
  );
  return deliver ? exitOf(issued) : EXIT.done;
}

/** What a credit note did to its invoice, and what is left of it. */
function whereItWent(note: DocumentRow, invoice: DocumentRow): string {
  const [applied, left, open] = [note.credited, invoice.balance, note.balance].map((each) =>
    money(each, note.currency),
  );
  if (isZero(note.credited)) return `Nothing is left to pay on ${invoice.number}, so the full ${open} is open credit.`;
  const standing = `${applied} is applied to ${invoice.number}, which leaves ${left} to pay`;
  return isZero(note.balance) ? `${standing}.` : `${standing}; ${open} is open credit.`;
}
