/**
 * Reads Stripe's events as facts about payments. Events are repeated and arrive in any order, so each is read for the
 * facts in its own object: paid, refunded in total, a failed refund, disputed. Only a checkout session proves which
 * session and payment link were paid. The metadata of payments and charges proves nothing, because platforms can write
 * metadata. Pure.
 */
import { z } from 'zod';
import { Amount, isCurrency, minorDigits } from '#money';
import { EventReading, PaymentFact, SessionProgress } from '#processors/processor';
import { fromSmallestUnit } from './splits/smallest-unit.ts';

const text = z.string().min(1);
const id = z.union([text, z.object({ id: text }).transform((object) => object.id)]);
const whole = z.string().regex(/^\d{1,15}$/);
const metadata = z.record(z.string(), z.string()).nullish();

/** Only payments that a platform routes have these fields. */
const routing = {
  source_transfer: id.nullish(),
  transfer_data: z.record(z.string(), z.unknown()).nullish(),
  on_behalf_of: id.nullish(),
  application_fee: id.nullish(),
  application_fee_amount: whole.nullish(),
};

/** Numbers are texts, because the payload is read without binary floating point (src/json.ts). */
const sessionSchema = z.object({
  id: text,
  payment_status: z.enum(['paid', 'unpaid', 'no_payment_required']),
  payment_intent: id.nullish(),
  payment_link: id.nullish(),
  amount_total: whole.nullish(),
  currency: text.nullish(),
  metadata,
  customer_details: z.object({ name: z.string().nullish() }).nullish(),
});
const intentSchema = z.object({
  id: text,
  status: text,
  amount_received: whole.nullish(),
  currency: text,
  latest_charge: id.nullish(),
  metadata,
  ...routing,
});
const chargeSchema = z.object({
  id: text,
  paid: z.boolean(),
  status: text,
  amount: whole,
  amount_captured: whole.nullish(),
  amount_refunded: whole,
  currency: text,
  payment_intent: id.nullish(),
  billing_details: z.object({ name: z.string().nullish() }).nullish(),
  metadata,
  ...routing,
});
const disputeSchema = z.object({
  id: text,
  charge: id.nullish(),
  payment_intent: id.nullish(),
  amount: whole,
  currency: text,
  reason: text,
  status: text,
});

const refundSchema = z.object({
  id: text,
  charge: id.nullish(),
  payment_intent: id.nullish(),
  amount: whole,
  currency: text,
  created: z.string().regex(/^\d{1,12}$/),
  status: text.nullish(),
  source_transfer_reversal: id.nullish(),
  transfer_reversal: id.nullish(),
});

export function amountOfUnits(units: string, currency: string) {
  const code = currency.toUpperCase();
  const written = isCurrency(code) ? fromSmallestUnit(units, code) : undefined;
  if (written === undefined) return undefined;
  const exact = written.includes('.') ? written.replace(/0+$/, '').replace(/\.$/, '') : written;
  const decimals = exact.split('.')[1]?.length ?? 0;
  return decimals > (minorDigits(code) as number) ? undefined : Amount.of(exact, code);
}

const idsOf = (...ids: readonly (string | null | undefined)[]) => ids.filter((each) => typeof each === 'string');

const UNREADABLE = 'its object does not have the known form';

/** Event types that report no received money, and types that repeat a different type. */
const TOLD_ELSEWHERE: Readonly<Record<string, string>> = {
  'payment_intent.created': 'nothing is paid yet',
  'payment_intent.processing': 'nothing is paid yet',
  'payment_intent.requires_action': 'nothing is paid yet',
  'payment_intent.partially_funded': 'nothing is paid yet',
  'payment_intent.amount_capturable_updated': 'nothing is paid yet',
  'payment_intent.payment_failed': 'no payment was made',
  'payment_intent.canceled': 'no payment was made',
  'charge.pending': 'nothing is paid yet',
  'charge.failed': 'no payment was made',
  'charge.expired': 'no payment was made',
  'charge.captured': 'reported by payment_intent.succeeded',
  'refund.created': 'reported by charge.refunded',
};

