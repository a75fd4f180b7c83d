/**
 * The data of processor events names payers, so it is erased when it is no longer needed. The columns of the books were
 * filled when each event was processed. The hash of the data stays, so the log and `verify` remain valid.
 *
 * The database keeps the data of some events (payload_may_go): events received in the last 30 days, waiting events,
 * events that need a review, and events of a payment that is unapplied or disputed.
 */
import { Transaction } from '#database/transaction';
import { Caller, lockPayments } from '#payments/context';
import { recordEvent } from '#people/audit-events';
import { ErasureBatch, ErasureRange, insertErasures, readErasable } from './events.sql.ts';

export async function eraseEventData(tx: Transaction, caller: Caller, range: ErasureRange): Promise<ErasureBatch> {
  // While this transaction holds the lock, no event is processed and no dispute is opened.
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
