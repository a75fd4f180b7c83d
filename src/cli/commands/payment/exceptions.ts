/** `reckoner payment exceptions` and `reckoner payment close-exception`. */
import { EXIT } from '../../../errors/refusals.ts';
import { Amount, groupThousands } from '../../../money.ts';
import { type PaymentException, readExceptions } from '../../../payments/exceptions.sql.ts';
import { closeException, ENDS } from '../../../payments/exceptions.ts';
import { acting, withContext } from '../../context.ts';
import { type Definition, REASON } from '../../define.ts';
import { type Output, printable, wrapped } from '../../output.ts';

export const defineExceptions: Definition = (payment, act) => {
  payment
    .command('exceptions')
    .description('List open payment exceptions and how to resolve each; exit 4 if there are any')
    .action(act(paymentExceptions));
  payment
    .command('close-exception <exception>')
    .description('Close the exception of a bank line or event that needs no action')
    .requiredOption(...REASON)
    .action(act(paymentCloseException));
};

/** What waits for a person; exit 4 while there is something. */
async function paymentExceptions(output: Output): Promise<number> {
  return withContext(async ({ database }) => {
    const exceptions = await database.reading((tx) => readExceptions(tx));
    output.print(exceptions, () =>
      exceptions.length === 0 ? 'No open exceptions.' : exceptions.map(toldException).join('\n'),
    );
    return exceptions.length > 0 ? EXIT.attention : EXIT.done;
  });
}

function toldException({ kind, exception, partner_id, currency, amount, since, reason }: PaymentException): string {
  const sum =
    amount === null || currency === null
      ? ''
      : `  ${groupThousands(Amount.of(amount, currency).toString())} ${currency}`;
  return [
    `${exception}  ${since}${sum}${partner_id === null ? '' : `  ${partner_id}`}`,
    ...wrapped(printable(reason), 78).map((line) => `  ${line}`),
    `  resolve with ${ENDS[kind]}`,
  ].join('\n');
}

async function paymentCloseException(
  output: Output,
  exception: string,
  { reason }: { reason: string },
): Promise<number> {
  return acting(output, async (context) => {
    const closed = await context.database.transaction((tx) => closeException(tx, context, { exception, reason }));
    output.print({ ...closed, closed: reason }, () => `${exception} is closed: ${printable(reason)}`);
    return EXIT.done;
  });
}
