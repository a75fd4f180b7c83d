/**
 * Sets or corrects the payer of a payment. The unapplied part becomes unapplied cash of the new payer, and the applied
 * parts stay applied. Refusals: payment_unknown, partner_unknown, payment_not_assignable.
 */
import { todayOf } from '#config/today';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { readPartners } from '#partners/partners.sql';
import { paymentState } from './apply.ts';
import { Caller, lockPayments, openPaymentContext } from './context.ts';
import { insertAssignments } from './insert.sql.ts';
import { PaymentState } from './payments.sql.ts';

type AssignRequest = Readonly<{
  paymentId: number;
  partnerId: string;
}>;

/** Returns the previous payer, or null if the payment had no payer. */
export async function assignPayment(tx: Transaction, caller: Caller, { paymentId, partnerId }: AssignRequest) {
  await lockPayments(tx);
  const state = await paymentState(tx, paymentId);
  if ((await readPartners(tx, partnerId)).length === 0) throw refuse('partner_unknown', { partner_id: partnerId });
  const reason = whyNotAssignable(state, partnerId);
  if (reason !== undefined) throw refuse('payment_not_assignable', { payment_id: paymentId, reason });
  const { partner_id: before, unapplied } = state;
  const context = await openPaymentContext(tx, caller, {
    action: 'payment.assign',
    subject: String(paymentId),
    details: { from: before, to: partnerId, unapplied },
  });
  // The first known payer is dated on the day of receipt. A correction is dated today.
  const assigned_on = before === null ? undefined : todayOf(caller);
  await insertAssignments(tx, context, [
    {
      ...{ payment_id: paymentId, from_partner_id: before, partner_id: partnerId },
      ...{ kind: 'named', amount: unapplied, assigned_on },
    },
  ]);
  failpoint('assignment.recorded');
  return before;
}

function whyNotAssignable(state: PaymentState, partnerId: string) {
  if (state.status === 'reversed') return 'it is reversed completely';
  if (state.partner_id === partnerId) return `its payer is already ${partnerId}`;
  return undefined;
}
