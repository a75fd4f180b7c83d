/**
 * Refunds open credit of a credit note, in whole or in part, and records that the bank returned a refund. Refusals:
 * document_unknown, credit_not_refundable, document_on_hold, credit_amount_too_large, refund_repeated, amount_invalid,
 * date_in_future, date_too_early.
 */
import { Transaction } from '#database/transaction';
import { refuseHeld } from '#documents/correctable';
import { positiveAmount } from '#errors/amounts';
import { refuse } from '#errors/refusals';
import { Amount } from '#money';
import { normalizeReference } from './bank/statement.ts';
import { openLine } from './bank-booking.ts';
import { Caller, dayOfAction, lockPayments, openPaymentContext } from './context.ts';
import { RefundMethod } from './enums.ts';
import { PayableRow } from './open-items.sql.ts';
import { matchRecordedRefunds } from './outgoing-refunds.ts';
import { payableNumbered } from './read-open-items.ts';
import { insertRefund, insertRefundReturn, readRefunds } from './refund.sql.ts';

type RefundRequest = Readonly<{
  number: string;
  /** The amount in the credit note's currency. Default: all open credit. */
  amount?: string | undefined;
  /** Allows a second refund with the amount and reference of an earlier refund. */
  again?: boolean | undefined;
  method: RefundMethod;
  reference: string;
  on?: string | undefined;
}>;

export type Refund = Readonly<{
  number: string;
  partner_id: string;
  currency: string;
  amount: string;
  refunded_on: string;
  returned_on?: string;
  entry_on: string;
}>;

/**
 * Refunds open credit of a credit note. If the amount and reference equal those of an earlier refund, the refund is
 * refused as a repeated command, unless `again` is set.
 */
export async function refundCredit(tx: Transaction, caller: Caller, request: RefundRequest): Promise<Refund> {
  const { number, method, reference } = request;
  const note = await lockCreditNote(tx, number);
  const on = dayOfAction(caller, request.on, { earliest: note.issued_on, what: `${number} was issued` });
  const { document_id: documentId, partner_id, currency, status } = note;
  if (status !== 'open') throw notRefundable(number, status === 'void' ? 'it is void' : 'its credit is used up');
  refuseHeld(note);
  const amount = (await amountToRefund(tx, note, request)).toString();
  const context = await openPaymentContext(tx, caller, {
    action: 'credit.refund',
    subject: number,
    details: { amount, currency, reference },
  });
  const entry_on = await insertRefund(tx, context, { documentId, amount, method, reference, on });
  await matchRecordedRefunds(tx, context, { currency, amount });
  return { number, partner_id, currency, amount, refunded_on: on, entry_on };
}

async function amountToRefund(
  tx: Transaction,
  { document_id, number, currency, balance }: PayableRow,
  request: RefundRequest,
) {
  const open = Amount.of(balance, currency);
  if (request.amount === undefined) return open;
  const amount = positiveAmount(request.amount, currency);
  const same = (await readRefunds(tx, { documentId: document_id })).find(
    (each) =>
      normalizeReference(each.reference) === normalizeReference(request.reference) &&
      Amount.of(each.amount, currency).equals(amount),
  );
  if (same !== undefined && !request.again) {
    throw refuse('refund_repeated', {
      number,
      amount: amount.forPeople(),
      on: same.refunded_on,
      reference: same.reference,
    });
  }
  if (amount.minus(open).isPositive()) {
    const what = `of open credit on ${number}`;
    throw refuse('credit_amount_too_large', { amount: amount.forPeople(), most: open.forPeople(), what });
  }
  return amount;
}

/**
 * Records that the bank returned a refund of a credit note. This is the latest refund, or the latest refund of the
 * given amount. The credit is open again.
 */
export async function returnRefund(
  tx: Transaction,
  caller: Caller,
  {
    number,
    reason,
    amount: over,
    bankLineId,
    on,
  }: {
    number: string;
    reason: string;
    amount?: string | undefined;
    /** The bank's credit line. Its amount and day are the defaults. */
    bankLineId?: number | undefined;
    on?: string | undefined;
  },
): Promise<Refund> {
  const { document_id, partner_id, currency } = await lockCreditNote(tx, number);
  const line = bankLineId === undefined ? undefined : await openLine(tx, bankLineId, 'credit', currency);
  const asked = line?.amount ?? (over === undefined ? undefined : positiveAmount(over, currency));
  const refund = (await readRefunds(tx, { documentId: document_id })).find(
    (each) => asked === undefined || Amount.of(each.amount, currency).equals(asked),
  );
  if (refund === undefined) {
    throw notRefundable(number, `it has no refund${asked ? ` of ${asked.forPeople()}` : ''} that could be returned`);
  }
  const what = `${number} was refunded`;
  const returnedOn = dayOfAction(caller, on, {
    ...{ earliest: refund.refunded_on, what },
    ...(line !== undefined && { otherwise: line.booked_on }),
  });
  const context = await openPaymentContext(tx, caller, {
    action: 'credit.refund_returned',
    subject: number,
    details: { amount: refund.amount, currency, reason },
  });
  const entry_on = await insertRefundReturn(tx, context, {
    ...{ refundId: refund.credit_refund_id, bankLineId: bankLineId ?? null, reason, on: returnedOn },
  });
  const amount = Amount.of(refund.amount, currency).toString();
  return { number, partner_id, currency, amount, refunded_on: refund.refunded_on, returned_on: returnedOn, entry_on };
}

const notRefundable = (number: string, reason: string) => refuse('credit_not_refundable', { number, reason });

async function lockCreditNote(tx: Transaction, number: string) {
  await lockPayments(tx);
  const document = await payableNumbered(tx, number);
  if (document.document === 'credit_note') return document;
  throw notRefundable(
    number,
    `it is ${document.document === 'invoice' ? 'an invoice' : 'a statement'}, not a credit note`,
  );
}
