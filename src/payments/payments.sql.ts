import { query, querying, queryingColumn, queryingFirst, queryOne, Transaction } from '#database/transaction';
import { Candidate } from './duplicates.ts';
import { Method, PaymentStatus, ReversalKind, Source } from './enums.ts';
import { Evidence } from './evidence.ts';

export async function readEarliestPostableDate(tx: Transaction) {
  const sql = `SELECT earliest_postable_date() AS day`;
  return (await queryOne<{ day: string | null }>(tx, sql)).day;
}

/** Counts payments with this identity, with or without a counter. */
export async function countIdentity(tx: Transaction, identity: string) {
  const { used } = await queryOne<{ used: number }>(
    tx,
    `SELECT count(*) AS used FROM payments WHERE identity = :identity OR identity LIKE :pattern ESCAPE '!'`,
    { identity, pattern: `${identity.replace(/[!%_]/g, '!$&')}|#%` },
  );
  return used;
}

export type PaymentState = Readonly<{
  payment_id: number;
  identity: string;
  payer_at_receipt: string | null;
  payer_named: boolean;
  partner_id: string | null;
  currency: string;
  amount: string;
  applied: string;
  reversed: string;
  unapplied: string;
  status: PaymentStatus;
  /**
   * Whether the money is still in the bank: the payment is not completely reversed, or it was booked as money that is
   * not a customer's.
   */
  stays: boolean;
  /** Whether a bank line reports the payment, or a payment that was reversed as its duplicate. */
  in_bank_line: boolean;
  received_on: string;
  method: Method;
}>;

export const readStates = querying<PaymentState, { paymentIds: readonly number[] }>(`
  SELECT p.payment_id, p.identity, p.partner_id AS payer_at_receipt, b.partner_id, p.currency,
         EXISTS (SELECT FROM payment_assignments g
                 WHERE g.payment_id = p.payment_id AND g.kind = 'named') AS payer_named,
         p.amount, b.applied, b.reversed, b.unapplied, b.status, b.stays, p.received_on, p.method,
         EXISTS (
           SELECT FROM payment_sources s
           WHERE s.bank_line_id IS NOT NULL AND (s.payment_id = p.payment_id OR s.payment_id IN (
             SELECT r.payment_id FROM live_payment_reversals r WHERE r.duplicate_of = p.payment_id))) AS in_bank_line
  FROM payments p JOIN payment_balances b USING (payment_id)
  WHERE p.payment_id = ANY (:paymentIds::bigint[]) ORDER BY p.payment_id`);

export const readState = async (tx: Transaction, paymentId: number): Promise<PaymentState | undefined> =>
  (await readStates(tx, { paymentIds: [paymentId] }))[0];

export type LiveApplication = Readonly<{
  payment_application_id: number;
  payment_id: number;
  document_id: number;
  number: string;
  amount: string;
  bank_charges: string | null;
}>;

/** Reads the applications of payments, the latest application first. */
export const readLiveApplications = querying<LiveApplication, { paymentIds: readonly number[] }>(`
  SELECT a.payment_application_id, a.payment_id, a.document_id, d.number, a.amount, s.amount AS bank_charges
  FROM live_payment_applications a JOIN documents d USING (document_id)
  LEFT JOIN small_differences s ON s.payment_application_id = a.payment_application_id
  WHERE a.payment_id = ANY (:paymentIds::bigint[])
  ORDER BY a.payment_application_id DESC`);

/** The small differences of an event, by the partner of the invoice. */
export const readSmallDifferences = querying<
  { partner_id: string; currency: string; amount: string },
  { eventId: number }
>(`
  SELECT d.partner_id, s.currency, sum(s.amount) AS amount
  FROM small_differences s JOIN documents d USING (document_id)
  WHERE s.event_id = :eventId GROUP BY d.partner_id, s.currency`);

/** The payments that the reversed parts of a payment duplicate. */
export const readOriginals = queryingColumn<number, { paymentId: number }>(
  'SELECT duplicate_of FROM live_payment_reversals WHERE payment_id = :paymentId AND duplicate_of IS NOT NULL',
);

export const readUndoneBy = querying<
  Pick<LiveApplication, 'payment_id' | 'number' | 'amount' | 'bank_charges'>,
  { reversalId: number }
>(`
  SELECT a.payment_id, d.number, a.amount, s.amount AS bank_charges
  FROM payment_unapplications u JOIN payment_applications a USING (payment_application_id)
  JOIN documents d USING (document_id)
  LEFT JOIN small_differences s ON s.payment_application_id = a.payment_application_id
  WHERE u.payment_reversal_id = :reversalId ORDER BY a.payment_application_id`);

