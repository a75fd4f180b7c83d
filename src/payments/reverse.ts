/**
 * Reverses payments: a return, a refund, a dispute, a mistake, a duplicate. The invoices that the payment paid are open
 * again. If a reversal is reinstated, the payment is applied to the same invoices again. Refusals: payment_unknown,
 * payment_is_share, payment_amount_too_large, argument_invalid, date_in_future, date_too_early.
 */

import { Transaction } from '#database/transaction';
import { positiveAmount } from '#errors/amounts';
import { refuse, refuseField } from '#errors/refusals';
import { fieldName } from '#field-names';
import { Amount } from '#money';
import { toDo } from '#remedy';
import { money, paymentState, remaining, smaller } from './apply.ts';
import { openLine, refuseUnbookable } from './bank-booking.ts';
import { Caller, dayOfAction, lockPayments, openPaymentContext, PaymentContext, requestLinkChecks } from './context.ts';
import { ReversalKind } from './enums.ts';
import { isShareIdentity } from './identities.ts';
import {
  insertApplications,
  insertReinstatement,
  insertReversals,
  insertUnapplications,
  NewReversal,
} from './insert.sql.ts';
import { readPayable } from './open-items.sql.ts';
import { matchRecordedRefunds } from './outgoing-refunds.ts';
import {
  LiveApplication,
  PaymentState,
  readLiveApplications,
  readOriginals,
  readState,
  readStates,
  readUndoneBy,
} from './payments.sql.ts';

/** NACHA return reason codes, and the ISO 20022 codes with the same meaning. */
const RETURN_REASONS: Readonly<Record<string, string>> = {
  R01: 'insufficient funds',
  R02: 'account closed',
  R03: 'no account, or not that of the payer',
  R04: 'account number invalid',
  R05: 'unauthorized by a consumer',
  R07: 'authorization revoked',
  R08: 'payment stopped',
  R09: 'uncollected funds',
  R10: 'unauthorized',
  R11: 'not as authorized',
  R16: 'account frozen',
  R20: 'no account for transactions',
  R29: 'unauthorized by a company',
  AC01: 'account number invalid',
  AC04: 'account closed',
  AC06: 'account frozen',
  AM04: 'insufficient funds',
  MD01: 'unauthorized',
  MD06: 'requested by the payer',
  MS02: 'the payer refused it',
  MS03: 'no reason given',
};

export const returnReason = (code: string | undefined) =>
  code === undefined ? 'no code given' : (RETURN_REASONS[code] ?? 'unknown code');

/** Writes a code before its reason, such as `R01 insufficient funds`. */
export const withCode = (code: string | null | undefined, reason: string) =>
  code == null || reason.startsWith(code) ? reason : `${code} ${reason}`;

export type ReverseRequest = Readonly<{
  paymentId: number;
  kind: ReversalKind;
  reason: string;
  code?: string | undefined;
  /** The default is the part of the payment that is not reversed yet. */
  amount?: string | undefined;
  /** Default day: today. For a duplicate and for `other`, the default is the day when the payment was received. */
  on?: string | undefined;
  duplicateOf?: number | undefined;
  /** For `returned`: the bank's debit line. Its amount and day are the defaults. */
  bankLineId?: number | undefined;
  /** For `other`: the general-ledger account to which the money is booked, such as `income:interest`. */
  account?: string | undefined;
}>;

