/** SQL over payments: what is recorded, each in one statement however many there are, and what is read back. */
import { execute, query, type Transaction } from '../database/transaction.ts';
import { invoiceReopenedOn } from '../documents/queries.ts';
import type { PaymentContext } from './context.ts';
import type { Method, PaymentStatus, ReversalKind, Source } from './enums.ts';
import type { Evidence } from './match.ts';
import type { TakenBack } from './payout.ts';

const common = ({ now, eventId, earliest }: PaymentContext) => ({ now, eventId, earliest });

/** The date of the journal's entry: the true one, but never in a closed month. */
const entryOn = (...dates: readonly string[]) => `greatest(${dates.join(', ')}, :earliest::date)`;

/** The last days on which a payment came to have something unapplied again: see `invoiceReopenedOn`. */
const freedOfPayment = (payment: string) => `
  (SELECT max(u.entry_on) FROM payment_unapplications u JOIN payment_applications a USING (payment_application_id)
   WHERE a.payment_id = ${payment}),
  (SELECT max(i.entry_on) FROM payment_reinstatements i JOIN payment_reversals r USING (payment_reversal_id)
   WHERE r.payment_id = ${payment}),
  (SELECT max(g.entry_on) FROM payment_assignments g WHERE g.payment_id = ${payment})`;

/** Rows with their places, so that they are numbered in that order. */
const placed = <Row extends object>(rows: readonly Row[]) => rows.map((row, place) => ({ ...row, place }));
const RECORDED = `:now::timestamptz, :eventId::bigint`;

export interface NewPayment {
  readonly identity: string;
  readonly source: Source;
  readonly partner_id: string | null;
  readonly currency: string;
  readonly amount: string;
  readonly method: Method;
  readonly account: string;
  readonly received_on: string;
  readonly reference: string;
  readonly payer_name: string | null;
  readonly payer_account: string | null;
}

/** Gives the ids by identity. */
export async function insertPayments(
  context: PaymentContext,
  rows: readonly NewPayment[],
): Promise<Map<string, number>> {
  const inserted = await query<{ payment_id: number; identity: string }>(
    context.tx,
    `INSERT INTO payments (
       identity, source, partner_id, currency, amount, method, account, received_on, entry_on, reference, payer_name,
       payer_account, recorded_at, event_id)
     SELECT identity, source, partner_id, currency, amount, method, account, received_on, ${entryOn('received_on')},
            reference, payer_name, payer_account, ${RECORDED}
     FROM json_to_recordset(:rows::json) AS r (
       identity text, source text, partner_id text, currency text, amount numeric, method text, account text,
       received_on date, reference text, payer_name text, payer_account text, place bigint)
     ORDER BY place
     RETURNING payment_id, identity`,
    { rows: JSON.stringify(placed(rows)), ...common(context) },
  );
  return new Map(inserted.map((row) => [row.identity, row.payment_id]));
}

export interface NewPaymentSource {
  readonly identity: string;
  readonly payment_id: number;
  readonly source: Source;
  readonly reference: string;
  readonly bank_line_id: number | null;
}

/** A sighting that is known already is the same sighting. */
export async function insertPaymentSources(context: PaymentContext, rows: readonly NewPaymentSource[]): Promise<void> {
  await execute(
    context.tx,
    `INSERT INTO payment_sources (identity, payment_id, source, reference, bank_line_id, recorded_at, event_id)
     SELECT identity, payment_id, source, reference, bank_line_id, ${RECORDED}
     FROM json_to_recordset(:rows::json) AS r (
       identity text, payment_id bigint, source text, reference text, bank_line_id bigint)
     ON CONFLICT (identity) DO NOTHING`,
    { rows: JSON.stringify(rows), ...common(context) },
  );
}

export interface NewAssignment {
  readonly payment_id: number;
  readonly from_partner_id: string | null;
  readonly partner_id: string;
  readonly amount: string;
}

