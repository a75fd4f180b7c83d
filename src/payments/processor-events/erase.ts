/**
 * Erases data of processor events that is no longer needed, because it names payers. What the books need was recorded
 * in columns when the event was processed. The hash of the data stays, so seals and `verify` remain valid. The database
 * keeps the data of events that were received in the last 30 days, are waiting, need a review, or concern a payment
 * that is unapplied or disputed (payload_may_go).
 */
import type { Transaction } from '../../database/transaction.ts';
import { recordEvent } from '../../people/audit-events.ts';
import { type Caller, lockPayments } from '../context.ts';
import { type ErasureBatch, type ErasureRange, insertErasures, readErasable } from './events.sql.ts';

/** Records the erasures of a batch under one audit event; the database then erases the data. */
export async function eraseEventData(tx: Transaction, caller: Caller, range: ErasureRange): Promise<ErasureBatch> {
  // While this holds the lock, no event is processed and no dispute is opened.
  await lockPayments(tx);
  const found = await readErasable(tx, range);
  if (found.deleted === 0) return found;
  const now = caller.environment.now().toISO();
  const details = { erased: found.deleted, received_before: range.before };
  const event = { action: 'processor_event.erase', subject: 'inbox', details, now };
  const eventId = await recordEvent(tx, caller.actor, event);
  const { before, afterId } = range;
  const deleted = await insertErasures(tx, { before, afterId, last_id: found.last_id, now, eventId });
  return { ...found, deleted };
}