function progressOf(object: unknown, state: SessionProgress['state']): { session?: SessionProgress } {
  const parsed = z.object({ id: text, payment_link: id.nullish() }).safeParse(object);
  if (!parsed.success) return {};
  return { session: { id: parsed.data.id, link: parsed.data.payment_link ?? undefined, state } };
}

const DISPUTE_STATES: Readonly<Record<string, 'inquiry' | 'open' | 'won' | 'lost' | 'closed'>> = {
  warning_needs_response: 'inquiry',
  warning_under_review: 'inquiry',
  warning_closed: 'closed',
  needs_response: 'open',
  under_review: 'open',
  // The dispute was lost but is appealed. The money stays withdrawn.
  appeal_needs_response: 'open',
  appeal_under_review: 'open',
  prevented: 'closed',
  won: 'won',
  lost: 'lost',
};

type EventReader = (object: unknown) => EventReading;

/** Reads objects of one form. An object of another form needs a person. */
const reader =
  <Schema extends z.ZodType>(schema: Schema, read: (data: z.output<Schema>) => EventReading): EventReader =>
  (object) => {
    const parsed = schema.safeParse(object);
    return parsed.success ? read(parsed.data) : { manual_review: UNREADABLE };
  };

const session = reader(sessionSchema, (data) => {
  // When the session of an ACH debit is complete, the debit is only ordered. The payment of the session is reported
  // days later.
  if (data.payment_status !== 'paid') {
    return { nothing: `the session is ${data.payment_status}, not paid`, ...progressOf(data, 'ordered') };
  }
  const amount = amountOfUnits(data.amount_total ?? '0', data.currency ?? '');
  if (amount === undefined || !amount.isPositive()) return { manual_review: 'it states paid, but no amount' };
  const ids = idsOf(data.payment_intent, data.id);
  return { facts: [received(ids, amount, { ...data, session: data.id }, data.customer_details?.name)] };
});

const intent = reader(intentSchema, (data) => {
  if (data.status !== 'succeeded') return { manual_review: UNREADABLE };
  const elsewhere = routed(data);
  if (elsewhere !== undefined) return elsewhere;
  const amount = amountOfUnits(data.amount_received ?? '0', data.currency);
  if (amount === undefined || !amount.isPositive()) return { manual_review: 'it states succeeded, but no amount' };
  const ids = idsOf(data.id, data.latest_charge);
  return { facts: [received(ids, amount, data, undefined)] };
});

const charge = reader(chargeSchema, (data) => {
  const elsewhere = routed(data);
  if (elsewhere !== undefined) return elsewhere;
  if (!data.paid || data.status !== 'succeeded') return { nothing: `the charge is ${data.status}` };
  const ids = idsOf(data.payment_intent, data.id);
  const amount = amountOfUnits(data.amount_captured ?? data.amount, data.currency);
  const total = amountOfUnits(data.amount_refunded, data.currency);
  if (amount === undefined || total === undefined || !amount.isPositive()) return { manual_review: UNREADABLE };
  const paid = received(ids, amount, data, data.billing_details?.name);
  return { facts: [paid, { kind: 'refunded', ids, total }] };
});

/** The charge has the refunded total. Only the refund object shows that a refund failed. */
const refund = reader(refundSchema, (data) => {
  const share = data.source_transfer_reversal ?? data.transfer_reversal;
  if (share != null) return { nothing: `reverses a transfer, ${share}: the balance transactions report shares` };
  switch (data.status) {
    case 'pending':
    case 'requires_action':
    case 'succeeded':
      return { nothing: `the refund is ${data.status}: charge.refunded reports it` };
    case 'failed':
    case 'canceled':
      break;
    default:
      return { manual_review: `a refund that is ${data.status ?? 'without a status'} is not known` };
  }
  const ids = idsOf(data.payment_intent, data.charge);
  const amount = amountOfUnits(data.amount, data.currency);
  if (amount === undefined || !amount.isPositive() || ids.length === 0) return { manual_review: UNREADABLE };
  const made_at = new Date(Number(data.created) * 1000).toISOString();
  return { facts: [{ kind: 'refund_undone', ids, refund: data.id, amount, made_at }] };
});

