/**
 * Payment exceptions: what waits for a manual review. Most end when the missing act is done. A bank line or an event that
 * needs no act is closed with a reason, which is recorded.
 * Refusals: exception_unknown, exception_needs_an_act.
 */
import { execute, query, type Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { type Caller, lockPayments, openPaymentContext } from './context.ts';

export type ExceptionKind = 'unknown_payer' | 'suggestion' | 'payout' | 'bank_line' | 'event' | 'waiting_event';

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

/** What resolves each kind. */
export const ENDS: Readonly<Record<ExceptionKind, string>> = {
  unknown_payer: "'reckoner payment apply'",
  suggestion: "'reckoner payment apply', or 'payment reverse --as duplicate'",
  payout: "'reckoner payment settle'",
  bank_line: "'reckoner payment close-exception'",
  event: "'reckoner payment close-exception'",
  waiting_event: 'the event that it waits for',
};

export function readExceptions(tx: Transaction): Promise<PaymentException[]> {
  return query(
    tx,
    `SELECT kind, exception, partner_id, currency, amount::text AS amount, since, reason FROM payment_exceptions
     ORDER BY since, kind, exception`,
  );
}

export async function countExceptions(tx: Transaction): Promise<Partial<Record<ExceptionKind, number>>> {
  const rows = await query<{ kind: ExceptionKind; count: number }>(
    tx,
    `SELECT kind, count(*) AS count FROM payment_exceptions GROUP BY kind ORDER BY kind`,
  );
  return Object.fromEntries(rows.map(({ kind, count }) => [kind, count]));
}

/** Closes the exception of a bank line or event, with the reason why nothing is to be done. */
export async function closeException(
  tx: Transaction,
  caller: Caller,
  { exception, reason }: { exception: string; reason: string },
): Promise<PaymentException> {
  await lockPayments(tx);
  const open = (await readExceptions(tx)).find((each) => each.exception === exception);
  if (open === undefined) throw refuse('exception_unknown', { exception });
  if (open.kind !== 'bank_line' && open.kind !== 'event') {
    throw refuse('exception_needs_an_act', { exception, reason: open.reason, ends: ENDS[open.kind] });
  }
  const { eventId, now } = await openPaymentContext(tx, caller, {
    action: 'payment.close_exception',
    subject: exception,
    details: { reason },
  });
  await execute(
    tx,
    `INSERT INTO payment_exception_closings (processor_event_id, bank_line_id, reason, recorded_at, event_id)
     SELECT e.processor_event_id, :line::bigint, :reason, :now::timestamptz, :eventId::bigint
     FROM (SELECT) AS one LEFT JOIN processor_events e ON :line::bigint IS NULL AND e.id = :exception`,
    {
      exception,
      line: open.kind === 'bank_line' ? exception.replace('line-', '') : null,
      reason,
      now,
      eventId,
    },
  );
  return open;
}
