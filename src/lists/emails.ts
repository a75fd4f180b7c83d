/** E-mails: `reckoner email list`, and a partner's e-mails in the console. */

import { z } from 'zod';
import { emailJson } from '#actions/email';
import { Transaction } from '#database/transaction';
import { EmailStatus } from '#mail/email';
import { nameOf } from '#mail/log';
import { ListedEmail, readEmails } from '#mail/log.sql';
import { names } from '#text';
import { defineList, flag, ListQuery, Mark } from './list.ts';

const filters = z.strictObject({
  unfinished: flag('Unfinished', 'Only e-mails that are unsent or need attention, oldest first.').optional(),
});

const readRows = (
  tx: Transaction,
  { filter: { unfinished }, scope, after, limit }: ListQuery<z.output<typeof filters>>,
) => readEmails(tx, { unfinished, scope, after, limit });

const TONES: Readonly<Partial<Record<EmailStatus, Mark['tone']>>> = {
  ...{ sent: 'good', failed: 'bad', bounced: 'bad', held: 'warn', uncertain: 'warn' },
};
export const emailMark = (status: EmailStatus): Mark => ({ text: status, tone: TONES[status] ?? 'plain' });

const sinceOf = ({ sent_at, attempted_at, queued_at }: ListedEmail) => sent_at ?? attempted_at ?? queued_at;

export const emails = defineList({
  command: 'email list',
  summary: 'List e-mails with their status, newest first',
  most: 100,
  title: 'E-mails',
  one: 'e-mail',
  none: 'There are no e-mails.',
  filters,
  views: [
    ['All', {}],
    ['Unfinished', { unfinished: 'yes' }],
  ],
  sorts: ['-number', '-number'],
  columns: {
    number: { heading: 'E-mail', type: 'count', value: ({ email_id }) => email_id },
    kind: {},
    about: { value: nameOf, to: ({ document }) => (document === null ? null : ['invoices', document]) },
    partner_id: {},
    to: { value: ({ to }) => to?.join(' ') ?? null },
    recipients: { heading: 'To', look: 'wrap', cut: true, value: ({ to }) => to?.join(', ') ?? null },
    status: {},
    state: { value: ({ status, dismissal_reason }) => (dismissal_reason === null ? status : `${status}, dismissed`) },
    standing: {
      ...{ heading: 'Status', type: 'marks' },
      value: ({ status, dismissal_reason: dismissed }) => [
        emailMark(status),
        ...(dismissed === null ? [] : [{ text: 'dismissed', tone: 'plain' } as const]),
      ],
    },
    attempts: { type: 'count' },
    since: { type: 'instant', look: 'soft', value: sinceOf },
    queued_at: { heading: 'Queued', type: 'instant' },
    attempted_at: { heading: 'Attempted', type: 'instant' },
    sent_at: { heading: 'Sent', type: 'instant' },
    reason: {},
    why: { heading: 'Reason', cut: true, value: ({ dismissal_reason, reason }) => dismissal_reason ?? reason },
    why_not: {
      ...{ heading: 'Reason', look: 'wrap' },
      value: ({ status, dismissal_reason, reason }) => dismissal_reason ?? (status === 'sent' ? null : reason),
    },
    dismissal_reason: { heading: 'Dismissed' },
    message_id: { heading: 'Message-ID' },
  },
  sheet: names(
    'number kind about partner_id to status attempts queued_at attempted_at sent_at reason dismissal_reason',
    'message_id',
  ),
  terminal: names('number about recipients state since why'),
  page: names('about standing recipients since why_not'),
  key: ({ email_id }) => String(email_id),
  read: readRows,
  json: (_tx, rows) => Promise.all(rows.map(emailJson)),
});
