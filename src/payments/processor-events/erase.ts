/**
 * Erases the data of processor events that is no longer needed, because it names payers. The books' data was recorded
 * in columns when the event was processed; the hash of the data stays, so seals and `verify` remain valid. The database
 * erases nothing that was received in the last 30 days, waits, needs a review, or is about a payment that is unapplied
 * or disputed (payload_may_go).
 */
import { execute, queryOne, type Transaction } from '../../database/transaction.ts';
import { recordEvent } from '../../people/audit-events.ts';
import { type Caller, lockPayments } from '../context.ts';

/** Events received before an instant, those after a number. */
interface ErasureRange {
  /** ISO instant. */
  readonly before: string;
  readonly afterId: number;
  /** The most that are read. */
  readonly batch: number;
}

interface ErasureBatch {
  readonly deleted: number;
  readonly read: number;
  readonly last_id: number | null;
}

const READ = `
  WITH over AS MATERIALIZED (
    SELECT processor_event_id FROM processor_events
    WHERE processor_event_id > :afterId::bigint AND payload IS NOT NULL AND received_at < :before::timestamptz
    ORDER BY processor_event_id LIMIT :batch
  )
  SELECT count(*) AS read, max(processor_event_id) AS last_id,
         count(*) FILTER (WHERE payload_may_go(processor_event_id)) AS deleted FROM over`;

/** Records the erasures of a batch under one audit event; the database then erases the data. */
export async function eraseEventData(tx: Transaction, caller: Caller, range: ErasureRange): Promise<ErasureBatch> {
  // An event processed or a dispute opened meanwhile waits.
  await lockPayments(tx);
  const found = await queryOne<ErasureBatch>(tx, READ, { ...range });
  if (found.deleted === 0) return found;
  const now = caller.environment.now().toISO();
  const details = { erased: found.deleted, received_before: range.before };
  const event = { action: 'processor_event.erase', subject: 'inbox', details, now };
  const eventId = await recordEvent(tx, caller.actor, event);
  const deleted = await execute(
    tx,
    `INSERT INTO processor_event_erasures (processor_event_id, recorded_at, event_id)
     SELECT processor_event_id, :now::timestamptz, :eventId::bigint FROM processor_events
     WHERE processor_event_id > :afterId::bigint AND processor_event_id <= :last_id::bigint AND payload IS NOT NULL
       AND received_at < :before::timestamptz AND payload_may_go(processor_event_id)
     ORDER BY processor_event_id`,
    { ...range, ...found, now, eventId },
  );
  return { ...found, deleted };
}

/** How many events would be erased now. */
export async function countErasable(tx: Transaction, before: string): Promise<number> {
  const { due } = await queryOne<{ due: number }>(
    tx,
    `SELECT count(*) AS due FROM processor_events
     WHERE payload IS NOT NULL AND received_at < :before::timestamptz AND payload_may_go(processor_event_id)`,
    { before },
  );
  return due;
}
