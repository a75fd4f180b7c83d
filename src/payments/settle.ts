/** Saying which payments a payout brought, where that could not be told. Refusals: payout_not_settled. */
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors.ts';
import { Amount } from '../money.ts';
import { insertSettlements, readPayouts, readWithProcessor } from './lines.ts';
import { type Acting, beginPosting, lockPayments } from './posting.ts';

export async function settlePayout(
  tx: Transaction,
  acting: Acting,
  request: { payoutId: number; paymentIds: readonly number[] },
): Promise<void> {
  await lockPayments(tx);
  const { payoutId } = request;
  const refuseIt = (reason: string) => refuse('payout_not_settled', { payout_id: payoutId, reason });
  const [payout] = await readPayouts(tx, payoutId);
  if (payout === undefined) throw refuseIt('there is no such payout');
  if (payout.gross !== null) throw refuseIt('its payments are known');
  const wanted = new Set(request.paymentIds);
  const waiting = (await readWithProcessor(tx, payout.currency, payout.received_on)).filter((each) =>
    wanted.has(each.payment_id),
  );
  const missing = [...wanted].filter((id) => !waiting.some((each) => each.payment_id === id));
  if (missing.length > 0) {
    throw refuseIt(`payment ${missing.join(', ')} is no link payment in ${payout.currency} that waits for its payout`);
  }
  const gross = waiting.reduce((sum, each) => sum.plus(each.amount), Amount.zero(payout.currency));
  const fees = gross.minus(Amount.of(payout.amount, payout.currency));
  if (fees.isNegative()) {
    throw refuseIt(
      `these payments are ${gross.forPeople()}, less than the ${payout.amount} ${payout.currency} that arrived`,
    );
  }
  const posting = await beginPosting(tx, acting, {
    action: 'payment.settle',
    subject: String(payoutId),
    details: { payments: [...wanted], fees: fees.toString() },
  });
  await insertSettlements(posting, [
    {
      payout_id: payoutId,
      gross: gross.toString(),
      fees: fees.toString(),
      why: 'a person said so',
      payments: waiting.map(({ payment_id, amount }) => ({ payment_id, amount: amount.toString() })),
    },
  ]);
}
