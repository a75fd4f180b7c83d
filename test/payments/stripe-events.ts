/** Stripe's events as it sends them, for one payment of one link. */

export interface PaidLink {
  /** The payment link that the session names; left out: the one that `makeLinks` makes for the invoice. */
  readonly link?: string | null;
  readonly invoice?: string;
  /** In the smallest unit. */
  readonly amount: number;
  readonly currency?: string;
  readonly key?: string;
  /** All events of one payment are of one day. */
  readonly on?: string;
  /** A session over several invoices: it names no link. */
  readonly session?: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

import { amountOfUnits } from '../../src/processors/stripe/events.ts';

interface RefundTold {
  readonly status?: string;
  readonly type?: string;
  readonly made?: number;
  readonly after?: number;
}

let counter = 0;

export function event(type: string, object: object, overrides: object = {}): object {
  counter += 1;
  const created = Date.parse('2026-10-14T12:00:00Z') / 1000;
  return { id: `evt_${counter}`, object: 'event', type, created, livemode: false, data: { object }, ...overrides };
}

/**
 * Makes the links at the processor that sessions of `stripePayment` were opened by, as deliveries would have made them:
 * none for more than the invoice. Each was closed when it was used up.
 */
export async function makeLinks(
  sql: (statement: string, values?: unknown[]) => Promise<unknown>,
  events: readonly object[],
): Promise<void> {
  for (const each of events) {
    const { object } = (each as { data: { object: Record<string, unknown> } }).data;
    const { payment_link: link, metadata, amount_total, currency } = object;
    if (typeof link !== 'string' || !link.startsWith(MADE)) continue;
    const amount = amountOfUnits(String(amount_total), String(currency))?.toString();
    const invoice = (metadata as { invoice?: string }).invoice;
    await sql(
      `INSERT INTO payment_link_closings (document_id, version, why, closed_at)
       SELECT document_id, i.version, 'amount_changed', now() FROM payment_link_intents i JOIN documents USING (document_id)
       WHERE number = $1 AND NOT EXISTS (SELECT FROM payment_link_objects WHERE provider_id = $2)
         AND (document_id, i.version) NOT IN (SELECT document_id, version FROM payment_link_closings)`,
      [invoice, link],
    );
    await sql(
      `WITH made AS (
         INSERT INTO payment_link_intents (document_id, version, provider, amount, currency, request, intended_at)
         SELECT d.document_id, 1 + coalesce(max(i.version), 0), 'stripe', $1, $2, '{}', now()
         FROM documents d LEFT JOIN payment_link_intents i USING (document_id)
         WHERE d.number = $3 AND d.currency = $2 AND $1 <= d.invoice_amount AND NOT EXISTS (SELECT FROM payment_link_objects WHERE provider_id = $4)
         GROUP BY d.document_id
         RETURNING document_id, version
       ), attempt AS (
         INSERT INTO payment_link_attempts SELECT document_id, version, 1, 'key-' || $4, now() FROM made
       ), object AS (
         INSERT INTO payment_link_objects
         SELECT document_id, version, $4, 'https://buy.example/' || $4, false, now() FROM made
       )
       INSERT INTO payment_link_closings (document_id, version, why, closed_at)
       SELECT document_id, version, 'used_up', now() FROM made`,
      [amount, String(currency).toUpperCase(), invoice, link],
    );
  }
}

const MADE = 'plink_made';

/** A session over what is owed on these invoices of one partner, as its contact would have begun it; nobody paid it. */
export async function makeCheckout(
  sql: (statement: string, values?: unknown[]) => Promise<unknown>,
  numbers: readonly string[],
  session: string,
): Promise<void> {
  await sql(
    `WITH chosen AS (
       SELECT d.document_id, d.partner_id, d.currency, b.balance, row_number() OVER (ORDER BY d.document_id) AS place
       FROM documents d JOIN document_balances b USING (document_id) WHERE d.number = ANY ($1)
     ), event AS (
       INSERT INTO audit_events (occurred_at, action, subject, details, os_user, host, via)
       SELECT now(), 'checkout.open', min(partner_id), '{}', 'test', 'test', 'http' FROM chosen RETURNING event_id
     ), made AS (
       INSERT INTO checkouts (reference, partner_id, provider, currency, amount, request, idempotency_key, expires_at,
                              recorded_at, event_id)
       SELECT rpad($2, 32, 'x'), min(partner_id), 'stripe', min(currency), sum(balance), '{}', 'key-' || $2,
              now() + interval '1 hour', now(), (SELECT event_id FROM event)
       FROM chosen RETURNING checkout_id
     ), invoices AS (
       INSERT INTO checkout_invoices
       SELECT checkout_id, place, document_id, partner_id, currency, balance FROM made CROSS JOIN chosen
     ), session AS (
       INSERT INTO checkout_sessions SELECT checkout_id, $2, 'https://checkout.example/' || $2, now() FROM made
     )
     INSERT INTO checkout_endings SELECT checkout_id, 'expired', NULL, now() FROM made`,
    [numbers, session],
  );
}

export function stripePayment({
  invoice,
  amount,
  currency = 'usd',
  key = 'A1',
  on = '2026-10-14',
  link,
  session: sessionId = `cs_test_b1${key}`,
  metadata = invoice === undefined ? {} : { invoice, partner_id: 'somebody' },
}: PaidLink) {
  const created = Date.parse(`${on}T12:00:00Z`) / 1000;
  const tell = (type: string, object: object, after = 0) => event(type, object, { created: created + after });
  const ids = { intent: `pi_3Q0000${key}`, charge: `py_3Q0000${key}`, session: sessionId };
  const session = (payment_status: string) => ({
    id: ids.session,
    object: 'checkout.session',
    amount_total: amount,
    currency,
    metadata,
    payment_intent: ids.intent,
    payment_link: link === undefined ? `${MADE}${key}` : link,
    payment_status,
    customer_details: { name: 'Accounts Payable' },
  });
  const charge = (refunded: number) => ({
    id: ids.charge,
    object: 'charge',
    amount,
    amount_captured: amount,
    amount_refunded: refunded,
    currency,
    metadata,
    paid: true,
    payment_intent: ids.intent,
    status: 'succeeded',
  });
  const dispute = (status: string, disputed: number) => ({
    id: `du_1${key}`,
    object: 'dispute',
    amount: disputed,
    charge: ids.charge,
    currency,
    payment_intent: ids.intent,
    reason: 'bank_cannot_process',
    status,
  });
  return {
    ids,
    ordered: () => tell('checkout.session.completed', session('unpaid')),
    completed: () => tell('checkout.session.completed', session('paid')),
    paidLater: () => tell('checkout.session.async_payment_succeeded', session('paid')),
    expired: () => tell('checkout.session.expired', session('unpaid')),
    failedLater: () => tell('checkout.session.async_payment_failed', session('unpaid')),
    intentSucceeded: () =>
      tell('payment_intent.succeeded', {
        id: ids.intent,
        object: 'payment_intent',
        status: 'succeeded',
        amount_received: amount,
        currency,
        latest_charge: ids.charge,
        metadata,
      }),
    refunded: (total: number, after = 0) => tell('charge.refunded', charge(total), after),
    changed: (total: number, after = 0) => tell('charge.updated', charge(total), after),
    /** A refund as it is so many seconds after the payment. */
    refund: (part: number, { status = 'failed', type = 'refund.failed', made = 0, after = made }: RefundTold = {}) =>
      tell(
        type,
        {
          ...{ id: `re_${made}${key}`, object: 'refund', amount: part, currency, status, created: created + made },
          ...{ charge: ids.charge, payment_intent: ids.intent, metadata: {}, reason: null },
          ...{ source_transfer_reversal: null, transfer_reversal: null },
        },
        after,
      ),
    disputed: (status = 'needs_response', part = amount) => tell('charge.dispute.created', dispute(status, part)),
    withdrawn: (part = amount) => tell('charge.dispute.funds_withdrawn', dispute('needs_response', part)),
    closed: (status: 'won' | 'lost' | 'warning_closed', part = amount) =>
      tell('charge.dispute.closed', dispute(status, part)),
    appealed: (status: 'appeal_needs_response' | 'appeal_under_review', part = amount) =>
      tell('charge.dispute.updated', dispute(status, part)),
  };
}
