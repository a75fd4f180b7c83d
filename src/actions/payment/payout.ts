import { defineAction, several, text, whole } from '#actions/action';
import { amountsIn } from '#actions/documents';
import { PayoutRow, readPayouts } from '#payments/payouts.sql';
import { settlePayout } from '#payments/settle-payouts';
import { Amount, plural } from '#values';

export const paymentSettle = defineAction({
  name: 'payment.settle',
  title: 'Settle a payout',
  command: {
    summary: 'Settle a payout: name its payments (the rest is fees), or its connected account',
    arguments: { payoutId: '<payout>', paymentIds: '[payments...]' },
    options: { account: '--account <id>', payout: '--of <payout>' },
  },
  role: 'finance',
  input: {
    payoutId: whole('Payout', 'The payout.'),
    paymentIds: several(whole('Payment', 'The payments that the payout contained. The rest is fees.')).optional(),
    account: text('Account', 'Instead of payments: the connected account that the payout came from.').optional(),
    payout: text('Of payout', "The processor's id of the payout from that account.").optional(),
  },
  subject: ({ payoutId }) => String(payoutId),
  perform: (tx, context, { paymentIds = [], ...request }) => settlePayout(tx, context, { ...request, paymentIds }),
  async facts(tx, { payoutId }) {
    const [row] = await readPayouts(tx, payoutId);
    if (row === undefined) return {};
    const of = (text: string | null) => (text === null ? null : Amount.of(text, row.currency));
    const contained = row.of_account ?? row.payments.join(' ');
    return { [nameOf(payoutId)]: { amount: of(row.amount), gross: of(row.gross), fees: of(row.fees), contained } };
  },
  amounts: ({ before }, { payoutId }) => amountsIn(before, [nameOf(payoutId)], 'amount'),
  async report({ input: { payoutId, paymentIds = [], account } }, _context, tx) {
    const [row] = await readPayouts(tx, payoutId);
    const contained = account === undefined ? plural(paymentIds.length, 'payment') : `the payout of ${account}`;
    return {
      json: row === undefined ? null : payoutJson(row),
      text: `Payout ${payoutId} is settled: it contained ${contained}.`,
    };
  },
});

const nameOf = (payoutId: number) => `payout ${payoutId}`;

export function payoutJson(row: PayoutRow) {
  const text = (written: string | null) => (written === null ? null : Amount.of(written, row.currency).toString());
  return { ...row, amount: text(row.amount), gross: text(row.gross), fees: text(row.fees) };
}
