/**
 * Payment exceptions: what needs manual review. Most are resolved by the command that the exception names. A bank line, a bank statement or
 * an event that needs no action is closed with a reason, which is recorded.
 * Refusals: exception_unknown, exception_needs_action.
 */
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { type Caller, lockPayments, openPaymentContext } from './context.ts';
import { type ExceptionKind, insertClosing, type PaymentException, readExceptions } from './exceptions.sql.ts';

/** What resolves each kind. */
export const ENDS: Readonly<Record<ExceptionKind, string>> = {
  unknown_payer: "'reckoner payment apply'",
  possible_duplicate:
    "'reckoner payment reverse ID --as duplicate --duplicate-of OTHER --reason R' if it is the same payment, or " +
    "'reckoner payment apply ID --invoice NUMBER' if it is another",
  suggestion: "'reckoner payment apply'",
  payout: "'reckoner payment settle'",
  bank_line: "'reckoner payment close-exception'",
  bank_statement: "the missing file, or 'reckoner payment close-exception'",
  event: "'reckoner payment close-exception'",
  waiting_event: 'the event that it waits for',
};

/** Closes the exception of a bank line, bank statement or event, with the reason why it needs no action. */
export async function closeException(
  tx: Transaction,
  caller: Caller,
  { exception, reason }: { exception: string; reason: string },
): Promise<PaymentException> {
  await lockPayments(tx);
  const open = (await readExceptions(tx)).find((each) => each.exception === exception);
  if (open === undefined) throw refuse('exception_unknown', { exception });
  const { kind } = open;
  if (kind !== 'bank_line' && kind !== 'bank_statement' && kind !== 'event') {
    throw refuse('exception_needs_action', { exception, reason: open.reason, ends: ENDS[kind] });
  }
  const context = await openPaymentContext(tx, caller, {
    action: 'payment.close_exception',
    subject: exception,
    details: { reason },
  });
  await insertClosing(context, { exception, kind, reason });
  return open;
}
