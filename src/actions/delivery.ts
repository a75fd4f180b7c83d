import { RETRIED, retryEmails } from '#delivery/retry-emails';
import { plural } from '#text';
import { choice, defineAction, Facts, instant } from './action.ts';

export const deliveryRetry = defineAction({
  name: 'delivery.retry',
  command: { called: 'deliver', options: { status: '--retry <status>' } },
  title: 'Send unsent e-mails again',
  role: 'finance',
  input: {
    status: choice('Status', 'Which e-mails to send again.', RETRIED),
    since: instant('Since', 'Only e-mails that were tried since this day or time.').optional(),
  },
  subject: ({ status }) => status,
  perform: retryEmails,
  facts: async (_tx, { status }, retried): Promise<Facts> =>
    retried === undefined
      ? {}
      : { [`what was ${status}`]: { documents: String(retried.documents), 'other e-mails': String(retried.others) } },
  /** The next run of delivery sends the queued e-mails. */
  report: async ({ input: { status }, result: { documents, others } }) => ({
    json: { documents, others },
    text:
      documents + others === 0
        ? `No ${status} e-mails to send again.`
        : `Sending again (${status}): ${plural(documents, 'document')}, ${plural(others, 'other e-mail')}.`,
  }),
});
