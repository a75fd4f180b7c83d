/** SQL over payment exceptions and their closings. */
import { execute, query, type Transaction } from '../database/transaction.ts';
import type { PaymentContext } from './context.ts';

export type ExceptionKind =
  | 'unknown_payer'
  | 'possible_duplicate'
  | 'suggestion'
  | 'payout'
  | 'bank_line'
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

/** `line`: the exception is a bank line, such as `line-7`; otherwise it is an event. */
export async function insertClosing(
  { tx, now, eventId }: PaymentContext,
  { exception, line, reason }: { exception: string; line: boolean; reason: string },
): Promise<void> {
  await execute(
    tx,
    `INSERT INTO payment_exception_closings (processor_event_id, bank_line_id, reason, recorded_at, event_id)
     SELECT e.processor_event_id, :line::bigint, :reason, :now::timestamptz, :eventId::bigint
     FROM (SELECT) AS one LEFT JOIN processor_events e ON :line::bigint IS NULL AND e.id = :exception`,
    { exception, line: line ? exception.replace('line-', '') : null, reason, now, eventId },
  );
}
