/** `reckoner payment exceptions` and `reckoner payment close-exception`. */
import { EXIT } from '../../../errors/refusals.ts';
import { type PaymentException, readExceptions } from '../../../payments/exceptions.sql.ts';
import { closeException, ENDS } from '../../../payments/exceptions.ts';
import { acting, type CommandContext, type Definition, REASON } from '../../define.ts';
import { money, printable, wrapped } from '../../output.ts';

export const define: Definition = (payment, act) => {
  payment
    .command('exceptions')
    .description('List open payment exceptions and how to resolve each; exit 4 if there are any')
    .action(act(acting(paymentExceptions)));
  payment
    .command('close-exception <exception>')
    .description('Close the exception of a bank line, bank statement or event that needs no action')
    .requiredOption(...REASON)
    .action(act(acting(paymentCloseException)));
};

/** What needs manual review; exit 4 if there is anything. */
async function paymentExceptions({ database, output }: CommandContext): Promise<number> {
  const exceptions = await database.reading((tx) => readExceptions(tx));
  output.print(exceptions, () =>
    exceptions.length === 0 ? 'No open exceptions.' : exceptions.map(described).join('\n'),
  );
  return exceptions.length > 0 ? EXIT.attention : EXIT.done;
}

function described({ kind, exception, partner_id, currency, amount, since, reason }: PaymentException): string {
  const sum = amount === null || currency === null ? '' : `  ${money(amount, currency)}`;
  return [
    `${exception}  ${since}${sum}${partner_id === null ? '' : `  ${partner_id}`}`,
    ...wrapped(printable(reason), 78).map((line) => `  ${line}`),
    ...wrapped(`resolve with ${remedy({ kind, exception, reason })}`, 78).map((line) => `  ${line}`),
  ].join('\n');
}

/** What resolves it, with the ids of the payment and of the one that it may duplicate. */
function remedy({ kind, exception, reason }: Pick<PaymentException, 'kind' | 'exception' | 'reason'>): string {
  if (kind !== 'possible_duplicate') return ENDS[kind];
  const other = /payment (\d+)/.exec(reason)?.[1] ?? 'OTHER';
  return ENDS[kind].replaceAll(' ID ', ` ${exception.replace('payment-', '')} `).replace('OTHER', other);
}

async function paymentCloseException(
  context: CommandContext,
  exception: string,
  { reason }: { reason: string },
): Promise<void> {
  const { database, output } = context;
  const closed = await database.transaction((tx) => closeException(tx, context, { exception, reason }));
  output.print({ ...closed, closed: reason }, () => `${exception} is closed: ${printable(reason)}`);
}