export type PaymentRow = Readonly<{
  payment_id: number;
  partner_id: string | null;
  currency: string;
  amount: string;
  method: Method;
  account: string;
  received_on: string;
  entry_on: string;
  reference: string;
  payer_name: string | null;
  payer_account: string | null;
  source: Source;
  status: PaymentStatus;
  applied: string;
  reversed: string;
  unapplied: string;
  recorded_at: string;
  recorded_by: string;
  applications: readonly Readonly<{
    number: string;
    partner_id: string;
    amount: string;
    small_difference: string | null;
    applied_on: string;
    unapplied_on: string | null;
    confidence: string;
    evidence: Evidence;
    confirmed_by: string;
  }>[];
  reversals: readonly Readonly<{
    amount: string;
    kind: ReversalKind;
    code: string | null;
    reason: string;
    reversed_on: string;
    entry_on: string;
    reinstated_on: string | null;
    duplicate_of: number | null;
    booked_to: string | null;
  }>[];
  sources: readonly Readonly<{ source: Source; reference: string; recorded_at: string }>[];
  suggestions: readonly Readonly<{
    number: string | null;
    same_as: number | null;
    amount: string;
    confidence: string;
    evidence: { readonly why: string };
  }>[];
  disputes: readonly Readonly<{
    dispute: string;
    amount: string;
    reason: string;
    opened_on: string;
    outcome: 'won' | 'lost' | 'closed' | null;
  }>[];
}>;

type PaymentFilter = Readonly<{
  ids?: readonly number[] | undefined;
  partnerId?: string | undefined;
}>;

const WHO = `coalesce(personal(e.claimed_by), e.os_user)`;

/** The reversals of payment `p`. */
export const REVERSALS = `coalesce((
              SELECT json_agg(json_build_object('amount', r.amount::text, 'kind', r.kind, 'code', r.code,
                       'reason', r.reason, 'reversed_on', r.reversed_on, 'entry_on', r.entry_on,
                       'reinstated_on', i.reinstated_on, 'duplicate_of', r.duplicate_of,
                       'booked_to', r.booked_to) ORDER BY r.payment_reversal_id)
              FROM payment_reversals r LEFT JOIN payment_reinstatements i USING (payment_reversal_id)
              WHERE r.payment_id = p.payment_id), '[]')`;

/** Reads payments. Obsolete suggestions are left out. */
export function readPayments(tx: Transaction, filter: PaymentFilter): Promise<PaymentRow[]> {
  return query(
    tx,
    `SELECT p.payment_id, b.partner_id, p.currency, p.amount, p.method, p.account, p.received_on, p.entry_on,
            personal(p.reference) AS reference, personal(p.payer_name) AS payer_name,
            personal(p.payer_account) AS payer_account, p.source, b.status, b.applied, b.reversed, b.unapplied,
            p.recorded_at, ${WHO} AS recorded_by,
            coalesce((
              SELECT json_agg(json_build_object('number', d.number, 'partner_id', a.partner_id,
                       'amount', a.amount::text, 'small_difference', s.amount::text,
                       'applied_on', a.applied_on, 'unapplied_on', u.unapplied_on,
                       'confidence', a.confidence::text, 'evidence', personal_json(a.evidence),
                       'confirmed_by', (SELECT ${WHO} FROM audit_events e WHERE e.event_id = a.event_id))
                     ORDER BY a.payment_application_id)
              FROM payment_applications a JOIN documents d USING (document_id)
              LEFT JOIN small_differences s USING (payment_application_id)
              LEFT JOIN payment_unapplications u USING (payment_application_id)
              WHERE a.payment_id = p.payment_id), '[]') AS applications,
            ${REVERSALS} AS reversals,
            coalesce((
              SELECT json_agg(json_build_object('source', s.source, 'reference', personal(s.reference),
                       'recorded_at', s.recorded_at) ORDER BY s.recorded_at, s.identity)
              FROM payment_sources s WHERE s.payment_id = p.payment_id), '[]') AS sources,
            coalesce((
              SELECT json_agg(json_build_object('number', d.number, 'same_as', s.same_as, 'amount', s.amount::text,
                       'confidence', s.confidence::text, 'evidence', personal_json(s.evidence))
                     ORDER BY s.confidence DESC, s.payment_suggestion_id)
              FROM payment_suggestions s LEFT JOIN documents d USING (document_id)
              LEFT JOIN document_balances o USING (document_id)
              LEFT JOIN payment_balances same ON same.payment_id = s.same_as
              WHERE s.payment_id = p.payment_id
                AND CASE WHEN s.same_as IS NULL THEN b.unapplied > 0 AND o.status = 'open'
                         ELSE b.status <> 'reversed' AND same.stays
                              AND (b.unapplied > 0 OR same.unapplied > 0) END), '[]') AS suggestions,
            coalesce((
              SELECT json_agg(json_build_object('dispute', t.identity, 'amount', t.amount::text, 'reason', t.reason,
                       'opened_on', t.opened_on, 'outcome', c.outcome) ORDER BY t.dispute_id)
              FROM disputes t LEFT JOIN last_dispute_outcomes c USING (dispute_id)
              WHERE t.payment_id = p.payment_id), '[]') AS disputes
     FROM payments p JOIN payment_balances b USING (payment_id) JOIN audit_events e USING (event_id)
     WHERE (:ids::bigint[] IS NULL OR p.payment_id = ANY (:ids::bigint[]))
       AND (:partnerId::text IS NULL OR b.partner_id = :partnerId)
     ORDER BY p.payment_id`,
    {
      ids: filter.ids ?? null,
      partnerId: filter.partnerId ?? null,
    },
  );
}

