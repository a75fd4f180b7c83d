/** Each statement inserts any number of rows. Properties that a row omits are NULL. */
import { execute, executing, query, Transaction } from '#database/transaction';
import { PaymentContext } from './context.ts';
import { Method, ReversalKind, Source } from './enums.ts';
import { Evidence } from './evidence.ts';

const bindings = ({ now, eventId, earliest }: PaymentContext, rows: readonly object[]) => {
  return { rows, now, eventId, earliest };
};

export const inserting =
  <Row extends object>(sql: string) =>
  async (tx: Transaction, context: PaymentContext, rows: readonly Row[]) => {
    if (rows.length > 0) await execute(tx, sql, bindings(context, rows));
  };

/** The latest of the given dates, or the first day with open books if that day is later. */
const entryOn = (...dates: readonly string[]) => `greatest(${dates.join(', ')}, :earliest::date)`;

const RECORDED = `:now::timestamptz, :eventId::bigint`;

export type NewPayment = Readonly<{
  identity: string;
  source: Source;
  partner_id: string | null;
  currency: string;
  amount: string;
  method: Method;
  account: string;
  received_on: string;
  reference: string;
  payer_name?: string | null | undefined;
  payer_account?: string | null | undefined;
}>;

/** Returns the ids of the payments, by identity. */
export async function insertPayments(tx: Transaction, context: PaymentContext, rows: readonly NewPayment[]) {
  const inserted = await query<{ payment_id: number; identity: string }>(
    tx,
    `INSERT INTO payments (
       identity, source, partner_id, currency, amount, method, account, received_on, entry_on, reference, payer_name,
       payer_account, recorded_at, event_id)
     SELECT identity, source, partner_id, currency, amount, method, account, received_on, ${entryOn('received_on')},
            reference, payer_name, payer_account, ${RECORDED}
     FROM json_populate_recordset(NULL::payments, :rows::json) WITH ORDINALITY ORDER BY ordinality
     RETURNING payment_id, identity`,
    bindings(context, rows),
  );
  return new Map(inserted.map((row) => [row.identity, row.payment_id]));
}

export type NewPaymentSource = Readonly<{
  identity: string;
  payment_id: number;
  source: Source;
  reference: string;
  bank_line_id?: number | null | undefined;
}>;

/**
 * A source record that is already stored is left unchanged. It must not even be tried: its texts would be kept, and no
 * record would name them.
 */
export const insertPaymentSources = inserting<NewPaymentSource>(
  `INSERT INTO payment_sources (identity, payment_id, source, reference, bank_line_id, recorded_at, event_id)
   SELECT identity, payment_id, source, reference, bank_line_id, ${RECORDED}
   FROM (SELECT DISTINCT ON (identity) * FROM json_populate_recordset(NULL::payment_sources, :rows::json)) AS r
   WHERE NOT EXISTS (SELECT FROM payment_sources s WHERE s.identity = r.identity)
   ON CONFLICT (identity) DO NOTHING`,
);

/**
 * `named`: finance or a manual entry stated the payer. `assumed`: the payer follows from the first invoice that is
 * paid.
 */
type AssignmentKind = 'named' | 'assumed' | 'part';

type NewAssignment = Readonly<{
  payment_id: number;
  from_partner_id: string | null;
  partner_id: string;
  kind: Exclude<AssignmentKind, 'part'>;
  amount: string;
  /** The day of the receipt is used if no day is given or if the given day is earlier. */
  assigned_on?: string | undefined;
}>;

export const insertAssignments = inserting<NewAssignment>(
  `INSERT INTO payment_assignments (
     payment_id, from_partner_id, partner_id, kind, amount, assigned_on, entry_on, recorded_at, event_id)
   SELECT r.payment_id, r.from_partner_id, r.partner_id, r.kind, r.amount,
          greatest(r.assigned_on, p.received_on),
          ${entryOn('r.assigned_on', 'p.received_on', 'payment_reopened_on(p.payment_id)')}, ${RECORDED}
   FROM json_populate_recordset(NULL::payment_assignments, :rows::json) AS r JOIN payments p USING (payment_id)`,
);

export type NewApplication = Readonly<{
  payment_id: number;
  document_id: number;
  amount: string;
  /** If the issue date of the document or the receipt date of the payment is later, that date is used. */
  applied_on: string;
  confidence: string;
  evidence: Evidence;
  small_difference?: string | undefined;
}>;

const insertApplicationRows = inserting<NewApplication>(
  `WITH applied AS (
   INSERT INTO payment_applications (
     payment_id, document_id, partner_id, currency, amount, applied_on, entry_on, confidence, evidence, recorded_at,
     event_id)
   SELECT r.payment_id, r.document_id, d.partner_id, d.currency, r.amount, day.applied_on,
          ${entryOn('day.applied_on', 'payment_reopened_on(r.payment_id)', 'document_reopened_on(r.document_id)')},
          r.confidence, r.evidence, ${RECORDED}
   FROM json_populate_recordset(NULL::payment_applications, :rows::json) WITH ORDINALITY AS r
   JOIN documents d USING (document_id) JOIN payments p USING (payment_id)
   CROSS JOIN LATERAL (SELECT greatest(r.applied_on, d.issued_on, p.received_on) AS applied_on) AS day
   ORDER BY r.ordinality
   RETURNING *)
   INSERT INTO payment_assignments (
     payment_id, from_partner_id, partner_id, kind, amount, assigned_on, entry_on, recorded_at, event_id)
   SELECT a.payment_id, b.partner_id, a.partner_id, 'part', a.amount, a.applied_on, a.entry_on, ${RECORDED}
   FROM applied a JOIN payment_balances b USING (payment_id)
   WHERE a.partner_id IS DISTINCT FROM b.partner_id
   ORDER BY a.payment_application_id`,
);
const insertSmallDifferences = inserting<NewApplication>(
  `INSERT INTO small_differences (
     payment_application_id, document_id, currency, amount, entry_on, recorded_at, event_id)
   SELECT a.payment_application_id, a.document_id, a.currency, r.small_difference, a.entry_on, ${RECORDED}
   FROM json_to_recordset(:rows::json) AS r (payment_id bigint, document_id bigint, small_difference numeric)
   JOIN live_payment_applications a
     ON a.payment_id = r.payment_id AND a.document_id = r.document_id AND a.event_id = :eventId::bigint
   WHERE r.small_difference IS NOT NULL`,
);

