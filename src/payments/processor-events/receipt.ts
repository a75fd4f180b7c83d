/**
 * Records a payment that the processor received, once. The payment is applied to the document of its payment link, or
 * to the documents of its session. The processor must state that one of our links or sessions was paid, in the currency
 * and amount of the link or session. Metadata is only a hint, because platforms and payers can write metadata.
 */
import { Transaction } from '#database/transaction';
import { insertEnding } from '#delivery/checkouts/checkouts.sql';
import { Amount, isZero } from '#money';
import { applicable, applyTo, assumePayer, money, smaller, whyNotPayable, whyTakesNoPayment } from '#payments/apply';
import { PaymentContext, requestLinkChecks } from '#payments/context';
import { identify } from '#payments/duplicates';
import { CONFIDENCE } from '#payments/evidence';
import { processorIdentity } from '#payments/identities';
import { insertPaymentSources, insertPayments, insertSuggestions } from '#payments/insert.sql';
import { PayableRow, readPayable } from '#payments/open-items.sql';
import { PaymentState, readCandidates, readState } from '#payments/payments.sql';
import { PaymentFact } from '#processors/processor';
import { PROCESSOR } from '#processors/processors';
import { EventContext, EventOutcome, PendingEvent } from './event.ts';
import {
  insertLinkOutcome,
  OwnCheckout,
  OwnLink,
  paymentOf,
  readOwnCheckout,
  readOwnLink,
  wasApplied,
} from './events.sql.ts';

type Receipt = Extract<PaymentFact, { kind: 'received' }>;

/**
 * A payment whose document is named only by metadata waits this long for the event that names its link. The processor
 * sends both events within seconds.
 */
const PROOF_WITHIN_HOURS = 24;

/**
 * The documents that a payment is for. Either the paid link or session proves the documents, or only metadata names the
 * documents.
 */
type Purpose = Readonly<{
  parts: readonly Part[];
  /** Our payment link or session that was paid. Undefined if nothing proves the payment of a link or session. */
  paid: PaidObject | undefined;
  /** Whether our link or session was paid, so that no other event will name the purpose. */
  isOurs: boolean;
  doubt: string;
}>;

/** A document and the part of the payment for it. The default is as much as the document accepts. */
type Part = Readonly<{
  number: string;
  amount?: Amount;
}>;

type PaidObject = Readonly<{
  field: 'payment_link' | 'checkout_session';
  found: string;
  checkoutId?: number;
  link?: OwnLink;
}>;

export async function recordReceipt(
  tx: Transaction,
  context: EventContext,
  receipt: Receipt,
): Promise<EventOutcome | PendingEvent> {
  const { installation } = receipt;
  const purpose = await purposeOf(tx, context, receipt);
  if (purpose?.paid === undefined && installation !== undefined && installation !== context.installation) {
    return { outcome: 'nothing', payment_id: null, reason: `it belongs to another installation, ${installation}` };
  }
  const known = (await paymentOf(tx, context, receipt.ids)) ?? (await reportedElsewhere(tx, context, receipt));
  if (
    known !== undefined &&
    (known.currency !== receipt.amount.currency || !money(known.amount, known).equals(receipt.amount))
  ) {
    const recorded = money(known.amount, known).forPeople();
    const reason = `${receipt.ids[0]} is payment ${known.payment_id} of ${recorded}, but the event states ${receipt.amount.forPeople()}`;
    return { outcome: 'manual_review', payment_id: known.payment_id, reason };
  }
  const documents: PayableRow[] = [];
  for (const { number } of purpose?.parts ?? []) {
    const document = await readPayable(tx, { number });
    if (document !== undefined) documents.push(document);
  }
  const isDoubtful = documents.length > 0 && purpose?.paid === undefined;
  const isTold = purpose?.isOurs || receipt.link !== undefined;
  if (isDoubtful && known === undefined && !isTold && isFresh(context)) {
    const what = receipt.checkout === undefined ? 'payment link' : 'session';
    return { waits: `for the event that names the ${what} that was paid: ${purpose?.doubt}` };
  }
  return record(tx, context, receipt, { known, purpose, documents });
}

const isFresh = ({ caller, receivedAt }: EventContext) =>
  caller.environment.now().diff(receivedAt).as('hours') < PROOF_WITHIN_HOURS;