/**
 * Reads payments with one of these amounts whose money is still in the bank, and payments with one of these references.
 */
export function readCandidates(
  tx: Transaction,
  wanted: { money: readonly { currency: string; amount: string }[]; references: readonly string[] },
): Promise<Candidate[]> {
  return query(
    tx,
    `SELECT p.payment_id, p.method, p.currency, p.amount, b.reversed, b.stays, b.partner_id, p.received_on,
            ${REVERSALS} AS taken_back,
            s."references",
            ARRAY(SELECT DISTINCT d.number FROM payment_applications a JOIN documents d USING (document_id)
                  WHERE a.payment_id = p.payment_id ORDER BY d.number) AS documents,
            s.reported_by_bank, s.reported_by_processor, s.reported_by_hand,
            EXISTS (SELECT FROM payout_payments o WHERE o.payment_id = p.payment_id) AS paid_out
     FROM payments p JOIN payment_balances b USING (payment_id)
     CROSS JOIN LATERAL (
       SELECT array_agg(personal(s.reference)) || personal(p.reference)
                || array_remove(array_agg(l.bank_reference), NULL)
                || coalesce(array_agg(personal(f.text)) FILTER (WHERE f.text IS NOT NULL), '{}') AS "references",
              coalesce(bool_or(s.source = 'bank'), false) OR EXISTS (
                SELECT FROM payment_reversals r JOIN payments o ON o.payment_id = r.payment_id
                WHERE r.duplicate_of = p.payment_id AND o.source = 'bank') AS reported_by_bank,
              coalesce(bool_or(s.source = 'processor'), false) AS reported_by_processor,
              coalesce(bool_or(s.source = 'hand'), false) AS reported_by_hand
       FROM payment_sources s LEFT JOIN bank_lines l USING (bank_line_id)
       LEFT JOIN LATERAL jsonb_to_recordset(l."references") AS f (field text, text text) ON true
       WHERE s.payment_id = p.payment_id) AS s
     WHERE (b.stays AND (p.currency, p.amount) IN (
              SELECT currency, amount FROM json_to_recordset(:money::json) AS m (currency text, amount numeric)))
        OR p.payment_id IN (SELECT payment_id FROM payment_sources
                            WHERE reference = ANY (commitments_to(:references::text[])))
     ORDER BY p.payment_id`,
    wanted,
  );
}

export type ReceivedPayment = Readonly<{
  received_on: string;
  unapplied: string;
  applied: readonly Readonly<{ document_id: number; amount: string }>[];
}>;

export const readReceived = queryingFirst<ReceivedPayment, { session: string | null }>(`
  SELECT p.received_on, b.unapplied,
         coalesce((SELECT json_agg(json_build_object('document_id', a.document_id, 'amount', a.amount::text))
                   FROM live_payment_applications a WHERE a.payment_id = p.payment_id), '[]') AS applied
  FROM payment_sources s JOIN payments p USING (payment_id) JOIN payment_balances b USING (payment_id)
  WHERE s.source = 'processor' AND s.reference = ANY (commitments_to(ARRAY[:session::text]))`);
