/**
 * Recording a payment by hand. The same invoice (or partner and day), amount and reference is the same payment, whether a
 * person, the bank or the processor told of it before; a likeness in less than that is a suggestion.
 * Refusals: argument_invalid, partner_unknown, document_unknown, payment_not_applicable.
 */
import { queryOne, type Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import type { Amount } from '../money.ts';
import { readPartners } from '../partners/queries.ts';
import { todayOf } from '../today.ts';
import { applyTo, money, positiveAmount, whyNotPayable, whyTakesNoPayment } from './apply.ts';
import { squeezed } from './bank/statement.ts';
import { type Caller, enqueueDeliveries, lockPayments, openPaymentContext, type PaymentContext } from './context.ts';
import {
  DAYS,
  DAYS_OF_A_NUMBER,
  daysBetween,
  isDocumentNumber,
  isTelling,
  processorIds,
  sameReference,
} from './duplicates.ts';
import type { Method } from './enums.ts';
import { CONFIDENCE } from './match.ts';
import {
  type Candidate,
  insertAssignments,
  insertPaymentSources,
  insertPayments,
  insertSuggestions,
  type PayableRow,
  readCandidates,
  readPayable,
  readStates,
} from './queries.ts';

export interface RecordRequest {
  readonly amount: string;
  readonly currency: string;
  readonly method: Method;
  /** `YYYY-MM-DD` */
  readonly receivedOn: string;
  readonly reference: string;
  /** One of the two. */
  readonly number?: string | undefined;
  readonly partnerId?: string | undefined;
}

export interface Recorded {
  readonly paymentId: number;
  /** It was known: nothing new was recorded but that it was seen again. */
  readonly duplicate: boolean;
  /** Payments that it may be the same as: a person judges. */
  readonly alike: readonly number[];
  /** Why nothing of it is applied to the invoice that was named. */
  readonly kept?: string;
}

export async function recordPayment(tx: Transaction, caller: Caller, request: RecordRequest): Promise<Recorded> {
  const amount = positiveAmount(request.amount, request.currency);
  const { receivedOn } = request;
  const reference = request.reference.trim();
  if (squeezed(reference) === '' || reference.length > 140) {
    throw refuse('argument_invalid', {
      argument: '--reference',
      value: reference,
      reason: 'must be 1 to 140 characters, a letter or digit among them',
    });
  }
  const today = todayOf(caller);
  if (receivedOn > today) {
    throw refuse('argument_invalid', {
      argument: '--received-on',
      value: receivedOn,
      reason: `lies in the future: today is ${today}`,
    });
  }
  await lockPayments(tx);
  const document = request.number === undefined ? undefined : await invoiceFor(tx, request.number, amount);
  const partnerId = document?.partner_id ?? (request.partnerId as string);
  if (document === undefined && (await readPartners(tx, partnerId)).length === 0) {
    throw refuse('partner_unknown', { partner_id: partnerId });
  }
  const candidates = await readCandidates(tx, {
    money: [{ currency: amount.currency, amount: amount.toString() }],
    references: [],
  });
  const alike = candidates.filter(
    (each) => money(each.amount, each).equals(amount) && (each.partner_id === null || each.partner_id === partnerId),
  );
  const same = alike.find((each) => isSame(each, { reference, receivedOn, partnerId, document }));
  // Money that came for a paid invoice came all the same: it is unapplied cash.
  if (same === undefined && document !== undefined) refuseUnpayable(document);

  const context = await openPaymentContext(tx, caller, {
    action: 'payment.record',
    subject: request.number ?? partnerId,
    details: { amount: amount.toString(), currency: amount.currency, reference, same_as: same?.payment_id ?? null },
  });
  if (same !== undefined) {
    await seeAgain(context, caller, same, { reference, receivedOn, partnerId, document });
    return { paymentId: same.payment_id, duplicate: true, alike: [] };
  }
  const identity = await freeIdentity(tx, [
    document?.number ?? partnerId,
    amount.currency,
    amount.toString(),
    squeezed(reference),
    document === undefined ? receivedOn : '',
  ]);
  const ids = await insertPayments(context, [
    {
      identity,
      source: 'hand',
      partner_id: partnerId,
      currency: amount.currency,
      amount: amount.toString(),
      method: request.method,
      account: '',
      received_on: receivedOn,
      reference,
      payer_name: null,
      payer_account: null,
    },
  ]);
  const paymentId = ids.get(identity) as number;
  await insertPaymentSources(context, [
    { identity, payment_id: paymentId, source: 'hand', reference, bank_line_id: null },
  ]);
  if (document !== undefined) await applyByHand(context, caller, paymentId, document, receivedOn);
  const near = alike.filter((each) => isAlike(each, { reference, receivedOn, partnerId, document }));
  await suggestLikeness(context, paymentId, near, amount, reference);
  const kept = document?.status === 'paid' ? { kept: `${document.number} is paid` } : {};
  return { paymentId, duplicate: false, alike: near.map((each) => each.payment_id), ...kept };
}

async function invoiceFor(tx: Transaction, number: string, amount: Amount): Promise<PayableRow> {
  const document = await readPayable(tx, number);
  if (document === undefined) throw refuse('document_unknown', { number });
  if (document.currency !== amount.currency) {
    const reason = `is not the currency of ${number}, which is in ${document.currency}`;
    throw refuse('argument_invalid', { argument: '--currency', value: amount.currency, reason });
  }
  return document;
}

function refuseUnpayable(document: PayableRow): void {
  const reason = whyTakesNoPayment(document);
  if (reason === undefined || (document.document === 'invoice' && document.status === 'paid')) return;
  const remedy = `Record it with --partner ${document.partner_id} instead, as unapplied cash`;
  throw refuse('argument_invalid', {
    argument: '--invoice',
    value: document.number,
    reason: `takes no payment: ${reason}. ${remedy}`,
  });
}

/** What a person says of a payment, beside its amount. */
interface Said {
  readonly reference: string;
  readonly receivedOn: string;
  readonly partnerId: string;
  readonly document: PayableRow | undefined;
}

/** The same amount is given: whether it is for the same, and has the same reference within the days that this counts. */
function isSame(candidate: Candidate, { reference, receivedOn, partnerId, document }: Said): boolean {
  if (!isForIt(candidate, document)) return false;
  const found = sameReference(reference, candidate.references);
  // What the processor gave its own id is one payment for good.
  if (found && processorIds([reference]).length > 0) return true;
  const days = daysBetween(candidate.received_on, receivedOn);
  const sameDocument = document !== undefined && candidate.documents.includes(document.number);
  const equal = candidate.references.some((known) => squeezed(known) === squeezed(reference));
  // Words too, said twice of one day.
  if (equal && days === 0 && (sameDocument || candidate.partner_id === partnerId)) return true;
  // A document's number comes again with every part that is paid of it.
  if (isDocumentNumber(reference)) return found && sameDocument && days <= DAYS_OF_A_NUMBER;
  if (days > DAYS || !isTelling(reference)) return false;
  if (sameDocument) return equal || found;
  // A reference that only people gave may come again with another payment of the partner.
  return found && (candidate.seen_by_bank || candidate.seen_by_processor || !candidate.seen_by_hand);
}

const isForIt = (candidate: Candidate, document: PayableRow | undefined): boolean =>
  document === undefined || candidate.documents.length === 0 || candidate.documents.includes(document.number);

/** The same amount is given: whether it may be the same payment all the same. */
function isAlike(candidate: Candidate, { reference, receivedOn, document }: Said): boolean {
  const near = daysBetween(candidate.received_on, receivedOn) <= DAYS;
  return isForIt(candidate, document) && (near || sameReference(reference, candidate.references));
}

async function seeAgain(
  context: PaymentContext,
  caller: Caller,
  same: Candidate,
  { reference, receivedOn, partnerId, document }: Said,
): Promise<void> {
  const identity = ['hand', partnerId, same.payment_id, squeezed(reference)].join('|');
  await insertPaymentSources(context, [
    { identity, payment_id: same.payment_id, source: 'hand', reference, bank_line_id: null },
  ]);
  const applicable = document !== undefined && whyTakesNoPayment(document) === undefined && same.documents.length === 0;
  if (applicable) await applyByHand(context, caller, same.payment_id, document, receivedOn);
  // Whose it is was to be found out, and a person has said it.
  const [state] = await readStates(context.tx, [same.payment_id]);
  if (state?.partner_id !== null || !money(state.unapplied, state).isPositive()) return;
  await insertAssignments(context, [
    { payment_id: same.payment_id, from_partner_id: null, partner_id: partnerId, amount: state.unapplied },
  ]);
}

async function applyByHand(
  context: PaymentContext,
  caller: Caller,
  paymentId: number,
  document: PayableRow,
  receivedOn: string,
): Promise<void> {
  const [state] = await readStates(context.tx, [paymentId]);
  if (state === undefined || whyNotPayable(state, document) !== undefined) return;
  const unapplied = money(state.unapplied, state);
  const balance = money(document.balance, state);
  const amount = unapplied.minus(balance).isPositive() ? balance : unapplied;
  const evidence = { rule: 'person' as const, why: 'a person recorded it for this document' };
  await applyTo(context, caller.settings, state, document, { amount, whole: true, evidence, appliedOn: receivedOn });
  await enqueueDeliveries(context, [document.document_id]);
}

/** After a payment was taken back, the same may be recorded again: a count makes it another one. */
async function freeIdentity(tx: Transaction, parts: readonly string[]): Promise<string> {
  const identity = ['hand', ...parts].join('|');
  const { used } = await queryOne<{ used: number }>(
    tx,
    `SELECT count(*) AS used FROM payments WHERE identity = :identity OR identity LIKE :repeated ESCAPE '!'`,
    { identity, repeated: `${identity.replace(/[!%_]/g, '!$&')}|#%` },
  );
  return used === 0 ? identity : `${identity}|#${used + 1}`;
}

async function suggestLikeness(
  context: PaymentContext,
  paymentId: number,
  alike: readonly Candidate[],
  amount: Amount,
  reference: string,
): Promise<void> {
  await insertSuggestions(
    context,
    alike.map((each) => {
      const equal = each.references.some((known) => squeezed(known) === squeezed(reference));
      return {
        payment_id: paymentId,
        document_id: null,
        same_as: each.payment_id,
        amount: amount.toString(),
        confidence: CONFIDENCE.same_payment,
        evidence: {
          why: `of ${each.received_on}, of the same amount${each.partner_id === null ? '' : ' and payer'}, under ${equal ? 'the same' : 'another'} reference`,
        },
      };
    }),
  );
}