async function purposeOf(tx: Transaction, context: EventContext, receipt: Receipt): Promise<Purpose | undefined> {
  const { link, invoice } = receipt;
  const own = link === undefined ? undefined : await readOwnLink(tx, { provider: PROCESSOR.name, id: link });
  if (own !== undefined && link !== undefined) {
    const paid: PaidObject = { field: 'payment_link', found: link, link: own };
    return proven(context, receipt, own, { paid, parts: [{ number: own.number }], what: `the link of ${own.number}` });
  }
  const checkout = await checkoutOf(tx, context, receipt);
  if (checkout !== undefined) return checkout;
  if (invoice === undefined) return undefined;
  const doubt =
    link === undefined
      ? `only its metadata names ${invoice}`
      : `its metadata names ${invoice}, but its link is not ours`;
  return { parts: [{ number: invoice }], paid: undefined, isOurs: false, doubt };
}

/**
 * Returns the purpose of a payment by a session for several invoices. If the session is not ours, only metadata names
 * the purpose.
 */
async function checkoutOf(tx: Transaction, context: EventContext, receipt: Receipt): Promise<Purpose | undefined> {
  const { session, checkout: reference } = receipt;
  const read = (which: { session?: string; reference?: string }) => readOwnCheckout(tx, PROCESSOR.name, which);
  const partsOf = ({ invoices, currency }: OwnCheckout) =>
    invoices.map(({ number, amount }) => ({ number, amount: Amount.of(amount, currency) }));
  const own = session === undefined ? undefined : await read({ session });
  if (own !== undefined && session !== undefined) {
    const paid: PaidObject = { field: 'checkout_session', found: session, checkoutId: own.checkout_id };
    const what = `the session of ${own.invoices.map(({ number }) => number).join(', ')}`;
    return proven(context, receipt, own, { paid, parts: partsOf(own), what });
  }
  const named = reference === undefined ? undefined : await read({ reference });
  if (named === undefined) return undefined;
  const doubt =
    session === undefined
      ? 'only its metadata names a payment of several invoices'
      : 'its metadata names a payment of several invoices, but its session is not ours';
  return { parts: partsOf(named), paid: undefined, isOurs: false, doubt };
}

/** Our link or session proves the purpose of a payment if amount and installation match. */
function proven(
  context: EventContext,
  { amount, installation = context.installation }: Receipt,
  own: Readonly<{ amount: string; currency: string }>,
  { paid, parts, what }: { paid: PaidObject; parts: readonly Part[]; what: string },
): Purpose {
  const asked = Amount.of(own.amount, own.currency);
  const isWhole = asked.currency === amount.currency && asked.equals(amount);
  const doubt = isWhole ? 'its metadata names another installation' : `${what} asks for ${asked.forPeople()}`;
  const isPaid = isWhole && installation === context.installation;
  return { parts, paid: isPaid ? paid : undefined, isOurs: true, doubt };
}

type ReceiptFacts = Readonly<{
  known: PaymentState | undefined;
  purpose: Purpose | undefined;
  documents: readonly PayableRow[];
}>;

async function record(
  tx: Transaction,
  context: EventContext,
  receipt: Receipt,
  { known, purpose, documents }: ReceiptFacts,
): Promise<EventOutcome> {
  const payments = await context.open();
  const paid = purpose?.paid;
  const payer = paid === undefined ? null : (documents[0]?.partner_id ?? null);
  const paymentId = known?.payment_id ?? (await insertReceipt(tx, payments, context, receipt, payer));
  await insertPaymentSources(
    tx,
    payments,
    receipt.ids.map((id) => ({
      identity: processorIdentity(context.account, id),
      payment_id: paymentId,
      source: 'processor' as const,
      reference: id,
    })),
  );
  const applied =
    purpose === undefined || paid === undefined
      ? []
      : await applyOnce(tx, payments, context, { paymentId, parts: purpose.parts, paid });
  if (paid?.checkoutId !== undefined) {
    await insertEnding(tx, { checkoutId: paid.checkoutId, why: 'paid', now: payments.now });
  }
  if (paid?.link !== undefined) await insertLinkOutcome(tx, { ...payments, ...paid.link, outcome: 'paid' });
  if (known !== undefined && applied.length === 0) {
    return { outcome: 'nothing', payment_id: paymentId, reason: `payment ${paymentId} is already recorded` };
  }
  if (purpose !== undefined && paid === undefined) await suggestHints(tx, payments, paymentId, purpose);
  return {
    outcome: 'effect',
    payment_id: paymentId,
    reason: `payment ${paymentId} of ${receipt.amount.forPeople()}: ${resultOf(purpose, documents, applied)}`,
  };
}

function resultOf(purpose: Purpose | undefined, documents: readonly PayableRow[], applied: readonly string[]) {
  if (purpose === undefined || documents.length === 0) return 'the event names no document';
  const numbers = documents.map(({ number }) => number);
  if (purpose.paid === undefined) return `not applied to ${numbers.join(', ')}: ${purpose.doubt}`;
  const others = numbers.filter((number) => !applied.includes(number));
  const refused = `${others.join(', ')} ${others.length === 1 ? 'accepts' : 'accept'} no more payments`;
  if (applied.length === 0) return refused;
  return `applied to ${applied.join(', ')}${others.length === 0 ? '' : `; ${refused}`}`;
}

