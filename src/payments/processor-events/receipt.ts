/**
 * A payment that the processor received: recorded once, and applied to the document of the payment link that was paid.
 * Only the processor's word for a link that we made applies it, and only in the link's amount and currency. The document
 * that metadata names is a hint: platforms and payers can write metadata.
 */
import { Amount, isZero } from '../../money.ts';
import type { PaymentFact } from '../../processors/processor.ts';
import { PROCESSOR } from '../../processors/processors.ts';
import { applicable, applyTo, money, whyNotPayable, whyTakesNoPayment } from '../apply.ts';
import { enqueueDeliveries, type PaymentContext } from '../context.ts';
import { identify } from '../duplicates.ts';
import { CONFIDENCE } from '../evidence.ts';
import { processorIdentity } from '../identities.ts';
import { insertPaymentSources, insertPayments, insertSuggestions } from '../insert.sql.ts';
import { type PayableRow, readPayable } from '../open-items.sql.ts';
import { type PaymentState, readCandidates, readState } from '../queries.ts';
import { type EventContext, type EventOutcome, paymentOf, type Waits } from './event.ts';
import { readOwnLink, wasApplied } from './events.sql.ts';

type Receipt = Extract<PaymentFact, { kind: 'received' }>;

/**
 * For how long a payment that only its metadata ascribes to a document waits for the event that names its link. The
 * processor sends both within seconds.
 */
const PROOF_WITHIN_HOURS = 24;

/** What a payment is for: known from the link that was paid, or only told by the metadata. */
interface Purpose {
  readonly number: string;
  /** The processor's id of our link that was paid; undefined: nothing proves it. */
  readonly paidLink: string | undefined;
  /** Why it is not applied by itself. */
  readonly doubt: string;
}

export async function recordReceipt(context: EventContext, receipt: Receipt): Promise<EventOutcome | Waits> {
  const { installation } = receipt;
  const purpose = await purposeOf(context, receipt);
  if (purpose?.paidLink === undefined && installation !== undefined && installation !== context.installation) {
    return { outcome: 'nothing', payment_id: null, reason: `of another installation, ${installation}` };
  }
  const known = (await paymentOf(context, receipt.ids)) ?? (await reportedElsewhere(context, receipt));
  if (
    known !== undefined &&
    (known.currency !== receipt.amount.currency || !money(known.amount, known).equals(receipt.amount))
  ) {
    const recorded = money(known.amount, known).forPeople();
    const reason = `${receipt.ids[0]} is payment ${known.payment_id} of ${recorded}, but the event says ${receipt.amount.forPeople()}`;
    return { outcome: 'manual_review', payment_id: known.payment_id, reason };
  }
  const document = purpose && (await readPayable(context.tx, purpose.number));
  const isDoubtful = document !== undefined && purpose?.paidLink === undefined;
  if (isDoubtful && known === undefined && receipt.link === undefined && isFresh(context)) {
    return { waits: `for the event that says which payment link was paid: ${purpose?.doubt}` };
  }
  return record(context, receipt, { known, purpose, document });
}

const isFresh = ({ caller, receivedAt }: EventContext): boolean =>
  caller.environment.now().diff(receivedAt).as('hours') < PROOF_WITHIN_HOURS;

/** What a payment is for; undefined where nothing says so. */
async function purposeOf(context: EventContext, receipt: Receipt): Promise<Purpose | undefined> {
  const { link, amount, invoice, installation = context.installation } = receipt;
  const own = link === undefined ? undefined : await readOwnLink(context.tx, PROCESSOR.name, link);
  if (own !== undefined) {
    const asked = Amount.of(own.amount, own.currency);
    const isWhole = asked.currency === amount.currency && asked.equals(amount);
    const doubt = isWhole
      ? 'its metadata names another installation'
      : `the link of ${own.number} asks for ${asked.forPeople()}`;
    return { number: own.number, paidLink: isWhole && installation === context.installation ? link : undefined, doubt };
  }
  if (invoice === undefined) return undefined;
  const doubt =
    link === undefined
      ? `only its metadata names ${invoice}`
      : `its metadata names ${invoice}, but its link is not ours`;
  return { number: invoice, paidLink: undefined, doubt };
}

interface Told {
  readonly known: PaymentState | undefined;
  readonly purpose: Purpose | undefined;
  readonly document: PayableRow | undefined;
}

async function record(
  context: EventContext,
  receipt: Receipt,
  { known, purpose, document }: Told,
): Promise<EventOutcome> {
  const payments = await context.open();
  const paidLink = purpose?.paidLink;
  const payer = paidLink === undefined ? null : (document?.partner_id ?? null);
  const paymentId = known?.payment_id ?? (await insertReceipt(payments, context, receipt, payer));
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
    document !== undefined &&
    paidLink !== undefined &&
    (await applyOnce(payments, context, { paymentId, number: document.number, paidLink }));
  if (known !== undefined && !isApplied) {
    return { outcome: 'nothing', payment_id: paymentId, reason: `payment ${paymentId} is recorded already` };
  }
  if (document !== undefined && purpose !== undefined && paidLink === undefined) {
    await suggestHint(payments, { paymentId, document, doubt: purpose.doubt });
  }
  const result = isApplied
    ? `applied to ${document.number}`
    : document === undefined
      ? 'the event names no document'
      : paidLink === undefined
        ? `not applied to ${document.number}: ${purpose?.doubt}`
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
  { paymentId, number, paidLink }: { paymentId: number; number: string; paidLink: string },
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
      reference: { number, field: 'payment_link', found: paidLink },
      why: `paid by the payment link of ${number}`,
    },
    appliedOn: on,
  });
  await enqueueDeliveries(payments, [document.document_id]);
  return true;
}

/** What only metadata says is for a person to confirm. */
async function suggestHint(
  payments: PaymentContext,
  { paymentId, document, doubt }: { paymentId: number; document: PayableRow; doubt: string },
): Promise<void> {
  const state = await readState(payments.tx, paymentId);
  if (state === undefined || isZero(state.unapplied) || whyNotPayable(state, document) !== undefined) return;
  await insertSuggestions(payments, [
    {
      payment_id: paymentId,
      document_id: document.document_id,
      amount: applicable(state, document).toString(),
      confidence: CONFIDENCE.told_by_metadata,
      evidence: { why: `${doubt}: find out who paid before you apply it` },
    },
  ]);
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
