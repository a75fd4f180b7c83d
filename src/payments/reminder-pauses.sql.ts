import { executing, queryingFirst } from '#database/transaction';

/** `until` is the last day of the pause. */
export type ReminderPause = Readonly<{ until: string; reason: string }>;

export const readReminderPause = queryingFirst<ReminderPause, { partnerId: string; today: string }>(
  `SELECT until, reason FROM present_reminder_pauses WHERE partner_id = :partnerId AND until >= :today::date`,
);

/** `until` is null if the pause ends early. */
export const insertReminderPause = executing<{
  partnerId: string;
  until: string | null;
  reason: string;
  today: string;
  now: string;
  eventId: number;
}>(`
  INSERT INTO reminder_pauses (partner_id, until, reason, recorded_on, recorded_at, event_id)
  VALUES (:partnerId, :until::date, :reason, :today::date, :now::timestamptz, :eventId::bigint)`);
