import {
  executing,
  query,
  querying,
  queryingColumn,
  queryingFirst,
  queryingOne,
  queryingValue,
  queryOne,
  Transaction,
} from '#database/transaction';
import { PaymentContext } from '#payments/context';
import { processorIdentity } from '#payments/identities';
import { PaymentState, readState } from '#payments/payments.sql';
import { EventContext, EventOutcome, StorableEvent, WaitingEvent } from './event.ts';

/** Returns the accounts that have new events. */
export async function insertEvents(tx: Transaction, events: readonly StorableEvent[], now: string) {
  const stored = await query<{ account: string }>(
    tx,
    `INSERT INTO processor_events (account, id, type, livemode, created, payload, payload_sha256, received_at)
     SELECT account, id, type, livemode, created, payload::jsonb, payload_hash(payload::jsonb), :now::timestamptz
     FROM json_to_recordset(:events::json) AS r (
       account text, id text, type text, livemode boolean, created timestamptz, payload text, place bigint)
     ORDER BY place
     ON CONFLICT ON CONSTRAINT processor_event_once DO NOTHING
     RETURNING account`,
    { events: events.map((event, place) => ({ ...event, place })), now },
  );
  return stored.map(({ account }) => account);
}

export const readWaitingEvents = querying<WaitingEvent>(`
  SELECT e.processor_event_id, e.account, e.id, e.type, e.created, e.received_at, e.payload::text AS payload
  FROM processor_events e LEFT JOIN processor_event_outcomes o USING (processor_event_id)
  WHERE o.processor_event_id IS NULL ORDER BY e.processor_event_id`);

/** Reads events for review. Events that are closed as an exception are left out. */
export const readEventsForReview = querying<{ id: string; type: string; reason: string }>(`
  SELECT e.id, e.type, personal(o.reason) AS reason
  FROM processor_events e JOIN processor_event_outcomes o USING (processor_event_id)
  WHERE o.outcome = 'manual_review'
    AND NOT EXISTS (SELECT FROM payment_exception_closings c WHERE c.processor_event_id = e.processor_event_id)
  ORDER BY e.processor_event_id`);

type Recording = Pick<PaymentContext, 'now' | 'eventId'>;

export const insertEventOutcome = executing<EventOutcome & Pick<WaitingEvent, 'processor_event_id'> & Recording>(`
  INSERT INTO processor_event_outcomes (processor_event_id, outcome, payment_id, reason, recorded_at, event_id)
  VALUES (:processor_event_id, :outcome, :payment_id, :reason, :now::timestamptz, :eventId::bigint)`);

export type OwnLink = Readonly<{
  document_id: number;
  version: number;
  number: string;
  amount: string;
  currency: string;
}>;

/** Returns our payment link, whether it is active or inactive. Undefined if the link is not ours. */
export const readOwnLink = queryingFirst<OwnLink, { provider: string; id: string }>(`
  SELECT document_id, version, d.number, i.amount, i.currency
  FROM payment_link_objects o JOIN payment_link_intents i USING (document_id, version)
  JOIN documents d USING (document_id)
  WHERE o.provider_id = :id AND i.provider = :provider`);

export type OwnCheckout = Readonly<{
  checkout_id: number;
  amount: string;
  currency: string;
  /** The invoices of a checkout, in the order of payment. */
  invoices: readonly Readonly<{ number: string; amount: string }>[];
}>;

/**
 * Returns the checkout with the processor's session id, even if the checkout has ended. If no checkout has this id,
 * returns the checkout with the given reference, which proves nothing.
 */
export async function readOwnCheckout(
  tx: Transaction,
  provider: string,
  { session, reference }: Readonly<{ session?: string; reference?: string }>,
) {
  const [checkout] = await query<OwnCheckout>(
    tx,
    `SELECT c.checkout_id, c.amount, c.currency,
            (SELECT json_agg(json_build_object('number', d.number, 'amount', i.amount::text) ORDER BY i.position)
             FROM checkout_invoices i JOIN documents d USING (document_id)
             WHERE i.checkout_id = c.checkout_id) AS invoices
     FROM checkouts c LEFT JOIN checkout_sessions s USING (checkout_id)
     WHERE c.provider = :provider AND (s.provider_id = :session OR c.reference = :reference)`,
    { provider, session: session ?? null, reference: reference ?? null },
  );
  return checkout;
}

/** Records an order, unless the order is already recorded or the checkout has ended. */
export const insertCheckoutOrder = executing<{ checkoutId: number; on: string } & Recording>(`
  INSERT INTO checkout_orders (checkout_id, ordered_on, event_id)
  VALUES (:checkoutId, :on::date, :eventId::bigint) ON CONFLICT (checkout_id) DO NOTHING`);

export const readDocumentsOfCheckout = queryingColumn<number, { checkoutId: number }>(
  `SELECT document_id FROM checkout_invoices WHERE checkout_id = :checkoutId ORDER BY position`,
);

/** Records an order, unless the order is already recorded. */
export const insertLinkOrder = executing<Pick<OwnLink, 'document_id' | 'version'> & { on: string } & Recording>(`
  INSERT INTO payment_link_orders (document_id, version, ordered_on, event_id)
  VALUES (:document_id, :version, :on::date, :eventId::bigint) ON CONFLICT (document_id, version) DO NOTHING`);