const dispute = reader(disputeSchema, (data) => {
  const state = DISPUTE_STATES[data.status];
  const amount = amountOfUnits(data.amount, data.currency);
  const ids = idsOf(data.payment_intent, data.charge);
  if (state === undefined) return { manual_review: `a dispute that is ${data.status} is not known` };
  if (amount === undefined || !amount.isPositive() || ids.length === 0) return { manual_review: UNREADABLE };
  return { facts: [{ kind: 'disputed', ids, dispute: data.id, amount, reason: data.reason, state }] };
});

/** The event types that the endpoint of our own account must send (docs/settings.md). */
export const NEEDED: ReadonlyMap<string, EventReader> = new Map([
  ['checkout.session.completed', session],
  ['checkout.session.async_payment_succeeded', session],
  ['checkout.session.async_payment_failed', ended('failed', 'no payment was made')],
  ['checkout.session.expired', ended('expired', 'the session ended without a payment')],
  ['charge.refunded', charge],
  ['refund.failed', refund],
  ['refund.updated', refund],
  ['charge.dispute.created', dispute],
  ['charge.dispute.updated', dispute],
  ['charge.dispute.closed', dispute],
]);

/** Optional event types: each repeats an event in NEEDED. */
const REPEATING: ReadonlyMap<string, EventReader> = new Map([
  ['payment_intent.succeeded', intent],
  ['charge.succeeded', charge],
  ['charge.updated', charge],
  ['charge.refund.updated', refund],
  ['charge.dispute.funds_withdrawn', dispute],
  ['charge.dispute.funds_reinstated', dispute],
]);

export function readEvent(type: string, object: unknown) {
  const known = TOLD_ELSEWHERE[type];
  if (known !== undefined) return { nothing: known };
  const read = NEEDED.get(type) ?? REPEATING.get(type);
  if (read !== undefined) return read(object);
  if (/^(checkout\.session|payment_intent|charge|refund)\./.test(type))
    return { manual_review: `events of type ${type} are not known` };
  return { nothing: `events of type ${type} are not used` };
}

function ended(state: SessionProgress['state'], nothing: string): EventReader {
  return (object) => ({ nothing, ...progressOf(object, state) });
}

/**
 * A payment that a platform routes is a share of a partner program. Reconciliation books the share from the balance
 * transactions. A share pays no invoice, even if its metadata names an invoice.
 */
function routed(data: z.output<z.ZodObject<typeof routing>> & { metadata?: Metadata }): EventReading | undefined {
  const { source_transfer, transfer_data, on_behalf_of, application_fee, application_fee_amount } = data;
  const by =
    source_transfer != null
      ? `transfer ${source_transfer}`
      : [transfer_data, on_behalf_of, application_fee, application_fee_amount].some((each) => each != null)
        ? 'a platform'
        : undefined;
  if (by === undefined) return undefined;
  const invoice = data.metadata?.['invoice'];
  if (!invoice) return { nothing: `routed by ${by}: a share, which the balance transactions report` };
  const named = /^[\w-]{1,40}$/.test(invoice) ? invoice : 'a document';
  return { manual_review: `routed by ${by}, and its metadata names ${named}: a share pays no invoice` };
}

type Metadata = Readonly<Record<string, string>> | null | undefined;

type PaymentOrigin = Readonly<{
  metadata?: Metadata;
  payment_link?: string | null | undefined;
  session?: string;
}>;

function received(
  ids: readonly string[],
  amount: Amount,
  { metadata: given, payment_link: link, session }: PaymentOrigin,
  name: string | null | undefined,
): PaymentFact {
  return {
    kind: 'received',
    ids,
    amount,
    link: link ?? undefined,
    session,
    checkout: given?.['checkout'] || undefined,
    invoice: given?.['invoice'] || undefined,
    installation: given?.['installation'] || undefined,
    payer_name: name ?? undefined,
  };
}

const PAYMENT_ID = /\b(?:pi|ch|py|cs)_(?:test_|live_)?[A-Za-z0-9]{6,}\b/g;

export const paymentIds = (written: string): string[] => written.match(PAYMENT_ID) ?? [];
