/**
 * The context in which payments are recorded: one action at a time, under one audit event.
 *
 * An action first locks the ledger in shared mode, so that no month closes and no document is issued or voided. The
 * action then locks the payments. A close locks only the ledger, so an action and a close cannot deadlock.
 */

import { todayOf } from '#config/today';
import { lockLedgerShared } from '#database/ledger-lock';
import { LOCKS, takeLock } from '#database/locks';
import { Transaction } from '#database/transaction';
import { requestLinkChecks as requestChecks } from '#documents/emails.sql';
import { refuse } from '#errors/refusals';
import { fieldName } from '#field-names';
import { ActorContext, recordEvent } from '#people/audit-events';
import { readEarliestPostableDate } from './payments.sql.ts';

export type Caller = ActorContext;

export type PaymentContext = Readonly<{
  now: string;
  /** `YYYY-MM-DD` in the issuer's zone. */
  today: string;
  eventId: number;
  /** The first day of the first month with open books. Null while no books are closed. */
  earliest: string | null;
}>;

export async function lockPayments(tx: Transaction) {
  await lockLedgerShared(tx);
  await takeLock(tx, LOCKS.payments);
}

/**
 * Records the audit event of an action. The caller holds the lock on payments, so the data that was read stays current.
 */
export async function openPaymentContext(
  tx: Transaction,
  caller: Caller,
  event: { action: string; subject: string; details: Readonly<Record<string, unknown>> },
): Promise<PaymentContext> {
  const now = caller.environment.now().toISO();
  const eventId = await recordEvent(tx, caller.actor, { ...event, now });
  return { now, today: todayOf(caller), eventId, earliest: await readEarliestPostableDate(tx) };
}

/**
 * Returns the given day, or the default day `otherwise`. A default day before `earliest` becomes `earliest`. A given
 * day is refused before `earliest` or after today. Refusals: date_in_future, date_too_early.
 */
export function dayOfAction(
  caller: Caller,
  given: string | undefined,
  { earliest, what, otherwise }: { earliest: string; what: string; otherwise?: string },
) {
  const today = todayOf(caller);
  if (given === undefined) {
    const day = otherwise ?? today;
    return day < earliest ? earliest : day;
  }
  if (given > today) throw refuse('date_in_future', { argument: fieldName('on'), value: given, today });
  if (given < earliest) throw refuse('date_too_early', { argument: fieldName('on'), value: given, earliest, what });
  return given;
}

/** Returns the reason why the journal entry is dated later than the action, or undefined if the dates are the same. */
export function enteredLater(on: string, entryOn: string) {
  if (entryOn <= on) return undefined;
  return entryOn.slice(0, 7) > on.slice(0, 7) && entryOn.endsWith('-01')
    ? `The books of ${on.slice(0, 7)} are closed, so its journal entry is dated ${entryOn}.`
    : `Its journal entry is dated ${entryOn}, because the money was in use until then.`;
}

/** Requests the opening or closing of payment links, for documents whose balance changed. */
export async function requestLinkChecks(tx: Transaction, documentIds: readonly number[]) {
  if (documentIds.length > 0) await requestChecks(tx, { ids: [...new Set(documentIds)] });
}
