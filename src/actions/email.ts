import { resendDocument } from '#delivery/resend';
import { failpoint } from '#failpoint';
import { dismissEmail } from '#mail/dismiss';
import { nameOf, readEmail, remediesOf } from '#mail/log';
import { ListedEmail, readEmails } from '#mail/log.sql';
import { resendEmail } from '#mail/resend';
import { NOBODY } from '#people/roles';
import { reason, text, whole } from './action.ts';
import { deliver } from './documents.ts';
import { eachOf } from './each.ts';
import { commandOf } from './remedies.ts';

const EMAIL = () => whole('E-mail', "The e-mail's number in the list of e-mails.");

/** Defines an action on e-mails. */
const onEmails = eachOf({
  ...{ field: 'emailId', one: 'e-mail', nameOf: (emailId: number) => `e-mail ${emailId}` },
  /** E-mails to finance or the auditor are for users who see every partner. */
  async partners(tx, emailIds) {
    const found = (await readEmails(tx, { emailIds, limit: null })).map(({ partner_id }) => partner_id);
    if (found.includes(null)) return 'all';
    return [...new Set(found.length < emailIds.length ? [...found, NOBODY] : found)] as string[];
  },
  facts: async (tx, emailIds) =>
    Object.fromEntries(
      (await readEmails(tx, { emailIds, limit: null })).map(({ email_id, status, dismissal_reason }) => [
        `e-mail ${email_id}`,
        { status, dismissed: dismissal_reason },
      ]),
    ),
});

export const emailResend = onEmails({
  name: 'email.resend',
  said: ['is sent again', 'are sent again'],
  title: 'Send an e-mail again',
  command: {
    summary: 'Send an e-mail again, as a new one with its own Message-ID',
    arguments: { emailId: '<email...>' },
    deliver: true,
  },
  role: 'finance',
  input: {
    emailId: EMAIL(),
    to: text('To', 'Send to this address instead of the usual one.', { value: 'address' }).optional(),
  },
  async perform(tx, context, { emailId, to }) {
    const { document: number } = await readEmail(tx, emailId);
    if (number === null) return readEmail(tx, (await resendEmail(tx, context, { emailId, to })).email_id);
    return readEmail(tx, await resendDocument(tx, context, { number, to }));
  },
  committed: () => failpoint('resend.committed'),
  async follow({ reporter, ...context }, queued) {
    const { sendTheseEmails } = await import('#month-end/month-end');
    await deliver(
      { reporter, ...context },
      queued.flatMap(({ document }) => document ?? []),
    );
    const others = queued.filter(({ document }) => document === null);
    await sendTheseEmails(
      context,
      reporter,
      others.map(({ email_id }) => email_id),
    );
  },
  facts: async () => ({}),
  made: async (_tx, queued) => ({ 'a new e-mail': { about: nameOf(queued), status: queued.status } }),
  async report({ result: queued, delivered }, _context, tx) {
    const email = await readEmail(tx, queued.email_id);
    return {
      json: await emailJson(email),
      text: `E-mail ${email.email_id}, ${nameOf(email)}: ${email.status}`,
      attention: delivered && email.unfinished,
    };
  },
});

export const emailDismiss = onEmails({
  name: 'email.dismiss',
  said: ['is dismissed', 'are dismissed'],
  title: 'Dismiss an e-mail',
  command: {
    summary: 'Dismiss an e-mail that should not be resent',
    arguments: { emailId: '<email...>' },
  },
  role: 'finance',
  input: { emailId: EMAIL(), reason: reason() },
  perform: dismissEmail,
  async report({ input: { emailId, reason } }, _context, tx) {
    const email = await readEmail(tx, emailId);
    return { json: await emailJson(email), text: `E-mail ${emailId}, ${nameOf(email)}, is dismissed: ${reason}` };
  },
});

export const emailJson = async ({ email_id: number, ...email }: ListedEmail): Promise<Record<string, unknown>> => ({
  number,
  ...email,
  remedies: email.unfinished ? await Promise.all(remediesOf({ email_id: number, ...email }).map(commandOf)) : [],
});
