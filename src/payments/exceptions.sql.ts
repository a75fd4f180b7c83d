import { execute, query, querying, Transaction } from '#database/transaction';
import { Scope } from '#people/scope';
import { ReferenceField } from './bank/statement.ts';
import { textOf } from './bank-import/bank-lines.sql.ts';
import { PaymentContext } from './context.ts';

export type ExceptionKind =
  | 'unknown_payer'
  | 'possible_duplicate'
  /** A payment that was applied but is short, because two digits are swapped. */
  | 'digits_swapped'
  | 'suggestion'
  | 'unapplied_cash'
  | 'payout'
  | 'bank_line'
  | 'bank_statement'
  | 'event'
  | 'waiting_event';

export type PaymentException = Readonly<{
  kind: ExceptionKind;
  /** The id in commands: `payment-12`, `payout-3`, `line-7`, or the id of the event. */
  exception: string;
  partner_id: string | null;
  currency: string | null;
  /** The amount of a bank debit is negative. */
  amount: string | null;
  since: string;
  reason: string;
}>;

/** Reads the exceptions of the partners in a scope. Exceptions without a partner are in no scope. */
export function readExceptions(tx: Transaction, scope: Scope = null): Promise<PaymentException[]> {
  return query(
    tx,
    `SELECT kind, exception, partner_id, currency, amount::text AS amount, since, reason
     FROM payment_exceptions WHERE :scope::text[] IS NULL OR partner_id = ANY (:scope::text[])
     ORDER BY since, kind, exception`,
    { scope },
  );
}

export type ExceptionSuggestion = Readonly<{
  /** The invoice that the payment may pay. The number is null if the payment may be a duplicate of `same_as`. */
  number: string | null;
  same_as: number | null;
  partner_id: string | null;
  amount: string;
  balance: string | null;
  confidence: string;
  evidence: Readonly<{
    why: string;
    set?: readonly string[];
    fee?: string;
    /** The bank states `same_as` again, with the amount of this payment. */
    corrects?: true;
  }>;
  less: readonly Readonly<{ number: string; balance: string }>[];
  /** For a possible duplicate: whether the payment can be reversed as a duplicate. */
  reversible: boolean;
}>;

export type ExceptionalPayment = Readonly<{
  payment_id: number;
  partner_id: string | null;
  method: string;
  currency: string;
  unapplied: string;
  reference: string;
  payer_name: string | null;
  payer_account: string | null;
  partner_name: string | null;
  text: string | null;
  /** The texts that may name documents. A manual entry has only its reference. */
  references: readonly ReferenceField[];
  suggestions: readonly ExceptionSuggestion[];
  /** The invoice for which the payment was recorded, if any. */
  subject: string;
  /** The invoices from which finance took the payment back. */
  taken_from: readonly string[];
}>;

/**
 * Reads the payments with unapplied cash among the given ones, with the possible duplicates that can be accepted now.
 */
