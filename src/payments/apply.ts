/**
 * Manual cash application: applies a payment to invoices, or undoes an application. Refusals: payment_unknown,
 * document_unknown, payment_not_applicable, payment_amount_too_large, payment_nothing_applied, bank_fee_not_applicable,
 * credit_not_applicable, document_on_hold, argument_invalid, date_in_future, date_too_early.
 */

import { Settings } from '#config/settings';
import { Transaction } from '#database/transaction';
import { howSettled, refuseHeld } from '#documents/correctable';
import { whyNotPlaceable } from '#documents/place-credit';
import { insertCreditApplications } from '#documents/placed-credit.sql';
import { positiveAmount } from '#errors/amounts';
import { refuse, refuseField } from '#errors/refusals';
import { fieldName } from '#field-names';
import { Amount, isZero } from '#money';
import { Remedy, toDo } from '#remedy';
import { refuseUnfitFee, whoBearsFee } from './bank-fee.ts';
import { Caller, dayOfAction, lockPayments, openPaymentContext, PaymentContext, requestLinkChecks } from './context.ts';
import { Evidence } from './evidence.ts';
import { readExceptionalPayments } from './exceptions.sql.ts';
import { insertApplications, insertAssignments, insertUnapplications } from './insert.sql.ts';
import { PayableRow, readPayers } from './open-items.sql.ts';
import { OpenItems } from './open-items.ts';
import { PaymentState, readLiveApplications, readPayments, readState } from './payments.sql.ts';
import { payableNumbered } from './read-open-items.ts';
import { isSmallDifference } from './small-difference.ts';

type ApplyRequest = Readonly<{
  paymentId: number;
  /** The invoices, in the order of payment. Invoices may belong to different partners. */
  numbers: readonly string[];
  /** If the amount is omitted, as much as possible is applied. An amount is allowed only with a single invoice. */
  amount?: string | undefined;
  /** The open credit of these credit notes pays the part of the invoice that the payment leaves open. */
  creditNotes?: readonly string[] | undefined;
  /**
   * The fee that the bank deducted, which is posted to bank charges. The payment and the fee must equal the amount that
   * the invoices owe, except for a small difference.
   */
  fee?: string | undefined;
  /** The day of the application, whose books must be open. Default: today. */
  on?: string | undefined;
}>;

/** Returns the id of the event. */
export async function applyPayment(tx: Transaction, caller: Caller, request: ApplyRequest) {
  await lockPayments(tx);
  const { paymentId, numbers, creditNotes = [] } = request;
  const state = await paymentState(tx, paymentId);
  const parts = await partsToApply(tx, state, request);
  const suggested = await suggestionsOf(tx, paymentId);
  const amounts = parts.map(({ amount }) => amount.toString());
  const applied = parts.length === 1 ? { number: numbers[0], amount: amounts[0] } : { numbers, amounts };
  const opened = await openPaymentContext(tx, caller, {
    action: 'payment.apply',
    subject: String(paymentId),
    details: { ...applied, less: request.creditNotes, fee: request.fee, on: request.on },
  });
  const context = { ...opened, today: dayToApply(caller, opened, request.on) };
  await assumePayer(
    tx,
    context,
    state,
    parts.map(({ document }) => document),
  );
  const whole = request.amount === undefined;
  const total = parts.reduce((sum, { document }) => sum.plus(money(document.balance, state)), money('0', state));
  for (const { document: invoice, amount, fee } of parts) {
    const document = await applyCredits(
      tx,
      context,
      invoice,
      fee === undefined ? amount : amount.plus(fee),
      creditNotes,
    );
    const evidence = suggested(document.number) ?? { rule: 'by_hand', why: 'applied by hand' };
    const current = await paymentState(tx, paymentId);
    // If there are several documents, the payment must pay all of them completely. Credit is allowed only with one
    // document.
    const owed = creditNotes.length > 0 ? money(document.balance, state) : total;
    if (fee !== undefined) {
      refuseUnfitFee(caller.settings.small_difference, { paymentId, paid: money(state.unapplied, state), fee, owed });
    }
    const application = { amount, whole, evidence, appliedOn: context.today, owed, fee };
    await applyTo(tx, context, caller.settings, current, document, application);
  }
  await requestLinkChecks(
    tx,
    parts.map(({ document }) => document.document_id),
  );
  return context.eventId;
}

function dayToApply(caller: Caller, { today, earliest }: PaymentContext, on: string | undefined) {
  if (on === undefined) return today;
  return dayOfAction(caller, on, { earliest: earliest ?? '0001-01-01', what: 'the first open books begin' });
}

