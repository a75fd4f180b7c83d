/**
 * Pauses of the ledger, during which nothing is closed, issued, sent or recorded. The database refuses (begin_recording
 * in migrations/001_foundation.sql); background work checks first.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Database } from '#database/database';
import { lockLedgerWhole } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { ActorContext, recordEvent } from './audit-events.ts';
import { insertPause, isPaused, readPauses } from './pauses.sql.ts';

/** So that an action does no long work that the database then refuses. */
export async function refuseWhilePaused(tx: Transaction) {
  const [pause] = await readPauses(tx);
  if (pause !== undefined) throw refuse('paused', { since: pause.paused_at, reason: pause.reason });
}

/** Until a long-running worker notices the start or end of a pause. */
const LOOK_AGAIN_MILLISECONDS = 2000;

/**
 * Runs `work` until `stop` is triggered, and again after each pause. Its signal is also triggered when a pause begins.
 */
export async function whileNotPaused(
  database: Pick<Database, 'reading'>,
  stop: AbortSignal,
  work: (stop: AbortSignal) => Promise<void>,
) {
  while (!stop.aborted) {
    if (await database.reading(isPaused)) {
      await sleep(LOOK_AGAIN_MILLISECONDS, undefined, { signal: stop }).catch(() => {});
      continue;
    }
    const paused = new AbortController();
    const looking = setInterval(() => {
      // An error is ignored, because `work` fails by itself if the database is lost.
      database.reading(isPaused).then(
        (is) => is && paused.abort(),
        () => {},
      );
    }, LOOK_AGAIN_MILLISECONDS);
    try {
      await work(AbortSignal.any([stop, paused.signal]));
    } finally {
      clearInterval(looking);
    }
  }
}

/** Pauses the ledger after transactions in progress, such as a close, have ended. */
export async function pauseLedger(
  tx: Transaction,
  { environment, actor }: ActorContext,
  { reason, stateOf }: { reason: string; stateOf: string | null },
) {
  await lockLedgerWhole(tx);
  const [open, ...others] = await readPauses(tx);
  // A pause in the backup does not cover events after it, so a restore adds its own.
  const isTold = stateOf === null || [open, ...others].some((pause) => (pause?.state_of ?? null) !== null);
  if (open !== undefined && isTold) throw refuse('already_paused', { since: open.paused_at, reason: open.reason });
  const now = environment.now().toISO();
  const details = { reason, ...(stateOf !== null && { state_of: stateOf }) };
  const eventId = await recordEvent(tx, actor, { action: 'ledger.pause', subject: 'ledger', details, now });
  const pause = await insertPause(tx, { reason, stateOf, now, eventId });
  failpoint('pause.recorded');
  return pause;
}
