/** SQL over payment exceptions and their closings. */
import { execute, query, type Transaction } from '../database/transaction.ts';
import type { PaymentContext } from './context.ts';

export type ExceptionKind =
  | 'unknown_payer'
  | 'possible_duplicate'
  | 'suggestion'
  | 'payout'
  | 'bank_line'
  | 'bank_statement'
  | 'event'
  | 'waiting_event';

export interface PaymentException {
  readonly kind: ExceptionKind;
  /** What commands call it: `payment-12`, `payout-3`, `line-7`, or the id of the event. */
  readonly exception: string;
  readonly partner_id: string | null;
  readonly currency: string | null;
  /** Below zero where the bank took it. */
  readonly amount: string | null;
  /** `YYYY-MM-DD` */
  readonly since: string;
  readonly reason: string;
}

export function readExceptions(tx: Transaction): Promise<PaymentException[]> {
  return query(
    tx,
    `SELECT kind, exception, partner_id, currency, amount::text AS amount, since, reason
     FROM payment_exceptions ORDER BY since, kind, exception`,
  );
}

export async function countExceptions(tx: Transaction): Promise<Partial<Record<ExceptionKind, number>>> {
  const rows = await query<{ kind: ExceptionKind; count: number }>(
    tx,
    `SELECT kind, count(*) AS count FROM payment_exceptions GROUP BY kind ORDER BY kind`,
  );
  return Object.fromEntries(rows.map(({ kind, count }) => [kind, count]));
}

/** Statements of these accounts that do not continue what is known of them, unless they are closed. */
export function readBreaks(tx: Transaction, accounts: readonly string[]): Promise<PaymentException[]> {
  return query(
    tx,
    `SELECT e.kind, e.exception, e.partner_id, e.currency, e.amount::text AS amount, e.since, e.reason
     FROM payment_exceptions e JOIN bank_statements s ON e.exception = 'bank-statement-' || s.bank_statement_id
     WHERE e.kind = 'bank_statement' AND s.account = ANY (:accounts::text[])
     ORDER BY e.since, s.bank_statement_id`,
    { accounts },
  );
}

export type ClosableKind = Extract<ExceptionKind, 'bank_line' | 'bank_statement' | 'event'>;

export async function insertClosing(
  { tx, now, eventId }: PaymentContext,
  { exception, kind, reason }: { exception: string; kind: ClosableKind; reason: string },
): Promise<void> {
  const line = kind === 'bank_line' ? exception.replace('line-', '') : null;
  const statement = kind === 'bank_statement' ? exception.replace('bank-statement-', '') : null;
  await execute(
    tx,
    `INSERT INTO payment_exception_closings (
       processor_event_id, bank_line_id, bank_statement_id, reason, recorded_at, event_id)
     SELECT e.processor_event_id, :line::bigint, :statement::bigint, :reason, :now::timestamptz, :eventId::bigint
     FROM (SELECT) AS one LEFT JOIN processor_events e ON :isEvent::boolean AND e.id = :exception`,
    { exception, line, statement, isEvent: kind === 'event', reason, now, eventId },
  );
}