async function applyCredits(
  tx: Transaction,
  { now, eventId, today: applied_on }: PaymentContext,
  invoice: PayableRow,
  paid: Amount,
  creditNotes: readonly string[],
): Promise<PayableRow> {
  let balance = Amount.of(invoice.balance, invoice.currency);
  for (const number of creditNotes) {
    const note = await payableNumbered(tx, number);
    const refuseBecause = (reason: string) =>
      refuse('credit_not_applicable', { credit_note: number, number: invoice.number, reason });
    const reason = whyNotPlaceable(note, invoice);
    if (reason !== undefined) throw refuseBecause(reason);
    refuseHeld(note);
    const amount = smaller(Amount.of(note.balance, note.currency), balance.minus(paid));
    if (!amount.isPositive()) throw refuseBecause('the payment leaves nothing for the credit to pay');
    await insertCreditApplications(tx, { now, eventId }, [
      { credit_note_id: note.document_id, invoice_id: invoice.document_id, amount: amount.toString(), applied_on },
    ]);
    balance = balance.minus(amount);
  }
  return { ...invoice, balance: balance.toString() };
}

type Part = Readonly<{
  document: PayableRow;
  amount: Amount;
  fee?: Amount | undefined;
}>;

/**
 * Returns the parts of the payment in the order of the documents. The command is refused if a document would get
 * nothing.
 */
async function partsToApply(tx: Transaction, state: PaymentState, request: ApplyRequest) {
  const { numbers, amount: given, creditNotes: [credit] = [] } = request;
  const fee = request.fee === undefined ? undefined : positiveAmount(request.fee, state.currency);
  const twice = numbers.find((number, index) => numbers.indexOf(number) !== index);
  if (twice !== undefined) throw refuseField('numbers', twice, 'is named twice');
  if (numbers.length > 1) {
    if (given !== undefined) throw refuseField('amount', given, `goes with one ${fieldName('numbers')} only`);
    if (credit !== undefined) throw refuseField('creditNotes', credit, `goes with one ${fieldName('numbers')} only`);
  }
  if (fee !== undefined && given !== undefined)
    throw refuseField('fee', fee.toString(), `goes without ${fieldName('amount')}`);
  const documents: PayableRow[] = [];
  for (const number of numbers) documents.push(await payableFor(tx, state, number));
  const bearer = fee === undefined ? undefined : whoBearsFee(state, documents, fee);
  const parts: Part[] = [];
  let left = state;
  for (const document of documents) {
    const reason = whyNotPayable(left, document);
    if (reason !== undefined) throw notApplicable(left, document, reason);
    const kept = document === bearer ? fee : undefined;
    const balance = kept === undefined ? document.balance : money(document.balance, state).minus(kept).toString();
    const amount = amountToApply(left, { ...document, balance }, given);
    parts.push({ document, amount, fee: kept });
    left = { ...left, unapplied: money(left.unapplied, left).minus(amount).toString() };
  }
  return parts;
}

/**
 * Returns the evidence of the suggestions for these documents. Applying the payment to a suggested document confirms
 * the suggestion.
 */
async function suggestionsOf(tx: Transaction, paymentId: number): Promise<(number: string) => Evidence | undefined> {
  const [payment] = await readPayments(tx, { ids: [paymentId] });
  return (number) => {
    const found = payment?.suggestions.find((each) => each.number === number);
    if (found === undefined) return undefined;
    return { ...(found.evidence as Evidence), rule: 'by_hand', why: `confirmed: ${found.evidence.why}` };
  };
}

type Application = Readonly<{
  amount: Amount;
  /**
   * Whether as much of the payment as possible is applied. A small difference may be posted to bank charges only if as
   * much as possible is applied.
   */
  whole: boolean;
  /** The total due on all documents that the payment pays. Default: the balance of this document. */
  owed?: Amount;
  fee?: Amount | undefined;
  evidence: Evidence;
  appliedOn: string;
  confidence?: string;
}>;

/**
 * Sets an unknown payer: the partner that the receipt names, or the nearest partner that pays for all of the documents.
 * Refused if no partner pays for all of the documents.
 */
export async function assumePayer(
  tx: Transaction,
  context: PaymentContext,
  state: PaymentState,
  documents: readonly PayableRow[],
) {
  const { payment_id, partner_id: from_partner_id, unapplied } = state;
  if (!payerIsOpen(state)) return;
  const partner_id = await payerOf(tx, state, documents);
  if (partner_id === from_partner_id) return;
  await insertAssignments(tx, context, [
    { payment_id, from_partner_id, partner_id, kind: 'assumed', amount: unapplied },
  ]);
}

async function payerOf(tx: Transaction, state: PaymentState, documents: readonly PayableRow[]) {
  const items = new OpenItems([], await readPayers(tx), new Map(), {});
  const [receipt] = await readExceptionalPayments(tx, { ids: [String(state.payment_id)] });
  const payer_name = receipt?.payer_name ?? undefined;
  const partners = [...new Set(documents.map(({ partner_id }) => partner_id))];
  const possible = items.payersOfAll(partners);
  const mentions = items.namesIn({ payer_name, text: receipt?.text ?? '' });
  const related = mentions.flatMap(({ ids }) => possible.find((id) => ids.has(id)) ?? []);
  // A company with the payer's name is the payer, even if it does not pay for these partners, because finance may apply
  // any payment to any invoice.
  const named = [...new Set(items.namesIn({ payer_name, text: '' }).flatMap(({ ids }) => [...ids]))];
  const payer = related[0] ?? (named.length === 1 ? named[0] : possible[0]);
  if (payer !== undefined) return payer;
  const reason = `its payer is not known, and no partner pays for both ${partners.slice(0, 2).join(' and ')}`;
  const remedy = toDo('Name the payer', 'payment.assign', { paymentId: String(state.payment_id) });
  throw notApplicable(state, documents.at(-1) as PayableRow, reason, [remedy]);
}