export async function insertAssignments(context: PaymentContext, rows: readonly NewAssignment[]): Promise<void> {
  if (rows.length === 0) return;
  await execute(
    context.tx,
    `INSERT INTO payment_assignments (
       payment_id, from_partner_id, partner_id, amount, assigned_on, entry_on, recorded_at, event_id)
     SELECT r.payment_id, r.from_partner_id, r.partner_id, r.amount, p.received_on,
            ${entryOn('p.received_on', freedOfPayment('p.payment_id'))}, ${RECORDED}
     FROM json_to_recordset(:rows::json) AS r (
       payment_id bigint, from_partner_id text, partner_id text, amount numeric)
     JOIN payments p USING (payment_id)`,
    { rows: JSON.stringify(rows), ...common(context) },
  );
}

export interface NewApplication {
  readonly payment_id: number;
  readonly document_id: number;
  readonly amount: string;
  /** Not before the document was issued or the payment received: then it is the later of the two. */
  readonly applied_on: string;
  readonly confidence: string;
  readonly evidence: Evidence;
  readonly small_difference: string | null;
}

export async function insertApplications(context: PaymentContext, rows: readonly NewApplication[]): Promise<void> {
  if (rows.length === 0) return;
  const bindings = { rows: JSON.stringify(placed(rows)), ...common(context) };
  const recordset = `json_to_recordset(:rows::json) AS r (
       payment_id bigint, document_id bigint, amount numeric, applied_on date, confidence numeric, evidence jsonb,
       small_difference numeric, place bigint)`;
  await execute(
    context.tx,
    `INSERT INTO payment_applications (
       payment_id, document_id, partner_id, currency, amount, applied_on, entry_on, confidence, evidence, recorded_at, event_id)
     SELECT r.payment_id, r.document_id, d.partner_id, d.currency, r.amount, day.applied_on,
            ${entryOn('day.applied_on', freedOfPayment('r.payment_id'), invoiceReopenedOn('r.document_id'))}, r.confidence, r.evidence, ${RECORDED}
     FROM ${recordset}
     JOIN documents d USING (document_id) JOIN payments p USING (payment_id)
     CROSS JOIN LATERAL (SELECT greatest(r.applied_on, d.issued_on, p.received_on) AS applied_on) AS day
     ORDER BY r.place`,
    bindings,
  );
  await execute(
    context.tx,
    `INSERT INTO small_differences (
       payment_application_id, document_id, currency, amount, entry_on, recorded_at, event_id)
     SELECT a.payment_application_id, a.document_id, a.currency, r.small_difference, a.entry_on, ${RECORDED}
     FROM ${recordset}
     JOIN payment_applications a
       ON a.payment_id = r.payment_id AND a.document_id = r.document_id AND a.event_id = :eventId::bigint
     LEFT JOIN payment_unapplications u USING (payment_application_id)
     WHERE r.small_difference IS NOT NULL AND u.payment_application_id IS NULL`,
    bindings,
  );
}

export interface NewSuggestion {
  readonly payment_id: number;
  readonly document_id: number | null;
  readonly same_as: number | null;
  readonly amount: string;
  readonly confidence: string;
  readonly evidence: { readonly why: string };
}

export async function insertSuggestions(context: PaymentContext, rows: readonly NewSuggestion[]): Promise<void> {
  if (rows.length === 0) return;
  await execute(
    context.tx,
    `INSERT INTO payment_suggestions (
       payment_id, document_id, same_as, amount, confidence, evidence, recorded_at, event_id)
     SELECT payment_id, document_id, same_as, amount, confidence, evidence, ${RECORDED}
     FROM json_to_recordset(:rows::json) AS r (
       payment_id bigint, document_id bigint, same_as bigint, amount numeric, confidence numeric, evidence jsonb)
     ON CONFLICT ON CONSTRAINT payment_suggestion_once DO NOTHING`,
    { rows: JSON.stringify(rows), ...common(context) },
  );
}

export interface NewReversal {
  readonly identity: string;
  readonly payment_id: number;
  readonly amount: string;
  readonly kind: ReversalKind;
  readonly code: string | null;
  readonly reason: string;
  readonly bank_line_id: number | null;
  readonly duplicate_of: number | null;
  readonly reversed_on: string;
}