/** Records the outcome of a link. Later outcomes are ignored. */
export const insertLinkOutcome = executing<
  Pick<OwnLink, 'document_id' | 'version'> & { outcome: 'paid' | 'failed' } & Recording
>(`
  INSERT INTO payment_link_outcomes (document_id, version, outcome, recorded_at)
  VALUES (:document_id, :version, :outcome, :now::timestamptz) ON CONFLICT (document_id, version) DO NOTHING`);

async function findPayment(tx: Transaction, identities: readonly string[]) {
  const [row] = await query<{ payment_id: number }>(
    tx,
    `SELECT payment_id FROM payment_sources WHERE identity = ANY (:identities::text[]) ORDER BY payment_id LIMIT 1`,
    { identities },
  );
  return row?.payment_id;
}

export const wasApplied = queryingValue<boolean, { paymentId: number }>(
  'SELECT EXISTS (SELECT FROM payment_applications WHERE payment_id = :paymentId)',
);

/** Reads refunds that were not reinstated, the latest refund first. */
export const readRefunds = querying<
  { payment_reversal_id: number; identity: string; amount: string },
  { paymentId: number }
>(`
  SELECT r.payment_reversal_id, r.identity, r.amount
  FROM live_payment_reversals r
  WHERE r.payment_id = :paymentId AND r.kind = 'refunded'
  ORDER BY r.payment_reversal_id DESC`);

/** Reads events about a payment. Events whose data is erased are left out. */
export const readEventsOf = querying<{ type: string; created: string; payload: string | null }, { paymentId: number }>(`
  SELECT e.type, e.created, e.payload::text AS payload
  FROM processor_event_outcomes o JOIN processor_events e USING (processor_event_id)
  WHERE o.payment_id = :paymentId`);

type DisputeState = Readonly<{
  dispute_id: number;
  outcome: 'won' | 'lost' | 'closed' | null;
  payment_reversal_id: number | null;
  reinstated: boolean;
}>;

export const readDispute = queryingFirst<DisputeState, { identity: string }>(`
  SELECT d.dispute_id, o.outcome, r.payment_reversal_id, i.payment_reversal_id IS NOT NULL AS reinstated
  FROM disputes d LEFT JOIN last_dispute_outcomes o USING (dispute_id)
  LEFT JOIN payment_reversals r ON r.identity = d.identity
  LEFT JOIN payment_reinstatements i ON i.payment_reversal_id = r.payment_reversal_id
  WHERE d.identity = :identity`);

type NewDispute = Readonly<{
  identity: string;
  paymentId: number;
  amount: string;
  reason: string;
  on: string;
}>;

export async function insertDispute(tx: Transaction, { now, eventId }: PaymentContext, dispute: NewDispute) {
  const { dispute_id } = await queryOne<{ dispute_id: number }>(
    tx,
    `INSERT INTO disputes (identity, payment_id, amount, reason, opened_on, recorded_at, event_id)
     VALUES (:identity, :paymentId, :amount::numeric, :reason, :on::date, :now::timestamptz, :eventId::bigint)
     RETURNING dispute_id`,
    { ...dispute, now, eventId },
  );
  return dispute_id;
}

export const insertDisputeOutcome = executing<
  { disputeId: number; outcome: 'won' | 'lost' | 'closed'; on: string } & Recording
>(`
  INSERT INTO dispute_outcomes (dispute_id, outcome, decided_on, recorded_at, event_id)
  SELECT d.dispute_id, :outcome, greatest(:on::date, d.opened_on), :now::timestamptz, :eventId::bigint
  FROM disputes d WHERE d.dispute_id = :disputeId`);

export async function paymentOf(
  tx: Transaction,
  { account }: EventContext,
  ids: readonly string[],
): Promise<PaymentState | undefined> {
  const paymentId = await findPayment(
    tx,
    ids.map((id) => processorIdentity(account, id)),
  );
  return paymentId === undefined ? undefined : await readState(tx, paymentId);
}

export type ErasureRange = Readonly<{
  before: string;
  afterId: number;
  batch: number;
}>;

export type ErasureBatch = Readonly<{
  deleted: number;
  read: number;
  last_id: number | null;
}>;

const READ = `
  WITH over AS MATERIALIZED (
    SELECT processor_event_id FROM processor_events
    WHERE processor_event_id > :afterId::bigint AND payload IS NOT NULL AND received_at < :before::timestamptz
    ORDER BY processor_event_id LIMIT :batch
  )
  SELECT count(*) AS read, max(processor_event_id) AS last_id,
         count(*) FILTER (WHERE payload_may_go(processor_event_id)) AS deleted FROM over`;

export const readErasable = queryingOne<ErasureBatch, ErasureRange>(READ);

export const insertErasures = executing<{
  before: string;
  afterId: number;
  last_id: number | null;
  now: string;
  eventId: number;
}>(`
  INSERT INTO processor_event_erasures (processor_event_id, recorded_at, event_id)
  SELECT processor_event_id, :now::timestamptz, :eventId::bigint FROM processor_events
  WHERE processor_event_id > :afterId::bigint AND processor_event_id <= :last_id::bigint AND payload IS NOT NULL
    AND received_at < :before::timestamptz AND payload_may_go(processor_event_id)
  ORDER BY processor_event_id`);

export const countErasable = queryingValue<number, { before: string }>(`
  SELECT count(*) AS due FROM processor_events
  WHERE payload IS NOT NULL AND received_at < :before::timestamptz AND payload_may_go(processor_event_id)`);