/** Returns the reversed amount and the numbers of the reopened invoices. */
export async function reversePayment(
  tx: Transaction,
  caller: Caller,
  request: ReverseRequest,
): Promise<{ amount: Amount; reopened: readonly string[] }> {
  await lockPayments(tx);
  const state = await paymentState(tx, request.paymentId);
  // The processor holds the money of a share and reports its reversals. Only a refund may be paid from a different
  // account.
  if (request.kind !== 'refunded' && isShareIdentity(state.identity)) {
    throw refuse('payment_is_share', { payment_id: state.payment_id });
  }
  const { bankLineId } = request;
  const line = bankLineId === undefined ? undefined : await openLine(tx, bankLineId, 'debit', state.currency);
  const on = dayOfAction(caller, request.on, {
    earliest: state.received_on,
    what: `payment ${state.payment_id} was received`,
    // The money of a duplicate or of `other` never was a customer's.
    ...((request.kind === 'duplicate' || request.kind === 'other') && { otherwise: state.received_on }),
    ...(line !== undefined && { otherwise: line.booked_on }),
  });
  if (request.reason.trim() === '') throw refuseField('reason', '', 'must not be empty');
  const { duplicateOf } = request;
  if ((request.kind === 'duplicate') !== (duplicateOf !== undefined)) {
    const reason = `requires ${AS_DUPLICATE}, and ${AS_DUPLICATE} requires it`;
    throw refuseField('duplicateOf', String(duplicateOf ?? ''), reason);
  }
  if (duplicateOf !== undefined) {
    const reason = await whyNoDuplicate(tx, state, await paymentState(tx, duplicateOf));
    if (reason !== undefined) throw refuseField('duplicateOf', duplicateOf, reason);
  }
  if (request.kind === 'other') refuseNotBookable(state, request.account);
  else if (request.account !== undefined) throw refuseField('account', request.account, `goes with ${AS_OTHER} only`);
  if (request.kind === 'mistake') refuseInBank(state);
  const left = remaining(state);
  const amount = request.amount === undefined ? (line?.amount ?? left) : positiveAmount(request.amount, state.currency);
  if (line !== undefined) refuseOtherThan(line.amount, { ...request, amount });
  if (amount.minus(left).isPositive() || left.isZero()) {
    throw refuse('payment_amount_too_large', {
      amount: amount.forPeople(),
      most: left.forPeople(),
      what: `that remains of payment ${state.payment_id}`,
      nothing_left: left.isZero(),
    });
  }
  const context = await openPaymentContext(tx, caller, {
    action: 'payment.reverse',
    subject: String(state.payment_id),
    details: {
      kind: request.kind,
      code: request.code ?? null,
      reason: request.reason,
      amount: amount.toString(),
      account: request.account,
    },
  });
  const identity = `hand|${context.eventId}`;
  const reversed = await reverseAll(tx, context, [
    {
      identity,
      payment_id: state.payment_id,
      amount: amount.toString(),
      kind: request.kind,
      code: request.code,
      reason: request.reason.trim(),
      duplicate_of: duplicateOf,
      bank_line_id: bankLineId,
      booked_to: request.account,
      reversed_on: on,
    },
  ]);
  if (request.kind === 'refunded') {
    await matchRecordedRefunds(tx, context, { currency: amount.currency, amount: amount.toString() });
  }
  return { amount, reopened: reversed.get(identity)?.reopened ?? [] };
}

const AS_OTHER = fieldName('kind', 'other');
const AS_DUPLICATE = fieldName('kind', 'duplicate');

function refuseNotBookable({ payment_id, method }: PaymentState, account: string | undefined) {
  refuseUnbookable(account);
  if (method === 'link') {
    const reason = `cannot be other: payment ${payment_id} was made by a payment link, so it is a customer's`;
    throw refuseField('kind', 'other', reason);
  }
}

/** Refuses to reverse by a bank line what the line did not return. */
function refuseOtherThan(
  returned: Amount,
  { kind, amount, bankLineId }: Pick<ReverseRequest, 'kind' | 'bankLineId'> & { amount: Amount },
) {
  const only = `goes with ${fieldName('kind', 'returned')} only`;
  if (kind !== 'returned') throw refuseField('bankLineId', String(bankLineId), only);
  if (!amount.equals(returned)) {
    throw refuseField('amount', amount.toString(), `is not the amount of the line, ${returned.forPeople()}`);
  }
}

/** Refuses to reverse a payment as a mistake if a bank line reports it, because the money arrived. */
function refuseInBank({ payment_id, in_bank_line }: PaymentState) {
  if (!in_bank_line) return;
  const paymentId = String(payment_id);
  throw refuseField(
    'kind',
    'mistake',
    `is not possible: a bank line reports payment ${payment_id}, so its money is in the bank. If it is not a customer's, use ` +
      `${AS_OTHER}; if another payment records the same money, ${AS_DUPLICATE}`,
    [
      toDo('Unapply it', 'payment.unapply', { paymentId }, 'if it belongs to another partner'),
      toDo('Then assign it', 'payment.assign', { paymentId }),
    ],
  );
}

/**
 * Returns the reason why a payment cannot be a duplicate of another, or undefined. At least one of the two payments
 * must not be reversed.
 */
async function whyNoDuplicate(tx: Transaction, state: PaymentState, other: PaymentState) {
  const money = (each: PaymentState) => `${each.amount} ${each.currency}`;
  if (other.payment_id === state.payment_id) return 'must be another payment';
  if (money(other) !== money(state)) return `is ${money(other)}, and payment ${state.payment_id} is ${money(state)}`;
  if (other.partner_id !== null && state.partner_id !== null && other.partner_id !== state.partner_id)
    return `belongs to ${other.partner_id}, and payment ${state.payment_id} to ${state.partner_id}`;
  if (!other.stays) return 'is itself reversed: name the payment that stays';
  const [original] = await readOriginals(tx, { paymentId: other.payment_id });
  return original === undefined ? undefined : `is itself, in part, a duplicate of payment ${original}`;
}

/**
 * Reverses payments, each at most once in a call and by at most its remaining amount.
 *
 * Unapplied cash is reversed first, then the latest applications. If only a part of an application is needed, the
 * application is undone and the other part is applied again, with its bank charges. The charges stay settled while any
 * part of the payment is applied to the invoice. Returns the results by identity.
 */