/** Gives the ids by identity. What comes out of it has been unapplied before. */
export async function insertReversals(
  context: PaymentContext,
  rows: readonly NewReversal[],
): Promise<Map<string, number>> {
  const inserted = await query<{ payment_reversal_id: number; identity: string }>(
    context.tx,
    `INSERT INTO payment_reversals (
       identity, payment_id, partner_id, currency, amount, kind, code, reason, bank_line_id, duplicate_of, reversed_on,
       entry_on, recorded_at, event_id)
     SELECT r.identity, r.payment_id, b.partner_id, b.currency, r.amount, r.kind, r.code, r.reason, r.bank_line_id,
            r.duplicate_of, greatest(r.reversed_on, p.received_on),
            ${entryOn('r.reversed_on', 'p.received_on', freedOfPayment('r.payment_id'))},
            ${RECORDED}
     FROM json_to_recordset(:rows::json) AS r (
       identity text, payment_id bigint, amount numeric, kind text, code text, reason text, bank_line_id bigint,
       duplicate_of bigint, reversed_on date)
     JOIN payments p USING (payment_id) JOIN payment_balances b USING (payment_id)
     RETURNING payment_reversal_id, identity`,
    { rows: JSON.stringify(rows), ...common(context) },
  );
  return new Map(inserted.map((row) => [row.identity, row.payment_reversal_id]));
}

/** Undoes applications, from a day on that is not before they were made. */
export async function insertUnapplications(
  context: PaymentContext,
  rows: readonly { payment_application_id: number; payment_reversal_id: number | null; unapplied_on: string }[],
): Promise<void> {
  if (rows.length === 0) return;
  await execute(
    context.tx,
    `INSERT INTO payment_unapplications (
       payment_application_id, payment_reversal_id, unapplied_on, entry_on, recorded_at, event_id)
     SELECT r.payment_application_id, r.payment_reversal_id, greatest(r.unapplied_on, a.applied_on),
            greatest(r.unapplied_on, a.entry_on, :earliest::date), ${RECORDED}
     FROM json_to_recordset(:rows::json) AS r (
       payment_application_id bigint, payment_reversal_id bigint, unapplied_on date)
     JOIN payment_applications a USING (payment_application_id)`,
    { rows: JSON.stringify(rows), ...common(context) },
  );
}

export async function insertReinstatement(
  context: PaymentContext,
  reversalId: number,
  reinstatedOn: string,
): Promise<void> {
  await execute(
    context.tx,
    `INSERT INTO payment_reinstatements (
       payment_reversal_id, partner_id, reinstated_on, entry_on, recorded_at, event_id)
     SELECT r.payment_reversal_id, b.partner_id, greatest(:reinstatedOn::date, r.reversed_on),
            greatest(:reinstatedOn::date, r.entry_on, :earliest::date), ${RECORDED}
     FROM payment_reversals r JOIN payment_balances b USING (payment_id)
     WHERE r.payment_reversal_id = :reversalId`,
    { reversalId, reinstatedOn, ...common(context) },
  );
}

// --- Reading ----------------------------------------------------------------------------------------------------------

export interface PaymentState {
  readonly payment_id: number;
  /** As it was known at receipt; null where it was to be found out. */
  readonly payer_at_receipt: string | null;
  readonly partner_id: string | null;
  readonly currency: string;
  readonly amount: string;
  readonly applied: string;
  readonly reversed: string;
  readonly unapplied: string;
  readonly status: PaymentStatus;
  readonly received_on: string;
  readonly method: Method;
}

export function readStates(tx: Transaction, paymentIds: readonly number[]): Promise<PaymentState[]> {
  return query(
    tx,
    `SELECT p.payment_id, p.partner_id AS payer_at_receipt, b.partner_id, p.currency, p.amount, b.applied, b.reversed,
            b.unapplied, b.status, p.received_on, p.method
     FROM payments p JOIN payment_balances b USING (payment_id)
     WHERE p.payment_id = ANY (:paymentIds::bigint[]) ORDER BY p.payment_id`,
    { paymentIds },
  );
}

export interface LiveApplication {
  readonly payment_application_id: number;
  readonly payment_id: number;
  readonly document_id: number;
  readonly number: string;
  readonly amount: string;
}

