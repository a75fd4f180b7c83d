/** `reckoner payment payouts`. */
import { payoutJson } from '../../../acts/payment/payout.ts';
import { EXIT } from '../../../errors/refusals.ts';
import { type PayoutRow, readPayouts } from '../../../payments/payouts.sql.ts';
import { type CommandContext, type Definition, reading } from '../../define.ts';
import { amount, table } from '../../output.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../../present.ts';

export const define: Definition = (payment, act) => {
  payment
    .command('payouts')
    .description("List the processor's payouts to the bank; exit 4 if the payments of one are unknown")
    .option(...FORMAT)
    .option(...OUT)
    .action(act(reading(paymentPayouts)));
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
