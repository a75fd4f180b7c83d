/** A payment that the processor received: recorded once, and applied to the document that its link was made for. */
import { isZero } from '../../money.ts';
import type { PaymentFact } from '../../processors/processor.ts';
import { applicable, applyTo, money, whyNotPayable, whyTakesNoPayment } from '../apply.ts';
import { enqueueDeliveries, type PaymentContext } from '../context.ts';
import { identify } from '../duplicates.ts';
import { processorIdentity } from '../identities.ts';
import { insertPaymentSources, insertPayments, insertSuggestions } from '../insert.sql.ts';
import { readPayable } from '../open-items.sql.ts';
import { type PaymentState, readCandidates, readState } from '../queries.ts';
import { type EventContext, type EventOutcome, paymentOf } from './event.ts';
import { wasApplied } from './events.sql.ts';

type Receipt = Extract<PaymentFact, { kind: 'received' }>;

export async function recordReceipt(context: EventContext, receipt: Receipt): Promise<EventOutcome> {
  const payments = await context.open();
  const { tx } = payments;
  const known = (await paymentOf(context, receipt.ids)) ?? (await reportedElsewhere(context, receipt));
  if (
    known !== undefined &&
    (known.currency !== receipt.amount.currency || !money(known.amount, known).equals(receipt.amount))
  ) {
    const recorded = money(known.amount, known).forPeople();
    const reason = `${receipt.ids[0]} is payment ${known.payment_id} of ${recorded}, but the event says ${receipt.amount.forPeople()}`;
    return { outcome: 'manual_review', payment_id: known.payment_id, reason };
  }
  const document = receipt.invoice === undefined ? undefined : await readPayable(tx, receipt.invoice);
  const paymentId =
    known?.payment_id ?? (await insertReceipt(payments, context, receipt, document?.partner_id ?? null));
  await insertPaymentSources(
    payments,
    receipt.ids.map((id) => ({
      identity: processorIdentity(context.account, id),
      payment_id: paymentId,
      source: 'processor' as const,
      reference: id,
    })),
  );
  const isApplied =
    document !== undefined && (await applyOnce(payments, context, { paymentId, number: document.number }));
  if (known !== undefined && !isApplied) {
    return { outcome: 'nothing', payment_id: paymentId, reason: `payment ${paymentId} is recorded already` };
  }
  const result = isApplied
    ? `applied to ${document.number}`
    : document === undefined
      ? 'the event names no document'
      : `${document.number} takes no payment any more`;
  return {
    outcome: 'effect',
    payment_id: paymentId,
    reason: `payment ${paymentId} of ${receipt.amount.forPeople()}: ${result}`,
  };
}

/** The payment that finance or the bank reported first, under the processor's id. */
async function reportedElsewhere(
  { tx, on }: EventContext,
  { amount, ids }: Receipt,
): Promise<PaymentState | undefined> {
  const candidates = await readCandidates(tx, {
    money: [{ currency: amount.currency, amount: amount.toString() }],
    references: [],
  });
  const reported = { source: 'processor', amount, on, references: ids } as const;
  const identity = identify({ ...reported, documents: [], partners: [], partnersByName: [] }, candidates);
  return identity.verdict === 'same' ? readState(tx, identity.of.payment.payment_id) : undefined;
}

async function insertReceipt(
  payments: PaymentContext,
  { account, on }: EventContext,
  { ids, amount, payer_name }: Receipt,
  partnerId: string | null,
): Promise<number> {
  const reference = ids[0] as string;
  const identity = processorIdentity(account, reference);
  const inserted = await insertPayments(payments, [
    {
      identity,
      source: 'processor',
      partner_id: partnerId,
      currency: amount.currency,
      amount: amount.toString(),
      method: 'link',
      account: '',
      received_on: on,
      reference,
      payer_name,
    },
  ]);
  return inserted.get(identity) as number;
}

/**
 * Applies a payment to the document that its link was made for, unless it was ever applied before. Where the document was
 * replaced since, the replacement is suggested.
 */
async function applyOnce(
  payments: PaymentContext,
  { caller, on }: EventContext,
  { paymentId, number }: { paymentId: number; number: string },
): Promise<boolean> {
  const { tx } = payments;
  const state = await readState(tx, paymentId);
  const document = await readPayable(tx, number);
  if (state === undefined || document === undefined || (await wasApplied(tx, paymentId))) return false;
  // A payment that was given back before it was applied pays nothing.
  if (isZero(state.unapplied)) return false;
  if (whyNotPayable(state, document) !== undefined) {
    await suggestReplacement(payments, state, { number, replacedBy: document.replaced_by });
    return false;
  }
  await applyTo(payments, caller.settings, state, document, {
    amount: applicable(state, document),
    whole: true,
    evidence: {
      rule: 'processor',
      reference: { number, field: 'metadata.invoice', found: number },
      why: `paid by the payment link of ${number}`,
    },
    appliedOn: on,
  });
  await enqueueDeliveries(payments, [document.document_id]);
  return true;
}

async function suggestReplacement(
  payments: PaymentContext,
  state: PaymentState,
  { number, replacedBy }: { number: string; replacedBy: string | null },
): Promise<void> {
  const successor = replacedBy === null ? undefined : await readPayable(payments.tx, replacedBy);
  if (successor === undefined || whyTakesNoPayment(successor) !== undefined) return;
  await insertSuggestions(payments, [
    {
      payment_id: state.payment_id,
      document_id: successor.document_id,
      amount: state.unapplied,
      confidence: '0.80',
      evidence: { why: `the link of ${number} was paid, and ${successor.number} replaces it` },
    },
  ]);
}