/** What of these payments is applied, the latest application first. */
export function readLiveApplications(tx: Transaction, paymentIds: readonly number[]): Promise<LiveApplication[]> {
  return query(
    tx,
    `SELECT a.payment_application_id, a.payment_id, a.document_id, d.number, a.amount
     FROM payment_applications a JOIN documents d USING (document_id)
     LEFT JOIN payment_unapplications u USING (payment_application_id)
     WHERE a.payment_id = ANY (:paymentIds::bigint[]) AND u.payment_application_id IS NULL
     ORDER BY a.payment_application_id DESC`,
    { paymentIds },
  );
}

export interface PayableRow {
  readonly document_id: number;
  readonly number: string;
  readonly document: 'invoice' | 'credit_note' | 'statement';
  readonly partner_id: string;
  readonly currency: string;
  readonly status: 'open' | 'paid' | 'void';
  readonly balance: string;
  readonly due_on: string | null;
  readonly replaced_by: string | null;
}

const PAYABLE = `SELECT d.document_id, d.number, d.document, d.partner_id, d.currency, b.status, b.balance, d.due_on,
            successor.number AS replaced_by
     FROM documents d JOIN document_balances b USING (document_id)
     LEFT JOIN documents successor ON successor.replaces = d.document_id`;

export async function readPayable(tx: Transaction, number: string): Promise<PayableRow | undefined> {
  const rows = await query<PayableRow>(tx, `${PAYABLE} WHERE d.number = :number`, { number });
  return rows[0];
}

/** All open invoices, those of these numbers, and whatever replaced them. */
export function readPayables(tx: Transaction, numbers: readonly string[]): Promise<PayableRow[]> {
  return query(
    tx,
    `WITH RECURSIVE named AS (
       SELECT d.document_id FROM documents d WHERE d.number = ANY (:numbers::text[])
       UNION
       SELECT successor.document_id FROM named JOIN documents successor ON successor.replaces = named.document_id
     )
     ${PAYABLE}
     WHERE d.document = 'invoice' AND (b.status = 'open' OR d.document_id IN (SELECT document_id FROM named))
     ORDER BY d.document_id`,
    { numbers },
  );
}

/** Accounts that applied payments of exactly one partner have come from. */
export async function readPayerAccounts(tx: Transaction): Promise<Map<string, string>> {
  const rows = await query<{ payer_account: string; partner_id: string }>(
    tx,
    `SELECT p.payer_account, min(a.partner_id) AS partner_id
     FROM payments p JOIN payment_applications a USING (payment_id)
     LEFT JOIN payment_unapplications u USING (payment_application_id)
     WHERE p.payer_account IS NOT NULL AND u.payment_application_id IS NULL
     GROUP BY p.payer_account HAVING count(DISTINCT a.partner_id) = 1`,
  );
  return new Map(rows.map((row) => [row.payer_account, row.partner_id]));
}

export function readPayers(tx: Transaction): Promise<{ partner_id: string; name: string }[]> {
  return query(tx, `SELECT partner_id, name FROM partners ORDER BY partner_id`);
}

/** `taken_back` of the payment `p`: see TakenBack. */
export const TAKEN_BACK = `coalesce((
              SELECT json_agg(json_build_object('amount', r.amount::text, 'kind', r.kind, 'reversed_on', r.reversed_on,
                       'reinstated_on', i.reinstated_on) ORDER BY r.payment_reversal_id)
              FROM payment_reversals r LEFT JOIN payment_reinstatements i USING (payment_reversal_id)
              WHERE r.payment_id = p.payment_id), '[]')`;

/** A payment with all references under which it was seen, to tell whether what arrives is the same money. */
export interface Candidate {
  readonly payment_id: number;
  readonly source: Source;
  readonly method: Method;
  readonly currency: string;
  readonly amount: string;
  readonly reversed: string;
  readonly taken_back: readonly TakenBack[];
  readonly partner_id: string | null;
  readonly received_on: string;
  readonly references: readonly string[];
  /** Numbers of the documents that it pays, or paid. */
  readonly documents: readonly string[];
  /** Itself, or a payment of the bank that a person took back as its duplicate. */
  readonly seen_by_bank: boolean;
  readonly seen_by_processor: boolean;
  readonly seen_by_hand: boolean;
  readonly paid_out: boolean;
}