export async function insertApplications(tx: Transaction, context: PaymentContext, rows: readonly NewApplication[]) {
  await insertApplicationRows(tx, context, rows);
  await insertSmallDifferences(tx, context, rows);
}

export type NewSuggestion = Readonly<{
  payment_id: number;
  document_id?: number | null | undefined;
  same_as?: number | null | undefined;
  amount: string;
  confidence: string;
  evidence: { readonly why: string };
}>;

export const insertSuggestions = inserting<NewSuggestion>(
  `INSERT INTO payment_suggestions (
     payment_id, document_id, same_as, amount, confidence, evidence, recorded_at, event_id)
   SELECT payment_id, document_id, same_as, amount, confidence, evidence, ${RECORDED}
   FROM (SELECT DISTINCT ON (payment_id, document_id, same_as) *
         FROM json_populate_recordset(NULL::payment_suggestions, :rows::json)) AS r
   WHERE NOT EXISTS (SELECT FROM payment_suggestions s WHERE s.payment_id = r.payment_id
                       AND (s.document_id, s.same_as) IS NOT DISTINCT FROM (r.document_id, r.same_as))
   ON CONFLICT ON CONSTRAINT payment_suggestion_once DO NOTHING`,
);

export type NewReversal = Readonly<{
  identity: string;
  payment_id: number;
  amount: string;
  kind: ReversalKind;
  code?: string | null | undefined;
  reason: string;
  bank_line_id?: number | null | undefined;
  duplicate_of?: number | null | undefined;
  booked_to?: string | null | undefined;
  reversed_on: string;
}>;

/** Returns the ids by identity. If a reversal takes money from applications, the caller undoes these applications. */
export async function insertReversals(tx: Transaction, context: PaymentContext, rows: readonly NewReversal[]) {
  const inserted = await query<{ payment_reversal_id: number; identity: string }>(
    tx,
    `INSERT INTO payment_reversals (
       identity, payment_id, partner_id, currency, amount, kind, code, reason, bank_line_id, duplicate_of, booked_to,
       reversed_on, entry_on, recorded_at, event_id)
     SELECT r.identity, r.payment_id, b.partner_id, b.currency, r.amount, r.kind, r.code, r.reason, r.bank_line_id,
            r.duplicate_of, r.booked_to, greatest(r.reversed_on, p.received_on),
            ${entryOn('r.reversed_on', 'p.received_on', 'payment_reopened_on(r.payment_id)')},
            ${RECORDED}
     FROM json_populate_recordset(NULL::payment_reversals, :rows::json) AS r
     JOIN payments p USING (payment_id) JOIN payment_balances b USING (payment_id)
     RETURNING payment_reversal_id, identity`,
    bindings(context, rows),
  );
  return new Map(inserted.map((row) => [row.identity, row.payment_reversal_id]));
}

/**
 * Undoes applications. An application is undone on its own date at the earliest. A part that paid a document of another
 * partner returns to the payer.
 */
export const insertUnapplications = inserting<{
  payment_application_id: number;
  payment_reversal_id?: number;
  unapplied_on: string;
}>(
  `WITH undone AS (
   INSERT INTO payment_unapplications (
     payment_application_id, payment_reversal_id, unapplied_on, entry_on, recorded_at, event_id)
   SELECT r.payment_application_id, r.payment_reversal_id, greatest(r.unapplied_on, a.applied_on),
          greatest(r.unapplied_on, a.entry_on, :earliest::date), ${RECORDED}
   FROM json_populate_recordset(NULL::payment_unapplications, :rows::json) AS r
   JOIN payment_applications a USING (payment_application_id)
   RETURNING *)
   INSERT INTO payment_assignments (
     payment_id, from_partner_id, partner_id, kind, amount, assigned_on, entry_on, recorded_at, event_id)
   SELECT a.payment_id, a.partner_id, b.partner_id, 'part', a.amount, u.unapplied_on, u.entry_on, ${RECORDED}
   FROM undone u JOIN payment_applications a USING (payment_application_id) JOIN payment_balances b USING (payment_id)
   WHERE a.partner_id IS DISTINCT FROM b.partner_id
   ORDER BY a.payment_application_id`,
);

export const insertReinstatement = executing<{ reversalId: number; reinstatedOn: string } & PaymentContext>(`
  INSERT INTO payment_reinstatements (
    payment_reversal_id, partner_id, reinstated_on, entry_on, recorded_at, event_id)
  SELECT r.payment_reversal_id, b.partner_id, greatest(:reinstatedOn::date, r.reversed_on),
         greatest(:reinstatedOn::date, r.entry_on, :earliest::date), ${RECORDED}
  FROM payment_reversals r JOIN payment_balances b USING (payment_id)
  WHERE r.payment_reversal_id = :reversalId`);
