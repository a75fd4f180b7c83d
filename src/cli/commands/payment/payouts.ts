/** `reckoner payment payouts` and `reckoner payment settle`. */
import { EXIT } from '../../../errors/refusals.ts';
import { Amount } from '../../../money.ts';
import { type PayoutRow, readPayouts } from '../../../payments/payouts.sql.ts';
import { settlePayout } from '../../../payments/settle.ts';
import { plural } from '../../../text.ts';
import { idArgument, idsArgument } from '../../arguments.ts';
import { acting, type CommandContext, type Definition, reading } from '../../define.ts';
import { amount, table } from '../../output.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../../present.ts';

export const define: Definition = (payment, act) => {
  payment
    .command('payouts')
    .description("List the processor's payouts to the bank; exit 4 if the payments of one are unknown")
    .option(...FORMAT)
    .option(...OUT)
    .action(act(reading(paymentPayouts)));
  payment
    .command('settle')
    .argument('<payout>', 'the payout', idArgument('payout'))
    .argument('[payments...]', 'the payments that it contained', idsArgument('payments'), [])
    .option('--account <id>', 'instead of payments: the connected account that paid it out')
    .option('--of <payout>', "the processor's id of that account's payout")
    .description('Settle a payout: name its payments (the rest is fees), or its connected account')
    .action(act(acting(paymentSettle)));
};

const payoutJson = (row: PayoutRow) => {
  const text = (written: string | null) => (written === null ? null : Amount.of(written, row.currency).toString());
  return { ...row, amount: text(row.amount), gross: text(row.gross), fees: text(row.fees) };
};

async function paymentPayouts({ database, output }: CommandContext, options: PresentOptions): Promise<number> {
  const rows = await database.reading((tx) => readPayouts(tx));
  await present(
    output,
    options,
    rows.map(payoutJson),
    () => ({
      name: 'Payouts',
      columns: {
        payout_id: 'count',
        received_on: 'date',
        account: 'text',
        currency: 'text',
        amount: 'amount',
        gross: 'amount',
        fees: 'amount',
        of_account: 'text',
        payments: 'text',
      },
      rows: rows.map((row) => ({ ...payoutJson(row), payments: row.payments.join(' ') })),
    }),
    () => (rows.length === 0 ? 'No payouts yet.' : listed(rows)),
  );
  return rows.some((row) => row.gross === null) ? EXIT.attention : EXIT.done;
}

function listed(rows: readonly PayoutRow[]): string {
  return table(
    ['>id', 'received', '>amount', '', '>fees', '~payments or account'],
    rows.map((row) => [
      row.payout_id,
      row.received_on,
      amount(row.amount, row.currency),
      row.currency,
      payoutJson(row).fees ?? '?',
      row.gross === null ? 'unknown' : (row.of_account ?? row.payments.join(' ')),
    ]),
  );
}

async function paymentSettle(
  context: CommandContext,
  payoutId: number,
  paymentIds: number[],
  { account, of: payout }: { account?: string; of?: string },
): Promise<void> {
  const { database, output } = context;
  const request = { payoutId, paymentIds, account, payout };
  await database.transaction((tx) => settlePayout(tx, context, request));
  const [row] = await database.reading((tx) => readPayouts(tx, payoutId));
  output.print(
    row === undefined ? null : payoutJson(row),
    () =>
      `Payout ${payoutId} is settled: it contained ${account === undefined ? plural(paymentIds.length, 'payment') : `the payout of ${account}`}.`,
  );
}