/** Payments of one of these amounts that aren't wholly taken back, and whatever has one of these references. */
export function readCandidates(
  tx: Transaction,
  wanted: { money: readonly { currency: string; amount: string }[]; references: readonly string[] },
): Promise<Candidate[]> {
  return query(
    tx,
    `SELECT p.payment_id, p.source, p.method, p.currency, p.amount, b.reversed, b.partner_id, p.received_on,
            ${TAKEN_BACK} AS taken_back,
            s.seen AS "references",
            ARRAY(SELECT DISTINCT d.number FROM payment_applications a JOIN documents d USING (document_id)
                  WHERE a.payment_id = p.payment_id ORDER BY d.number) AS documents,
            s.seen_by_bank, s.seen_by_processor, s.seen_by_hand,
            EXISTS (SELECT FROM payout_payments o WHERE o.payment_id = p.payment_id) AS paid_out
     FROM payments p JOIN payment_balances b USING (payment_id)
     CROSS JOIN LATERAL (
       SELECT array_agg(s.reference) || p.reference
                || array_remove(array_agg(l.bank_reference), NULL)
                || coalesce(array_agg(f.text) FILTER (WHERE f.text IS NOT NULL), '{}') AS seen,
              coalesce(bool_or(s.source = 'bank'), false) OR EXISTS (
                SELECT FROM payment_reversals r JOIN payments o ON o.payment_id = r.payment_id
                WHERE r.duplicate_of = p.payment_id AND o.source = 'bank') AS seen_by_bank,
              coalesce(bool_or(s.source = 'processor'), false) AS seen_by_processor,
              coalesce(bool_or(s.source = 'hand'), false) AS seen_by_hand
       FROM payment_sources s LEFT JOIN bank_lines l USING (bank_line_id)
       LEFT JOIN LATERAL jsonb_to_recordset(l."references") AS f (field text, text text) ON true
       WHERE s.payment_id = p.payment_id) AS s
     WHERE (b.status <> 'reversed' AND (p.currency, p.amount) IN (
              SELECT currency, amount FROM json_to_recordset(:money::json) AS m (currency text, amount numeric)))
        OR p.payment_id IN (SELECT payment_id FROM payment_sources WHERE reference = ANY (:references::text[]))
     ORDER BY p.payment_id`,
    { money: JSON.stringify(wanted.money), references: wanted.references },
  );
}

export interface PaymentRow {
  readonly payment_id: number;
  readonly partner_id: string | null;
  readonly currency: string;
  readonly amount: string;
  readonly method: Method;
  readonly account: string;
  readonly received_on: string;
  readonly entry_on: string;
  readonly reference: string;
  readonly payer_name: string | null;
  readonly payer_account: string | null;
  readonly source: Source;
  readonly status: PaymentStatus;
  readonly applied: string;
  readonly reversed: string;
  readonly unapplied: string;
  readonly recorded_at: string;
  readonly recorded_by: string;
  readonly applications: readonly {
    readonly number: string;
    readonly amount: string;
    readonly small_difference: string | null;
    readonly applied_on: string;
    readonly unapplied_on: string | null;
    readonly confidence: string;
    readonly evidence: Evidence;
    readonly confirmed_by: string;
  }[];
  readonly reversals: readonly {
    readonly amount: string;
    readonly kind: ReversalKind;
    readonly code: string | null;
    readonly reason: string;
    readonly reversed_on: string;
    readonly reinstated_on: string | null;
    readonly duplicate_of: number | null;
  }[];
  readonly seen: readonly { readonly source: Source; readonly reference: string; readonly recorded_at: string }[];
  readonly suggestions: readonly {
    readonly number: string | null;
    readonly same_as: number | null;
    readonly amount: string;
    readonly confidence: string;
    readonly evidence: { readonly why: string };
  }[];
  readonly disputes: readonly {
    readonly dispute: string;
    readonly amount: string;
    readonly reason: string;
    readonly opened_on: string;
    readonly outcome: 'won' | 'lost' | 'closed' | null;
  }[];
}

