/**
 * Records a payment manually. If the payment is already recorded, the entry becomes a further source record of that
 * payment. A possible duplicate is recorded and suggested (rules: duplicates.ts). Refusals: amount_invalid,
 * argument_invalid, currency_unknown, date_in_future, partner_unknown, document_unknown.
 */

import { todayOf } from '#config/today';
import { Transaction } from '#database/transaction';
import { howSettled } from '#documents/correctable';
import { positiveAmount } from '#errors/amounts';
import { refuse, refuseField } from '#errors/refusals';
import { fieldName } from '#field-names';
import { Amount } from '#money';
import { readPartners } from '#partners/partners.sql';
import { applicable, applyTo, assumePayer, money, whyNotPayable, whyTakesNoPayment } from './apply.ts';
import { normalizeReference } from './bank/statement.ts';
import { Caller, lockPayments, openPaymentContext, PaymentContext, requestLinkChecks } from './context.ts';
import { Candidate, identify, ReportedPayment } from './duplicates.ts';
import { Method } from './enums.ts';
import { CONFIDENCE } from './evidence.ts';
import { handDuplicateIdentity, handIdentity } from './identities.ts';
import { insertAssignments, insertPaymentSources, insertPayments, insertSuggestions } from './insert.sql.ts';
import { PayableRow } from './open-items.sql.ts';
import { countIdentity, readCandidates, readState } from './payments.sql.ts';
import { payableNumbered } from './read-open-items.ts';

export type RecordRequest = Readonly<{
  amount: string;
  currency: string;
  method: Method;
  receivedOn: string;
  reference: string;
  /** Our bank account that received the payment, as named in bank files. */
  account?: string | undefined;
  /** Either the document that the payment is for, or the partner that sent it. */
  number?: string | undefined;
  partnerId?: string | undefined;
}>;

export type RecordedPayment = Readonly<{
  paymentId: number;
  eventId: number;
  duplicate: boolean;
  possibleDuplicates: readonly number[];
  kept?: string;
}>;

type HandEntry = Readonly<{
  amount: Amount;
  method: Method;
  reference: string;
  account: string;
  receivedOn: string;
  partnerId: string;
  document: PayableRow | undefined;
}>;

export async function recordPayment(tx: Transaction, caller: Caller, request: RecordRequest): Promise<RecordedPayment> {
  const amount = positiveAmount(request.amount, request.currency);
  const reference = checkedReference(request.reference);
  const account = checkedAccount(request);
  const today = todayOf(caller);
  if (request.receivedOn > today) {
    throw refuse('date_in_future', { argument: fieldName('receivedOn'), value: request.receivedOn, today });
  }
  await lockPayments(tx);
  const document = request.number === undefined ? undefined : await invoiceFor(tx, request.number, amount);
  const partnerId = document?.partner_id ?? (request.partnerId as string);
  if (document === undefined && (await readPartners(tx, partnerId)).length === 0) {
    throw refuse('partner_unknown', { partner_id: partnerId });
  }
  const { method, receivedOn } = request;
  const entry: HandEntry = { amount, method, reference, account, receivedOn, partnerId, document };
  const candidates = await readCandidates(tx, {
    money: [{ currency: amount.currency, amount: amount.toString() }],
    references: [],
  });
  const identity = identify(reportedBy(entry), candidates);
  // A payment for a paid invoice becomes unapplied cash. Other documents that accept no payment are refused.
  if (identity.verdict !== 'same' && document !== undefined) refuseUnpayable(document);

  const context = await openPaymentContext(tx, caller, {
    action: 'payment.record',
    subject: request.number ?? partnerId,
    details: {
      amount: amount.toString(),
      currency: amount.currency,
      reference,
      ...(account !== '' && { account }),
      same_as: identity.verdict === 'same' ? identity.of.payment.payment_id : null,
    },
  });
  const { eventId } = context;
  if (identity.verdict === 'same') {
    const { payment } = identity.of;
    await recordDuplicate(tx, context, caller, payment, entry);
    return { paymentId: payment.payment_id, eventId, duplicate: true, possibleDuplicates: [] };
  }
  const paymentId = await recordNew(tx, context, caller, entry);
  const possible = identity.verdict === 'possible_duplicate' ? identity.of : [];
  await insertSuggestions(
    tx,
    context,
    possible.map(({ payment, evidence: why }) => ({
      payment_id: paymentId,
      same_as: payment.payment_id,
      amount: amount.toString(),
      confidence: CONFIDENCE.possible_duplicate,
      evidence: { why },
    })),
  );
  const kept = document?.status === 'paid' ? { kept: `${document.number} ${howSettled(document)}` } : {};
  const possibleDuplicates = possible.map((each) => each.payment.payment_id);
  return { paymentId, eventId, duplicate: false, possibleDuplicates, ...kept };
}

