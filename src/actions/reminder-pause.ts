import { todayOf } from '#config/today';
import { Transaction } from '#database/transaction';
import { failpoint } from '#failpoint';
import { pauseReminders } from '#payments/reminder-pauses';
import { readReminderPause } from '#payments/reminder-pauses.sql';
import { toDo } from '#remedy';
import { ActionContext, date, defineAction, Facts, OF_PARTNER, partner, reason } from './action.ts';

const partnerId = partner();

const PAUSE = {
  ...OF_PARTNER,
  role: 'finance',
  committed: () => failpoint('reminder_pause.committed'),
  async facts(tx: Transaction, input: { partnerId: string }, _done: unknown, context: ActionContext): Promise<Facts> {
    const pause = await readReminderPause(tx, { partnerId: input.partnerId, today: todayOf(context) });
    return {
      [`reminders of ${input.partnerId}`]: { 'paused through': pause?.until ?? null, reason: pause?.reason ?? '' },
    };
  },
} as const;

export const reminderPause = defineAction({
  ...PAUSE,
  name: 'reminder.pause',
  title: 'Pause the reminders of a partner',
  command: { arguments: { partnerId: '<partner>' } },
  input: { partnerId, until: date('Until', 'The last day without reminders.'), reason: reason() },
  perform: pauseReminders,
  report: async ({ input: { partnerId, until, reason } }) => ({
    json: { partner_id: partnerId, paused_until: until, reason },
    text: `${partnerId} gets no reminders through ${until}.`,
    remedies: [toDo('End the pause early', 'reminder.resume', { partnerId })],
  }),
});

export const reminderResume = defineAction({
  ...PAUSE,
  name: 'reminder.resume',
  title: 'End the pause of the reminders of a partner',
  command: { arguments: { partnerId: '<partner>' } },
  input: { partnerId, reason: reason() },
  perform: (tx, context, input) => pauseReminders(tx, context, { ...input, until: null }),
  report: async ({ input: { partnerId, reason } }) => ({
    json: { partner_id: partnerId, paused_until: null, reason },
    text: `The reminders of ${partnerId} are no longer paused.`,
  }),
});
