/**
 * Pauses of a partner's reminders. A pause ends after its last day. It can be replaced, or ended early. The pause of a
 * payer applies to its whole family. Refusals: partner_unknown, argument_invalid (a last day in the past),
 * reminders_not_paused.
 */
import { todayOf } from '#config/today';
import { Transaction } from '#database/transaction';
import { refuse, refuseField } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { readPartners } from '#partners/partners.sql';
import { recordEvent } from '#people/audit-events';
import { Caller } from './context.ts';
import { insertReminderPause, readReminderPause } from './reminder-pauses.sql.ts';

/** Pauses the reminders through a day, or ends the pause if `until` is null. */
export async function pauseReminders(
  tx: Transaction,
  caller: Caller,
  { partnerId, until, reason }: { partnerId: string; until: string | null; reason: string },
) {
  const today = todayOf(caller);
  if ((await readPartners(tx, partnerId)).length === 0) throw refuse('partner_unknown', { partner_id: partnerId });
  if (until === null && (await readReminderPause(tx, { partnerId, today })) === undefined) {
    throw refuse('reminders_not_paused', { partner_id: partnerId });
  }
  if (until !== null && until < today) {
    throw refuseField('until', until, `is before today, ${today}`);
  }
  const now = caller.environment.now().toISO();
  const action = until === null ? 'reminder.resume' : 'reminder.pause';
  const details = { until, reason };
  const eventId = await recordEvent(tx, caller.actor, { action, subject: partnerId, details, now });
  await insertReminderPause(tx, { partnerId, until, reason, today, now, eventId });
  failpoint('reminder_pause.recorded');
}