const reportedBy = ({ amount, reference, receivedOn, partnerId, document }: HandEntry): ReportedPayment => ({
  source: 'hand',
  amount,
  on: receivedOn,
  references: [reference],
  documents: document === undefined ? [] : [document.number],
  partners: [partnerId],
  partnersByName: [],
});

function checkedReference(given: string) {
  const reference = given.trim();
  if (normalizeReference(reference) === '' || reference.length > 140) {
    const reason = 'must be 1 to 140 characters long and contain a letter or digit';
    throw refuseField('reference', reference, reason);
  }
  return reference;
}

/** Returns the account without spaces, as in bank files. The text is empty if no account is given. */
function checkedAccount({ account: given, method }: RecordRequest) {
  if (given === undefined) return '';
  const account = given.replace(/\s/g, '');
  const invalid = (reason: string) => refuseField('account', given, reason);
  if (method === 'link') throw invalid('cannot receive a link payment: it arrives in a payout of the processor');
  if (!/^[A-Za-z0-9][A-Za-z0-9./-]{0,39}$/.test(account)) {
    throw invalid('must be our bank account as named in bank files: 1 to 40 letters and digits');
  }
  return account;
}

async function invoiceFor(tx: Transaction, number: string, amount: Amount) {
  const document = await payableNumbered(tx, number);
  if (document.currency !== amount.currency) {
    const reason = `is not the currency of ${number}, which is in ${document.currency}`;
    throw refuseField('currency', amount.currency, reason);
  }
  return document;
}

function refuseUnpayable(document: PayableRow) {
  const reason = whyTakesNoPayment(document);
  if (reason === undefined || (document.document === 'invoice' && document.status === 'paid')) return;
  throw refuseField(
    'number',
    document.number,
    `cannot be paid: ${reason}. Record it with ${fieldName('partnerId', document.partner_id)} instead, as unapplied cash`,
  );
}

async function recordNew(tx: Transaction, context: PaymentContext, caller: Caller, entry: HandEntry) {
  const { amount, reference, account, receivedOn, partnerId, document } = entry;
  const { currency } = amount;
  const identity = await unusedIdentity(
    tx,
    handIdentity({ partnerId, number: document?.number, currency, amount: amount.toString(), reference, receivedOn }),
  );
  const ids = await insertPayments(tx, context, [
    {
      identity,
      source: 'hand',
      partner_id: partnerId,
      currency,
      amount: amount.toString(),
      method: entry.method,
      account,
      received_on: receivedOn,
      reference,
    },
  ]);
  const paymentId = ids.get(identity) as number;
  await insertPaymentSources(tx, context, [{ identity, payment_id: paymentId, source: 'hand', reference }]);
  if (document !== undefined) await applyByHand(tx, context, caller, { paymentId, document, receivedOn });
  return paymentId;
}

/** After a reversal, an equal payment may be recorded again. A counter distinguishes its identity. */
async function unusedIdentity(tx: Transaction, identity: string) {
  const used = await countIdentity(tx, identity);
  return used === 0 ? identity : `${identity}|#${used + 1}`;
}

async function recordDuplicate(
  tx: Transaction,
  context: PaymentContext,
  caller: Caller,
  { payment_id, documents }: Candidate,
  { reference, receivedOn, partnerId, document }: HandEntry,
) {
  const identity = handDuplicateIdentity(partnerId, payment_id, reference);
  await insertPaymentSources(tx, context, [{ identity, payment_id, source: 'hand', reference }]);
  if (document !== undefined && whyTakesNoPayment(document) === undefined && documents.length === 0) {
    await applyByHand(tx, context, caller, { paymentId: payment_id, document, receivedOn });
  }
  // The entry names the payer of a payment whose payer was unknown.
  const state = await readState(tx, payment_id);
  if (state?.partner_id !== null || !money(state.unapplied, state).isPositive()) return;
  await insertAssignments(tx, context, [
    { payment_id, from_partner_id: null, partner_id: partnerId, kind: 'named', amount: state.unapplied },
  ]);
}

async function applyByHand(
  tx: Transaction,
  context: PaymentContext,
  caller: Caller,
  { paymentId, document, receivedOn }: { paymentId: number; document: PayableRow; receivedOn: string },
) {
  const state = await readState(tx, paymentId);
  if (state === undefined || whyNotPayable(state, document) !== undefined) return;
  const amount = applicable(state, document);
  const evidence = { rule: 'by_hand' as const, why: 'recorded by hand for this document' };
  await assumePayer(tx, context, state, [document]);
  await applyTo(tx, context, caller.settings, state, document, {
    amount,
    whole: true,
    evidence,
    appliedOn: receivedOn,
  });
  await requestLinkChecks(tx, [document.document_id]);
}
