/**
 * Deletes data after its retention period: idempotency keys, unaccepted quotes and requotes, job runs, and the data of
 * processor events. The database refuses to delete any other data (make_append_only in migrations/001_foundation.sql).
 * Refusal: paused.
 */
import { Database } from '#database/database';
import { lockLedgerShared } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { failpoint } from '#failpoint';
import { eraseEventData } from '#payments/processor-events/erase';
import { countErasable } from '#payments/processor-events/events.sql';
import { ActorContext, recordEvent } from '#people/audit-events';
import { refuseWhilePaused } from '#people/pauses';
import {
  Batch,
  countOver,
  deleteJobRuns,
  deleteKeys,
  deleteQuotes,
  deleteRequotes,
  Purged,
  Range,
} from './purge.sql.ts';

/** The largest number of rows that one transaction reads, so that it blocks other work only briefly. */
const BATCH = 5000;

/**
 * The days for which idempotency keys (docs/partners.md) and job runs are kept. The database enforces the same periods.
 */
const KEY_DAYS = 30;
const JOB_RUN_DAYS = 400;

async function eraseEvents(tx: Transaction, { afterId, ...range }: Range, context: ActorContext): Promise<Batch> {
  const batch = await eraseEventData(tx, context, { ...range, afterId: Number(afterId) });
  return { ...batch, last_at: null, last_id: batch.last_id === null ? null : String(batch.last_id) };
}

/** Records the number of deleted offers in an audit event, because partners may ask about offers. */
const withEvent =
  (table: 'quotes' | 'requotes', deleteBatch: typeof deleteQuotes) =>
  async (tx: Transaction, range: Range, { actor, environment }: ActorContext) => {
    const batch = await deleteBatch(tx, range);
    if (batch.deleted > 0) {
      const details = { deleted: batch.deleted, expired_before: range.before };
      await recordEvent(tx, actor, { action: 'quote.purge', subject: table, details, now: environment.now().toISO() });
    }
    return batch;
  };

type DeleteBatch = (tx: Transaction, range: Range, context: ActorContext) => Promise<Batch>;

/** Requotes are deleted before quotes, because requotes refer to quotes. */
const DELETE_BATCH: Readonly<Record<keyof Purged, DeleteBatch>> = {
  idempotency_keys: deleteKeys,
  requotes: withEvent('requotes', deleteRequotes),
  quotes: withEvent('quotes', deleteQuotes),
  job_runs: deleteJobRuns,
  processor_events: eraseEvents,
};

/** The number of days for which the rows of each table are kept; null for forever. */
const daysOf = ({ settings: { retention } }: ActorContext): Readonly<Record<keyof Purged, number | null>> => ({
  idempotency_keys: KEY_DAYS,
  requotes: retention.quotes_days,
  quotes: retention.quotes_days,
  job_runs: JOB_RUN_DAYS,
  processor_events: retention.processor_events_days,
});

/**
 * The instant for each table: only rows that ended before it are deleted. Null if the table's rows are kept forever.
 */
function beginnings(context: ActorContext): [keyof Purged, string | null][] {
  const now = context.environment.now();
  return Object.entries(daysOf(context)).map(([table, days]) => [
    table as keyof Purged,
    days === null ? null : now.toUTC().minus({ days }).toISO(),
  ]);
}

const NOTHING: Purged = { idempotency_keys: 0, requotes: 0, quotes: 0, job_runs: 0, processor_events: 0 };

/**
 * Deletes the data that is due for deletion, each batch in its own transaction. The purge may be repeated, and may run
 * concurrently.
 */
export async function purge(database: Database, context: ActorContext): Promise<Purged> {
  let purged = NOTHING;
  for (const [table, before] of beginnings(context)) {
    if (before !== null) purged = { ...purged, [table]: await purgeTable(database, context, table, before) };
  }
  return purged;
}

async function purgeTable(database: Database, context: ActorContext, table: keyof Purged, before: string) {
  let deleted = 0;
  let range: Range = { before, afterAt: '-infinity', afterId: '0', batch: BATCH };
  for (let isMore = true; isMore; ) {
    const batch = await database.transaction(async (tx) => {
      await lockLedgerShared(tx);
      await refuseWhilePaused(tx);
      const done = await DELETE_BATCH[table](tx, range, context);
      failpoint('purge.recorded');
      return done;
    });
    failpoint('purge.committed');
    deleted += batch.deleted;
    range = { ...range, afterAt: batch.last_at ?? '-infinity', afterId: batch.last_id ?? '0' };
    isMore = batch.read === BATCH;
  }
  return deleted;
}

export async function countPurgeable(tx: Transaction, context: ActorContext): Promise<Purged> {
  const before = Object.fromEntries(beginnings(context)) as Record<keyof Purged, string | null>;
  const counts = await countOver(tx, {
    idempotency_keys: before.idempotency_keys,
    requotes: before.requotes,
    quotes: before.quotes,
    job_runs: before.job_runs,
  });
  const received = before.processor_events;
  return { ...counts, processor_events: received === null ? 0 : await countErasable(tx, { before: received }) };
}