export const readExceptionalPayments = querying<ExceptionalPayment, { ids: readonly string[] }>(`
  WITH exceptional AS MATERIALIZED (
    SELECT p.*, e.subject, r.text, r.fields
    FROM payments p JOIN audit_events e USING (event_id)
    CROSS JOIN LATERAL (
      SELECT string_agg(DISTINCT personal(l.text), ' / ') FILTER (WHERE l.text <> '') AS text,
             json_agg(personal_json(jsonb_path_query_array(l."references", '$[*] ? (exists(@.text))'))
                      ORDER BY l.bank_line_id)
               FILTER (WHERE l."references" <> '[]') AS fields
      FROM payment_sources s JOIN bank_lines l USING (bank_line_id) WHERE s.payment_id = p.payment_id) AS r
    WHERE p.payment_id = ANY (:ids::bigint[])
  )
  SELECT p.payment_id, b.partner_id, p.method, p.currency, b.unapplied::text AS unapplied,
         personal(p.reference) AS reference, personal(p.payer_name) AS payer_name,
         personal(p.payer_account) AS payer_account, n.name AS partner_name,
         p.text,
         coalesce((
           SELECT json_agg(f.value ORDER BY o.ordinality, f.ordinality)
           FROM json_array_elements(p.fields) WITH ORDINALITY AS o
           CROSS JOIN LATERAL json_array_elements(o.value) WITH ORDINALITY AS f),
           json_build_array(json_build_object('field', 'reference', 'text', personal(p.reference)))) AS "references",
         coalesce((
           SELECT json_agg(json_build_object('number', NULL, 'same_as', s.same_as, 'partner_id', NULL,
                    'amount', s.amount::text, 'balance', NULL, 'confidence', s.confidence::text,
                    'evidence', personal_json(s.evidence), 'less', json_build_array(),
                    'reversible', coalesce((y.currency, y.amount) = (p.currency, p.amount)
                       AND coalesce(same.partner_id = b.partner_id, true) AND b.reversed = 0
                       AND NOT EXISTS (SELECT FROM live_payment_reversals r
                                       WHERE r.payment_id = s.same_as AND r.kind = 'duplicate'), false))
                  ORDER BY s.confidence DESC, s.payment_suggestion_id)
           FROM payment_suggestions s JOIN payments y ON y.payment_id = s.same_as
           JOIN payment_balances same ON same.payment_id = s.same_as
           WHERE s.payment_id = p.payment_id AND same.stays
             AND s.payment_id IN (SELECT payment_id FROM possible_duplicates)), '[]') AS suggestions,
         p.subject,
         coalesce((
           SELECT json_agg(DISTINCT d.number)
           FROM payment_applications a JOIN payment_unapplications u USING (payment_application_id)
           JOIN documents d USING (document_id)
           WHERE a.payment_id = p.payment_id AND u.payment_reversal_id IS NULL), '[]') AS taken_from
  FROM exceptional p JOIN payment_balances b USING (payment_id) LEFT JOIN partners n ON n.partner_id = b.partner_id
  WHERE b.unapplied > 0`);

/** Reads the bank's texts and names of lines, by exception. */
export async function readLineTexts(tx: Transaction, ids: readonly string[]) {
  const rows = await query<{ exception: string; text: string }>(
    tx,
    `SELECT 'line-' || l.bank_line_id AS exception, ${textOf('l')} AS text
     FROM bank_lines l WHERE l.bank_line_id = ANY (:ids::bigint[])`,
    { ids },
  );
  return new Map(rows.map(({ exception, text }) => [exception, text]));
}

/**
 * Reads the exceptions about bank statements of these accounts that do not continue an earlier statement. Closed
 * exceptions are omitted.
 */
export const readBreaks = querying<PaymentException, { accounts: readonly string[] }>(`
  SELECT 'bank_statement' AS kind, exception, NULL AS partner_id, currency, amount::text AS amount, first_on AS since,
         reason
  FROM bank_statement_breaks WHERE account = ANY (:accounts::text[]) ORDER BY first_on, bank_statement_id`);

const CLOSABLE = ['bank_line', 'bank_statement', 'event', 'possible_duplicate', 'digits_swapped'] as const;
type ClosableKind = (typeof CLOSABLE)[number];
export const isClosable = (kind: ExceptionKind): kind is ClosableKind => CLOSABLE.some((each) => each === kind);

export async function insertClosing(
  tx: Transaction,
  { now, eventId }: PaymentContext,
  { exception, kind, reason }: { exception: string; kind: ClosableKind; reason: string },
) {
  const line = kind === 'bank_line' ? exception.replace('line-', '') : null;
  const statement = kind === 'bank_statement' ? exception.replace('bank-statement-', '') : null;
  const payment = kind === 'possible_duplicate' || kind === 'digits_swapped' ? exception.replace('payment-', '') : null;
  await execute(
    tx,
    `INSERT INTO payment_exception_closings (
       processor_event_id, bank_line_id, bank_statement_id, payment_id, reason, recorded_at, event_id)
     SELECT e.processor_event_id, :line::bigint, :statement::bigint, :payment::bigint, :reason, :now::timestamptz,
            :eventId::bigint
     FROM (SELECT) AS one LEFT JOIN processor_events e ON :isEvent::boolean AND e.id = :exception`,
    { exception, line, statement, payment, isEvent: kind === 'event', reason, now, eventId },
  );
}
