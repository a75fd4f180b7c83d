/** Waiting for what a test needs to have happened, instead of sleeping for as long as it usually takes. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { World } from './world.ts';

/** Resolves when so many sessions of the world's database wait for a lock. The test's own timeout ends it otherwise. */
export async function untilLockAwaited({ sql }: Pick<World, 'sql'>, sessions = 1): Promise<void> {
  const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  while ((await sql(waiting)).length < sessions) await sleep(10);
}