async function reportedElsewhere(tx: Transaction, { on }: EventContext, { amount, ids }: Receipt) {
  const candidates = await readCandidates(tx, {
    money: [{ currency: amount.currency, amount: amount.toString() }],
    references: [],
  });
  const reported = { source: 'processor', amount, on, references: ids } as const;
  const identity = identify({ ...reported, documents: [], partners: [], partnersByName: [] }, candidates);
  return identity.verdict === 'same' ? readState(tx, identity.of.payment.payment_id) : undefined;
}

async function insertReceipt(
  tx: Transaction,
  payments: PaymentContext,
  { account, on }: EventContext,
  { ids, amount, payer_name }: Receipt,
  partnerId: string | null,
) {
  const reference = ids[0] as string;
  const identity = processorIdentity(account, reference);
  const inserted = await insertPayments(tx, payments, [
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
 * Applies a payment to the documents of its link or session, unless the payment was already applied before. Each
 * document gets its recorded amount, but no more than it accepts. The excess is unapplied cash. If a document has been
 * replaced, the replacement is suggested. Returns the numbers of the documents to which the payment was applied.
 */
async function applyOnce(
  tx: Transaction,
  payments: PaymentContext,
  { caller, on }: EventContext,
  { paymentId, parts, paid }: { paymentId: number; parts: readonly Part[]; paid: PaidObject },
) {
  if (await wasApplied(tx, { paymentId })) return [];
  const { field, found } = paid;
  const applied: PayableRow[] = [];
  for (const part of parts) {
    const { number } = part;
    const state = await readState(tx, paymentId);
    const document = await readPayable(tx, { number });
    // A payment that was refunded before it was applied pays nothing.
    if (state === undefined || document === undefined || isZero(state.unapplied)) continue;
    if (whyNotPayable(state, document) !== undefined) {
      await suggestReplacement(tx, payments, state, part, document.replaced_by);
      continue;
    }
    await assumePayer(tx, payments, state, [document]);
    await applyTo(tx, payments, caller.settings, state, document, {
      amount: amountFor(state, document, part),
      // A small difference is written to bank charges only if the payment is for one document.
      whole: parts.length === 1,
      evidence: {
        rule: 'processor',
        reference: { number, field, found },
        why: field === 'payment_link' ? `paid by the payment link of ${number}` : `paid together with ${others(parts)}`,
      },
      appliedOn: on,
    });
    applied.push(document);
  }
  await requestLinkChecks(
    tx,
    applied.map(({ document_id }) => document_id),
  );
  return applied.map(({ number }) => number);
}

const others = (parts: readonly Part[]) =>
  parts.length === 1 ? 'nothing else' : `${parts.length - 1} other ${parts.length === 2 ? 'invoice' : 'invoices'}`;

/** The part is at most the recorded amount, and at most the amount that the document accepts. */
function amountFor(state: PaymentState, document: PayableRow, { amount }: Part) {
  const most = applicable(state, document);
  return amount === undefined ? most : smaller(amount, most);
}

/** Suggests documents that only metadata names. Finance must confirm the suggestions. */
async function suggestHints(tx: Transaction, payments: PaymentContext, paymentId: number, { parts, doubt }: Purpose) {
  for (const part of parts) {
    const state = await readState(tx, paymentId);
    const document = await readPayable(tx, { number: part.number });
    if (state === undefined || document === undefined || whyNotPayable(state, document) !== undefined) continue;
    await insertSuggestions(tx, payments, [
      {
        payment_id: paymentId,
        document_id: document.document_id,
        amount: amountFor(state, document, part).toString(),
        confidence: CONFIDENCE.told_by_metadata,
        evidence: { why: `${doubt}: find out who paid before you apply it` },
      },
    ]);
  }
}

async function suggestReplacement(
  tx: Transaction,
  payments: PaymentContext,
  state: PaymentState,
  { number, amount }: Part,
  replacedBy: string | null,
) {
  const successor = replacedBy === null ? undefined : await readPayable(tx, { number: replacedBy });
  if (successor === undefined || whyTakesNoPayment(successor) !== undefined) return;
  const what =
    amount === undefined ? `the link of ${number} was paid` : `${number} was paid together with other invoices`;
  await insertSuggestions(tx, payments, [
    {
      payment_id: state.payment_id,
      document_id: successor.document_id,
      amount: smaller(amount ?? money(state.unapplied, state), money(state.unapplied, state)).toString(),
      confidence: '0.80',
      evidence: { why: `${what}, and ${successor.number} replaces it` },
    },
  ]);
}
