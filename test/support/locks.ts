/** Waits until something that a test needs has happened, instead of sleeping for the usual time. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { World } from './world.ts';

/**
 * Resolves when this many sessions of the world's database are waiting for a lock. Otherwise the test's timeout ends
 * it.
 */
export async function untilLockAwaited({ sql }: Pick<World, 'sql'>, sessions = 1): Promise<void> {
  const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  while ((await sql(waiting)).length < sessions) await sleep(10);
}

/** Takes the ledger's lock as a close does. */
export const LEDGER_LOCK = 'LOCK TABLE ledger_gate IN SHARE ROW EXCLUSIVE MODE';