export async function reverseAll(
  tx: Transaction,
  context: PaymentContext,
  reversals: readonly NewReversal[],
): Promise<Map<string, ReversalResult>> {
  if (reversals.length === 0) return new Map();
  const paymentIds = reversals.map((each) => each.payment_id);
  const states = new Map((await readStates(tx, { paymentIds })).map((state) => [state.payment_id, state]));
  const live = await readLiveApplications(tx, { paymentIds });
  const ids = await insertReversals(tx, context, reversals);
  const plans = reversals.map((reversal) => {
    const own = live.filter((each) => each.payment_id === reversal.payment_id);
    const plan = planUnapplying(states.get(reversal.payment_id) as PaymentState, own, reversal.amount);
    return { reversal, ...plan, payment_reversal_id: ids.get(reversal.identity) as number };
  });
  await insertUnapplications(
    tx,
    context,
    plans.flatMap(({ reversal: { reversed_on: unapplied_on }, payment_reversal_id, undone }) =>
      undone.map(({ payment_application_id }) => ({ payment_application_id, payment_reversal_id, unapplied_on })),
    ),
  );
  await insertApplications(
    tx,
    context,
    plans.flatMap(({ reversal: { payment_id, amount, kind, reversed_on }, kept }) => {
      const why = `the rest of the payment after ${amount} was ${kind}`;
      return kept === undefined ? [] : [reapplication(payment_id, kept, reversed_on, why)];
    }),
  );
  await requestLinkChecks(
    tx,
    plans.flatMap(({ undone }) => undone.map((each) => each.document_id)),
  );
  return new Map(
    plans.map(({ reversal: { identity }, payment_reversal_id, undone }) => [
      identity,
      { payment_reversal_id, reopened: [...new Set(undone.map((each) => each.number))] },
    ]),
  );
}

type Part = Readonly<{
  document_id: number;
  amount: Amount;
  bankCharges: string | null;
}>;

const reapplication = (
  payment_id: number,
  { document_id, amount, bankCharges }: Part,
  applied_on: string,
  why: string,
) => ({
  ...{ payment_id, document_id, amount: amount.toString(), applied_on, confidence: '1' },
  small_difference: bankCharges ?? undefined,
  evidence: { rule: 'reapplied' as const, why },
});

export type ReversalResult = Readonly<{
  payment_reversal_id: number;
  reopened: readonly string[];
}>;

export const whatIsOwedAgain = (reopened: readonly string[]) =>
  reopened.length === 0
    ? 'it was taken from unapplied cash'
    : `the amount it paid on ${reopened.join(', ')} is owed again`;

type Unapplying = Readonly<{
  undone: readonly LiveApplication[];
  kept: Part | undefined;
}>;

/** Plans which applications a reversal undoes: the latest first, and no more than needed. Pure. */
export function planUnapplying(
  state: Pick<PaymentState, 'unapplied' | 'currency'>,
  live: readonly LiveApplication[],
  amount: string,
): Unapplying {
  let missing = money(amount, state).minus(money(state.unapplied, state));
  const undone: LiveApplication[] = [];
  for (const application of live) {
    if (!missing.isPositive()) break;
    undone.push(application);
    missing = missing.minus(money(application.amount, state));
  }
  const last = undone.at(-1);
  const kept =
    last !== undefined && missing.isNegative()
      ? { document_id: last.document_id, amount: missing.negated(), bankCharges: last.bank_charges }
      : undefined;
  return { undone, kept };
}

/**
 * Reinstates a reversal: the payment is applied to the same invoices again, up to their balances, with its bank
 * charges.
 */
export async function reinstate(tx: Transaction, context: PaymentContext, reversalId: number, on: string) {
  const undone = await readUndoneBy(tx, { reversalId });
  await insertReinstatement(tx, { ...context, reversalId, reinstatedOn: on });
  const state = undone[0] === undefined ? undefined : await readState(tx, undone[0].payment_id);
  if (state === undefined) return;
  let left = money(state.unapplied, state);
  const touched: number[] = [];
  // The loop is needed because each invoice reduces the amount that is left for the next invoice. A payment pays only a
  // few invoices.
  for (const { number, amount, bank_charges } of undone) {
    const document = await readPayable(tx, { number });
    if (document === undefined || document.status !== 'open') continue;
    const part = smaller(smaller(left, money(amount, state)), money(document.balance, state));
    if (!part.isPositive()) continue;
    left = left.minus(part);
    touched.push(document.document_id);
    const { document_id } = document;
    const why = 'the reversal was reinstated';
    const rest = money(document.balance, state).minus(part);
    const bankCharges = bank_charges !== null && !rest.isLessThan(money(bank_charges, state)) ? bank_charges : null;
    const again = { document_id, amount: part, bankCharges };
    await insertApplications(tx, context, [reapplication(state.payment_id, again, on, why)]);
  }
  await requestLinkChecks(tx, touched);
}
