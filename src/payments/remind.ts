/**
 * Reminders (dunning). The settings name days before and after the due date. On each of these days, a partner gets one
 * e-mail that lists all its open items. Each document reaches each dunning level once. After days without a run, only
 * the latest level reached is sent.
 *
 * If the settlement of a debt was undone and the debt is open again, its dunning starts again with the first overdue
 * level. A debt carried over by an opening starts with the first overdue level, counted from the day of the import.
 *
 * The disputed part of a document is not dunned. A document is skipped for any reason of `SkipReason`, or if it is
 * completely disputed.
 */

import { createHash } from 'node:crypto';
import { todayOf } from '../config/today.ts';
import { LOCKS, takeLock } from '../database/locks.ts';
import type { Transaction } from '../database/transaction.ts';
import { mailDomain } from '../documents/issue/context.ts';
import { queueEmails } from '../mail/outbox.sql.ts';
import { Amount } from '../money.ts';
import { recordEvent } from '../people/audit-events.ts';
import type { Caller } from './context.ts';
import { insertReminders, type OwedRow, readOwed, readRemindedOn, type SkipReason } from './remind.sql.ts';

interface DueReminder {
  readonly partner_id: string;
  readonly dunning_level: number;
  readonly documents: readonly Pick<
    OwedRow,
    'number' | 'due_on' | 'balance' | 'disputed' | 'currency' | 'dunning_level'
  >[];
}

export interface ReminderPlan {
  readonly day: string;
  readonly reminders: readonly DueReminder[];
  /** Documents that are overdue or have reached a dunning level, but are not dunned. */
  readonly skipped: readonly { readonly number: string; readonly partner_id: string; readonly reason: SkipReason }[];
}

export async function planReminders(
  tx: Transaction,
  caller: Caller,
): Promise<{ readonly plan: ReminderPlan; readonly rows: readonly OwedRow[] }> {
  const day = todayOf(caller);
  const { reminders: levels, time_zone: timeZone } = caller.settings;
  const rows = await readOwed(tx, { day, timeZone, levels, partnerId: null });
  const reminded = new Set(await readRemindedOn(tx, day));
  const listed = rows.filter((row) => row.skip_reason === null && !reminded.has(row.partner_id));
  const partners = new Set(listed.filter((row) => row.dunning_level !== null).map((row) => row.partner_id));
  const plan: ReminderPlan = {
    day,
    reminders: [...partners].map((partner_id) => {
      const own = listed.filter((row) => row.partner_id === partner_id);
      return {
        partner_id,
        dunning_level: Math.max(...own.flatMap((row) => row.dunning_level ?? [])),
        documents: own.map(({ number, due_on, currency, dunning_level, ...row }) => {
          const [balance, disputed] = [row.balance, row.disputed].map((each) => Amount.of(each, currency).toString());
          return { number, due_on, balance: balance as string, disputed: disputed as string, currency, dunning_level };
        }),
      };
    }),
    skipped: rows.flatMap(({ number, partner_id, due_on, dunning_level, skip_reason: reason }) =>
      reason !== null && (due_on < day || dunning_level !== null) ? [{ number, partner_id, reason }] : [],
    ),
  };
  return { plan, rows };
}

export async function recordReminders(tx: Transaction, caller: Caller): Promise<ReminderPlan> {
  // Only one run at a time, because each run reads the records of the previous run.
  await takeLock(tx, LOCKS.reminders);
  const { plan, rows } = await planReminders(tx, caller);
  const { day, reminders } = plan;
  if (reminders.length === 0) return plan;
  const now = caller.environment.now().toISO();
  const details = { partners: reminders.length };
  const eventId = await recordEvent(tx, caller.actor, { action: 'reminder.record', subject: day, details, now });
  const emails = reminders.map(({ partner_id }) => ({
    ...({ kind: 'reminder', day, partner_id } as const),
    name: `reminder.${day}.${createHash('sha256').update(partner_id).digest('hex').slice(0, 16)}`,
  }));
  const queued = await queueEmails(tx, emails, { now, eventId, mailDomain: mailDomain(caller.settings) });
  const reminded = new Set(reminders.flatMap(({ documents }) => documents.map(({ number }) => number)));
  const levels = rows.flatMap(({ number, dunning_level, counted_from }) =>
    dunning_level === null || !reminded.has(number) ? [] : [{ number, dunning_level, counted_from }],
  );
  await insertReminders(
    tx,
    levels,
    queued.map((each) => each.email_id),
  );
  return plan;
}
