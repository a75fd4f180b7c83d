/** The notices to users of events of their accounts. They are queued from the events, so that no sign-in waits. */
import { EmailComposer, letterView, oneLine } from '#mail/email';
import { queueEmails } from '#mail/outbox.sql';
import { minuteOf } from '#text';
import { readUserEvents } from './due.sql.ts';

/** Older events are not reported. */
const NEWS_FOR_DAYS = 7;

const WHAT: Readonly<Record<string, string>> = {
  'user.add_passkey': 'A passkey was added to your account',
  'user.link': 'A sign-in link for your account was made',
  'user.sign_in': 'Your account was signed in to from a new network',
};

export const securityNoticeEmail: EmailComposer = {
  kind: 'security_notice',
  async queueDue(tx, context) {
    const now = context.environment.now();
    const due = await readUserEvents(tx, { since: now.minus({ days: NEWS_FOR_DAYS }).toISO() });
    const emails = due.map(({ event_id }) => ({
      ...({ kind: 'security_notice', user_event_id: event_id, event_id } as const),
      name: `security-notice.${event_id}`,
    }));
    await queueEmails(tx, emails, context);
  },
  async compose(tx, { user_event_id: eventId }, context, templates) {
    const [event] = await readUserEvents(tx, { eventId });
    if (event === undefined) return { withdrawn: 'the user was deactivated' };
    const { login, name, action, detail, occurred_at } = event;
    return {
      ...{ to: { name, address: login }, cc: [], attachments: [] },
      content: templates.render('security_notice', {
        ...{ ...letterView(context), name: oneLine(name) },
        ...{ what: WHAT[action] ?? action, detail: oneLine(detail), at: minuteOf(occurred_at) },
      }),
    };
  },
};