export interface PaymentFilter {
  readonly ids?: readonly number[] | undefined;
  readonly partnerId?: string | undefined;
  readonly status?: PaymentStatus | undefined;
}

const WHO = `coalesce(e.claimed_by, e.os_user)`;

/** Payments with their whole story, in the order in which they were recorded. Suggestions that are moot are left out. */
export function readPayments(tx: Transaction, filter: PaymentFilter): Promise<PaymentRow[]> {
  return query(
    tx,
    `SELECT p.payment_id, b.partner_id, p.currency, p.amount, p.method, p.account, p.received_on, p.entry_on,
            p.reference, p.payer_name, p.payer_account, p.source, b.status, b.applied, b.reversed, b.unapplied,
            p.recorded_at, ${WHO} AS recorded_by,
            coalesce((
              SELECT json_agg(json_build_object('number', d.number, 'amount', a.amount::text,
                       'small_difference', s.amount::text, 'applied_on', a.applied_on, 'unapplied_on', u.unapplied_on,
                       'confidence', a.confidence::text, 'evidence', a.evidence,
                       'confirmed_by', (SELECT ${WHO} FROM audit_events e WHERE e.event_id = a.event_id))
                     ORDER BY a.payment_application_id)
              FROM payment_applications a JOIN documents d USING (document_id)
              LEFT JOIN small_differences s USING (payment_application_id)
              LEFT JOIN payment_unapplications u USING (payment_application_id)
              WHERE a.payment_id = p.payment_id), '[]') AS applications,
            coalesce((
              SELECT json_agg(json_build_object('amount', r.amount::text, 'kind', r.kind, 'code', r.code,
                       'reason', r.reason, 'reversed_on', r.reversed_on, 'reinstated_on', i.reinstated_on,
                       'duplicate_of', r.duplicate_of) ORDER BY r.payment_reversal_id)
              FROM payment_reversals r LEFT JOIN payment_reinstatements i USING (payment_reversal_id)
              WHERE r.payment_id = p.payment_id), '[]') AS reversals,
            coalesce((
              SELECT json_agg(json_build_object('source', s.source, 'reference', s.reference,
                       'recorded_at', s.recorded_at) ORDER BY s.recorded_at, s.identity)
              FROM payment_sources s WHERE s.payment_id = p.payment_id), '[]') AS seen,
            coalesce((
              SELECT json_agg(json_build_object('number', d.number, 'same_as', s.same_as, 'amount', s.amount::text,
                       'confidence', s.confidence::text, 'evidence', s.evidence)
                     ORDER BY s.confidence DESC, s.payment_suggestion_id)
              FROM payment_suggestions s LEFT JOIN documents d USING (document_id)
              LEFT JOIN document_balances o USING (document_id)
              LEFT JOIN payment_balances same ON same.payment_id = s.same_as
              WHERE s.payment_id = p.payment_id
                AND CASE WHEN s.same_as IS NULL THEN b.unapplied > 0 AND o.status = 'open'
                         ELSE b.status <> 'reversed' AND same.status <> 'reversed'
                              AND (b.unapplied > 0 OR same.unapplied > 0) END), '[]') AS suggestions,
            coalesce((
              SELECT json_agg(json_build_object('dispute', t.identity, 'amount', t.amount::text, 'reason', t.reason,
                       'opened_on', t.opened_on, 'outcome', c.outcome) ORDER BY t.dispute_id)
              FROM disputes t LEFT JOIN dispute_outcomes c USING (dispute_id)
              WHERE t.payment_id = p.payment_id), '[]') AS disputes
     FROM payments p JOIN payment_balances b USING (payment_id) JOIN audit_events e USING (event_id)
     WHERE (:ids::bigint[] IS NULL OR p.payment_id = ANY (:ids::bigint[]))
       AND (:partnerId::text IS NULL OR b.partner_id = :partnerId)
       AND (:status::text IS NULL OR b.status = :status)
     ORDER BY p.payment_id`,
    { ids: filter.ids ?? null, partnerId: filter.partnerId ?? null, status: filter.status ?? null },
  );
}