/** Applies a part of a payment. A part for another partner's document is assigned to that partner. */
export async function applyTo(
  tx: Transaction,
  context: PaymentContext,
  settings: Settings,
  state: PaymentState,
  document: PayableRow,
  { amount, whole, owed, fee, evidence, appliedOn, confidence = '1' }: Application,
) {
  const usedUp = amount.equals(money(state.unapplied, state));
  const balance = money(document.balance, state);
  const kept = fee ?? Amount.zero(state.currency);
  const left = balance.minus(amount).minus(kept);
  const isSmall = whole && usedUp && isSmallDifference(settings.small_difference, left, owed ?? balance);
  const charges = isSmall ? kept.plus(left) : kept;
  await insertApplications(tx, context, [
    {
      payment_id: state.payment_id,
      document_id: document.document_id,
      amount: amount.toString(),
      applied_on: appliedOn,
      confidence,
      evidence,
      small_difference: charges.isZero() ? undefined : charges.toString(),
    },
  ]);
}

const payerIsOpen = (state: PaymentState) =>
  state.payer_at_receipt === null && !state.payer_named && isZero(state.applied);

export const money = (text: string, { currency }: { currency: string }) => Amount.of(text, currency);

export const smaller = (one: Amount, other: Amount) => (one.minus(other).isPositive() ? other : one);

export const remaining = (state: PaymentState) => money(state.amount, state).minus(money(state.reversed, state));

export const applicable = (state: PaymentState, document: PayableRow) =>
  smaller(money(state.unapplied, state), money(document.balance, state));

export async function paymentState(tx: Transaction, paymentId: number): Promise<PaymentState> {
  const state = await readState(tx, paymentId);
  if (state === undefined) throw refuse('payment_unknown', { payment_id: paymentId });
  return state;
}

async function payableFor(tx: Transaction, state: PaymentState, number: string) {
  const document = await payableNumbered(tx, number);
  const reason = whyNotPayable(state, document);
  if (reason !== undefined) throw notApplicable(state, document, reason);
  return document;
}

const notApplicable = (
  { payment_id }: PaymentState,
  { number }: PayableRow,
  reason: string,
  remedies?: readonly Remedy[],
) => refuse('payment_not_applicable', { payment_id, number, reason, ...(remedies && { remedies }) });

export function whyNotPayable(state: PaymentState, document: PayableRow) {
  const reason = whyTakesNoPayment(document);
  if (reason !== undefined) return reason;
  if (document.currency !== state.currency)
    return `it is in ${document.currency}, and the payment in ${state.currency}`;
  if (isZero(state.unapplied)) return 'no part of the payment is unapplied';
  return undefined;
}

export function whyTakesNoPayment(document: PayableRow) {
  if (document.document === 'credit_note') return 'it is a credit note: money is owed to the partner';
  if (document.document === 'statement') return 'it is a statement: the processor routes its payments';
  if (document.status === 'void')
    return `it is void${document.replaced_by === null ? '' : `; ${document.replaced_by} replaces it`}`;
  if (document.status === 'paid') return `it ${howSettled(document)}`;
  return undefined;
}

function amountToApply(state: PaymentState, document: PayableRow, given: string | undefined) {
  if (given === undefined) return applicable(state, document);
  const amount = positiveAmount(given, state.currency);
  for (const [text, what] of [
    [state.unapplied, 'that is unapplied'],
    [document.balance, `that is open on ${document.number}`],
  ] as const) {
    const most = money(text, state);
    if (amount.minus(most).isPositive()) {
      throw refuse('payment_amount_too_large', { amount: amount.forPeople(), most: most.forPeople(), what });
    }
  }
  return amount;
}

export async function unapplyPayment(
  tx: Transaction,
  caller: Caller,
  request: { paymentId: number; reason?: string; number?: string | undefined },
) {
  await lockPayments(tx);
  const { paymentId, number, reason } = request;
  await paymentState(tx, paymentId);
  const live = (await readLiveApplications(tx, { paymentIds: [paymentId] })).filter(
    (each) => number === undefined || each.number === number,
  );
  if (live.length === 0) {
    throw refuse('payment_nothing_applied', { payment_id: paymentId, ...(number !== undefined && { number }) });
  }
  const context = await openPaymentContext(tx, caller, {
    action: 'payment.unapply',
    subject: String(paymentId),
    details: { numbers: live.map((each) => each.number), amounts: live.map((each) => each.amount), reason },
  });
  const unapplied_on = context.today;
  await insertUnapplications(
    tx,
    context,
    live.map(({ payment_application_id }) => ({ payment_application_id, unapplied_on })),
  );
  await requestLinkChecks(
    tx,
    live.map((each) => each.document_id),
  );
}
