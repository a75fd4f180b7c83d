/**
 * Selects the items that a job reports when it ends. A job that runs every ten minutes reports each item once. The item
 * is reported again after a day if it persists, and at once if its count grows. Otherwise people would switch off the
 * alarm. `status` always lists everything.
 */

import { Transaction } from '#database/transaction';
import { Attention, readUntold, recordAttention } from './jobs.sql.ts';

/**
 * The time is less than a day, so that a daily job repeats persisting items every day, even if its start varies by
 * seconds.
 */
const DAY_HOURS = 20;
export const WEEK_HOURS = 6 * 24 + DAY_HOURS;

/** Stores the items that a job found, and returns those to report now. */
export async function tellAttention(tx: Transaction, found: Omit<Attention, 'againAfterHours'>) {
  const asked = { ...found, againAfterHours: DAY_HOURS };
  const untold = await readUntold(tx, asked);
  await recordAttention(tx, asked);
  return untold;
}
